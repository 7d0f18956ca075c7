// SPDX-License-Identifier: MIT
#include "sim/results/write_report.h"

#include <fmt/format.h>

#include <ostream>

#include "sim/page/page.h"
#include "sim/results/report/sections.h"

namespace convoy::inline results {

std::vector<std::size_t> drawn_steps(const SweepResults& results) {
  constexpr std::size_t most = 3;
  const ReportContext context(results);
  return fastest(context, all_runs(context), most);
}

std::string trace_prefix(const SweepResults& results, std::size_t run) {
  return results.runs.size() > 1 ? fmt::format("run {}: ", results.runs[run].id) : std::string{};
}

void write_report(const SweepResults& results, const std::vector<StepTrace>& traces,
                  const std::vector<RunMonitor>& monitors, std::ostream& out) {
  const ReportContext context(results);
  out << html_page_begin(results.experiment);
  if (results.runs.empty()) {
    out << failures_section(context);
  } else {
    for (const auto section : {headline, failures_section, scaling_section, learning_section, cost_section})
      out << section(context);
    write_runs_table(context, out);
    for (const auto section :
         {time_section, explain_section, variability_section, memory_section, elastic_section,
          pipeline_section, partition_section, search_section, layout_section, schedule_section})
      out << section(context);
    out << monitor_section(context, monitors) << timeline_section(context, traces)
        << machine_section(context);
  }
  out << manifest_section(context) << html_page_end();
}

void write_timeline(const SweepResults& results, const StepTrace& trace, std::ostream& out) {
  out << html_page(results.experiment, timeline_section(ReportContext(results), {trace}));
}

}  // namespace convoy::results
