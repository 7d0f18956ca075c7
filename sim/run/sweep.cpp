// SPDX-License-Identifier: MIT
#include "sim/run/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "models/model.h"
#include "sim/run/explain.h"
#include "sim/run/search/search.h"
#include "sim/run/wire.h"
#include "sim/run/workers.h"

namespace convoy {
namespace {

std::string point_text(const Experiment& experiment, std::size_t index) {
  std::string text;
  for (const auto& [path, value] : experiment.coordinates(index))
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", path, to_flow(value));
  return fmt::format("point {} ({})", point_id(index), text);
}

/// Simulates a point and what it would be with one thing changed.
RunOutput explained(Preparer& preparer, std::size_t index, std::size_t jobs,
                    const std::function<RunOutput()>& simulate_point) {
  Point point = preparer.experiment().point(index);
  if (is_search(point.strategy)) {  // simulates in processes of its own
    RunOutput output = simulate_point();
    point.strategy = output.result.search->ranking.front().candidate;
    Explanation(preparer, point, jobs).add_to(output.result);
    return output;
  }
  const Explanation explanation(preparer, point, jobs);
  RunOutput output = simulate_point();
  explanation.add_to(output.result);
  return output;
}

/// Reads a point and plans it; what is returned simulates it.
/// @param jobs processes that a search over strategies may have at a time
std::function<RunOutput()> simulation(Preparer& preparer, std::size_t index, std::size_t jobs, bool trace) {
  if (is_search(preparer.experiment().point(index).strategy)) {
    auto search = std::make_shared<const Search>(preparer, index);
    return [search, jobs, trace] { return search->run(jobs, trace); };
  }
  auto run = std::make_shared<const PreparedRun>(preparer.prepare(index));
  return [run, trace] { return simulate(*run, trace); };
}

}  // namespace

std::vector<std::string> check_sweep(const Experiment& experiment, std::size_t jobs) {
  Preparer preparer(experiment);
  const FirstHalf check = [&](std::size_t index) {
    simulation(preparer, index, jobs, false);
    return SecondHalf{};
  };
  if (experiment.size() == 1) {
    run_here(0, check);
    return {};
  }
  std::optional<std::size_t> first;
  std::string message;
  std::vector<std::string> failures(experiment.size());
  run_in_workers(experiment.size(), jobs, check, [&](std::size_t index, WorkerAnswer answer) {
    if (answer.kind == WorkerAnswer::Kind::failed)
      failures[index] = fmt::format("{}: {}", point_text(experiment, index), answer.bytes);
    if (answer.kind != WorkerAnswer::Kind::input_error || (first && *first < index)) return;
    first = index;
    message = std::move(answer.bytes);
  });
  if (first) throw InputError({}, message);
  std::erase(failures, "");
  return failures;
}

std::vector<std::string> model_warnings(const Experiment& experiment) {
  const auto coordinates = experiment.coordinates(0);
  const bool swept = std::any_of(coordinates.begin(), coordinates.end(),
                                 [](const auto& axis) { return axis.first.starts_with("model"); });
  std::set<std::string> models, warnings;
  for (std::size_t i = 0; i < (swept ? experiment.size() : 1); ++i) {
    const YamlNode node = experiment.point(i).model;
    if (!models.insert(fingerprint(node)).second) continue;
    for (std::string& warning : read_model(node).warnings) warnings.insert(std::move(warning));
  }
  return {warnings.begin(), warnings.end()};
}

SweepOutcome run_sweep(const Experiment& experiment, const SweepOptions& options) {
  Preparer preparer(experiment);
  const auto output_of = [&](std::size_t index, std::size_t jobs) -> std::function<RunOutput()> {
    std::function<RunOutput()> run = simulation(preparer, index, jobs, options.trace);
    if (!options.explain) return run;
    return [&preparer, index, jobs, run] { return explained(preparer, index, jobs, run); };
  };
  if (experiment.size() == 1) return {{output_of(0, options.jobs)()}, {}};

  check_sweep(experiment,
              options.jobs);  // what fails to be planned fails below again, beside the others' results
  const FirstHalf work = [&](std::size_t index) -> SecondHalf {
    return [run = output_of(index, 1)] { return encode(run()); };
  };
  std::vector<std::optional<RunOutput>> outputs(experiment.size());
  std::vector<std::string> failures(experiment.size());
  std::size_t done = 0;
  options.progress(done, experiment.size());
  run_in_workers(experiment.size(), options.jobs, work, [&](std::size_t index, WorkerAnswer answer) {
    if (answer.kind == WorkerAnswer::Kind::done) {
      outputs[index] = decode_output(answer.bytes);
      outputs[index]->result.point = experiment.coordinates(index);
    } else {
      failures[index] = fmt::format("{}: {}", point_text(experiment, index), answer.bytes);
    }
    options.progress(++done, experiment.size());
  });
  SweepOutcome outcome;
  for (std::optional<RunOutput>& output : outputs)
    if (output) outcome.runs.push_back(std::move(*output));
  std::erase(failures, "");
  outcome.failures = std::move(failures);
  return outcome;
}

}  // namespace convoy
