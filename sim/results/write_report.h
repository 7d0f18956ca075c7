// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "sim/results/monitor.h"
#include "sim/results/sweep_results.h"
#include "sim/results/write_trace.h"

namespace convoy::inline results {

/// What the streams of a run did in a step.
struct StepTrace {
  std::size_t run = 0;  ///< index into SweepResults::runs
  std::vector<TraceProcess> processes;
};

/// The runs whose steps the report draws if there is a trace: a few of the fastest.
std::vector<std::size_t> drawn_steps(const SweepResults& results);

/// The beginning of the names of a run's processes in trace.json: "run 3: " if there are several runs.
std::string trace_prefix(const SweepResults& results, std::size_t run);

/// Writes report.html: the results as drawings, on one page (html_page) that needs no network, from these
/// values only; the same values give the same bytes. Of large results, a part is drawn, and the page says so.
/// @param traces of the runs in drawn_steps(); empty: no trace
/// @param monitors of runs; empty: none were asked for
void write_report(const SweepResults& results, const std::vector<StepTrace>& traces,
                  const std::vector<RunMonitor>& monitors, std::ostream& out);

/// Writes a page with the time line of one run alone. @param trace of a run of `results`
void write_timeline(const SweepResults& results, const StepTrace& trace, std::ostream& out);

}  // namespace convoy::results
