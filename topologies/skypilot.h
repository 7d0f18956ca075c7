// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/base/csv.h"
#include "topologies/prices.h"

namespace convoy::inline topologies {

/// The prices of a table with SkyPilot's header (PriceTable::read says how), a provider's home region first.
/// @throws InputError
std::vector<Price> read_skypilot_prices(const CsvTable& table, const std::string& file);

}  // namespace convoy::topologies
