// SPDX-License-Identifier: MIT
#include "sim/studies/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>

#include "sim/base/quantity.h"
#include "sim/costs/residuals.h"
#include "sim/page/text.h"
#include "sim/planning/answer.h"
#include "sim/results/field_schema.h"
#include "sim/results/field_text.h"
#include "sim/run/dice.h"
#include "sim/run/evaluate.h"
#include "sim/run/search/search.h"
#include "sim/run/sweep.h"
#include "sim/run/sweep_hint.h"
#include "sim/run/workers.h"
#include "sim/studies/measure.h"

namespace convoy::inline studies {
namespace {

using Moves = Doubt::Moves;

constexpr auto input_fields = [](auto& archive, auto& input) {
  archive.field("key", input.key);
  archive.field("value", input.value);
  archive.field("grade", input.grade);
  archive.field("source", input.source);
  archive.nullable("spread", input.spread);
  archive.field("variance_share", input.variance_share);
  archive.range("step_time_s", input.step_time_s);
  archive.field("narrows_to", input.narrows_to);
  archive.field("measure", input.measure);
};

constexpr auto drawn_fields = [](auto& archive, auto& drawn) {
  archive.field("draws", drawn.draws);
  archive.field("seed", drawn.seed);
  archive.range("step_time_s", drawn.step_time_s);
  archive.field("inside", drawn.inside);
};

/// What workers hand back of a run.
constexpr auto run_fields_of_doctor = [](auto& archive, auto& run) {
  archive.field("step_time_s", run.step_time_s);
  archive.optional("interval", run.interval, interval_fields);
  archive.field("spread", run.spread);
  archive.list("inputs", run.inputs, input_fields);
  archive.optional("drawn", run.drawn, drawn_fields);
};

/// Standard deviation of log(step time) by what lies between the steps of both ends of the number's interval.
double spread_between(const StepRange& range) {
  return range[0] > 0 && range[1] > 0 ? std::abs(std::log(range[1] / range[0])) / (2 * quantile_80) : 0;
}

/// Share of a doubt's variance that is left where another one's measurement goes back in through its key.
double left_by(const Doubt& measured, const Doubt& doubt) {
  const auto is_measured = [&](std::initializer_list<Moves> by) {
    return std::find(by.begin(), by.end(), measured.moves) != by.end();
  };
  switch (doubt.moves) {
    case Moves::computing: {
      if (!is_measured({Moves::computing})) return 1;
      const double left = anchored_spread(1, 1) / *doubt.source.spread;  // of the very step
      return std::min(1.0, left * left);
    }
    case Moves::issuing:  // an anchor is a step with its host
      return is_measured({Moves::computing, Moves::issuing}) ? 0 : 1;
    case Moves::messages:
      return is_measured({Moves::messages}) ? 0 : 1;
    case Moves::network:
    case Moves::protocol:
      return &measured == &doubt || is_measured({Moves::messages}) ? 0 : 1;
    case Moves::several_devices:
      return 1;
    case Moves::loader:
    case Moves::written:
      return &measured == &doubt ? 0 : 1;
  }
  return 1;
}

YamlNode strategy_found(Preparer& preparer, std::size_t index) {
  return Search(preparer, index).run(1, false).result.search->ranking.front().candidate;
}

/// The choice of a plan as a point of an experiment.
Setup setup_of(const CandidateResultOfPlan& choice) {
  return {choice.order,   choice.precision,    choice.batch_per_device,
          choice.devices, choice.global_batch, std::make_shared<const YamlNode>(choice.strategy)};
}

double spread_of(const std::pair<double, double>& interval) {
  return interval.first > 0 ? std::log(interval.second / interval.first) / (2 * quantile_80) : 0;
}

/// Cost, energy and carbon err as the time does; time x cost as its square.
UncertainValue uncertain(PlanObjective objective, const CandidateResultOfPlan& candidate) {
  const double power = objective == PlanObjective::front ? 2 : 1;
  return {value_of(objective, candidate.figures), power * spread_of(candidate.time_interval)};
}

/// Runners-up err for themselves: they are of other kinds of servers.
Flip flip_of(const PlanAnswer& answer) {
  Flip flip;
  const UncertainValue choice = uncertain(answer.objective, *answer.choice);
  std::vector<UncertainValue> rivals;
  for (const CandidateResultOfPlan& rival : answer.runners_up) {
    rivals.push_back(uncertain(answer.objective, rival));
    flip.rivals.push_back({text_of(rival.order), chance_of_flip(choice, {rivals.back()})});
  }
  flip.chance = chance_of_flip(choice, rivals);
  return flip;
}

/// Steps of a run with its doubts drawn, all at once.
DrawnSteps draw_steps(const PreparedRun& run, const std::vector<Doubt>& doubts,
                      const std::vector<StepRange>& ranges, const IntervalResult& interval,
                      const DrawsAsked& asked) {
  SeededDice dice(asked.seed);
  std::vector<double> steps_s, deviations(doubts.size());
  double inside = 0;
  for (std::uint64_t draw = 0; draw < asked.draws; ++draw) {
    for (double& deviation : deviations) deviation = dice.normal();
    steps_s.push_back(drawn_step_s(run, doubts, ranges, deviations));
    if (interval.step_time_s[0] <= steps_s.back() && steps_s.back() <= interval.step_time_s[1]) ++inside;
  }
  std::sort(steps_s.begin(), steps_s.end());
  const auto percentile = [&](double share) {
    return steps_s[static_cast<std::size_t>(std::lround(share * static_cast<double>(steps_s.size() - 1)))];
  };
  return {asked.draws,
          asked.seed,
          {percentile(0.1), percentile(0.9)},
          inside / static_cast<double>(steps_s.size())};
}

double normal_below(double z) { return std::erfc(-z / std::sqrt(2.0)) / 2; }

constexpr auto doctor_run_fields = [](auto& archive, auto& run) {
  archive.field("id", run.id);
  archive.point("point", run.point);
  archive.field("step_time_s", run.step_time_s);
  archive.nullable_object("interval", run.interval, interval_fields);
  archive.field("spread", run.spread);
  archive.list("inputs", run.inputs, input_fields);
  archive.optional("drawn", run.drawn, drawn_fields);
};

constexpr auto flip_fields = [](auto& archive, auto& flip) {
  archive.field("chance", flip.chance);
  archive.list("rivals", flip.rivals, [](auto& of_rival, auto& rival) {
    of_rival.field("servers", rival.servers);
    of_rival.field("chance", rival.chance);
  });
};

constexpr auto doctor_fields = [](auto& archive, auto& diagnosis) {
  archive.constant("schema", "convoy.doctor/1");
  archive.field("experiment", diagnosis.experiment);
  archive.blocks("runs", diagnosis.runs, doctor_run_fields);
  archive.optional_block("flip", diagnosis.flip, flip_fields);
};

std::string known_text(const DoctorInput& input) {
  return input.spread ? fmt::format("{} +-{:.3g} %", input.grade, 100 * std::expm1(*input.spread))
                      : input.grade;
}

/// @param told the measurements that were told before, by key
std::string run_text(const DoctorRun& run, std::map<std::string, std::string>& told) {
  std::string text = fmt::format("a step takes {}", format_time(run.step_time_s));
  if (!run.interval) return text + ", and nothing of it is open\n";
  text += fmt::format(", {} to {} at 80 %\n", format_time(run.interval->step_time_s[0]),
                      format_time(run.interval->step_time_s[1]));
  if (run.drawn)
    text += fmt::format("{} draws of all numbers (seed {}): {} to {} at 80 %, {} inside that interval\n",
                        run.drawn->draws, run.drawn->seed, format_time(run.drawn->step_time_s[0]),
                        format_time(run.drawn->step_time_s[1]), percent_text(run.drawn->inside));
  for (const DoctorInput& input : run.inputs) {
    text += fmt::format("\n{:>5}  {}: {} ({})\n       {}\n       steps of {} to {}",
                        percent_text(input.variance_share), input.key, input.value, known_text(input),
                        input.source, format_time(std::min(input.step_time_s[0], input.step_time_s[1])),
                        format_time(std::max(input.step_time_s[0], input.step_time_s[1])));
    if (input.narrows_to < 0.995)
      text += fmt::format("; measured, the interval is {} as wide", percent_text(input.narrows_to));
    constexpr double worth_telling = 0.01;
    text += '\n';
    if (input.variance_share < worth_telling) continue;
    std::string& measure = told[input.key];
    if (measure == input.measure) continue;
    measure = input.measure;
    text += measure + '\n';  // without indentation: the lines are to be pasted
  }
  return text;
}

}  // namespace

double chance_of_flip(const UncertainValue& choice, const std::vector<UncertainValue>& rivals) {
  // P(no rival is below) is the mean, over the choice's error, of the product of the rivals' chances to be above.
  if (choice.value <= 0) return 0;  // nothing is less
  for (const UncertainValue& rival : rivals)
    if (rival.value <= 0) return 1;
  constexpr int steps = 20'000;
  constexpr double reach = 8;
  double stays = 0, all = 0;
  for (int i = 0; i <= steps; ++i) {
    const double z = reach * (2.0 * i / steps - 1), weight = std::exp(-z * z / 2);
    const double value = std::log(choice.value) + choice.spread * z;
    double above = 1;
    for (const UncertainValue& rival : rivals) {
      const double by = std::log(rival.value) - value;
      above *= rival.spread > 0 ? normal_below(by / rival.spread) : by >= 0 ? 1 : 0;
    }
    stays += weight * above, all += weight;
  }
  return 1 - stays / all;
}

DoctorRun diagnose_run(const PreparedRun& run, const DrawsAsked& asked) {
  DoctorRun result;
  const RunResult simulated = simulate(run, false).result;
  result.step_time_s = simulated.step_time_s;
  result.interval = simulated.interval;
  const std::vector<Doubt> doubts = doubts_of(run);
  std::vector<double> variances;
  std::vector<StepRange> ranges;
  double all = 0;
  for (const Doubt& doubt : doubts) {
    DoctorInput& input = result.inputs.emplace_back();
    input.key = doubt.key;
    input.value = doubt.value;
    input.grade = to_string(doubt.source.grade);
    input.source = doubt.source.text;
    input.spread = doubt.source.spread;
    ranges.push_back(step_range_s(run, doubt));
    input.step_time_s = ranges.back();
    input.measure = measurement_of(run, doubt);
    const double spread = spread_between(input.step_time_s);
    variances.push_back(spread * spread);
    all += variances.back();
  }
  result.spread = std::sqrt(all);
  if (asked.draws > 0 && result.interval && !doubts.empty())
    result.drawn = draw_steps(run, doubts, ranges, *result.interval, asked);
  for (std::size_t i = 0; i < doubts.size(); ++i) {
    double left = 0;
    for (std::size_t other = 0; other < doubts.size(); ++other)
      left += variances[other] * left_by(doubts[i], doubts[other]);
    result.inputs[i].variance_share = all > 0 ? variances[i] / all : 0;
    result.inputs[i].narrows_to = all > 0 ? std::sqrt(left / all) : 1;
  }
  std::stable_sort(
      result.inputs.begin(), result.inputs.end(),
      [](const DoctorInput& a, const DoctorInput& b) { return a.variance_share > b.variance_share; });
  return result;
}

Diagnosis diagnose(const Experiment& experiment, std::size_t jobs, const DoctorProgress& progress,
                   const DrawsAsked& asked) {
  Diagnosis diagnosis;
  diagnosis.experiment = experiment.name();
  Preparer preparer(experiment);
  for (std::size_t i = 0; i < experiment.size(); ++i) {
    hinting_at_sweep(experiment, i, [&] { return preparer.read_parts(experiment.point(i)); });
    DoctorRun& run = diagnosis.runs.emplace_back();
    run.id = point_id(i);
    run.point = experiment.coordinates(i);
  }
  std::size_t done = 0;
  std::optional<std::pair<std::size_t, WorkerAnswer>> wrong;  // of the first point that cannot be simulated
  const FirstHalf work = [&](std::size_t i) -> SecondHalf {
    return [&preparer, &asked, i] {
      if (!is_search(preparer.experiment().point(i).strategy))
        return to_text(diagnose_run(preparer.prepare(i), asked), run_fields_of_doctor);
      const YamlNode found = strategy_found(preparer, i);
      return to_text(diagnose_run(preparer.prepare(i, &found), asked), run_fields_of_doctor);
    };
  };
  run_in_workers(experiment.size(), jobs, work,
                 [&](std::size_t i, WorkerAnswer answer) {
                   progress(++done, experiment.size());
                   if (answer.kind != WorkerAnswer::Kind::done) {
                     if (!wrong || i < wrong->first) wrong = {i, std::move(answer)};
                     return;
                   }
                   DoctorRun run = from_text<DoctorRun>(answer.bytes, run_fields_of_doctor);
                   run.id = std::move(diagnosis.runs[i].id);
                   run.point = std::move(diagnosis.runs[i].point);
                   diagnosis.runs[i] = std::move(run);
                 },
                 {.apart = preparer.replays_apart()});
  if (!wrong) return diagnosis;
  if (wrong->second.kind == WorkerAnswer::Kind::input_error) throw InputError({}, wrong->second.bytes);
  throw std::runtime_error(fmt::format(
      "{}: {}", point_text(wrong->first, experiment.coordinates(wrong->first)), wrong->second.bytes));
}

Diagnosis diagnose_plan(const PlanSpec& spec, std::size_t jobs, const DoctorProgress& progress,
                        const DrawsAsked& asked) {
  Diagnosis diagnosis;
  diagnosis.experiment = spec.name;
  PlanOptions options;
  options.jobs = jobs;
  options.progress = [&](const std::string&, std::size_t done, std::size_t all) { progress(done, all); };
  PlanSpec alone = spec;
  alone.scenarios.clear();  // their choices are not asked for
  const PlanAnswer answer = make_plan(alone, options);
  if (!answer.choice) return diagnosis;
  Preparer preparer;
  DoctorRun run = diagnose_run(preparer.prepare(point_of(spec, setup_of(*answer.choice)), nullptr), asked);
  run.id = "choice";
  diagnosis.runs.push_back(std::move(run));
  diagnosis.flip = flip_of(answer);
  return diagnosis;
}

Diagnosis diagnose_file(const Experiment& experiment, const std::string& prices, std::size_t jobs,
                        const DoctorProgress& progress, const DrawsAsked& asked) {
  if (experiment.plan()) return diagnose_plan(read_plan(experiment, prices), jobs, progress, asked);
  if (!prices.empty())
    throw InputError(experiment.tree().pos, "a price table is for a plan only, and this is an experiment");
  return diagnose(experiment, jobs, progress, asked);
}

void write_doctor(const Diagnosis& diagnosis, std::ostream& out) {
  JsonWriter json(out);
  FieldWriter archive(json);
  json.begin_object();
  doctor_fields(archive, diagnosis);
  json.end_object();
  json.raw("\n");
}

std::string doctor_schema_text() { return schema_text<Diagnosis>(doctor_fields); }

std::string doctor_text(const Diagnosis& diagnosis) {
  std::string text = diagnosis.experiment + '\n';
  std::map<std::string, std::string> told;
  for (const DoctorRun& run : diagnosis.runs) {
    text += fmt::format("\n{}", run.id == "choice" ? "the plan's choice: " : "run " + run.id + ": ");
    for (const auto& [path, value] : run.point) text += fmt::format("{}: {}, ", path, to_flow(value));
    text += run_text(run, told);
  }
  if (diagnosis.runs.empty()) text += "\nnothing meets the plan's constraints\n";
  if (!diagnosis.flip) return text;
  text += fmt::format("\nchance that other servers are the best: {}\n", percent_text(diagnosis.flip->chance));
  for (const FlipRival& rival : diagnosis.flip->rivals)
    text += fmt::format("{:>7}  {}\n", percent_text(rival.chance), rival.servers);
  return text;
}

}  // namespace convoy::studies
