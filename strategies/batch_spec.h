// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/input_error.h"

namespace convoy::inline strategies {

/// The batch as the experiment gives it: exactly one of the two is set.
struct BatchSpec {
  std::optional<std::int64_t> per_device;
  std::optional<std::int64_t> global;
  SourcePos pos;  ///< of the key in the experiment, for errors about a batch that does not divide
  /// Where an outer strategy has shared the batch out already: of each device its micro-batches' images. The
  /// other two are not looked at then.
  std::optional<std::vector<std::vector<std::int64_t>>> dealt = std::nullopt;

  /// Images of a step on so many devices.
  std::int64_t over(std::int64_t devices) const { return global ? *global : *per_device * devices; }
  /// Images of each of `parts` equal parts of a step on so many devices.
  /// @param into what they are, for the error: "3 micro-batches"
  /// @param or_else what else would help, for the error: " or strategy.shares: speed"
  /// @throws InputError (at pos) with the nearest batches that divide
  std::int64_t divided(std::int64_t devices, std::int64_t parts, const std::string& into,
                       const std::string& or_else = "") const;
};

}  // namespace convoy::strategies
