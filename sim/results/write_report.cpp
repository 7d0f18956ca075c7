// SPDX-License-Identifier: MIT
#include "sim/results/write_report.h"

#include <fmt/format.h>

#include <ostream>

#include "sim/results/report/sections.h"
#include "sim/results/report/style.h"
#include "sim/results/report/svg.h"

namespace convoy::inline results {

std::vector<std::size_t> drawn_steps(const Results& results) {
  constexpr std::size_t most = 3;
  const ReportContext context(results);
  return fastest(context, all_runs(context), most);
}

std::string trace_prefix(const Results& results, std::size_t run) {
  return results.runs.size() > 1 ? fmt::format("run {}: ", results.runs[run].id) : std::string{};
}

void write_report(const Results& results, const std::vector<StepTrace>& traces, std::ostream& out) {
  const ReportContext context(results);
  out << "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n<meta "
         "charset=\"utf-8\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>"
      << escaped(results.experiment) << " - convoy</title>\n<style>" << report_style()
      << "</style>\n</head>\n<body><main>\n";
  if (results.runs.empty()) {
    out << failures_section(context) << manifest_section(context) << "</main></body>\n</html>\n";
    return;
  }
  for (const auto section :
       {headline, failures_section, scaling_section, cost_section, runs_table, time_section, explain_section,
        variability_section, memory_section, elastic_section, pipeline_section, partition_section,
        search_section, layout_section, schedule_section})
    out << section(context);
  out << timeline_section(context, traces) << machine_section(context) << manifest_section(context);
  out << "</main></body>\n</html>\n";
}

}  // namespace convoy::results
