// SPDX-License-Identifier: MIT
#include "sim/run/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>

#include "sim/base/digest.h"
#include "sim/base/input_file.h"
#include "sim/results/field_text.h"
#include "sim/run/evaluate.h"
#include "sim/run/explain.h"
#include "sim/run/learning.h"
#include "sim/run/manifest.h"
#include "sim/run/memory_need.h"
#include "sim/run/prepared_memo.h"
#include "sim/run/search/search.h"
#include "sim/run/shared_counts.h"
#include "sim/run/store/point_key.h"
#include "sim/run/sweep_hint.h"
#include "sim/run/warnings.h"
#include "sim/run/wire.h"
#include "sim/run/workers.h"
#include "sim/schedule/trace_file.h"

namespace convoy::inline runs {
namespace {

using Coordinates = std::vector<std::pair<std::string, YamlNode>>;

/// Simulates a point, and again with one thing changed at a time.
RunOutput explained(Preparer& preparer, std::size_t index, std::size_t jobs,
                    const std::function<RunOutput()>& simulate_point) {
  const YamlNode point = preparer.experiment().resolved(index);
  if (is_search(preparer.point(index).strategy)) {  // simulates in processes of its own
    RunOutput output = simulate_point();
    Explanation(preparer, point, &output.result.search->ranking.front().candidate, jobs)
        .add_to(output.result);
    return output;
  }
  const Explanation explanation(preparer, point, nullptr, jobs);
  RunOutput output = simulate_point();
  explanation.add_to(output.result);
  return output;
}

/// Adds the repetitions with what varies to the result of a point, if its experiment has `variability`.
void add_variability(Preparer& preparer, std::size_t index, RunOutput& output) {
  if (!preparer.point(index).variability) return;
  const VariabilitySpec spec = *preparer.point(index).variability;
  const YamlNode* best = output.result.search ? &output.result.search->ranking.front().candidate : nullptr;
  const PreparedRun run = preparer.prepare(index, best);
  output.result.variability = vary(spec, run, output.result);
}

/// Adds what the network learns to the result of a point, if its experiment has `numerics`.
void add_learning(Preparer& preparer, std::size_t index, RunOutput& output) {
  if (!preparer.point(index).numerics) return;
  const NumericsSpec spec = *preparer.point(index).numerics;
  const YamlNode* best = output.result.search ? &output.result.search->ranking.front().candidate : nullptr;
  output.result.learning = learning_of(spec, preparer.prepare(index, best));
}

/// Whether the output of a point is that of its prepared run, and nothing else.
bool is_of_prepared_run(const Point& point, const SweepOptions& options) {
  return !is_search(point.strategy) && !point.variability && !point.numerics && !options.explain &&
         !options.trace;
}

/// Reads a point and plans it; the returned function simulates it.
/// @param jobs processes that a search over strategies may have at a time
/// @param candidates counts those of a search
std::function<RunOutput()> simulation(Preparer& preparer, std::size_t index, std::size_t jobs, bool trace,
                                      SharedCounts& candidates) {
  if (is_search(preparer.point(index).strategy)) {
    auto search = std::make_shared<const Search>(preparer, index);
    return [search, jobs, trace, &candidates] {
      std::size_t counted = 0, known = 0;
      return search->run(jobs, trace, [&](std::size_t decided, std::size_t all) {
        candidates.add(decided - counted, all - known);
        counted = decided, known = all;
      });
    };
  }
  auto run = std::make_shared<const PreparedRun>(preparer.prepare(index));
  return [run, trace] { return simulate(*run, trace); };
}

Origin origin_of(const Experiment& experiment, const InputRecord& record) {
  Origin origin{program_build(), experiment.tree(), program_files()};
  const std::set<std::pair<std::string, std::string>> named(record.files().begin(), record.files().end());
  origin.files.insert(origin.files.end(), named.begin(), named.end());
  std::ranges::sort(origin.files);
  return origin;
}

const char* kind_name(WorkerAnswer::Kind kind) {
  switch (kind) {
    case WorkerAnswer::Kind::input_error:
      return "input";
    case WorkerAnswer::Kind::out_of_memory:
      return "memory";
    case WorkerAnswer::Kind::out_of_time:
      return "time";
    default:
      return "crash";
  }
}

constexpr auto planned_fields = [](auto& archive, auto& planned) {
  archive.field("device", planned.device);
  archive.field("device_bytes", planned.device_bytes);
  archive.memory("peak_bytes", planned.peak_bytes);
  archive.field("process_bytes", planned.process_bytes);
  archive.texts("warnings", planned.warnings);
};

/// Positions of the shard's points that the store does not have, or has damaged; of several equal points, the first.
std::vector<std::size_t> missing_points(Store& store, const SweepOptions& options) {
  std::set<PointKey> seen;
  std::vector<std::size_t> missing, damaged;
  const Store::Reading reading(store);
  for (const auto& [position, key] : store.subject().points) {
    if (position % options.shard.of != options.shard.index - 1) continue;
    if (store.has(key, options.trace) || !seen.insert(key).second) continue;
    missing.push_back(position);
    store.failure(key);  // may be damaged as well
    if (!store.is_damaged(key)) continue;
    damaged.push_back(position);
    store.drop(key);
  }
  if (!damaged.empty()) options.damaged(damaged);
  return missing;
}

}  // namespace

PlannedPoint planned_point(const PreparedRun& run) {
  const MemoryNeed need = memory_need(run);
  PlannedPoint planned{need.device, need.device_bytes, need.peak.level, need.process.bytes, warnings_of(run)};
  if (!need.warning.empty()) planned.warnings.push_back(need.warning);
  return planned;
}

std::string point_text(std::size_t index, const Coordinates& coordinates) {
  std::string text;
  for (const auto& [path, value] : coordinates)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", path, to_flow(value));
  return text.empty() ? fmt::format("point {}", point_id(index))
                      : fmt::format("point {} ({})", point_id(index), text);
}

StoreSubject make_subject(Preparer& preparer, const std::string& file,
                          const std::vector<std::string>& settings, const std::optional<std::string>& options,
                          const Shard& shard) {
  const Experiment& experiment = preparer.experiment();
  StoreSubject subject{
      experiment.name(), make_manifest(experiment, file, settings), {}, experiment.sweep(), {}};
  subject.options = options.value_or("");
  const InputRecord record;  // the experiment's own file, read above, is in the origin as a tree
  if (experiment.jobs()) subject.jobs = to_yaml(with_trace_read(*experiment.jobs()));
  std::optional<PointKeys> keys;
  if (options) keys.emplace(*options);
  subject.points.reserve((experiment.size() + shard.of - shard.index) / shard.of);
  for (std::size_t i = shard.index - 1; i < experiment.size(); i += shard.of) {
    const std::string inputs =
        hinting_at_sweep(experiment, i, [&] { return preparer.read_parts(preparer.point(i)); });
    subject.points.push_back({i, keys ? keys->key(preparer.content(i), inputs) : PointKey::of(point_id(i))});
  }
  if (options) subject.origin = origin_of(experiment, record);
  return subject;
}

SweepCheck check_sweep(const Experiment& experiment, std::size_t jobs, double point_memory_bytes,
                       const std::function<bool()>& stop) {
  Preparer preparer(experiment);
  PreparedMemo<std::string> planned;
  const FirstHalf plan = [&](std::size_t index) -> SecondHalf {
    if (is_search(preparer.point(index).strategy)) {
      Search(preparer, index);  // plans its first candidate that can run
      return {};
    }
    const std::string text =
        planned.of(std::make_shared<const PreparedRun>(preparer.prepare(index)),
                   [](const PreparedRun& run) { return to_text(planned_point(run), planned_fields); });
    return [text] { return text; };
  };
  SweepCheck check;
  check.planned.resize(experiment.size());
  std::map<std::size_t, FailedPoint> failed;
  std::map<std::size_t, std::string> wrong;
  const auto answered = [&](std::size_t index, WorkerAnswer answer) {
    if (answer.kind == WorkerAnswer::Kind::input_error)
      wrong.emplace(index, std::move(answer.bytes));
    else if (answer.kind != WorkerAnswer::Kind::done)
      failed.emplace(index, FailedPoint{point_id(index), experiment.coordinates(index),
                                        kind_name(answer.kind), std::move(answer.bytes)});
    else if (!answer.bytes.empty())
      check.planned[index] = from_text<PlannedPoint>(answer.bytes, planned_fields);
  };
  run_in_workers(experiment.size(), jobs, plan, answered, {.memory_bytes = point_memory_bytes, .stop = stop});
  if (!wrong.empty()) throw InputError({}, wrong.begin()->second);
  for (auto& [index, point] : failed) check.failed.push_back(std::move(point));
  return check;
}

std::vector<std::string> model_warnings(Preparer& preparer) {
  const Experiment& experiment = preparer.experiment();
  const auto coordinates = experiment.coordinates(0);
  const bool swept = std::any_of(coordinates.begin(), coordinates.end(),
                                 [](const auto& axis) { return axis.first.starts_with("model"); });
  std::set<std::string> models, warnings;
  for (std::size_t i = 0; i < (swept ? experiment.size() : 1); ++i) {
    try {
      const SharedNode node = preparer.point(i).model;
      if (!models.insert(node.fingerprint()).second) continue;
      for (const std::string& warning : preparer.model(node).warnings) warnings.insert(warning);
    } catch (const InputError&) {  // the point's failure reports it
    }
  }
  return {warnings.begin(), warnings.end()};
}

std::vector<std::string> slow_points(Preparer& preparer) {
  const Experiment& experiment = preparer.experiment();
  constexpr std::size_t looked_at = 100;
  std::set<std::string> models;
  std::vector<std::string> told;
  for (std::size_t i = 0; i < std::min(looked_at, experiment.size()); ++i) {
    try {
      const Point point = preparer.point(i);
      if (!point.numerics) return told;
      if (!models.insert(point.model.fingerprint()).second) continue;
      const std::string slow = slow_learning(*point.numerics, preparer.prepare(i));
      if (!slow.empty()) told.push_back(slow);
    } catch (const InputError&) {  // the point's failure reports it
    }
  }
  return told;
}

bool run_sweep(Preparer& preparer, const SweepOptions& options, Store& store) {
  const std::vector<std::size_t> todo = missing_points(store, options);
  preparer.list_by_class(!options.full);
  SweepProgress progress{0, todo.size(), 0, 0, 0};
  SharedCounts candidates;
  const std::size_t inner_jobs = todo.size() == 1 ? options.jobs : 1;
  PreparedMemo<std::string> known;
  const auto bytes_of = [&](const RunOutput& output) { return encode(stored_form(output, options.trace)); };
  const FirstHalf work = [&](std::size_t item) -> SecondHalf {
    if (is_of_prepared_run(preparer.point(todo[item]), options))
      return [&, run = std::make_shared<const PreparedRun>(preparer.prepare(todo[item]))] {
        return known.of(run,
                        [&](const PreparedRun& prepared) { return bytes_of(simulate(prepared, false)); });
      };
    std::function<RunOutput()> run = simulation(preparer, todo[item], inner_jobs, options.trace, candidates);
    if (options.explain)
      run = [&preparer, index = todo[item], inner_jobs, simulate_point = std::move(run)] {
        return explained(preparer, index, inner_jobs, simulate_point);
      };
    return [&, run = std::move(run), index = todo[item]] {
      RunOutput output = run();
      add_variability(preparer, index, output);
      add_learning(preparer, index, output);
      return bytes_of(output);
    };
  };
  const auto told = [&](std::size_t item) {
    progress.current = todo[std::min(item + options.jobs, todo.size() - 1)];
    options.progress(progress);
  };
  if (!todo.empty()) told(0);
  const auto stop = [&] {
    store.commit_old();
    progress.candidates_done = candidates.done(), progress.candidates = candidates.all();
    if (!todo.empty()) options.progress(progress);
    return options.stop();
  };
  const bool whole =
      run_in_workers(todo.size(), options.jobs, work,
                     [&](std::size_t item, WorkerAnswer answer) {
                       const PointKey& key = store.subject().at(todo[item])->key;
                       if (answer.kind == WorkerAnswer::Kind::done)
                         store.put(key, decode_stored(std::move(answer.bytes)));
                       else
                         store.put(key, PointFailure{kind_name(answer.kind), std::move(answer.bytes)});
                       ++progress.done;
                       told(item);
                     },
                     {options.point_memory_bytes, options.point_time_s, preparer.replays_apart(), stop});
  store.commit();
  return whole;
}

namespace {

/// @param again the command that makes the store's runs again
template <class Read>
auto read_stored(const Store& store, const std::string& again, Read read) {
  try {
    return read();
  } catch (const UnreadableRun& error) {
    throw InputError({store.name(), 0, 0},
                     fmt::format("{}; another version of convoy wrote it: `{}` makes its runs again",
                                 error.what(), again));
  }
}

}  // namespace

SweepResults load_sweep(Store& store, const Experiment* experiment, std::size_t most_whole) {
  const StoreSubject& subject = store.subject();
  const auto run_of = [&store,
                       again = experiment ? "convoy run --fresh" : "convoy run"](const StoredRun& run) {
    return read_stored(store, again, [&] { return run_of_stored(run); });
  };
  SweepResults::ReadRun read;
  if (subject.points.size() > most_whole)
    read = [&store, run_of](const RunFigures& figures) {
      const SweepPoint* const point = store.subject().at(point_index(figures.id));
      const std::optional<StoredRun> stored = store.run(point->key, false);
      if (!stored) throw DamagedStore(fmt::format("{}: its run {} is gone", store.name(), figures.id));
      RunResult run = run_of(*stored);
      run.id = figures.id;
      run.point.assign(figures.point.begin(), figures.point.end());
      return run;
    };
  SweepResults results(std::move(read));
  results.experiment = subject.experiment;
  results.manifest = subject.manifest;
  results.points = static_cast<std::int64_t>(subject.sweep->size());
  Sha256 rows;
  const Store::Reading reading(store);
  results.reserve(subject.points.size());  // growing would take it three times
  for (const SweepPoint& point : subject.points) {
    const std::string id = point_id(point.position);
    if (const std::optional<StoredRun> stored = store.run(point.key, false)) {
      rows.add_field(store.digest_of_point());
      RunResult run = run_of(*stored);
      run.id = id;
      run.point = subject.sweep->at(point.position);
      if (results.runs.empty()) results.manifest.network_model = run.network_model;
      results.add(std::move(run));
    } else if (std::optional<PointFailure> failure = store.failure(point.key)) {
      rows.add_field(store.digest_of_point());
      results.failed.push_back(
          {id, subject.sweep->at(point.position), std::move(failure->kind), std::move(failure->reason)});
    }
    if (store.is_damaged(point.key))
      throw DamagedStore(fmt::format("{}: what it has of point {} is damaged", store.name(), id));
  }
  store.note_read(rows.text());
  return results;
}

Results load_results(Store& store, const Experiment* experiment) {
  return load_sweep(store, experiment, store.subject().points.size()).take();
}

std::vector<TraceProcess> load_trace(Store& store, std::size_t index) {
  const SweepPoint* point = store.subject().at(index);
  if (point == nullptr) throw std::out_of_range("the store does not list the point");
  const std::optional<StoredRun> run = store.run(point->key, true);
  if (store.is_damaged(point->key))
    throw DamagedStore(fmt::format("{}: its trace of point {} is damaged", store.name(), point_id(index)));
  if (!run) return {};
  return read_stored(store, "convoy run", [&] { return trace_of_stored(*run); });
}

Results simulate_sweep(const Experiment& experiment, std::size_t jobs, bool explain) {
  Store store;
  Preparer preparer(experiment);
  store.set_subject(make_subject(preparer, {}, {}, std::nullopt));
  SweepOptions options;
  options.jobs = jobs;
  options.explain = explain;
  run_sweep(preparer, options, store);
  Results results = load_results(store, &experiment);
  if (!results.failed.empty()) throw std::runtime_error(results.failed.front().reason);
  return results;
}

}  // namespace convoy::runs
