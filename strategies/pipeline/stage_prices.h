// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "strategies/pipeline/pipeline_costs.h"

namespace convoy::inline strategies {

/// What PipelineCosts says of stages, each asked for once: a partitioner looks at the same stage under every
/// bound on the interval, and stages on equal places (PipelineCosts::Place) take as long.
class StagePrices {
 public:
  struct Price {
    double sum_s = std::numeric_limits<double>::quiet_NaN();  ///< StageCost::sum_s; no number: not yet known
    double interval_s = 0, compute_s = 0;
    double busy_s = 0, messages_s = 0;  ///< StageCost's
  };
  /// Stages on the same slots.
  struct Site {
    std::uint32_t prices, rooms;  ///< tables of them
    double under_way;             ///< PipelineCosts::under_way
  };

  /// @param costs must outlive the prices
  explicit StagePrices(const PipelineCosts& costs);

  const PipelineCosts& costs() const { return costs_; }
  /// @param slots_before of the stages before it
  const Site& site(std::uint32_t slots_before, std::uint32_t slots);
  /// Of a stage made of units [begin, end).
  Price price(const Site& site, std::uint32_t begin, std::uint32_t end) {
    PriceTable& table = prices_[site.prices];
    if (table.known.empty()) return priced(table.place, begin, end);
    Price& known = table.known[at(begin, end)];
    if (std::isnan(known.sum_s)) known = priced(table.place, begin, end);
    return known;
  }
  /// Whether it fits in memory.
  bool fits(const Site& site, std::uint32_t begin, std::uint32_t end);
  /// How many stages were priced so far.
  std::size_t count_priced() const { return count_priced_; }

 private:
  enum class Fit : std::uint8_t { unknown, no, yes };
  /// Where the tables have become too large, further ones stay empty, and their stages are priced when asked
  /// for.
  struct PriceTable {
    PipelineCosts::Place place;
    std::vector<Price> known;
  };
  struct RoomTable {
    PipelineCosts::Room room;
    std::vector<Fit> known;
  };
  Price priced(const PipelineCosts::Place& place, std::uint32_t begin, std::uint32_t end);
  static std::size_t at(std::size_t begin, std::size_t end) { return end * (end - 1) / 2 + begin; }
  /// As many elements as there are stages, or none where they would be too large.
  template <class T>
  std::vector<T> table(T element);

  const PipelineCosts& costs_;
  std::vector<Site> sites_;  ///< by slots before, and slots
  std::vector<PriceTable> prices_;
  std::vector<RoomTable> rooms_;
  std::size_t bytes_ = 0, count_priced_ = 0;
};

}  // namespace convoy::strategies
