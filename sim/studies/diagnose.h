// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include "sim/results/result.h"
#include "sim/results/write_trace.h"
#include "sim/run/experiment.h"

namespace convoy::inline studies {

/// A part of the step, or an operation, as it was measured and as it is predicted.
struct DiagnosedTerm {
  std::string name;  ///< "convolution", "waiting"; of operations "convolution 64>64 3x3/1 56x56, backward"
  double measured_s = 0, predicted_s = 0;  ///< a step
  double gap_s() const { return predicted_s - measured_s; }
};

/// A trace of PyTorch's profiler beside the prediction of the step that it is of.
struct TraceDiagnosis {
  std::string experiment;
  std::size_t steps = 0;                  ///< in the trace
  double measured_s = 0;                  ///< a step
  double recording_s = 0;  ///< of it, what the profiler took on a CPU: no part of a step without it
  double matched_share = 0;               ///< of the measured computing, what `operations` have
  RunResult run;                          ///< the prediction, with its counterfactuals: the remedies
  std::vector<DiagnosedTerm> terms;       ///< they add up to both steps; the largest gap first
  std::vector<DiagnosedTerm> operations;  ///< that trace and plan both have; the largest gap first
  /// The first step of the trace ("measured"), and the predicted one by host; empty where not asked for.
  std::vector<TraceProcess> steps_drawn;
};

/// Matches the operations of a trace (read_kineto_trace) with those of the experiment's plan by kind, pass,
/// images, FLOPs and bytes, and tells by which terms the measured step and the predicted one differ
/// (docs/diagnose.md).
/// @param jobs processes at a time, for the remedies
/// @param with_steps fills steps_drawn
/// @throws InputError: the trace is none, does not mark its steps or is of another network or batch; the
/// experiment is wrong, or has several points
TraceDiagnosis diagnose_trace(const std::string& trace, const Experiment& experiment, std::size_t jobs,
                              bool with_steps = false);

/// Writes convoy.diagnose/1 (docs/diagnose.md).
void write_diagnosis(const TraceDiagnosis& diagnosis, std::ostream& out);
/// JSON Schema of it.
std::string diagnosis_schema_text();
/// Writes both steps as one trace for Perfetto (TraceWriter), side by side from time 0. @pre with_steps
void write_joint_trace(const TraceDiagnosis& diagnosis, std::ostream& out);
/// The same for people.
std::string diagnosis_text(const TraceDiagnosis& diagnosis);
/// The same as a page (html_page).
void write_page(const TraceDiagnosis& diagnosis, std::ostream& out);

}  // namespace convoy::studies
