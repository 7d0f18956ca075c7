// SPDX-License-Identifier: MIT
#include "sim/replay/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include "sim/costs/issue_queue.h"
#include "sim/replay/busy_clock.h"
#include "sim/replay/courier.h"
#include "sim/replay/input_queue.h"
#include "sim/replay/lone_groups.h"
#include "sim/replay/message_groups.h"
#include "sim/replay/paced_compute.h"
#include "sim/replay/service_desk.h"
#include "sim/replay/steady_state.h"
#include "sim/replay/step_watch.h"

namespace convoy {
namespace {

/// What is the same for every endpoint of a role: who waits for whom, and the order on each stream.
struct Program {
  std::vector<std::vector<TaskId>> successors;
  std::vector<std::uint32_t> predecessor_count;
  std::vector<std::vector<TaskId>> streams;  ///< tasks of each stream in order
  std::vector<TaskId> streamless;
};

Program analyse(const Role& role) {
  Program program;
  const std::size_t n = role.program.size();
  program.successors.resize(n);
  program.streams.resize(role.streams.size());
  for (TaskId t = 0; t < n; ++t) {
    const Task& task = role.program[t];
    program.predecessor_count.push_back(static_cast<std::uint32_t>(task.after.size()));
    for (const TaskId before : task.after) program.successors[before].push_back(t);
    if (task.stream == Task::no_stream)
      program.streamless.push_back(t);
    else
      program.streams[static_cast<std::size_t>(task.stream)].push_back(t);
  }
  return program;
}

/// Where one class of endpoints stands in its program.
struct Progress {
  std::vector<std::uint32_t> missing;  ///< predecessors not done, by task
  std::vector<std::uint32_t> next;     ///< first task not started, by stream
  std::vector<char> busy;              ///< by stream
  std::vector<char> done;              ///< by task
  std::uint32_t done_count = 0;
  DeviceClock clock;
};

class Executor final : private MessageListener {
 public:
  Executor(const Plan& plan, const Machine& machine, const CostModel& cost, const FlowTable& table,
           const std::vector<bool>& one_by_one, const Folding& folding, Contention contention,
           NetworkModel network_model, const Disturbances& disturbances)
      : plan_(plan),
        machine_(machine),
        cost_(cost),
        folding_(folding),
        engine_(capacities(table), largest_flow_bytes(), contention, network_model),
        link_clock_(machine, folding),
        courier_(table, folding, engine_, link_clock_, *this),
        compute_(engine_, processors_taken(), contention == Contention::shared && machine.hosts.size() == 1),
        lone_(plan.service || plan.endless || contention == Contention::none ||
                      network_model == NetworkModel::simgrid || !disturbances.empty()
                  ? nullptr
                  : std::make_unique<LoneGroups>(table, folding, link_clock_, capacities(table))),
        messages_(plan, table, one_by_one, folding, engine_, courier_, *this, lone_.get(),
                  lone_ ? has_links_for_itself(plan, machine, table) : std::vector<bool>()) {
    if (plan.service) {
      desk_.emplace(plan, machine, table, folding, engine_, courier_, static_cast<MessageListener&>(*this));
      steady_.emplace(*plan.service, folding);
    }
    if (plan.endless) watch_.emplace(*plan.endless, folding);
    for (const Role& role : plan.roles) programs_.push_back(analyse(role));
    for (std::size_t c = 0; c < folding.endpoints.size(); ++c) {
      const std::uint32_t role = folding.endpoint_role[c];
      const Program& program = programs_[role];
      Progress progress;
      progress.missing = program.predecessor_count;
      progress.next.assign(program.streams.size(), 0);
      progress.busy.assign(program.streams.size(), 0);
      progress.done.assign(program.successors.size(), 0);
      progress_.push_back(std::move(progress));
      result_.timelines.push_back(
          {role, folding.endpoints[c], std::vector<TaskTimes>(program.successors.size())});
    }
    disturb(disturbances);
    step_began_s_.assign(progress_.size(), 0);
    stretch_.assign(progress_.size(), 1);
    input_wait_s_.assign(progress_.size(), 0);
    shown_.resize(progress_.size());
  }

  Execution run() {
    if (plan_.service) return run_service();
    for (std::uint32_t c = 0; c < progress_.size(); ++c) begin(c);
    drain();
    engine_.run();
    require_finished();
    for (std::size_t c = 0; c < progress_.size(); ++c) {
      double end_s = 0;
      for (const TaskTimes& times : result_.timelines[c].tasks) end_s = std::max(end_s, times.end_s);
      result_.usage.push_back(
          {computed_s(c, progress_[c].clock.compute_s()), progress_[c].clock.comm(), end_s});
      result_.end_s = std::max(result_.end_s, end_s);
    }
    messages_.count_lone_groups(link_clock_);
    result_.link_busy_s = link_clock_.link_busy_s(engine_.now_s());
    result_.port_busy_s = link_clock_.port_busy_s(engine_.now_s());
    result_.pace.assign(progress_.size(), 1);
    if (watch_) show_one_step();
    return std::move(result_);
  }

 private:
  /// Has everything happen at its time. What is left over when the plan is done does not count.
  void disturb(const Disturbances& disturbances) {
    for (const Disturbances::LinkChange& change : disturbances.link_changes) {
      const std::uint32_t link = folding_.link_class[change.link];
      if (link != Folding::none)
        engine_.after(change.at_s, [this, link, bandwidth_Bps = change.bandwidth_Bps] {
          engine_.set_bandwidth(link, bandwidth_Bps);
        });
    }
    for (const Disturbances::Stop& stop : disturbances.stops)
      if (const std::uint32_t c = folding_.endpoint_class[stop.endpoint];
          c != Folding::none && folding_.endpoints[c] == stop.endpoint)
        stops_[c].push_back(stop);
    for (auto& [c, stops] : stops_)
      std::stable_sort(stops.begin(), stops.end(),
                       [](const auto& a, const auto& b) { return a.at_s < b.at_s; });
    Route way;
    for (const Disturbances::Transfer& transfer : disturbances.transfers) {
      machine_.router->route(transfer.from, transfer.to, way);
      std::vector<LinkUse> uses;
      for (const LinkId link : way.links)
        if (folding_.link_class[link] != Folding::none) uses.push_back({folding_.link_class[link], 1});
      if (uses.empty()) continue;
      const std::uint32_t route = engine_.add_route(uses, transfer.limit_Bps);
      engine_.after(transfer.at_s,
                    [this, route, bytes = transfer.bytes] { engine_.start_flow(bytes, route, [] {}); });
    }
  }

  std::vector<double> capacities(const FlowTable& table) const {
    std::vector<double> result;
    for (const LinkId link : folding_.links) result.push_back(bandwidth_Bps(machine_, table, link));
    for (const double adder : ServiceDesk::adder_capacities(plan_, machine_, folding_))
      result.push_back(adder);
    return result;
  }

  /// By endpoint class: of the device's processors by a collective.
  std::vector<double> processors_taken() const {
    std::vector<double> result;
    for (const EndpointId endpoint : folding_.endpoints)
      result.push_back(endpoint < machine_.devices.size()
                           ? machine_.processors_taken(machine_.device_types[machine_.devices[endpoint].type])
                           : 0);
    return result;
  }

  /// Of the time for which operations run, what is not waiting for the last of many.
  double computed_s(std::uint32_t c, double busy_s) const {
    return busy_s / plan_.roles[result_.timelines[c].role].slowdown;
  }

  /// Starts what a program begins with.
  void begin(std::uint32_t c) {
    const Program& program = programs_[result_.timelines[c].role];
    for (std::size_t s = 0; s < program.streams.size(); ++s) try_stream(c, s);
    for (const TaskId t : program.streamless)
      if (progress_[c].missing[t] == 0) start(c, t);
  }

  /// Of an endless run: the mean over a steady stretch.
  void show_one_step() {
    const auto [open, close, steps] = watch_->steady();
    const auto of_step = [&](const std::vector<double>& from, const std::vector<double>& to) {
      std::vector<double> result;
      for (std::size_t i = 0; i < from.size(); ++i) result.push_back((to[i] - from[i]) / steps);
      return result;
    };
    result_.end_s = (close.now_s - open.now_s) / steps;
    const std::vector<double> compute_s = of_step(open.compute_s, close.compute_s);
    for (std::size_t c = 0; c < progress_.size(); ++c)
      result_.usage[c] = {computed_s(c, compute_s[c]), (close.comm[c] - open.comm[c]) * (1 / steps),
                          result_.end_s};
    result_.link_busy_s = of_step(open.link_busy_s, close.link_busy_s);
    result_.port_busy_s = of_step(open.port_busy_s, close.port_busy_s);
  }

  // --- plans with a service: clients repeat their programs until every one has been measured ---

  Execution run_service() {
    if (steady_->is_warm()) open_ = readings();
    std::vector<char> begun(progress_.size(), 0);
    for (const Service::Client& client : plan_.service->clients) {
      const std::uint32_t c = folding_.endpoint_class[client.device];
      if (std::exchange(begun[c], 1)) continue;
      engine_.after(client.start_s, [this, c] {
        begin_step(c);
        drain();
      });
    }
    engine_.run();
    if (!steady_->is_over())
      throw std::runtime_error("the plan cannot finish: its clients wait for each other");
    const double step_s = steady_->step_time_s(plan_.images);
    const double window_s = closed_.now_s - open_.now_s;
    const auto in_step = [&](double from, double to) {
      return window_s > 0 ? (to - from) / window_s * step_s : 0;
    };
    result_.end_s = step_s;
    for (std::uint32_t c = 0; c < progress_.size(); ++c) {
      Execution::Usage usage;
      double pace = 0;
      if (steady_->is_client(c)) {
        const SteadyState::Client& client = steady_->client(c);
        const bool moves = client.end_s > client.begin_s;
        pace = moves ? step_s / client.mean_step_s() : 1;
        const double share = moves ? pace / static_cast<double>(client.steps) : 0;
        const double compute_s = std::min(step_s, client.compute_s * share / client.mean_stretch());
        usage = {computed_s(c, compute_s), client.comm * share, step_s};
        usage.comm.exposed_s = std::min(step_s - compute_s, usage.comm.exposed_s);
        result_.input_wait_s =
            std::max(result_.input_wait_s, pace * input_wait_s_[c] / static_cast<double>(client.steps));
        result_.timelines[c].tasks = std::move(shown_[c]);
      } else {
        usage.compute_s = in_step(open_.adding_s[c], closed_.adding_s[c]);
      }
      result_.usage.push_back(usage);
      result_.pace.push_back(pace);
    }
    for (std::size_t l = 0; l < open_.link_busy_s.size(); ++l)
      result_.link_busy_s.push_back(in_step(open_.link_busy_s[l], closed_.link_busy_s[l]));
    for (std::size_t p = 0; p < open_.port_busy_s.size(); ++p)
      result_.port_busy_s.push_back(in_step(open_.port_busy_s[p], closed_.port_busy_s[p]));
    result_.staleness = desk_->staleness(open_.now_s, closed_.now_s);
    return std::move(result_);
  }

  void begin_step(std::uint32_t c) {
    Progress& progress = progress_[c];
    const Program& program = programs_[result_.timelines[c].role];
    progress.missing = program.predecessor_count;
    progress.next.assign(program.streams.size(), 0);
    progress.done_count = 0;
    step_began_s_[c] = engine_.now_s();
    stretch_[c] = steady_->next_stretch(c);
    steady_->step_begins(c, engine_.now_s(), progress.clock, desk_->version(c));
    desk_->begin_step(c);
    const double wait_s = images_at_s(c) - engine_.now_s();
    if (wait_s <= 0) {
      begin(c);
      return;
    }
    if (steady_->client(c).measured) input_wait_s_[c] += wait_s;
    engine_.after(wait_s, [this, c] {
      begin(c);
      drain();
    });
  }

  /// When the client's next batch is ready, at the earliest now.
  double images_at_s(std::uint32_t c) {
    const EndpointId endpoint = folding_.endpoints[c];
    if (!plan_.input || endpoint >= machine_.devices.size()) return engine_.now_s();
    const double interval_s = plan_.input->interval_s[machine_.devices[endpoint].host];
    return inputs_.try_emplace(c, interval_s, plan_.input->prefetch).first->second.take(engine_.now_s());
  }

  void end_step(std::uint32_t c) {
    if (steady_->is_over()) return;
    const bool was_warm = steady_->is_warm();
    steady_->step_ends(c, engine_.now_s(), progress_[c].clock, desk_->version(c));
    if (!was_warm && steady_->is_warm()) open_ = readings();
    if (steady_->is_over()) closed_ = readings();
    if (shown_[c].empty() && was_warm && step_began_s_[c] >= open_.now_s) {
      shown_[c] = result_.timelines[c].tasks;
      for (TaskTimes& times : shown_[c]) times.start_s -= open_.now_s, times.end_s -= open_.now_s;
    }
    if (!steady_->is_over()) begin_step(c);
  }

  Readings readings() {
    const double now_s = engine_.now_s();
    Readings result{now_s, link_clock_.link_busy_s(now_s), link_clock_.port_busy_s(now_s), {}, {}, {}};
    for (std::uint32_t c = 0; c < progress_.size(); ++c) {
      DeviceClock& clock = progress_[c].clock;
      clock.advance(now_s);
      result.compute_s.push_back(clock.compute_s());
      result.comm.push_back(clock.comm());
      result.adding_s.push_back(desk_ ? desk_->adding_s(c, now_s) : 0);
    }
    return result;
  }

  double largest_flow_bytes() const {
    std::vector<double> largest_part(plan_.patterns.size(), 0.0);
    for (std::size_t p = 0; p < plan_.patterns.size(); ++p)
      for (const Round& round : plan_.patterns[p].rounds)
        for (const double fraction : round.fractions)
          largest_part[p] = std::max(largest_part[p], fraction * round.repeat);
    double largest = 1;
    for (const Communication& comm : plan_.communications)
      largest = std::max(largest, comm.bytes * largest_part[comm.pattern]);
    return largest;
  }

  const Task& task(std::uint32_t c, TaskId t) const {
    return plan_.roles[result_.timelines[c].role].program[t];
  }

  void try_stream(std::uint32_t c, std::size_t stream) {
    Progress& progress = progress_[c];
    const std::vector<TaskId>& order = programs_[result_.timelines[c].role].streams[stream];
    if (progress.busy[stream] || progress.next[stream] == order.size()) return;
    const TaskId t = order[progress.next[stream]];
    if (progress.missing[t] != 0) return;
    progress.busy[stream] = 1;
    ++progress.next[stream];
    start(c, t);
  }

  void start(std::uint32_t c, TaskId t) {
    const Task& it = task(c, t);
    result_.timelines[c].tasks[t].start_s = engine_.now_s();
    if (it.kind != Task::Kind::compute) {
      if (it.kind == Task::Kind::collective) compute_.collective_begins(c, t);
      desk_ ? desk_->start(c, t, it) : messages_.start(c, t, it);
      return;
    }
    const double duration_s = with_stops_s(c, compute_time_s(c, t));
    if (duration_s == 0) {
      finished_.push_back({c, t});
      return;
    }
    progress_[c].clock.compute_begins(engine_.now_s());
    compute_.start(c, duration_s, [this, c, t] {
      progress_[c].clock.compute_ends(engine_.now_s());
      finished_.push_back({c, t});
      drain();
    });
  }

  double with_stops_s(std::uint32_t c, double duration_s) const {
    const auto stops = stops_.find(c);
    if (stops == stops_.end()) return duration_s;
    return end_of_computation_s(engine_.now_s(), duration_s, stops->second) - engine_.now_s();
  }

  /// For how long the endpoint has been stopped up to now: nor did its host issue anything then.
  double stood_still_s(std::uint32_t c) const {
    const auto stops = stops_.find(c);
    return stops == stops_.end() ? 0 : stopped_before_s(engine_.now_s(), stops->second);
  }

  /// From now to its end: the device runs its operations in order, each when the host has issued it.
  double compute_time_s(std::uint32_t c, TaskId t) {
    const EndpointId endpoint = folding_.endpoints[c];
    if (endpoint >= machine_.devices.size()) return task(c, t).seconds;
    const Device& device = machine_.devices[endpoint];
    const std::uint32_t role = result_.timelines[c].role;
    const double slowness = plan_.roles[role].slowdown * stretch_[c] / device.speed;
    const IssuedStretch& stretch = stretches(role, device)[t];
    if (stretch.issued_s() == 0) return stretch.device_s() * slowness;
    const double start_s = engine_.now_s() - step_began_s_[c] - stood_still_s(c);
    return stretch.end_s(start_s, slowness) - start_s;
  }

  /// Compute tasks of a role's program on a type of device in a host of so many: the host issues them in
  /// their order.
  const std::vector<IssuedStretch>& stretches(std::uint32_t role, const Device& device) {
    const std::uint32_t beside = machine_.hosts.empty() ? 1 : machine_.hosts[device.host].device_count;
    const auto key = std::tuple{role, device.type, beside};
    auto it = stretches_.find(key);
    if (it != stretches_.end()) return it->second;
    const DeviceType& type = machine_.device_types[device.type];
    std::vector<IssuedStretch> result;
    double issued_s = 0;
    for (const Task& task : plan_.roles[role].program) {
      IssuedStretch& stretch = result.emplace_back(issued_s);
      for (const PlanOp& op : task.ops)
        stretch.add(cost_.issue_s(op.work, op.images, type, beside), cost_.time_s(op.work, op.images, type));
      issued_s = stretch.issued_s();
    }
    return stretches_.emplace(key, std::move(result)).first->second;
  }

  // MessageListener
  void messages_begin(std::uint32_t c, TaskId t) override {
    result_.timelines[c].tasks[t].start_s = engine_.now_s();
  }
  void message_begins(std::uint32_t c) override { progress_[c].clock.message_begins(engine_.now_s()); }
  void message_ends(std::uint32_t c) override { progress_[c].clock.message_ends(engine_.now_s()); }
  void task_done(std::uint32_t c, TaskId t) override {
    const bool owes = compute_.works_off(c, t, [this, c, t] {
      message_ends(c);
      finished_.push_back({c, t});
      drain();
    });
    owes ? message_begins(c) : finished_.push_back({c, t});
  }
  void after_event() override { drain(); }

  /// Works off finished tasks one after the other: a chain of tasks that take no time must not become a chain
  /// of calls.
  void drain() {
    while (!finished_.empty()) {
      const auto [c, t] = finished_.front();
      finished_.pop_front();
      finish(c, t);
    }
  }

  void finish(std::uint32_t c, TaskId t) {
    Progress& progress = progress_[c];
    result_.timelines[c].tasks[t].end_s = engine_.now_s();
    if (task(c, t).kind == Task::Kind::collective) compute_.collective_ends(c);
    progress.done[t] = 1;
    ++progress.done_count;
    const int stream = task(c, t).stream;
    if (stream != Task::no_stream) progress.busy[static_cast<std::size_t>(stream)] = 0;
    for (const TaskId next : programs_[result_.timelines[c].role].successors[t]) {
      if (--progress.missing[next] != 0) continue;
      const int next_stream = task(c, next).stream;
      if (next_stream == Task::no_stream)
        start(c, next);
      else
        try_stream(c, static_cast<std::size_t>(next_stream));
    }
    if (stream != Task::no_stream) try_stream(c, static_cast<std::size_t>(stream));
    if (watch_ && watch_->ends_step(result_.timelines[c].role, t)) watch_->keep(readings());
    if (steady_ && progress.done_count == progress.done.size()) end_step(c);
  }

  void require_finished() const {
    std::string blocked;
    std::size_t count = 0;
    for (std::uint32_t c = 0; c < progress_.size(); ++c) {
      const Progress& progress = progress_[c];
      for (TaskId t = 0; t < progress.done.size(); ++t) {
        if (progress.done[t] || ++count > 5) continue;
        std::string waits;
        for (const TaskId before : task(c, t).after)
          if (!progress.done[before])
            waits += fmt::format("{}'{}'", waits.empty() ? "" : ", ", task(c, before).name);
        blocked += fmt::format("{}{} '{}' waits for {}", blocked.empty() ? "" : "; ",
                               machine_.endpoint_name(folding_.endpoints[c]), task(c, t).name,
                               waits.empty() ? "its messages or its stream" : waits);
      }
    }
    if (count > 0)
      throw std::runtime_error(fmt::format("the plan cannot finish: {} blocked: {}{}",
                                           count == 1 ? "1 task is" : fmt::format("{} tasks are", count),
                                           blocked, count > 5 ? "; ..." : ""));
  }

  const Plan& plan_;
  const Machine& machine_;
  const CostModel& cost_;
  const Folding& folding_;
  Engine engine_;
  LinkClock link_clock_;
  Courier courier_;
  PacedCompute compute_;
  std::unique_ptr<LoneGroups> lone_;
  MessageGroups messages_;
  std::optional<ServiceDesk> desk_;
  std::optional<SteadyState> steady_;
  std::optional<StepWatch> watch_;
  Readings open_, closed_;            ///< when the measurement begins and ends
  std::vector<double> step_began_s_;  ///< by endpoint class
  std::vector<double> stretch_;       ///< by endpoint class: of a client's compute times in this step
  std::vector<std::vector<TaskTimes>> shown_;   ///< by endpoint class: the step that timelines show
  std::map<std::uint32_t, InputQueue> inputs_;  ///< by client class
  std::vector<double> input_wait_s_;            ///< by endpoint class, since the beginning
  std::vector<Program> programs_;
  std::vector<Progress> progress_;
  /// By role, device type and devices of the host: what each task of the program asks of them.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::vector<IssuedStretch>> stretches_;
  std::deque<std::pair<std::uint32_t, TaskId>> finished_;
  std::map<std::uint32_t, std::vector<Disturbances::Stop>> stops_;  ///< by endpoint class, in time order
  Execution result_;
};

}  // namespace

Execution execute(const Plan& plan, const Machine& machine, const CostModel& cost, const FlowTable& table,
                  const std::vector<bool>& one_by_one, const Folding& folding, Contention contention,
                  NetworkModel network_model, const Disturbances& disturbances) {
  return Executor(plan, machine, cost, table, one_by_one, folding, contention, network_model, disturbances)
      .run();
}

std::vector<double> operation_times_s(const Role& role, const Task& task, const Machine& machine,
                                      const CostModel& cost, EndpointId endpoint) {
  if (endpoint >= machine.devices.size()) return {task.seconds};
  const Device& device = machine.devices[endpoint];
  std::vector<double> times;
  for (const PlanOp& op : task.ops)
    times.push_back(cost.time_s(op.work, op.images, machine.device_types[device.type]) * role.slowdown /
                    device.speed);
  return times;
}

}  // namespace convoy
