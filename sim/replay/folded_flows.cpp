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

/// Messages of all plans that are kept, and of one: fewer are listed as quickly as they are looked up, and one that would leave no
/// room for another is given back to the memory as soon as it is simulated (FoldedFlows::release_execution).
constexpr std::size_t most_kept = 1 << 20, least_of_one = 256, most_of_one = most_kept / 2;

std::size_t listed_messages(const Plan& plan) {
  std::size_t count = 0;
  for (const Pattern& pattern : plan.patterns)
    for (const Round& round : pattern.rounds) count += pattern.groups.size() * round.pairs.size();
  return count;
}

/// Numbers values from 1 in the order in which they are first asked for, so that they only say which are equal.
class Numbers {
 public:
  double of(double value) {
    return numbers_.emplace(value, static_cast<double>(numbers_.size() + 1)).first->second;
  }

 private:
  std::map<double, double> numbers_;
};

/// The same machine with a number for each bandwidth that its links have, instead of the bandwidth.
Machine with_numbered_bandwidths(Machine machine) {
  Numbers numbers;
  for (Link& link : machine.links) link.bandwidth_Bps = numbers.of(link.bandwidth_Bps);
  return machine;
}

/// What flows and their classes depend on: who sends to whom, who runs the same program, and which hosts make the images
/// of their devices ready at equal intervals, as numbers. Programs are left out: batches differ in nothing else.
Plan without_programs(const Plan& plan) {
  Plan result;
  result.patterns = plan.patterns;
  for (const Role& role : plan.roles) result.roles.emplace_back().members = role.members;
  if (!plan.input) return result;
  Numbers numbers;
  for (result.input.emplace(); const double interval_s : plan.input->interval_s)
    result.input->interval_s.push_back(numbers.of(interval_s));
  return result;
}

struct FlowsKey {
  Plan plan;        ///< without_programs()
  Machine machine;  ///< with_numbered_bandwidths()
  std::size_t messages = 0;

  bool operator==(const FlowsKey&) const = default;
  std::size_t hash() const {
    return hash_with(hash_with(messages, plan.patterns.size()),
                     std::hash<const void*>{}(machine.router.get()));
  }
  std::size_t weight() const { return messages + machine.endpoint_count() + machine.links.size(); }
};

/// The flows of plans that differ in their programs, and how they are folded where ranks go one by one and where they do
/// not, which depends on the programs and on the bandwidth of links.
class FlowsOfPlan {
 public:
  FlowsOfPlan(const Plan& plan, const Machine& machine)
      : table_(std::make_shared<FlowTable>(expand_flows(plan, machine, Listing::where_needed))) {}

  FoldedFlows folded_for(const Plan& plan, const Machine& machine) {
    std::vector<bool> one_by_one = ranks_go_one_by_one(plan, machine, *table_);
    std::shared_ptr<Folding>& folding = foldings_[one_by_one];
    if (!folding) folding = std::make_shared<Folding>(fold(plan, machine, *table_, one_by_one, true));
    return {table_, std::move(one_by_one), folding};
  }

 private:
  std::shared_ptr<FlowTable> table_;
  std::map<std::vector<bool>, std::shared_ptr<Folding>> foldings_;
};

}  // namespace

void FoldedFlows::release_execution() {
  if (table_.use_count() > 1) return;
  const auto release = [](auto& list) { std::remove_reference_t<decltype(list)>().swap(list); };
  release(folding_->flow_class);
  release(folding_->first_flow);
  release(folding_->route_class);
  folding_->routes = {};
  release(folding_->group_flows);
}

FoldedFlows folded_flows(const Plan& plan, const Machine& machine, bool folds,
                         const Disturbances& disturbances) {
  const std::size_t messages = listed_messages(plan);
  if (folds && disturbances.empty() && !plan.service() && messages >= least_of_one &&
      messages <= most_of_one) {
    static thread_local Memo<FlowsKey, std::shared_ptr<FlowsOfPlan>> memo(most_kept);
    return memo
        .of({without_programs(plan), with_numbered_bandwidths(machine), messages},
            [&](const FlowsKey& key) { return std::make_shared<FlowsOfPlan>(key.plan, machine); })
        ->folded_for(plan, machine);
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
