// SPDX-License-Identifier: MIT
#include "strategies/pipeline/stage_prices.h"

#include <algorithm>

namespace convoy::inline strategies {
namespace {

constexpr std::uint32_t no_site = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t most_table_bytes = 256U << 20U;

}  // namespace

StagePrices::StagePrices(const PipelineCosts& costs)
    : costs_(costs),
      sites_(std::size_t{costs.slot_count()} * (costs.slot_count() + 1), {no_site, no_site, 0}) {}

template <class T>
std::vector<T> StagePrices::table(T element) {
  const std::size_t stages = at(0, costs_.unit_count() + 1), bytes = stages * sizeof(T);
  if (bytes_ + bytes > most_table_bytes) return {};
  bytes_ += bytes;
  return std::vector<T>(stages, element);
}

const StagePrices::Site& StagePrices::site(std::uint32_t slots_before, std::uint32_t slots) {
  Site& site = sites_[std::size_t{slots_before} * (costs_.slot_count() + 1) + slots];
  if (site.prices != no_site) return site;
  PipelineCosts::Place place = costs_.place(slots_before, slots);
  const auto like = std::find_if(prices_.begin(), prices_.end(),
                                 [&](const PriceTable& table) { return table.place == place; });
  site.prices = static_cast<std::uint32_t>(like - prices_.begin());
  if (like == prices_.end()) prices_.push_back({std::move(place), table(Price{})});
  const PipelineCosts::Room room = costs_.room(slots_before, slots);
  const auto as_large =
      std::find_if(rooms_.begin(), rooms_.end(), [&](const RoomTable& table) { return table.room == room; });
  site.rooms = static_cast<std::uint32_t>(as_large - rooms_.begin());
  if (as_large == rooms_.end()) rooms_.push_back({room, table(Fit::unknown)});
  site.under_way = costs_.under_way(slots_before, slots);
  return site;
}

StagePrices::Price StagePrices::priced(const PipelineCosts::Place& place, std::uint32_t begin,
                                       std::uint32_t end) {
  ++count_priced_;
  const PipelineCosts::StageCost cost = costs_.times(begin, end, place);
  return {cost.sum_s(), cost.interval_s, cost.compute_s, cost.busy_s(), cost.messages_s};
}

bool StagePrices::fits(const Site& site, std::uint32_t begin, std::uint32_t end) {
  RoomTable& table = rooms_[site.rooms];
  if (table.known.empty()) return costs_.stage_fits(begin, end, table.room);
  Fit& known = table.known[at(begin, end)];
  if (known == Fit::unknown) known = costs_.stage_fits(begin, end, table.room) ? Fit::yes : Fit::no;
  return known == Fit::yes;
}

}  // namespace convoy::strategies
