// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/sources.h"

namespace convoy::inline topologies {

/// Power usage effectiveness where a region's is not published: the mean of those of the table that are (1.09
/// to 1.12, all of one provider's newer data centres; older ones and those of companies use more).
constexpr double assumed_pue = 1.103;

/// What electricity emits in a cloud region, and what its data centre uses beside the machines.
struct GridRegion {
  std::string provider;  ///< "aws", "azure", "gcp", "ovh", "scaleway", "coreweave"
  std::string region;    ///< as the provider writes it
  double g_co2_per_kwh = 0;
  std::optional<double> pue;  ///< power of the data centre over that of its machines; nothing: not published
  std::string figure_from;    ///< where the source has the carbon figure from
  std::string source;
  Grade grade = Grade::given;

  /// Kilograms of CO2 for what the machines themselves use.
  double carbon_kg(double machine_energy_j) const {
    return machine_energy_j / 3.6e6 * pue.value_or(assumed_pue) * g_co2_per_kwh / 1000;
  }
};

/// topologies/catalog/regions.csv, in its order.
const std::vector<GridRegion>& grid_regions();

/// nullptr where the table does not have it.
const GridRegion* find_grid_region(std::string_view provider, std::string_view region);

}  // namespace convoy::topologies
