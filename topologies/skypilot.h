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

/// How SkyPilot is asked for a server of the catalogue.
struct SkypilotMachine {
  std::string cloud, instance_type;  ///< "azure", "Standard_NC24rs_v3"
  std::string accelerators;          ///< "V100:8" where GPUs are rented beside a machine; "" elsewhere
};
/// Nothing for servers of other providers than SkyPilot's. @throws InputError: a file of the catalogue is wrong
std::optional<SkypilotMachine> skypilot_machine(const std::string& server);

}  // namespace convoy::topologies
