// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/plan/ledger.h"
#include "sim/plan/process_memory.h"
#include "sim/run/prepared_run.h"

namespace convoy::inline runs {

/// The memory that a run needs on its fullest device, over all its phases; exactly what its simulation
/// reports.
struct MemoryNeed {
  std::string device;       ///< whose tensors take the largest share of its memory
  double device_bytes = 0;  ///< its memory
  MemoryPeak peak;          ///< of its tensors
  std::string process_device;
  ProcessMemory process;  ///< the fullest one, on that device
  std::string warning;    ///< "" if that is far from the limit
};

MemoryNeed memory_need(const PreparedRun& run);

/// "the process on n0 needs 18.2 GiB and the driver leaves it 15.7 GiB"
std::string too_large_text(const std::string& device, const ProcessMemory& process);

/// A warning if the process on a device of that type fits by less than the error of memory predictions; "" if
/// it does not fit, or is far from the limit.
std::string tight_text(const std::string& device, const DeviceType& type, const ProcessMemory& process,
                       Framework framework);

}  // namespace convoy::runs
