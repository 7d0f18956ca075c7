// SPDX-License-Identifier: MIT
#include "topologies/regions.h"

#include <algorithm>

#include "sim/base/csv.h"
#include "sim/base/data_path.h"
#include "topologies/table_grade.h"

namespace convoy::inline topologies {
namespace {

std::vector<GridRegion> read_grid_regions(const std::string& file) {
  const std::vector<std::string> columns{"provider",    "region", "g_co2_per_kwh", "pue",
                                         "figure_from", "source", "grade"};
  const CsvTable table(file, columns, columns);
  std::vector<GridRegion> regions;
  for (const CsvRow& row : table.rows()) {
    GridRegion region{table.text(row, "provider"),
                      table.text(row, "region"),
                      table.number(row, "g_co2_per_kwh", true),
                      std::nullopt,
                      table.text(row, "figure_from"),
                      table.text(row, "source"),
                      read_grade(table, row)};
    if (table.find(row, "pue")) region.pue = table.number(row, "pue", true);
    regions.push_back(std::move(region));
  }
  return regions;
}

}  // namespace

const std::vector<GridRegion>& grid_regions() {
  static const std::vector<GridRegion> regions =
      read_grid_regions(data_path("topologies/catalog") + "/regions.csv");
  return regions;
}

const GridRegion* find_grid_region(std::string_view provider, std::string_view region) {
  const std::vector<GridRegion>& regions = grid_regions();
  const auto found = std::find_if(regions.begin(), regions.end(), [&](const GridRegion& row) {
    return row.provider == provider && row.region == region;
  });
  return found == regions.end() ? nullptr : &*found;
}

}  // namespace convoy::topologies
