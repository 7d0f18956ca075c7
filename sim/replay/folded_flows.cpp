// SPDX-License-Identifier: MIT
#include "sim/replay/folded_flows.h"

#include <algorithm>
#include <functional>
#include <map>
#include <type_traits>
#include <utility>

#include "sim/base/memo.h"
#include "sim/replay/fidelity.h"

namespace convoy::inline replays {
namespace {

/// Messages of a plan: fewer are listed as quickly as they are looked up, and of more than the memory holds none is kept.
constexpr std::size_t least_kept = 256, most_kept = 1 << 19;

std::size_t listed_messages(const Plan& plan) {
  std::size_t count = 0;
  for (const Pattern& pattern : plan.patterns)
    for (const Round& round : pattern.rounds) count += pattern.groups.size() * round.pairs.size();
  return count;
}

/// The same machine with a number for each bandwidth that its links have, instead of the bandwidth.
Machine with_numbered_bandwidths(Machine machine) {
  std::map<double, double> numbers;
  for (Link& link : machine.links)
    link.bandwidth_Bps =
        numbers.emplace(link.bandwidth_Bps, static_cast<double>(numbers.size() + 1)).first->second;
  return machine;
}

struct FlowsKey {
  Plan plan;
  Machine machine;  ///< with_numbered_bandwidths()
  std::size_t messages = 0;

  bool operator==(const FlowsKey&) const = default;
  std::size_t hash() const {
    return hash_with(hash_with(messages, plan.communications.size()),
                     std::hash<const void*>{}(machine.router.get()));
  }
  std::size_t weight() const { return messages + machine.endpoint_count() + machine.links.size(); }
};

/// The flows of a plan on a machine, and how they are folded with one bandwidth of links or another.
class FlowsOfPlan {
 public:
  FlowsOfPlan(const Plan& plan, const Machine& machine)
      : table_(std::make_shared<FlowTable>(expand_flows(plan, machine, Listing::where_needed))) {}

  FoldedFlows with_links_of(const Plan& plan, const Machine& machine) {
    std::vector<double> bandwidths_Bps;
    for (const Link& link : machine.links) bandwidths_Bps.push_back(link.bandwidth_Bps);
    if (bandwidths_Bps != bandwidths_Bps_) {
      one_by_one_ = ranks_go_one_by_one(plan, machine, *table_);
      bandwidths_Bps_ = std::move(bandwidths_Bps);
    }
    std::shared_ptr<Folding>& folding = foldings_[one_by_one_];
    if (!folding) folding = std::make_shared<Folding>(fold(plan, machine, *table_, one_by_one_, true));
    return {table_, one_by_one_, folding};
  }

 private:
  std::shared_ptr<FlowTable> table_;
  std::vector<double> bandwidths_Bps_;  ///< of the links that were asked for last
  std::vector<bool> one_by_one_;        ///< with these
  std::map<std::vector<bool>, std::shared_ptr<Folding>> foldings_;
};

}  // namespace

void FoldedFlows::release_execution() {
  if (table_.use_count() > 1) return;
  const auto release = [](auto& list) { std::remove_reference_t<decltype(list)>().swap(list); };
  release(table_->paths);
  release(folding_->flow_class);
  release(folding_->first_flow);
  release(folding_->route_class);
  folding_->routes = {};
  release(folding_->group_flows);
}

FoldedFlows folded_flows(const Plan& plan, const Machine& machine, bool folds,
                         const Disturbances& disturbances) {
  const std::size_t messages = listed_messages(plan);
  if (folds && disturbances.empty() && !plan.service() && messages >= least_kept && messages <= most_kept) {
    static thread_local Memo<FlowsKey, std::shared_ptr<FlowsOfPlan>> memo(most_kept);
    return memo
        .of({plan, with_numbered_bandwidths(machine), messages},
            [&](const FlowsKey&) { return std::make_shared<FlowsOfPlan>(plan, machine); })
        ->with_links_of(plan, machine);
  }
  // The answers of a service belong to individual messages.
  const bool listed = !folds || plan.service() != nullptr;
  auto table = std::make_shared<FlowTable>(
      expand_flows(plan, machine, listed ? Listing::always : Listing::where_needed));
  std::vector<bool> one_by_one = ranks_go_one_by_one(plan, machine, *table);
  auto folding = std::make_shared<Folding>(fold(plan, machine, *table, one_by_one, folds, disturbances));
  return {std::move(table), std::move(one_by_one), std::move(folding)};
}

}  // namespace convoy::replays
