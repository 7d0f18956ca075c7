// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strategies/strategy.h"

namespace convoy::inline strategies {

enum class FilterShares : std::uint8_t { equal, probed };
inline const std::vector<std::string> filter_shares_names{"equal", "probed"};

/// A convolution whose filters are shared out.
struct SharedConvolution {
  std::uint32_t layer;
  std::vector<std::int64_t> filters;     ///< by device; they add up to the layer's
  std::vector<double> time_s;            ///< by device: the convolution of its filters, forward and backward
  double fraction(EndpointId d) const {  ///< of the layer's filters
    return static_cast<double>(filters[d]) / static_cast<double>(total);
  }
  std::int64_t total;
};

/// Shares out the filters of every convolution of the model among the first `devices`, or all.
/// equal: the same number each, one more for the first of them where it does not divide (the master is
/// first).
/// probed: every device runs the whole convolutions, forward and backward, on the batch (by the cost model,
/// with what it waits for its host to issue them): filters in proportion to 1/time, rounded; what rounding
/// leaves over goes to the fastest device, what it gives too many is taken from it. Source: the thesis'
/// abstract (hdl 10316/81665) names balancing by the devices' capability; the formula is our reconstruction.
std::vector<SharedConvolution> share_filters(const StrategyInput& input, FilterShares shares,
                                             EndpointId master, double images,
                                             std::optional<std::uint32_t> devices = {});

}  // namespace convoy::strategies
