// SPDX-License-Identifier: MIT
#include "sim/results/write_report.h"

#include <fmt/format.h>

#include <ostream>

#include "sim/page/page.h"
#include "sim/results/report/sections.h"

namespace convoy::inline results {

std::vector<std::size_t> drawn_steps(const Results& results) {
  constexpr std::size_t most = 3;
  const ReportContext context(results);
  return fastest(context, all_runs(context), most);
}

std::string trace_prefix(const Results& results, std::size_t run) {
  return results.runs.size() > 1 ? fmt::format("run {}: ", results.runs[run].id) : std::string{};
}

void write_report(const Results& results, const std::vector<StepTrace>& traces,
                  const std::vector<RunMonitor>& monitors, std::ostream& out) {
  const ReportContext context(results);
  std::string body;
  if (results.runs.empty()) {
    body = failures_section(context) + manifest_section(context);
  } else {
    for (const auto section :
         {headline, failures_section, scaling_section, learning_section, cost_section, runs_table,
          time_section, explain_section, variability_section, memory_section, elastic_section,
          pipeline_section, partition_section, search_section, layout_section, schedule_section})
      body += section(context);
    body += monitor_section(context, monitors) + timeline_section(context, traces) +
            machine_section(context) + manifest_section(context);
  }
  out << html_page(results.experiment, body);
}

void write_timeline(const Results& results, const StepTrace& trace, std::ostream& out) {
  out << html_page(results.experiment, timeline_section(ReportContext(results), {trace}));
}

}  // namespace convoy::results
