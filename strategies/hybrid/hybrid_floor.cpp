// SPDX-License-Identifier: MIT
#include "strategies/hybrid/hybrid_floor.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/quantity.h"

namespace convoy::inline strategies {
namespace {

bool is_grid(const LayoutRule& rule) {
  return std::find(rule.turns.begin(), rule.turns.end(), LayerLayout::grid) != rule.turns.end();
}

}  // namespace

std::optional<CostTable::Split> split_of(const HybridOptions& options, std::int64_t devices) {
  if (options.scheme != HybridScheme::all_at_once || devices % options.replicas != 0) return std::nullopt;
  CostTable::Split split{devices / options.replicas};
  for (const LayoutRule& rule : options.rules) {
    if (rule.added) return std::nullopt;  // how much of a layer a device does, it alone knows
    if (!is_grid(rule)) continue;
    if (rule.grid.h * rule.grid.w != split.devices) return std::nullopt;  // cannot run
    if (split.grid && split.grid->h != rule.grid.h) return std::nullopt;  // layers with different grids
    split.grid = rule.grid;
  }
  return split;
}

std::optional<StepFloor> floor_of_hybrid(const HybridOptions& options, const BatchSpec& batch,
                                         CostTable& table) {
  const std::int64_t images = batch.over(table.device_count()), parts = options.micro_batches;
  const std::optional<CostTable::Split> split = split_of(options, table.device_count());
  if (!split || images % (options.replicas * parts) != 0) return std::nullopt;
  const CostTable::Passes passes =
      table.quickest(static_cast<double>(images / (options.replicas * parts)), *split);
  const double step_s =
      parts == 1 ? passes.issued_s : static_cast<double>(parts) * std::max(passes.both_s(), passes.host_s);
  return StepFloor{
      step_s, images,
      fmt::format("at least {} a step for computing, however layers are split", format_time(step_s))};
}

}  // namespace convoy::strategies
