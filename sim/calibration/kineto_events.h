// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/calibration/kineto_operation.h"

namespace convoy::inline calibration {

/// A kernel on a GPU, or a message of NCCL.
struct GpuKernel {
  std::string name;
  double start_us = 0, duration_us = 0;
  std::optional<std::int64_t> operation;        ///< External id of the operation that launched it
  std::pair<std::int64_t, std::string> stream;  ///< process (the GPU) and thread (the stream)
};

/// Process and thread, as written.
using Thread = std::pair<std::string, std::string>;

/// An operation of the host, with the time that it took there.
struct TimedOperation {
  KinetoOperation what;
  double start_us = 0, duration_us = 0;
  Thread thread;
  std::size_t nested = 0;  ///< operations in it
};

/// Stretches of time, in microseconds.
using Stretches = std::vector<std::pair<double, double>>;

/// The events of a trace of PyTorch's profiler, as far as anything is known about them.
struct KinetoEvents {
  std::vector<TimedOperation> operations;
  std::map<std::int64_t, std::size_t> by_id;  ///< External id -> position in operations
  std::vector<GpuKernel> kernels;
  std::size_t optimizer_steps = 0, profiler_steps = 0;  ///< marks of steps
  Stretches loader;                                     ///< while the program waits for images
};

/// Whether an event marks a step of the optimizer.
bool is_optimizer_step(std::string_view name);

/// Whether an operation is the framework's own. Beside these the profiler records marks of steps and nodes of the
/// backward pass.
bool is_operation(std::string_view name);

/// Reads the events of a Chrome trace (read_kineto_trace). @throws InputError for what is no such trace, is cut, or
/// was recorded without shapes
KinetoEvents read_kineto_events(const std::string& file);

}  // namespace convoy::calibration
