// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

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
std::vector<StepTrace> read_steps(const fs::path& folder, const Results& results) {
  const std::string file = (folder / "trace.json").string();
  std::ifstream in(file, std::ios::binary);
  if (!in) return {};
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

/// The page of a plan, from its plan.json.
Exit report_plan(const fs::path& folder, const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const PlanAnswer answer = read_plan_answer(in, file);
  OutputFolder(folder.string()).replace({"report.html", [&](std::ostream& out) {
                                           write_report(answer, out);
                                         }});
  write_stdout([&](std::ostream& out) {
    out << fmt::format("report of {}: {}\n", clean(answer.name), (folder / "report.html").string());
  });
  return Exit::done;
}

}  // namespace

Exit report_command(const ReportArguments& arguments) {
  const fs::path folder = arguments.folder;
  const std::string file = (folder / "results.json").string(), plan = (folder / "plan.json").string();
  if (!fs::is_regular_file(folder / "results.sqlite") && !fs::is_regular_file(file) &&
      fs::is_regular_file(plan))
    return report_plan(folder, plan);
  if (!fs::is_regular_file(folder / "results.sqlite") && !fs::is_regular_file(file))
    throw InputError({file, 0, 0}, "cannot be opened; `convoy report` takes the folder of a finished run");
  const OutputFolder place(arguments.folder);
  Results results;
  std::vector<StepTrace> traces;
  if (place.has_store()) {
    Store store(place.store(), Database::Mode::write);
    if (store.empty()) throw OutputError(fmt::format("{}: has no results yet", place.store()));
    try {
      results = results_of(store);
    } catch (const UnreadableRun& error) {
      throw InputError(
          {place.store(), 0, 0},
          fmt::format("{}; another version of convoy wrote it: `convoy run` makes its runs again",
                      error.what()));
    }
    if (fs::exists(folder / "trace.json"))
      for (const std::size_t run : drawn_steps(results))
        traces.push_back({run, load_trace(store, point_index(results.runs[run].id))});
  } else {
    std::ifstream in(file, std::ios::binary);
    results = read_json(in, file);
    traces = read_steps(folder, results);
  }
  place.replace({"report.html", [&](std::ostream& out) { write_report(results, traces, out); }});
  write_stdout([&](std::ostream& out) {
    out << fmt::format("report of {}: {}\n", clean(results.experiment), (folder / "report.html").string());
  });
  return Exit::done;
}

}  // namespace convoy::cli
