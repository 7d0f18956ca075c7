// SPDX-License-Identifier: MIT
#pragma once

#include "models/work.h"

namespace convoy::inline strategies {

inline constexpr double network_value_bytes = 4;  // operation networks compute in fp32

/// Work of an operation that moves values (read and written ones together) and computes about one FLOP for
/// each.
inline Work moving_work(KernelKind kind, Phase phase, double values_per_sample, double values_fixed) {
  Work work;
  work.kind = kind;
  work.phase = phase;
  work.flops_per_image = values_per_sample;
  work.flops_fixed = values_fixed;
  work.bytes_per_image = network_value_bytes * values_per_sample;
  work.bytes_fixed = network_value_bytes * values_fixed;
  return work;
}

}  // namespace convoy::strategies
