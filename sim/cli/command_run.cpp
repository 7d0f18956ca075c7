// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ostream>

#include "sim/base/clean_text.h"
#include "sim/base/quantity.h"
#include "sim/cli/commands.h"
#include "sim/cli/results_folder.h"
#include "sim/planning/answer.h"
#include "sim/results/write_explain.h"
#include "sim/results/write_json.h"
#include "sim/results/write_table.h"
#include "sim/run/interrupt.h"
#include "sim/run/sweep.h"
#include "sim/run/workers.h"
#include "sim/studies/job_study.h"
#include "strategies/pardnn/networks/networks.h"

namespace convoy::inline cli {
namespace {

std::string files_text(const std::string& path, bool trace) {
  return fmt::format("\nresults in {}: report.html, results.json, results.csv{}\n", path,
                     trace ? ", trace.json (open it at https://ui.perfetto.dev)" : "");
}

void warn(Preparer& preparer) {
  for (const std::string& warning : model_warnings(preparer))
    fmt::print(stderr, "convoy: warning: {}\n", clean(warning));
}

/// Of one search the candidates tell how far it is, of a sweep the points.
void show(const SweepProgress& now, const Experiment& experiment, Progress& progress) {
  const auto point = [&] { return point_text(now.current, experiment.coordinates(now.current)); };
  if (now.all == 1 && now.candidates > 0)
    return progress(now.candidates_done, now.candidates, [&] { return "candidates of " + point(); });
  progress(now.done, now.all, [&] {
    if (now.candidates == 0) return point();
    return fmt::format("{}, {} of {} candidates", point(), now.candidates_done, now.candidates);
  });
}

/// Of a sweep that was only planned: names the first points that failed.
Exit report(const std::vector<std::string>& failures) {
  constexpr std::size_t named = 10;
  for (std::size_t i = 0; i < std::min(failures.size(), named); ++i)
    fmt::print(stderr, "convoy: {}\n", clean(failures[i]));
  if (failures.size() > named) fmt::print(stderr, "convoy: and {} more points\n", failures.size() - named);
  return Exit::bug;
}

double quantity_option(const char* name, const std::string& text, Dimension dimension, double otherwise) {
  if (text.empty()) return otherwise;
  std::string why;
  const std::optional<double> value = parse_quantity(text, dimension, why);
  if (!value) throw InputError({name, 0, 0}, why);
  if (*value <= 0) throw InputError({name, 0, 0}, "must be more than 0");
  return *value;
}

SweepOptions sweep_options(const RunArguments& arguments) {
  SweepOptions options;
  options.explain = arguments.explain;
  options.jobs = arguments.jobs;
  options.trace = arguments.trace;
  options.full = arguments.full;
  options.shard = arguments.shard;
  options.point_memory_bytes = quantity_option("--point-memory", arguments.point_memory, Dimension::bytes,
                                               machine_memory_bytes() / static_cast<double>(arguments.jobs));
  options.point_time_s =
      quantity_option("--point-time", arguments.point_time, Dimension::time, options.point_time_s);
  options.stop = [] { return InterruptGuard::signal() != 0; };
  return options;
}

/// Tells how to go on; what the program ends with after a signal.
Exit interrupted(const Results& results, const std::string& path) {
  fmt::print(stderr, "convoy: interrupted: {} of {} points are done{}\n", results.runs.size(),
             results.points.value_or(0),
             path.empty()
                 ? "; with --out DIR they would be kept"
                 : fmt::format(" and written to {}; the same command goes on with the others", path));
  return static_cast<Exit>(128 + InterruptGuard::signal());
}

Exit exit_for(const Results& results, const RunArguments& arguments) {
  if (const Exit failed = tell_failures(results); failed != Exit::done) return failed;
  const auto over =
      std::count_if(results.runs.begin(), results.runs.end(), [](const RunResult& run) { return !run.fits; });
  if (!arguments.require_fit || over == 0) return Exit::done;
  fmt::print(stderr, "convoy: {} of {} runs need more memory than their devices have\n", over,
             results.runs.size());
  return Exit::does_not_fit;
}

/// A run alone says what is wrong in its own words; so does a sweep all of whose points are.
void throw_if_all_wrong(const Results& results) {
  if (!results.runs.empty() || results.failed.empty()) return;
  if (static_cast<std::int64_t>(results.failed.size()) != results.points) return;
  for (const FailedPoint& point : results.failed)
    if (point.kind != "input") return;
  throw InputError({}, results.failed.front().reason);
}

Exit run_shard(ResultsPlace& place, bool whole) {
  const Results results = load_results(place.store());
  place.keep();
  if (!whole) return interrupted(results, place.folder()->path());
  write_stdout([&](std::ostream& out) {
    out << fmt::format("{}: {} of {} points in {}; `convoy merge DIR... --out DIR` joins the shards\n",
                       results.experiment, results.runs.size(), results.points.value_or(0),
                       place.folder()->store());
  });
  tell_failures(results);
  return Exit::done;  // those who join the shards end with what failed
}

}  // namespace

Exit run_command(const RunArguments& arguments) {
  Experiment experiment = Experiment::load(arguments.file, arguments.settings);
  if (arguments.network_model == "simgrid") experiment.use(NetworkModel::simgrid);
  const std::string path =
      arguments.out.empty() ? default_folder(experiment.name(), arguments.settings) : arguments.out;
  const bool to_folder =
      !arguments.json || !arguments.out.empty() || arguments.trace || arguments.shard.of > 1;
  if (to_folder) OutputFolder::check(path);
  if (experiment.jobs())
    read_job_study(*experiment.jobs());  // what is wrong with it comes before what takes time

  const InterruptGuard guard;
  std::optional<ResultsPlace> place;
  if (to_folder)
    place.emplace(path, arguments.fresh);
  else
    place.emplace();
  Preparer preparer(experiment);
  place->begin(make_subject(
      preparer, arguments.file, arguments.settings,
      to_folder ? std::optional((arguments.full ? "full " : "") +
                                std::string(arguments.explain ? "explain " : "") + arguments.network_model)
                : std::nullopt));
  bool whole = true;
  {
    Progress progress(arguments.progress, "simulating");
    SweepOptions options = sweep_options(arguments);
    options.progress = [&](const SweepProgress& now) { show(now, experiment, progress); };
    whole = run_sweep(preparer, options, place->store());
  }
  if (arguments.shard.of > 1) return run_shard(*place, whole);
  const Results results = results_of(place->store(), &experiment);
  throw_if_all_wrong(results);
  warn(preparer);
  if (to_folder) place->write(results, arguments.trace);
  if (!whole) return interrupted(results, to_folder ? path : "");
  write_stdout([&](std::ostream& out) {
    if (arguments.json)
      write_json(results, out);
    else
      out << table(results) << what_varies(results) << explanation(results)
          << files_text(path, arguments.trace);
  });
  return exit_for(results, arguments);
}

Exit check_command(const CheckArguments& arguments) {
  if (const YamlNode root = load_yaml(arguments.file); root.find("network")) {
    const OperationNetworkFile file = read_operation_network(root);
    write_stdout([&](std::ostream& out) {
      out << fmt::format("{}: {} operations and variables for convoy partition\n", file.name,
                         file.network.nodes.size());
    });
    return Exit::done;
  }
  const Experiment experiment = Experiment::load(arguments.file, arguments.settings);
  if (experiment.plan()) {
    const std::string text = check_plan(read_plan(experiment), arguments.jobs);
    write_stdout([&](std::ostream& out) { out << text << '\n'; });
    return Exit::done;
  }
  if (experiment.jobs()) read_job_study(*experiment.jobs());
  const std::vector<std::string> failures = check_sweep(experiment, arguments.jobs);
  if (!failures.empty()) return report(failures);
  Preparer preparer(experiment);
  warn(preparer);
  write_stdout([&](std::ostream& out) {
    out << fmt::format("{}: {} {}\n", experiment.name(), experiment.size(),
                       experiment.size() == 1 ? "run" : "runs");
    constexpr std::size_t listed = 50;
    for (std::size_t i = 0; experiment.swept() && i < std::min(experiment.size(), listed); ++i) {
      std::string point;
      for (const auto& [path, value] : experiment.coordinates(i))
        point += fmt::format("{}{}: {}", point.empty() ? "" : ", ", path, to_flow(value));
      out << fmt::format("  {}  {}\n", point_id(i), point);
    }
    if (experiment.size() > listed) out << fmt::format("  and {} more\n", experiment.size() - listed);
  });
  return Exit::done;
}

}  // namespace convoy::cli
