// SPDX-License-Identifier: MIT
#include "strategies/pipeline_partition.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>

namespace convoy {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double rounding = 1e-12;  ///< relative; sums in another order differ by less

/// What a stage adds to the sum, and the interval it needs (infinite: it must not be).
struct Price {
  double sum_s, interval_s;
};

/// Dynamic programming over stages from the first to the last.
class Search {
 public:
  using Pricing =
      std::function<Price(std::uint32_t begin, std::uint32_t end, std::uint32_t before, std::uint32_t slots)>;

  Search(const PipelineCosts& costs, Pricing price)
      : units_(costs.unit_count()),
        slots_(costs.slot_count()),
        stages_(costs.shape().stages),
        price_(std::move(price)) {}

  struct Found {
    std::vector<StageChoice> stages;
    double sum_s, interval_s;
  };

  /// The smallest slowest interval.
  std::optional<Found> fastest() {
    return run(infinity,
               [](double so_far, const Price& price) { return std::max(so_far, price.interval_s); });
  }
  /// The smallest sum with no interval above the bound.
  std::optional<Found> cheapest(double bound_s) {
    return run(bound_s * (1 + rounding),
               [](double so_far, const Price& price) { return so_far + price.sum_s; });
  }

 private:
  struct State {
    double value = infinity;
    std::uint32_t begin = 0, slots = 0;  ///< of the last stage
  };
  std::size_t at(std::uint32_t end, std::uint32_t used) const { return end * (slots_ + 1) + used; }

  template <class Add>
  std::optional<Found> run(double bound_s, Add add) {
    std::vector<std::vector<State>> best(stages_ + 1, std::vector<State>((units_ + 1) * (slots_ + 1)));
    best[0][at(0, 0)].value = 0;
    for (std::uint32_t s = 0; s < stages_; ++s) {
      const std::uint32_t after = stages_ - s - 1;  // each has a unit and a slot left to it
      for (std::uint32_t begin = s; begin + after < units_; ++begin)
        for (std::uint32_t used = s; used + after < slots_; ++used) {
          const double so_far = best[s][at(begin, used)].value;
          if (so_far == infinity) continue;
          for (std::uint32_t slots = after == 0 ? slots_ - used : 1; used + slots + after <= slots_; ++slots)
            extend(best[s + 1], so_far, begin, after == 0 ? units_ : begin + 1, units_ - after, used, slots,
                   bound_s, add);
        }
    }
    return read_back(best);
  }

  template <class Add>
  void extend(std::vector<State>& next, double so_far, std::uint32_t begin, std::uint32_t first_end,
              std::uint32_t last_end, std::uint32_t used, std::uint32_t slots, double bound_s, Add add) {
    for (std::uint32_t end = first_end; end <= last_end; ++end) {
      const Price price = price_(begin, end, used, slots);
      if (price.interval_s > bound_s || price.interval_s == infinity) continue;
      State& state = next[at(end, used + slots)];
      if (const double value = add(so_far, price); value < state.value) state = {value, begin, slots};
    }
  }

  std::optional<Found> read_back(const std::vector<std::vector<State>>& best) {
    std::uint32_t end = units_, used = slots_;
    if (best[stages_][at(end, used)].value == infinity) return std::nullopt;
    Found found{{}, 0, 0};
    for (std::uint32_t s = stages_; s > 0; --s) {
      const State& state = best[s][at(end, used)];
      const Price price = price_(state.begin, end, used - state.slots, state.slots);
      found.sum_s += price.sum_s;
      found.interval_s = std::max(found.interval_s, price.interval_s);
      found.stages.push_back({state.begin, state.slots});
      end = state.begin;
      used -= state.slots;
    }
    std::reverse(found.stages.begin(), found.stages.end());
    return found;
  }

  std::uint32_t units_, slots_, stages_;
  Pricing price_;
};

/// The smallest of interval_weight * interval + sum_weight * sum: over bounds on the interval, of which the
/// smallest sum is a falling step function.
class BoundSearch {
 public:
  BoundSearch(Search& search, double interval_weight, double sum_weight)
      : search_(search), interval_weight_(interval_weight), sum_weight_(sum_weight) {}

  std::optional<std::vector<StageChoice>> run() {
    const std::optional<Search::Found> free = search_.cheapest(infinity);
    if (!free) return std::nullopt;
    consider(*free);
    if (interval_weight_ > 0) {
      const Search::Found tight = *search_.cheapest(search_.fastest()->interval_s);
      consider(tight);
      between(tight.interval_s, tight.sum_s, free->interval_s, free->sum_s);
    }
    return best_;
  }

 private:
  void consider(const Search::Found& found) {
    const double value = interval_weight_ * found.interval_s + sum_weight_ * found.sum_s;
    if (value >= best_value_) return;
    best_value_ = value;
    best_ = found.stages;
  }

  /// Bounds above `low` and below `high`: a better one has an interval above low's and a sum not below
  /// high's.
  void between(double low_s, double low_sum_s, double high_s, double high_sum_s) {
    if (high_s - low_s <= rounding * high_s || low_sum_s - high_sum_s <= rounding * low_sum_s) return;
    if (interval_weight_ * low_s + sum_weight_ * high_sum_s >= best_value_ * (1 - rounding)) return;
    const double middle_s = low_s + (high_s - low_s) / 2;
    const Search::Found middle = *search_.cheapest(middle_s);
    consider(middle);
    between(low_s, low_sum_s, middle.interval_s, middle.sum_s);
    between(middle_s, middle.sum_s, high_s, high_sum_s);
  }

  Search& search_;
  double interval_weight_, sum_weight_;
  double best_value_ = infinity;
  std::vector<StageChoice> best_;
};

std::vector<StageChoice> even(const PipelineCosts& costs) {
  const std::uint32_t stages = costs.shape().stages, units = costs.unit_count();
  std::vector<StageChoice> result;
  for (std::uint32_t s = 0; s < stages; ++s)
    result.push_back({s * (units / stages) + std::min(s, units % stages), 1});
  return result;
}

std::vector<StageChoice> balanced(const PipelineCosts& costs) {
  Search search(costs, [&](auto begin, auto end, auto before, auto slots) {
    const PipelineCosts::StageCost cost = costs.stage(begin, end, before, slots);
    return Price{cost.messages_s, cost.compute_s};
  });
  return search.cheapest(search.fastest()->interval_s)->stages;
}

std::vector<StageChoice> optimal(const PipelineCosts& costs) {
  for (const bool must_fit : {true, false}) {
    Search search(costs, [&](auto begin, auto end, auto before, auto slots) {
      const PipelineCosts::StageCost cost = costs.stage(begin, end, before, slots);
      const bool allowed = (cost.fits || !must_fit) && slots <= costs.shape().micro_batches;
      return Price{cost.sum_s(), allowed ? cost.interval_s : infinity};
    });
    if (auto stages = BoundSearch(search, costs.interval_weight(), costs.sum_weight()).run()) return *stages;
  }
  return {};
}

}  // namespace

std::vector<StageChoice> partition_pipeline(PartitionMethod method, const PipelineCosts& costs) {
  switch (method) {
    case PartitionMethod::even:
      return even(costs);
    case PartitionMethod::balanced:
      return balanced(costs);
    case PartitionMethod::optimal:
      break;
  }
  return optimal(costs);
}

}  // namespace convoy
