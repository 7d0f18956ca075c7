// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/calibration/measurements.h"

namespace convoy::inline calibration {

/// A GPU kernel in a trace, or an operation that is inside no other one.
struct TracedStretch {
  std::string thread;  ///< "GPU 0 stream 7", "host thread 1"
  std::string name;
  double start_s = 0, end_s = 0;  ///< from the first one's beginning
};

/// What a trace of PyTorch's profiler tells of one device.
struct KinetoTrace {
  /// One a distinct kernel, as in a profile: the median over its runs of the time that its GPU kernels take
  /// together, or its operation on a CPU, without launches (Measurement::without_launch).
  std::vector<Measurement> measurements;
  bool on_cpu = false;  ///< no GPU computes
  double launch_s = 0;  ///< median pause between two GPU kernels of a stream, or operations of the graph on a
                        ///< CPU's thread; 0 where there is none
  double kernel_s = 0;  ///< all GPU kernels, or operations of the CPU, together
  /// On a CPU, the time that the profiler took to record the operations inside outermost operations, which the times
  /// here do not include; and to record the others, in the pauses between outermost operations (part of waiting_s).
  double recording_inside_s = 0, recording_between_s = 0;
  double recording_s() const { return recording_inside_s + recording_between_s; }
  double matched_s = 0;  ///< of them, those in `measurements`
  std::vector<std::pair<std::string, double>> others;  ///< operations passed over, by their kernels' time
  std::vector<double> totals_s;                        ///< by measurement: all of its runs together
  /// Training steps in the trace, by the optimizer's (or the profiler's own marks); 0: it has no mark.
  std::size_t steps = 0;
  /// The time from the first operation to the end of the last one; the part of it in which something computes; the
  /// messages while nothing computes; the loader while there is neither; and the rest.
  double whole_s = 0, compute_s = 0, exposed_comm_s = 0, loader_s = 0, waiting_s = 0;
  /// The stretches that begin in the first step, by thread and start; those of the whole trace if it marks no step.
  std::vector<TracedStretch> first_step;
};

/// Reads a Chrome trace as torch.profiler writes it with record_shapes=True (export_chrome_trace; as it is or
/// packed with gzip): operations (category cpu_op, "Input Dims" in their args) and GPU kernels, tied to the
/// operation that launched them by "External id", or by "correlation" over the launch. If there is no GPU kernel,
/// the operations themselves computed, on the CPU: each operation that is inside no other one takes its time on its
/// thread.
/// Convolutions, linear layers, batch normalization, max pooling and ReLU become measurements of `device`; on a
/// CPU, sums and the optimizer's step too.
/// @throws InputError for what is no such trace, is cut, or holds no operation that is known.
KinetoTrace read_kineto_trace(const std::string& file, const std::string& device);

}  // namespace convoy::calibration
