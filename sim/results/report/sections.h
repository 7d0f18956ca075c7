// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/results/report/labels.h"
#include "sim/results/sweep_results.h"
#include "sim/results/write_report.h"

namespace convoy::inline results {

/// The data for all sections of the report.
struct ReportContext {
  explicit ReportContext(const SweepResults& all);
  const SweepResults& results;
  RunLabels labels;
  std::vector<double> scaling;  ///< scaling_efficiency of the runs; may be empty

  const RunFigures& run(std::size_t index) const { return results.runs[index]; }
  std::shared_ptr<const RunResult> whole(std::size_t index) const { return results.whole(index); }
};

// The sections, as HTML; empty if the results have nothing for them.

std::string headline(const ReportContext& context);          ///< what was simulated, best runs
std::string failures_section(const ReportContext& context);  ///< points without results, and why
std::string scaling_section(
    const ReportContext& context);                         ///< throughput over devices and over swept numbers
std::string time_section(const ReportContext& context);    ///< what steps are made of, and what limits them
std::string memory_section(const ReportContext& context);  ///< of the fullest device, by class
std::string cost_section(const ReportContext& context);    ///< Pareto front of time and cost of an epoch
std::string elastic_section(const ReportContext& context);      ///< throughput over time, pauses
std::string pipeline_section(const ReportContext& context);     ///< load of the stages
std::string partition_section(const ReportContext& context);    ///< parts and cuts
std::string search_section(const ReportContext& context);       ///< candidates of `auto`, and why the best is
std::string explain_section(const ReportContext& context);      ///< what would help, and how much
std::string variability_section(const ReportContext& context);  ///< repetitions with what varies
std::string learning_section(const ReportContext& context);     ///< accuracy and loss over time and steps
std::string layout_section(const ReportContext& context);       ///< of `hybrid`, by layer
std::string schedule_section(const ReportContext& context);     ///< queues of jobs
std::string monitor_section(const ReportContext& context, const std::vector<RunMonitor>& monitors);
std::string timeline_section(const ReportContext& context, const std::vector<StepTrace>& traces);
std::string machine_section(const ReportContext& context);   ///< busiest links, devices one by one
std::string manifest_section(const ReportContext& context);  ///< where the results come from

/// One row per run, of which there may be very many. @pre there is a run
void write_runs_table(const ReportContext& context, std::ostream& out);

// Functions that several sections use.

/// Whether the points of charts can be elements of their own: of larger results, browsers would have to keep tens of thousands.
inline bool points_are_named(const ReportContext& context) { return context.results.runs.size() <= 500; }

/// Classes of the style sheet for the classes of memory.
inline constexpr std::array<const char*, memory_class_count> memory_styles{"c0", "c1", "c4",
                                                                           "c2", "c3", "c7"};

/// At most `most` of `runs`: all, or those with the highest throughput for each model; in the sweep's order.
std::vector<std::size_t> fastest(const ReportContext& context, const std::vector<std::size_t>& runs,
                                 std::size_t most);

/// Every run of the experiment, by index.
std::vector<std::size_t> all_runs(const ReportContext& context);

/// "runs 1-5, 9".
std::string run_ids(const ReportContext& context, const std::vector<std::size_t>& runs);

/// "The 40 runs with the highest throughput; 960 others are in the table and in results.csv." or empty.
std::string left_out(std::size_t shown, std::size_t all);

}  // namespace convoy::results
