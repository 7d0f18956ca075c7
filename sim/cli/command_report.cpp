// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <ostream>

#include "sim/base/clean_text.h"
#include "sim/base/input_error.h"
#include "sim/cli/commands.h"
#include "sim/cli/results_folder.h"
#include "sim/planning/plan_report.h"
#include "sim/planning/read_plan_json.h"
#include "sim/results/read_json.h"
#include "sim/results/read_trace.h"
#include "sim/results/write_report.h"
#include "sim/run/output_folder.h"
#include "sim/run/sweep.h"
#include "sim/run/wire.h"

namespace convoy::inline cli {

namespace {

namespace fs = std::filesystem;

/// The steps that the report draws, where the folder has a trace. @throws InputError
std::vector<StepTrace> read_steps(const OutputFolder& folder, const SweepResults& results) {
  if (!folder.has("trace.json")) return {};
  FileStream in = folder.open("trace.json");
  const std::string file = folder.path() + "/trace.json";
  std::vector<StepTrace> traces;
  for (const std::size_t run : drawn_steps(results)) traces.push_back({run, {}});
  const auto trace_of = [&](const std::string& process) {
    return std::find_if(traces.begin(), traces.end(), [&](const StepTrace& trace) {
      return process.starts_with(trace_prefix(results, trace.run));
    });
  };
  for (TraceProcess& process :
       read_trace(in, file, [&](const std::string& name) { return trace_of(name) != traces.end(); })) {
    StepTrace& trace = *trace_of(process.name);
    process.name.erase(0, trace_prefix(results, trace.run).size());
    trace.processes.push_back(std::move(process));
  }
  return traces;
}

/// What monitoring reported of the runs, where the folder has it. @throws InputError
std::vector<RunMonitor> read_monitors(const OutputFolder& folder, const SweepResults& results) {
  if (!folder.has("monitor.csv")) return {};
  return read_monitor(folder.path() + "/monitor.csv", results);
}

void tell_written(const std::string& name, const OutputFolder& folder) {
  write_stdout([&](std::ostream& out) {
    out << fmt::format("report of {}: {}\n", clean(name), (fs::path(folder.path()) / "report.html").string());
  });
}

/// The page of a plan, from its plan.json.
void report_plan(const OutputFolder& folder) {
  FileStream in = folder.open("plan.json");
  const PlanAnswer answer = read_plan_answer(in, folder.path() + "/plan.json");
  folder.replace({"report.html", [&](std::ostream& out) { write_report(answer, out); }});
  tell_written(answer.name, folder);
}

void report_store(const OutputFolder& folder) {
  try {
    Store store(folder.store(), Database::Mode::write);
    if (store.empty()) throw OutputError(fmt::format("{}: has no results yet", folder.store()));
    const SweepResults results = results_of(store);
    std::vector<StepTrace> traces;
    if (folder.has("trace.json"))
      for (const std::size_t run : drawn_steps(results))
        traces.push_back({run, load_trace(store, point_index(results.runs[run].id))});
    const std::vector<RunMonitor> monitors = read_monitors(folder, results);
    folder.replace({"report.html", [&](std::ostream& out) { write_report(results, traces, monitors, out); }});
    tell_written(results.experiment, folder);
  } catch (const DamagedStore& damage) {
    throw refused(folder.path(), damage);
  }
}

void report_results(const OutputFolder& folder) {
  FileStream in = folder.open("results.json");
  const Results results = read_json(in, folder.path() + "/results.json");
  const std::vector<StepTrace> traces = read_steps(folder, results);
  const std::vector<RunMonitor> monitors = read_monitors(folder, results);
  folder.replace({"report.html", [&](std::ostream& out) { write_report(results, traces, monitors, out); }});
  tell_written(results.experiment, folder);
}

}  // namespace

Exit report_command(const ReportArguments& arguments) {
  const fs::path folder = arguments.folder;
  const auto has = [&](const char* name) {
    return fs::symlink_status(folder / name).type() != fs::file_type::not_found;
  };
  if (!has("results.sqlite") && !has("results.json") && !has("plan.json"))
    throw InputError({(folder / "results.json").string(), 0, 0},
                     "cannot be opened; `convoy report` takes the folder of a finished run");
  if (has("study.json"))
    throw InputError({(folder / "study.json").string(), 0, 0},
                     "is a study; `convoy study FILE --out DIR` writes its report again, from the stored points");
  const OutputFolder place(arguments.folder);
  if (place.has_store())
    report_store(place);
  else if (place.has("results.json"))
    report_results(place);
  else
    report_plan(place);
  return Exit::done;
}

}  // namespace convoy::cli
