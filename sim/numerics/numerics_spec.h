// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/keys.h"
#include "sim/numerics/data.h"

namespace convoy::inline numerics {

/// `numerics:` of an experiment: the network learns from real values, as the plan says (docs/numerics.md).
struct NumericsSpec {
  enum class Real : std::uint8_t { in_double, in_single };
  DataSpec data;
  std::int64_t steps = 200;  ///< of a global batch
  std::optional<std::int64_t> every = {};
  double learning_rate = 0.05;
  std::uint64_t seed = 1;
  Real precision = Real::in_double;
  SourcePos pos;

  /// Steps after which loss and accuracy are measured, again and again.
  std::int64_t measured_every() const { return every ? *every : steps < 20 ? 1 : steps / 20; }
};

/// @throws InputError
NumericsSpec read_numerics(const YamlNode& node);

/// The keys of `numerics:`, for documentation.
KeySection numerics_keys();

}  // namespace convoy::numerics
