// SPDX-License-Identifier: MIT
#include "strategies/pipeline/pipeline_partition.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "strategies/pipeline/pipeline_schedule.h"

namespace convoy::inline strategies {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double rounding = 1e-12;  ///< relative; sums in another order differ by less

/// What a stage adds to the sum of all, and the interval between micro-batches that it needs.
struct Price {
  double sum_s, interval_s;
  double least_interval_s =
      0;  ///< no less with more units; what is above the bound needs no longer be looked at
};

/// What `balanced` asks for: computing and being issued to alone, then bytes.
struct ComputePricing {
  StagePrices& prices;
  struct Site {
    const StagePrices::Site& known;
    std::uint32_t slots;
  };
  Site site(std::uint32_t before, std::uint32_t slots) const { return {prices.site(before, slots), slots}; }
  /// A stage of units [begin, end), followed by stages that sum up to rest_s.
  Price operator()(const Site& site, std::uint32_t begin, std::uint32_t end, double /*rest_s*/) const {
    const StagePrices::Price price = prices.price(site.known, begin, end);
    const double share_s = price.busy_s / site.slots;
    return {price.messages_s, share_s, share_s};
  }
  bool takes(std::uint32_t slots) const { return slots_allowed(prices.costs().shape(), slots); }
  bool allows(const Site&, std::uint32_t, std::uint32_t) const { return true; }
};

/// The whole step.
struct StepPricing {
  StagePrices& prices;
  bool must_fit;
  struct Site {
    const StagePrices::Site& known;
    std::uint32_t slots;
  };
  Site site(std::uint32_t before, std::uint32_t slots) const { return {prices.site(before, slots), slots}; }
  Price operator()(const Site& site, std::uint32_t begin, std::uint32_t end, double rest_s) const {
    const StagePrices::Price price = prices.price(site.known, begin, end);
    const double round_trip_s = (price.compute_s + rest_s) / site.known.under_way;
    return {price.sum_s, std::max(price.interval_s, round_trip_s), price.compute_s / site.slots};
  }
  bool takes(std::uint32_t slots) const { return slots_allowed(prices.costs().shape(), slots); }
  bool allows(const Site& site, std::uint32_t begin, std::uint32_t end) const {
    return !must_fit || prices.fits(site.known, begin, end);
  }
};

struct Found {
  std::vector<StageChoice> stages;
  double sum_s = 0, interval_s = 0;
};

/// Dynamic programming over stages, from the last to the first, by where the stages done so far begin: at
/// which unit and at which slot. Stages under a bound on the interval leave room only for so much: what is
/// still to be done before them, even on the fastest slots, has to go into `slots x bound`.
template <class Pricing>
class Search {
 public:
  Search(const PipelineCosts& costs, Pricing price)
      : costs_(costs),
        units_(costs.unit_count()),
        slots_(costs.slot_count()),
        stages_(costs.shape().stages),
        stage_slots_(costs.shape().stage_slots),
        price_(price) {}

  /// The smallest slowest interval. @pre intervals do not depend on rest_s
  std::optional<Found> fastest() {
    return run(infinity, [](double rest, const Price& price) { return std::max(rest, price.interval_s); });
  }
  /// The smallest sum with no interval above the bound. Exact though intervals may depend on rest_s, because
  /// they do not fall with it.
  std::optional<Found> cheapest(double bound_s) {
    return run(bound_s, [](double rest, const Price& price) { return rest + price.sum_s; });
  }
  /// How many stages were looked at so far, in whichever cut.
  std::int64_t count_looked_at() const { return count_looked_at_; }

 private:
  struct State {
    double value = infinity;
    std::uint32_t end = 0, slots = 0;  ///< of the first stage
  };
  /// States with so many stages done, by where the first of them begins. Each stage ahead needs a slot.
  State& state(std::uint32_t done, std::uint32_t begin, std::uint32_t before) {
    const std::size_t spare = slots_ - stages_ + 1;
    return states_[(std::size_t{done} * (units_ + 1) + begin) * spare + (before + done - stages_)];
  }

  template <class Add>
  std::optional<Found> run(double bound_s, Add add) {
    states_.assign(std::size_t{stages_ + 1} * (units_ + 1) * (slots_ - stages_ + 1), State{});
    state(0, units_, slots_).value = 0;
    for (std::uint32_t done = 0; done < stages_; ++done) {
      const std::uint32_t ahead = stages_ - done - 1;  // stages before this one: each needs a unit and a slot
      for (std::uint32_t end = units_ - done; end > ahead; --end)
        for (std::uint32_t after = slots_ - done; after > ahead; --after) {
          const double rest = state(done, end, after).value;
          if (rest == infinity) continue;
          if (stage_slots_.empty()) {
            for (std::uint32_t slots = ahead == 0 ? after : 1; slots + ahead <= after; ++slots)
              if (price_.takes(slots)) extend(done, rest, end, after, slots, bound_s, add);
          } else if (stage_slots_[ahead] + ahead <= after && price_.takes(stage_slots_[ahead])) {
            extend(done, rest, end, after, stage_slots_[ahead], bound_s, add);
          }
        }
    }
    return read_back();
  }

  template <class Add>
  void extend(std::uint32_t done, double rest, std::uint32_t end, std::uint32_t after, std::uint32_t slots,
              double bound_s, Add add) {
    const std::uint32_t before = after - slots, ahead = stages_ - done - 1;
    const typename Pricing::Site site = price_.site(before, slots);
    const double room_s = bound_s * before * (1 + rounding);
    for (std::uint32_t begin = first_begin(ahead, end, room_s); begin + 1 > ahead; --begin) {
      ++count_looked_at_;
      const Price price = price_(site, begin, end, rest);
      if (costs_.may_begin(begin) && price.interval_s <= bound_s) {
        State& next = state(done + 1, begin, before);
        if (const double value = add(rest, price); value < next.value && price_.allows(site, begin, end))
          next = {value, end, slots};
      }
      if (begin == 0 || price.least_interval_s > bound_s) break;
    }
  }

  /// The last unit that a stage before `end` can begin with, so that those before it can be done in room_s.
  std::uint32_t first_begin(std::uint32_t ahead, std::uint32_t end, double room_s) const {
    if (ahead == 0) return 0;
    std::uint32_t low = 0, high = end - 1;
    while (low < high) {
      const std::uint32_t middle = (low + high + 1) / 2;
      if (costs_.least_compute_s(0, middle) <= room_s)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }

  std::optional<Found> read_back() {
    std::uint32_t begin = 0, before = 0;
    if (state(stages_, 0, 0).value == infinity) return std::nullopt;
    Found found;
    for (std::uint32_t left = stages_; left > 0; --left) {
      const State& first = state(left, begin, before);
      found.stages.push_back({begin, first.slots});
      begin = first.end;
      before += first.slots;
    }
    std::uint32_t end = units_;
    before = slots_;
    for (auto stage = found.stages.rbegin(); stage != found.stages.rend(); end = stage++->first_unit) {
      before -= stage->slots;
      const Price price = price_(price_.site(before, stage->slots), stage->first_unit, end, found.sum_s);
      found.interval_s = std::max(found.interval_s, price.interval_s);
      found.sum_s += price.sum_s;
    }
    return found;
  }

  const PipelineCosts& costs_;
  std::uint32_t units_, slots_, stages_;
  std::vector<std::uint32_t> stage_slots_;  ///< empty: free
  Pricing price_;
  std::vector<State> states_;
  std::int64_t count_looked_at_ = 0;
};

/// The smallest PipelineCosts::step_s of a stage's sum and slowest interval: over bounds on the interval, of which the
/// smallest sum is a falling step function.
class BoundSearch {
 public:
  BoundSearch(Search<StepPricing>& search, const PipelineCosts& costs) : search_(search), costs_(costs) {}

  std::optional<std::vector<StageChoice>> run() {
    const std::optional<Found> free = search_.cheapest(infinity);
    if (!free) return std::nullopt;
    most_looked_at_ = search_.count_looked_at() + many;
    consider(*free);
    between(0, infinity, free->interval_s, free->sum_s);
    return best_;
  }

 private:
  void consider(const Found& found) {
    const double value = costs_.step_s(found.sum_s, found.interval_s);
    if (value >= best_value_) return;
    best_value_ = value;
    best_ = found.stages;
  }

  /// Bounds from `low` (infinite sum: none meets it) to `high`, both looked at: a better one has an interval
  /// above low's and a sum not below high's.
  void between(double low_s, double low_sum_s, double high_s, double high_sum_s) {
    if (high_s - low_s <= rounding * high_s || low_sum_s <= high_sum_s * (1 + rounding)) return;
    if (costs_.step_s(high_sum_s, low_s) >= best_value_ * (1 - rounding)) return;
    if (search_.count_looked_at() > most_looked_at_) return;
    const double middle_s = low_s + (high_s - low_s) / 2;
    const std::optional<Found> middle = search_.cheapest(middle_s);
    if (!middle) return between(middle_s, infinity, high_s, high_sum_s);
    consider(*middle);
    between(low_s, low_sum_s, middle->interval_s, middle->sum_s);
    between(middle_s, middle->sum_s, high_s, high_sum_s);
  }

  Search<StepPricing>& search_;
  const PipelineCosts& costs_;
  double best_value_ = infinity;
  std::vector<StageChoice> best_;
  /// About a second; with more slots and units the bounds that were tried so far have to do.
  static constexpr std::int64_t many = 300'000'000;
  std::int64_t most_looked_at_ = 0;
};

std::vector<StageChoice> even(const PipelineCosts& costs) {
  const std::uint32_t stages = costs.shape().stages, units = costs.unit_count();
  std::vector<StageChoice> result;
  for (std::uint32_t s = 0; s < stages; ++s)
    result.push_back({s * (units / stages) + std::min(s, units % stages),
                      costs.shape().stage_slots.empty() ? 1 : costs.shape().stage_slots[s]});
  return result;
}

std::vector<StageChoice> balanced(StagePrices& prices) {
  Search<ComputePricing> search(prices.costs(), {prices});
  const std::optional<Found> fastest = search.fastest();
  return fastest ? search.cheapest(fastest->interval_s)->stages : std::vector<StageChoice>{};
}

/// By the estimate of the whole schedule, the best of the cuts that it is shown and of what is reached from
/// it.
class ScheduleSearch {
 public:
  explicit ScheduleSearch(const PipelineCosts& costs) : costs_(costs) {}

  /// A cut that a method makes.
  void begin_from(const std::vector<StageChoice>& stages, StageCut method) {
    if (!stages.empty() && consider(stages)) begun_from_ = method;
  }

  /// Moves where a stage begins, by many units first, and slots from a stage to the next or back, for as long as that
  /// helps.
  void improve() {
    std::uint32_t reach = 1;
    while (reach < costs_.unit_count() / costs_.shape().stages) reach *= 2;
    for (; reach > 0; reach /= 2)
      while (improve_by(reach) || move_slots())
        if (passes_ > most_passes) return;
  }

  CutPipeline best() const { return {best_, begun_from_}; }

 private:
  static constexpr double least_gain = 1e-9;  ///< relative; cuts that are closer are equally good
  /// Of all cuts that are considered, of which those that a bound rules out, or that were considered before, are not gone
  /// through: up to some tens of ms.
  static constexpr std::int64_t most_passes = 2'000'000;
  /// Whether a cut does not fit in memory, and its schedule.
  using Value = std::pair<bool, double>;

  bool is_better(const Value& value) const {
    return best_.empty() || value.first < value_.first ||
           (value.first == value_.first && value.second < value_.second * (1 - least_gain));
  }

  /// @return whether it is better than all before
  bool consider(const std::vector<StageChoice>& stages) {
    if (!costs_.may_begin(stages)) return false;
    passes_ += 2 * walked_micro_batches(costs_.shape(), stages) * costs_.shape().stages;
    if (!considered_.insert(stages).second) return false;  // the best is at least as good
    const bool too_large = !costs_.fits(stages);
    if (!is_better({too_large, least_schedule_s(costs_, stages)})) return false;
    const Value value{too_large, schedule_s(costs_, stages)};
    if (!is_better(value)) return false;
    value_ = value;
    best_ = stages;
    return true;
  }

  bool improve_by(std::uint32_t reach) {
    bool improved = false;
    for (std::size_t s = 1; s < best_.size() && passes_ <= most_passes; ++s)
      for (const bool later : {false, true}) {
        std::vector<StageChoice> moved = best_;
        const std::uint32_t low = best_[s - 1].first_unit + 1;
        const std::uint32_t high = (s + 1 < best_.size() ? best_[s + 1].first_unit : costs_.unit_count()) - 1;
        std::uint32_t& first = moved[s].first_unit;
        first = later ? std::min(high, first + reach) : std::max(low, first - std::min(first, reach));
        if (moved != best_ && consider(moved)) improved = true;
      }
    return improved;
  }

  bool move_slots() {
    const PipelineShape& shape = costs_.shape();
    bool improved = false;
    if (!shape.stage_slots.empty() || shape.stages == costs_.slot_count()) return improved;
    for (std::size_t s = 1; s < best_.size(); ++s)
      for (const bool back : {false, true})
        for (std::uint32_t count = 1; passes_ <= most_passes; ++count) {
          std::vector<StageChoice> moved = best_;
          StageChoice &from = moved[back ? s : s - 1], &to = moved[back ? s - 1 : s];
          if (count >= from.slots) break;
          from.slots -= count;
          to.slots += count;
          if (slots_allowed(shape, from.slots) && slots_allowed(shape, to.slots) && consider(moved))
            improved = true;
        }
    return improved;
  }

  const PipelineCosts& costs_;
  std::vector<StageChoice> best_;
  std::set<std::vector<StageChoice>> considered_;
  StageCut begun_from_ = StageCut::optimal;
  Value value_;
  std::int64_t passes_ = 0;
};

CutPipeline optimal(const PipelineCosts& costs) {
  StagePrices prices(costs);
  const std::vector<StageChoice> least = least_step_partition(prices);
  if (least.empty()) return {least, StageCut::optimal};
  ScheduleSearch search(costs);
  search.begin_from(least, StageCut::optimal);
  const bool slots_are_given =
      !costs.shape().stage_slots.empty() || costs.shape().stages == costs.slot_count();
  if (slots_are_given) search.begin_from(balanced(prices), StageCut::balanced);
  std::vector<StageChoice> equal = even(costs);
  for (std::size_t s = 0; s < least.size(); ++s) equal[s].slots = least[s].slots;
  search.begin_from(equal, StageCut::even);
  search.improve();
  return search.best();
}

}  // namespace

std::vector<StageChoice> least_step_partition(StagePrices& prices) {
  const PipelineCosts& costs = prices.costs();
  for (const bool must_fit : {true, false}) {
    Search<StepPricing> search(costs, {prices, must_fit});
    if (auto stages = BoundSearch(search, costs).run()) return *stages;
  }
  return {};
}

CutPipeline partition_pipeline(StageCut method, const PipelineCosts& costs) {
  switch (method) {
    case StageCut::even:
      return {even(costs), method};
    case StageCut::balanced: {
      StagePrices prices(costs);
      return {balanced(prices), method};
    }
    case StageCut::optimal:
      break;
  }
  return optimal(costs);
}

}  // namespace convoy::strategies
