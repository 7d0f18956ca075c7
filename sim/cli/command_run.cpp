// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ostream>

#include "sim/cli/commands.h"
#include "sim/planning/answer.h"
#include "sim/results/write_csv.h"
#include "sim/results/write_json.h"
#include "sim/results/write_report.h"
#include "sim/results/write_table.h"
#include "sim/results/write_trace.h"
#include "sim/run/manifest.h"
#include "sim/run/output_folder.h"
#include "sim/run/sweep.h"
#include "sim/studies/job_study.h"

namespace convoy {
namespace {

/// "simulating 12/45" in place, on a terminal only.
class Progress {
 public:
  void operator()(std::size_t done, std::size_t all) {
    if (!terminal_) return;
    fmt::print(stderr, "\rsimulating {}/{}", done, all);
    if (done == all) fmt::print(stderr, "\r\033[K");
    std::fflush(stderr);
  }

 private:
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
};

void write_trace(const Results& results, const std::vector<RunOutput>& outputs, std::ostream& out) {
  TraceWriter writer(out);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    for (TraceProcess process : outputs[i].trace) {
      process.name = trace_prefix(results, i) + process.name;
      writer.add(process);
    }
}

void write_folder(const Results& results, std::vector<RunOutput>& outputs, const RunArguments& arguments,
                  const std::string& path) {
  OutputFolder folder(path);
  folder.write("results.json", [&](std::ostream& out) { write_json(results, out); });
  folder.write("results.csv", [&](std::ostream& out) { write_csv(results, out); });
  std::vector<StepTrace> traces;
  if (arguments.trace) {
    folder.write("trace.json", [&](std::ostream& out) { write_trace(results, outputs, out); });
    for (const std::size_t run : drawn_steps(results)) traces.push_back({run, std::move(outputs[run].trace)});
  } else {
    folder.remove("trace.json");
  }
  folder.write("report.html", [&](std::ostream& out) { write_report(results, traces, out); });
}

std::string files_text(const std::string& path, bool trace) {
  return fmt::format("\nresults in {}: report.html, results.json, results.csv{}\n", path,
                     trace ? ", trace.json (open it at https://ui.perfetto.dev)" : "");
}

void warn(const Experiment& experiment) {
  for (const std::string& warning : model_warnings(experiment))
    fmt::print(stderr, "convoy: warning: {}\n", warning);
}

/// Names the first points that failed.
Exit report(const std::vector<std::string>& failures) {
  constexpr std::size_t named = 10;
  for (std::size_t i = 0; i < std::min(failures.size(), named); ++i)
    fmt::print(stderr, "convoy: {}\n", failures[i]);
  if (failures.size() > named) fmt::print(stderr, "convoy: and {} more points\n", failures.size() - named);
  return Exit::bug;
}

/// `jobs:` of the experiment, read before anything is simulated. @throws InputError
std::optional<JobStudy> study_of(const Experiment& experiment) {
  if (!experiment.jobs()) return std::nullopt;
  return read_job_study(*experiment.jobs());
}

}  // namespace

Exit run_command(const RunArguments& arguments) {
  const Experiment experiment = Experiment::load(arguments.file, arguments.settings);
  const std::string path = arguments.out.empty() ? "runs/" + experiment.name() : arguments.out;
  const bool to_folder = !arguments.json || !arguments.out.empty() || arguments.trace;
  if (to_folder) OutputFolder::check(path);

  const std::optional<JobStudy> study = study_of(experiment);
  SweepOutcome outcome = run_sweep(experiment, {arguments.jobs, arguments.trace, Progress()});
  warn(experiment);
  if (outcome.runs.empty()) return report(outcome.failures);
  Results results{experiment.name(), {}, {}};
  for (RunOutput& run : outcome.runs) results.runs.push_back(std::move(run.result));
  if (study) results.schedules = run_job_study(*study, job_kinds(results.runs, experiment.jobs()->pos));
  results.manifest = make_manifest(experiment, arguments.file, arguments.settings, results.runs);

  if (to_folder) write_folder(results, outcome.runs, arguments, path);
  write_stdout([&](std::ostream& out) {
    if (arguments.json)
      write_json(results, out);
    else
      out << table(results) << files_text(path, arguments.trace);
  });
  if (!outcome.failures.empty()) return report(outcome.failures);
  const bool fits =
      std::all_of(results.runs.begin(), results.runs.end(), [](const RunResult& run) { return run.fits; });
  if (!arguments.require_fit || fits) return Exit::done;
  const auto runs_over =
      std::count_if(results.runs.begin(), results.runs.end(), [](const RunResult& run) { return !run.fits; });
  fmt::print(stderr, "convoy: {} of {} runs need more memory than their devices have\n", runs_over,
             results.runs.size());
  return Exit::does_not_fit;
}

Exit check_command(const CheckArguments& arguments) {
  const Experiment experiment = Experiment::load(arguments.file, arguments.settings);
  if (experiment.plan()) {
    const std::string text = check_plan(read_plan(experiment), arguments.jobs);
    write_stdout([&](std::ostream& out) { out << text << '\n'; });
    return Exit::done;
  }
  study_of(experiment);
  const std::vector<std::string> failures = check_sweep(experiment, arguments.jobs);
  if (!failures.empty()) return report(failures);
  warn(experiment);
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

}  // namespace convoy
