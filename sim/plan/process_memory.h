// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <vector>

#include "models/training_graph.h"
#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline plans {

/// What a training process takes of a device, as nvidia-smi shows it.
struct ProcessMemory {
  double bytes = 0;
  double of_bytes = 0;  ///< what the driver leaves to processes: DeviceType::usable_memory_bytes
  bool fits() const { return bytes <= of_bytes; }
  double share() const { return of_bytes > 0 ? bytes / of_bytes : 0; }
};

/// Whether a framework's process is counted on the device: not where the device says what it reserves (inline
/// ones), nor on CPUs and mobile GPUs.
bool has_process(const DeviceType& device);

/// The process of a member of `role` on `device`:
///   - the CUDA context, in proportion to the device's multiprocessors, and the libraries' kernels and
///     handles (process_memory.cpp has the constants with their sources);
///   - NCCL's buffers and the buckets' copies of gradients, where the role takes part in collectives;
///   - under PyTorch what its caching allocator reserves for the role's tensors and for the workspaces of
///     convolutions, over two steps (caching_allocator.h); under the other frameworks the tensors' peak,
///     since they lay memory out before training or grow one pool.
/// Near the device's limit PyTorch gives cached segments back, so a process that fits shows no more than
/// `of_bytes`. Of devices without such a process it is the ledger's peak.
ProcessMemory process_memory(const Role& role, const DeviceType& device, const TrainingOptions& options);

/// The same of every device of `machine`; of devices without such a process, `peak_bytes` of the device.
std::vector<ProcessMemory> process_memories(const Plan& plan, const Machine& machine,
                                            const TrainingOptions& options,
                                            const std::function<double(std::size_t)>& peak_bytes);

}  // namespace convoy::plans
