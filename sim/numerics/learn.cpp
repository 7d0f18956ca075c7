// SPDX-License-Identifier: MIT
#include "sim/numerics/learn.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>

#include "sim/numerics/carry_over.h"
#include "sim/numerics/peer_twin.h"
#include "sim/numerics/service_twin.h"
#include "sim/numerics/twin.h"

namespace convoy::inline numerics {
namespace {

bool is_whole_number(double value) { return std::abs(value - std::round(value)) < 1e-9 * (1 + value); }

/// Points where an `every`-th step has been done since `before`, and at the last.
bool is_measured(const NumericsSpec& spec, std::int64_t before, std::int64_t step) {
  return step / spec.measured_every() > before / spec.measured_every() || step >= spec.steps;
}

template <class Real>
LearntPoint measured(const Lesson& lesson, const Classroom<Real>& classroom, std::int64_t step, double time_s,
                     double loss) {
  const Judgement judged =
      judge(lesson.graph, lesson.index, classroom.parameters(), classroom.running(), lesson.data.held_out);
  return {step, time_s, loss, judged.accuracy};
}

template <class Real>
std::vector<LearntPoint> learn_in_step(const NumericsSpec& spec, const Lesson& lesson,
                                       const std::vector<LearningPhase>& phases, const CostModel& cost) {
  std::unique_ptr<Twin<Real>> twin;
  std::vector<LearntPoint> points;
  double loss = 0;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < phases.size() && phases[i].first_step < spec.steps; ++i) {
    const LearningPhase& phase = phases[i];
    const ReplayResult replayed = replay(phase.plan, phase.machine, cost, {});
    auto next = std::make_unique<Twin<Real>>(lesson, phase.plan, phase.machine, replayed, spec.learning_rate);
    next->begin_at(phase.first_step);
    if (twin)
      carry_over(lesson.graph, phases[i - 1].plan, twin->classroom(), phase.plan, *phase.change,
                 next->classroom());
    twin = std::move(next);
    const std::int64_t end =
        i + 1 < phases.size() ? std::min(phases[i + 1].first_step, spec.steps) : spec.steps;
    const std::int64_t period = std::llround(phase.plan.steps);  // measured only after whole ones
    for (std::int64_t step = phase.first_step + period; step < end + period; step += period) {
      loss += twin->step() * static_cast<double>(period);
      if (!is_measured(spec, step - period, step)) continue;
      const double time_s =
          phase.start_s + static_cast<double>(step - phase.first_step) * replayed.step_time_s;
      points.push_back(
          measured(lesson, twin->classroom(), step, time_s, loss / static_cast<double>(step - last)));
      loss = 0, last = step;
    }
  }
  return points;
}

/// When the steps of a run in which they overlap have ended.
std::vector<double> ends_of_steps_s(const Plan& plan, const ReplayResult& replayed) {
  std::vector<double> ends_s;
  for (const std::vector<EndlessRun::End>& step : plan.endless()->steps) {
    double& end_s = ends_s.emplace_back(0);
    for (const EndlessRun::End& end : step)
      for (const EndpointId e : plan.roles[end.role].members)
        end_s = std::max(end_s, replayed.timelines[replayed.timeline_of[e]].tasks[end.task].end_s);
  }
  return ends_s;
}

template <class Real>
std::vector<LearntPoint> learn_overlapping(const NumericsSpec& spec, const Lesson& lesson, const Plan& plan,
                                           const Machine& machine, const CostModel& cost) {
  const ReplayResult replayed = replay(plan, machine, cost, {});
  const std::vector<double> ends_s = ends_of_steps_s(plan, replayed);
  Twin<Real> twin(lesson, plan, machine, replayed, spec.learning_rate);
  std::vector<LearntPoint> points;
  double loss = 0;
  std::int64_t last = 0;
  for (std::int64_t step = 1; step <= spec.steps; ++step) {
    loss += twin.next_step();
    if (!is_measured(spec, step - 1, step)) continue;
    points.push_back(measured(lesson, twin.classroom(), step, ends_s[static_cast<std::size_t>(step - 1)],
                              loss / static_cast<double>(step - last)));
    loss = 0, last = step;
  }
  return points;
}

/// Of workers without common steps a step is over when gradients of as many images have been added up.
/// @param Twin of the plan's service
template <template <class> class Twin, class Real>
std::vector<LearntPoint> learn_one_by_one(const NumericsSpec& spec, const Lesson& lesson, const Plan& plan,
                                          const Machine& machine, const CostModel& cost) {
  const std::vector<Service::Client>& clients = plan.service()->clients;
  double fewest = clients.front().images;
  for (const Service::Client& client : clients) fewest = std::min(fewest, client.images);
  ServiceLog log;
  // What a quorum drops takes steps as well: at most as many as there are clients for each update.
  const double steps_of_update =
      plan.service()->quorum > 0 ? static_cast<double>(clients.size()) : std::ceil(plan.images / fewest);
  log.steps_wanted =
      static_cast<std::uint64_t>(static_cast<double>(spec.steps) * steps_of_update) + 2 * clients.size();
  ReplayOptions options;
  options.fold = false;
  options.service_log = &log;
  replay(plan, machine, cost, options);
  Twin<Real> twin(lesson, plan, machine, spec.learning_rate);
  std::vector<LearntPoint> points;
  std::int64_t step = 0;
  for (const ServiceLog::Event& event : log.events) {
    twin.happen(event);
    while (step < spec.steps && twin.images() >= static_cast<double>(step + 1) * plan.images * (1 - 1e-9)) {
      ++step;
      if (is_measured(spec, step - 1, step))
        points.push_back(measured(lesson, twin.classroom(), step, event.time_s, twin.take_loss()));
    }
    if (step == spec.steps) return points;
  }
  throw std::logic_error(fmt::format("the workers' steps that were replayed end after step {}", step));
}

template <class Real>
std::vector<LearntPoint> learn_of_service(const NumericsSpec& spec, const Lesson& lesson, const Plan& plan,
                                          const Machine& machine, const CostModel& cost) {
  const bool averages = !plan.meaning->own_images.empty();
  return averages ? learn_one_by_one<PeerTwin, Real>(spec, lesson, plan, machine, cost)
                  : learn_one_by_one<ServiceTwin, Real>(spec, lesson, plan, machine, cost);
}

/// A loss needs all classes of an image.
std::string refuses_parts(const Plan& plan, const TrainingGraph& graph) {
  for (const OpMeaning& means : plan.meaning->operations) {
    if (means.operation == no_meaning || means.layout == no_meaning) continue;
    const Operation& operation = graph.operations[means.operation];
    if (operation.part != OperationPart::loss) continue;
    for (const Region& region : plan.meaning->layouts[means.layout])
      if (region.channels || region.rows || region.columns)
        return fmt::format("devices have parts of what '{}' reads of an image, which is not followed",
                           operation.name);
  }
  return {};
}

}  // namespace

std::string refuses_steps(const NumericsSpec& spec, const Plan& plan) {
  if (!plan.endless() || spec.steps <= static_cast<std::int64_t>(plan.endless()->steady_steps)) return "";
  return fmt::format("of a pipeline that is never flushed {} steps are simulated; use steps: {} at most",
                     plan.endless()->steady_steps, plan.endless()->steady_steps);
}

std::string refuses_phase(const Plan& plan) {
  return plan.service() || plan.endless()
             ? "its plan changes during the run, and its steps do not follow one another"
             : "";
}

std::string refuses_plan(const Plan& plan, const TrainingGraph& graph) {
  if (!plan.meaning) return "the strategy does not say yet what its tasks compute";
  const bool has_parts = !plan.meaning->positions.empty();
  if (has_parts)
    if (std::string reason = refuses_parts(plan, graph); !reason.empty()) return reason;
  if (!is_whole_number(plan.images)) return "the global batch is no whole number of images";
  for (const Role& role : plan.roles)
    for (const Task& task : role.program) {
      if (task.kind != Task::Kind::compute && plan.communications[task.comm].meaning == no_meaning)
        return fmt::format("the plan does not say yet what '{}' carries", task.name);
      for (const PlanOp& op : task.ops) {
        if (op.meaning == no_meaning) {
          if (op.operation != PlanOp::of_plan)
            return fmt::format("the plan does not say yet what '{}' computes", op.name);
          continue;
        }
        const OpMeaning& means = plan.meaning->operations[op.meaning];
        if (means.act != OpMeaning::Act::compute || means.operation == no_meaning) continue;
        const Operation& operation = graph.operations[means.operation];
        if (operation.phase == Phase::update) continue;
        if (!has_parts && !(op.work == operation.work))
          return fmt::format("'{}' is only a part of an operation, which is not followed yet", op.name);
        if (!is_whole_number(means.images.first) || !is_whole_number(means.images.count) ||
            means.images.count < 1)
          return fmt::format("'{}' works on {} images, which is no whole number", op.name,
                             means.images.count);
      }
    }
  return {};
}

std::int64_t classes_of(const TrainingGraph& graph) {
  return elements(graph.model.layers[NetworkIndex(graph).outputs().back()].output);
}

std::vector<LearntPoint> learn(const NumericsSpec& spec, const LearningData& data, const Plan& plan,
                               const TrainingGraph& graph, const Machine& machine, const CostModel& cost) {
  fix_blocks_of_products();
  const NetworkIndex index(graph);
  BatchOrder order(spec.seed, data.train.count());
  const Lesson lesson{graph, data, index, spec.seed, order};
  const bool in_double = spec.precision == NumericsSpec::Real::in_double;
  if (plan.service())
    return in_double ? learn_of_service<double>(spec, lesson, plan, machine, cost)
                     : learn_of_service<float>(spec, lesson, plan, machine, cost);
  if (plan.endless())
    return in_double ? learn_overlapping<double>(spec, lesson, plan, machine, cost)
                     : learn_overlapping<float>(spec, lesson, plan, machine, cost);
  const std::vector<LearningPhase> whole{{plan, machine}};
  return in_double ? learn_in_step<double>(spec, lesson, whole, cost)
                   : learn_in_step<float>(spec, lesson, whole, cost);
}

std::vector<LearntPoint> learn_in_phases(const NumericsSpec& spec, const LearningData& data,
                                         const std::vector<LearningPhase>& phases, const TrainingGraph& graph,
                                         const CostModel& cost) {
  fix_blocks_of_products();
  const NetworkIndex index(graph);
  BatchOrder order(spec.seed, data.train.count());
  const Lesson lesson{graph, data, index, spec.seed, order};
  return spec.precision == NumericsSpec::Real::in_double ? learn_in_step<double>(spec, lesson, phases, cost)
                                                         : learn_in_step<float>(spec, lesson, phases, cost);
}

}  // namespace convoy::numerics
