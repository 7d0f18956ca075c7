// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <ostream>
#include <set>

#include "sim/base/clean_text.h"
#include "sim/base/quantity.h"
#include "sim/cli/commands.h"
#include "sim/cli/monitor_runs.h"
#include "sim/cli/prove_experiment.h"
#include "sim/cli/results_folder.h"
#include "sim/cli/tell.h"
#include "sim/plan/ledger.h"
#include "sim/planning/answer.h"
#include "sim/results/write_explain.h"
#include "sim/results/write_json.h"
#include "sim/results/write_table.h"
#include "sim/run/export/chakra_trace.h"
#include "sim/run/export/goal_schedule.h"
#include "sim/run/interrupt.h"
#include "sim/run/search/search_spec.h"
#include "sim/run/sweep.h"
#include "sim/run/tasks_file.h"
#include "sim/run/workers.h"
#include "sim/studies/regions/study_runs.h"
#include "sim/studies/shared_links.h"
#include "strategies/pardnn/networks/networks.h"

namespace convoy::inline cli {
namespace {

std::string where_exports_are(const RunArguments& arguments) {
  std::string text;
  for (const auto& [what, path] : {std::pair("tasks", &arguments.tasks),
                                   {"traces of Chakra", &arguments.chakra},
                                   {"schedule of GOAL", &arguments.goal}})
    if (!path->empty()) text += fmt::format("{} in {}\n", what, *path);
  return text;
}

std::string files_text(const std::string& path, const RunArguments& arguments) {
  return fmt::format("\nresults in {}: report.html, results.json, results.csv{}\n{}", path,
                     fmt::format("{}{}", arguments.monitor ? ", monitor.csv" : "",
                                 arguments.trace ? ", trace.json (open it at https://ui.perfetto.dev)" : ""),
                     where_exports_are(arguments));
}

void warn(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) tell("convoy: warning: {}\n", clean(warning));
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

/// "n0: 4.87 GiB of 16.0 GiB at the peak (weights 97.5 MiB, ...), process 6.1 GiB" of the fullest device.
std::string memory_text(const PlannedPoint& point) {
  std::string classes;
  for (std::size_t c = 0; c < memory_class_count; ++c)
    if (point.peak_bytes[c] > 0)
      classes += fmt::format("{}{} {}", classes.empty() ? "" : ", ", memory_class_names[c],
                             format_bytes(point.peak_bytes[c]));
  return fmt::format("{}: {} of {} at the peak{}, process {}", point.device,
                     format_bytes(total_bytes(point.peak_bytes)), format_bytes(point.device_bytes),
                     classes.empty() ? "" : fmt::format(" ({})", classes), format_bytes(point.process_bytes));
}

/// What a sweep's points would be, and what each needs of its fullest device.
std::string checked_text(const Experiment& experiment, const SweepCheck& check) {
  constexpr std::size_t listed = 50;
  std::string text = fmt::format("{}: {} {}\n", experiment.name(), experiment.size(),
                                 experiment.size() == 1 ? "run" : "runs");
  for (std::size_t i = 0; i < std::min(experiment.size(), listed); ++i) {
    std::string point;
    for (const auto& [path, value] : experiment.coordinates(i))
      point += fmt::format("{}{}: {}", point.empty() ? "" : ", ", path, to_flow(value));
    if (experiment.swept()) text += fmt::format("  {}  {}\n", point_id(i), point);
    if (check.planned[i])
      text += fmt::format("{}memory of {}\n", experiment.swept() ? "     " : "  ",
                          memory_text(*check.planned[i]));
  }
  if (experiment.size() > listed) text += fmt::format("  and {} more\n", experiment.size() - listed);
  return text;
}

/// Each warning once, with the first point that has it.
void warn(const Experiment& experiment, const SweepCheck& check) {
  std::set<std::string> told;
  for (std::size_t i = 0; i < check.planned.size(); ++i) {
    if (!check.planned[i]) continue;
    for (const std::string& warning : check.planned[i]->warnings)
      if (told.insert(warning).second)
        tell("convoy: warning: {}{}\n",
             experiment.swept() ? clean(point_text(i, experiment.coordinates(i))) + ": " : "",
             clean(warning));
  }
}

}  // namespace

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
  return options;
}

namespace {

/// Tells how to go on; what the program ends with after a signal.
Exit interrupted(const SweepResults& results, const std::string& path) {
  tell("convoy: interrupted: {} of {} points are done{}\n", results.runs.size(), results.points.value_or(0),
       path.empty() ? "; with --out DIR they would be kept"
                    : fmt::format(" and written to {}; the same command goes on with the others", path));
  return static_cast<Exit>(128 + InterruptGuard::signal());
}

Exit exit_for(const SweepResults& results, const RunArguments& arguments) {
  if (const Exit failed = tell_failures(results); failed != Exit::done) return failed;
  const auto over = std::count_if(results.runs.begin(), results.runs.end(),
                                  [](const RunFigures& run) { return !run.fits; });
  if (!arguments.require_fit || over == 0) return Exit::done;
  tell("convoy: {} of {} runs need more memory than their devices have\n", over, results.runs.size());
  return Exit::does_not_fit;
}

/// A run alone says what is wrong in its own words; so does a sweep all of whose points are.
void throw_if_all_wrong(const SweepResults& results) {
  if (!results.runs.empty() || results.failed.empty()) return;
  if (static_cast<std::int64_t>(results.failed.size()) != results.points) return;
  for (const FailedPoint& point : results.failed)
    if (point.kind != "input") return;
  throw InputError({}, results.failed.front().reason);
}

Exit tell_shard(const SweepResults& results, const std::string& path) {
  write_stdout([&](std::ostream& out) {
    out << fmt::format(
        "{}: {} of {} points in {}/results.sqlite; `convoy merge DIR... --out DIR` joins the shards\n",
        results.experiment, results.runs.size(), results.points.value_or(0), path);
  });
  tell_failures(results);
  return Exit::done;  // those who join the shards end with what failed
}

/// The options that ask for what was replayed, of one point, with where each writes it.
std::vector<std::pair<const char*, std::string>> exports(const RunArguments& arguments) {
  std::vector<std::pair<const char*, std::string>> result;
  for (const auto& [option, path] :
       {std::pair("--tasks", &arguments.tasks), {"--chakra", &arguments.chakra}, {"--goal", &arguments.goal}})
    if (!path->empty()) result.emplace_back(option, *path);
  return result;
}

[[noreturn]] void refuse_tasks(const char* option, std::string_view reason) {
  throw InputError({option, 0, 0}, fmt::format("the tasks of this run cannot be written: {}", reason));
}

/// The run whose tasks are to be written. @param best what a search over strategies found
PreparedRun run_with_tasks(Preparer& preparer, const YamlNode* best, const char* option) {
  PreparedRun run = preparer.prepare(0, best);
  if (const std::string_view reason = refuses_tasks(run); !reason.empty()) refuse_tasks(option, reason);
  return run;
}

/// Refuses options of exports(), before anything is simulated, where that is known by then.
void check_exports(const Experiment& experiment, const RunArguments& arguments) {
  const auto asked = exports(arguments);
  if (asked.empty()) return;
  for (const auto& [option, path] : asked) {
    refuse_input(path, {arguments.file});
    if (experiment.size() != 1)
      throw InputError({option, 0, 0},
                       fmt::format("the tasks of one point can be written, and the experiment has "
                                   "{}; --set sweep.KEY=[VALUE] leaves one value of a key",
                                   experiment.size()));
    if (arguments.shard.of > 1) refuse_tasks(option, "--shard is for sweeps");
  }
  if (!arguments.chakra.empty()) check_chakra_folder(arguments.chakra);
  if (is_search(experiment.point(0).strategy)) return;
  Preparer preparer(experiment);
  run_with_tasks(preparer, nullptr, asked.front().first);
}

/// Replays the point once more, where that is needed.
void write_exports(Preparer& preparer, const SweepResults& results, const RunArguments& arguments) {
  const auto asked = exports(arguments);
  if (asked.empty() || results.runs.empty()) return;
  const std::optional<SearchSummary> search = results.whole(0)->search;
  if (!arguments.tasks.empty() || !arguments.chakra.empty()) preparer.ask_for_meaning();
  const PreparedRun run = with_every_task(
      run_with_tasks(preparer, search ? &search->ranking.front().candidate : nullptr, asked.front().first));
  if (!arguments.tasks.empty())
    write_file(arguments.tasks, [&](std::ostream& out) { write_tasks(run, out); });
  if (!arguments.chakra.empty()) write_chakra_traces(run.plan, run.machine, run.cost, arguments.chakra);
  if (!arguments.goal.empty())
    write_file(arguments.goal,
               [&](std::ostream& out) { write_goal_schedule(run.plan, run.machine, run.cost, out); });
}

}  // namespace

FinishedRun run_points(const Experiment& experiment, const RunArguments& arguments, const std::string& path,
                       const SweepOptions& options, std::size_t most_whole) {
  if (!path.empty()) OutputFolder::check(path);
  check_monitor(arguments);
  check_queues(experiment);  // what is wrong with them comes before what takes time
  check_exports(experiment, arguments);
  // What is wrong with the experiment is told before anything is written.
  Preparer preparer(experiment);
  StoreSubject subject = make_subject(
      preparer, arguments.file, arguments.settings,
      path.empty()
          ? std::nullopt
          : std::optional((arguments.full ? "full " : "") + std::string(arguments.explain ? "explain " : "") +
                          arguments.network_model),
      arguments.shard);
  const auto place =
      path.empty() ? std::make_shared<ResultsPlace>() : std::make_shared<ResultsPlace>(path, arguments.fresh);
  place->begin(std::move(subject));
  FinishedRun run;
  run.place = place;
  for (const std::string& slow : slow_points(preparer)) options.slow(slow);
  run.whole = run_sweep(preparer, options, place->store());
  run.origin = place->store().subject().origin;
  if (arguments.shard.of > 1) {
    run.results = load_sweep(place->store());
    place->keep();
    return run;
  }
  try {
    run.results = results_of(place->store(), &experiment, most_whole);
  } catch (const QueueInterrupted&) {
    run.whole = false;
    run.results = load_sweep(place->store(), &experiment, most_whole);
    return run;
  }
  throw_if_all_wrong(run.results);
  run.warnings = model_warnings(preparer);
  if (!path.empty())
    place->write(run.results, arguments.trace,
                 arguments.monitor && run.whole ? monitor_runs(preparer, run.results, arguments)
                                                : std::vector<RunMonitor>{},
                 options.writing);
  write_exports(preparer, run.results, arguments);
  return run;
}

Exit run_command(const RunArguments& arguments) {
  Experiment experiment = Experiment::load(arguments.file, arguments.settings, arguments.shard.of);
  if (arguments.network_model == "simgrid") experiment.use(NetworkModel::simgrid);
  const bool to_folder = !arguments.json || !arguments.out.empty() || arguments.trace || arguments.monitor ||
                         arguments.shard.of > 1;
  std::string path;
  if (to_folder)
    path = arguments.out.empty() ? default_folder(experiment.name(), arguments.settings) : arguments.out;
  const InterruptGuard guard;
  std::optional<Progress> progress(std::in_place, arguments.progress, "simulating");
  SweepOptions options = sweep_options(arguments);
  options.stop = [] { return InterruptGuard::signal() != 0; };
  options.progress = [&](const SweepProgress& now) { show(now, experiment, *progress); };
  options.damaged = [&](const std::vector<std::size_t>& points) {
    tell("convoy: {}\n", damaged_points(path + "/results.sqlite", points));
  };
  options.slow = [](const std::string& slow) { tell("convoy: warning: {}\n", clean(slow)); };
  options.writing = [&](std::size_t done, std::size_t all) {
    progress->begin("writing");
    (*progress)(done, all);
  };
  const FinishedRun run = run_points(experiment, arguments, path, options);
  progress.reset();
  const SweepResults& results = run.results;
  warn(run.warnings);
  if (!run.whole) return interrupted(results, path);
  if (arguments.shard.of > 1) return tell_shard(results, path);
  write_stdout([&](std::ostream& out) {
    if (arguments.json) return write_json(results, out);
    write_table(results, out);
    out << what_varies(results) << explanation(results) << files_text(path, arguments);
  });
  return exit_for(results, arguments);
}

Exit check_command(const CheckArguments& arguments) {
  constexpr const char* proves = "--prove takes an experiment with a strategy, and this is a {}";
  if (std::filesystem::is_directory(arguments.file)) {
    if (arguments.prove) throw InputError({arguments.file, 0, 0}, fmt::format(proves, "folder"));
    return check_folder(arguments.file);
  }
  if (const YamlNode root = load_yaml(arguments.file); const YamlNode* network = root.find("network")) {
    if (arguments.prove) throw InputError(network->pos, fmt::format(proves, "network for convoy partition"));
    const OperationNetworkFile file = read_operation_network(root);
    write_stdout([&](std::ostream& out) {
      out << fmt::format("{}: {} operations and variables for convoy partition\n", file.name,
                         file.network.nodes.size());
    });
    return Exit::done;
  }
  const Experiment experiment = Experiment::load(arguments.file, arguments.settings);
  if (arguments.prove) {
    Preparer preparer(experiment);
    const ProvedExperiment proved = prove_experiment(preparer);
    warn(model_warnings(preparer));
    warn(experiment, proved.check);
    return exit_for(proved.outcomes);
  }
  if (experiment.plan()) {
    const std::string text = check_plan(read_plan(experiment), arguments.jobs);
    write_stdout([&](std::ostream& out) { out << text << '\n'; });
    return Exit::done;
  }
  if (experiment.study()) {
    const std::string text = check_study(experiment, read_study(experiment), arguments.jobs);
    write_stdout([&](std::ostream& out) { out << text; });
    return Exit::done;
  }
  check_queues(experiment);
  const SweepCheck check =
      check_sweep(experiment, arguments.jobs, machine_memory_bytes() / static_cast<double>(arguments.jobs));
  Results failures;
  failures.failed = check.failed;
  if (const Exit failed = tell_failures(failures); failed != Exit::done) return failed;
  Preparer preparer(experiment);
  warn(model_warnings(preparer));
  warn(experiment, check);
  write_stdout([&](std::ostream& out) { out << checked_text(experiment, check); });
  return Exit::done;
}

}  // namespace convoy::cli
