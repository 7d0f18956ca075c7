// SPDX-License-Identifier: MIT
#include "sim/collectives/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <set>
#include <stdexcept>
#include <unordered_set>

#include "sim/base/memo.h"
#include "sim/collectives/add_all_reduce.h"
#include "sim/collectives/collectives.h"
#include "sim/collectives/nccl_pattern.h"
#include "sim/collectives/schedule.h"

namespace convoy::inline collectives {
namespace {

using Call = CollectiveCall;
constexpr std::size_t any_number = std::numeric_limits<std::size_t>::max();
/// To estimate a double binary tree, some 8 N messages in 50 rounds have to be added up.
constexpr std::size_t tree_auto_ranks = 1024;

std::string nothing(const Call&) { return {}; }

std::string power_of_two(const Call& call) {
  if (std::has_single_bit(call.ranks.size())) return {};
  return fmt::format("scatters over a power of two of devices, found {}", call.ranks.size());
}

std::string equal_hosts_or_one(const Call& call) {
  const std::size_t hosts = positions_by_host(call.ranks, call.machine).size();
  if (hosts < 2 || has_equal_hosts(call.ranks, call.machine)) return {};
  return "scatters over hosts of as many devices each, found different numbers";
}

Pattern ring_half_pattern(const Call& c, bool) { return {{c.ranks}, ring_half(c.ranks, c.machine, c.order)}; }

struct Chosen {
  Pattern pattern;
  std::string name;
};

/// The rows that `auto` considers for so many ranks.
std::vector<SumAlgorithm> usual_candidates(std::size_t ranks) {
  std::vector<SumAlgorithm> candidates;
  for (const CollectiveAlgorithm& row : collective_table())
    if (ranks <= row.auto_ranks) candidates.emplace_back(row.id);
  return candidates;
}

/// Of those that `refuses` says nothing against.
template <class Refuses, class Make>
Chosen least_estimate(const Call& call, const std::vector<SumAlgorithm>& candidates, Refuses refuses, Make make) {
  Chosen best{{{call.ranks}, {}}, {}};
  double best_s = std::numeric_limits<double>::infinity();
  for (const SumAlgorithm& candidate : candidates) {
    if (!refuses(candidate).empty()) continue;
    Pattern pattern = make(candidate);
    const double time_s = estimate_s(pattern, call.machine, call.bytes, best_s);
    if (time_s >= best_s) continue;
    best = {std::move(pattern), candidate.name()};
    best_s = time_s;
  }
  return best;
}

/// Reduce-scatter, or with `gather` all-gather, of an algorithm that is not `auto`.
Pattern own_half(const SumAlgorithm& algorithm, const Call& call, bool gather) {
  if (algorithm.schedule)
    return algorithm.schedule->pattern(call.ranks, call.machine,
                                       gather ? SumSchedule::Part::gather : SumSchedule::Part::scatter);
  return collective(algorithm.row).half(call, gather);
}

/// Why an algorithm that is not `auto` cannot scatter.
std::string own_scatter_needs(const SumAlgorithm& algorithm, const Call& call) {
  if (algorithm.schedule) return algorithm.schedule->why_no_scatter(call.ranks, call.machine);
  const CollectiveAlgorithm& row = collective(algorithm.row);
  return row.half ? row.scatter_needs(call) : "has no reduce-scatter or all-gather";
}

Chosen choice_of_all_reduce(const Call& call, const std::vector<SumAlgorithm>& candidates) {
  return least_estimate(
      call, candidates,
      [&](const SumAlgorithm& of) { return why_no_all_reduce(of, call.ranks, call.machine); },
      [&](const SumAlgorithm& of) {
        return all_reduce_pattern(of, call.ranks, call.machine, call.bytes, call.order);
      });
}

/// All that the choice among rows of the program's own reads: the machine as its router was built for it, and what
/// its links carry, which counterfactuals change.
struct ChoiceKey {
  std::shared_ptr<const Router> router;
  std::size_t devices, hosts;
  std::vector<double> bandwidth_Bps;
  std::vector<EndpointId> ranks;
  double bytes;
  RingOrder order;
  std::vector<AllReduceAlgorithm> rows;
  bool operator==(const ChoiceKey&) const = default;
  std::size_t hash() const {
    return hash_with(
        hash_with(std::hash<const void*>{}(router.get()), std::hash<double>{}(bytes)),
        hash_with(ranks.size(), std::hash<double>{}(bandwidth_Bps.empty() ? 0 : bandwidth_Bps[0])));
  }
  std::size_t weight() const { return bandwidth_Bps.size() + rows.size() * ranks.size(); }
};

bool is_own(const SumAlgorithm& algorithm) {
  return !algorithm.schedule && algorithm.row < AllReduceAlgorithm::nccl;
}

/// Of many ranks, where it takes more than the rest of a plan, each choice is made once.
Chosen choose_all_reduce(const Call& call, const std::vector<SumAlgorithm>& candidates) {
  constexpr std::size_t most_kept = 1 << 20;  // bandwidths and ranks, 8 MB at most
  if (call.ranks.size() > tree_auto_ranks || !std::all_of(candidates.begin(), candidates.end(), is_own))
    return choice_of_all_reduce(call, candidates);
  ChoiceKey key{call.machine.router,
                call.machine.devices.size(),
                call.machine.hosts.size(),
                {},
                call.ranks,
                call.bytes,
                call.order,
                {}};
  for (const Link& link : call.machine.links) key.bandwidth_Bps.push_back(link.bandwidth_Bps);
  for (const SumAlgorithm& candidate : candidates) key.rows.push_back(candidate.row);
  static thread_local Memo<ChoiceKey, std::shared_ptr<const Chosen>> memo(most_kept);
  return *memo.of(std::move(key), [&](const ChoiceKey&) {
    return std::make_shared<const Chosen>(choice_of_all_reduce(call, candidates));
  });
}

Chosen choose_half(const Call& call, const std::vector<SumAlgorithm>& candidates, bool gather) {
  return least_estimate(
      call, candidates, [&](const SumAlgorithm& of) { return own_scatter_needs(of, call); },
      [&](const SumAlgorithm& of) { return own_half(of, call, gather); });
}

Pattern best_all_reduce(const Call& call) {
  return choose_all_reduce(call, usual_candidates(call.ranks.size())).pattern;
}
Pattern best_half(const Call& call, bool gather) {
  return choose_half(call, usual_candidates(call.ranks.size()), gather).pattern;
}

/// Rows of programs that are built with this library.
struct Additions {
  std::vector<CollectiveAlgorithm> rows;
  bool closed = false;  ///< the table is made
};
Additions& additions() {
  static Additions added;
  return added;
}

std::vector<CollectiveAlgorithm> make_table() {
  using enum AllReduceAlgorithm;
  std::vector<CollectiveAlgorithm> table{
      {ring, "ring", [](const Call& c) { return ring_all_reduce(c.ranks, c.machine, c.order); },
       ring_half_pattern, nothing, false, true, any_number},
      {tree, "tree", [](const Call& c) { return tree_all_reduce(c.ranks); }, nullptr, nothing, false, false,
       any_number},
      {halving_doubling, "halving_doubling",
       [](const Call& c) { return halving_doubling_all_reduce(c.ranks); },
       [](const Call& c, bool gather) {
         return Pattern{{c.ranks}, halving_doubling_half(c.ranks, gather)};
       },
       power_of_two, false, false, any_number},
      {hierarchical, "hierarchical",
       [](const Call& c) { return hierarchical_all_reduce(c.ranks, c.machine, c.order); },
       [](const Call& c, bool gather) {
         return Pattern{{c.ranks}, hierarchical_half(c.ranks, c.machine, c.order, gather)};
       },
       equal_hosts_or_one, false, false, any_number},
      {double_binary_tree, "double_binary_tree",
       [](const Call& c) { return double_binary_tree_all_reduce(c.ranks, c.machine, c.bytes, c.order); },
       nullptr, nothing, true, false, tree_auto_ranks},
      // NCCL scatters and gathers around rings only.
      {nccl, "nccl", nccl_all_reduce, [](const Call& c, bool) { return nccl_half(c); }, nothing, true, true,
       0},
      {automatic, "auto", best_all_reduce, best_half, nothing, true, false, 0},
  };
  table.insert(table.end(), additions().rows.begin(), additions().rows.end());
  return table;
}

Pattern half_pattern(const SumAlgorithm& algorithm, const Call& call, bool gather) {
  if (algorithm.is_auto() && !algorithm.candidates.empty())
    return choose_half(call, algorithm.candidates, gather).pattern;
  return own_half(algorithm, call, gather);
}

}  // namespace

void add_all_reduce(std::string_view name, Pattern (*all_reduce)(const CollectiveCall& call),
                    std::size_t auto_ranks) {
  if (additions().closed)
    throw std::logic_error(
        fmt::format("all-reduce '{}' is added too late: add algorithms before strategies, "
                    "whose keys list them, and before anything is read",
                    name));
  const std::vector<CollectiveAlgorithm> table = make_table();
  for (const CollectiveAlgorithm& row : table)
    if (row.name == name) throw std::logic_error(fmt::format("there is an all-reduce '{}'", name));
  additions().rows.push_back({static_cast<AllReduceAlgorithm>(table.size()), name, all_reduce, nullptr,
                              nothing, false, false, auto_ranks});
}

const std::vector<CollectiveAlgorithm>& collective_table() {
  static const std::vector<CollectiveAlgorithm> table = [] {
    additions().closed = true;
    return make_table();
  }();
  return table;
}

const CollectiveAlgorithm& collective(AllReduceAlgorithm algorithm) {
  return collective_table()[static_cast<std::size_t>(algorithm)];
}

const std::vector<std::string>& all_reduce_algorithm_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const CollectiveAlgorithm& row : collective_table()) result.emplace_back(row.name);
    return result;
  }();
  return names;
}

std::string SumAlgorithm::name() const {
  if (schedule) return schedule->name();
  std::string name(collective(row).name);
  for (const SumAlgorithm& candidate : candidates)
    name += (&candidate == &candidates.front() ? " of " : ", ") + candidate.name();
  return name;
}

bool SumAlgorithm::by_bytes() const { return !schedule && collective(row).by_bytes; }

bool SumAlgorithm::same_half() const { return !schedule && collective(row).same_half; }

Pattern all_reduce_pattern(const SumAlgorithm& algorithm, const std::vector<EndpointId>& ranks,
                           const Machine& machine, double bytes, RingOrder order) {
  const Call call{ranks, machine, bytes, order};
  if (algorithm.schedule) return algorithm.schedule->pattern(ranks, machine, SumSchedule::Part::all);
  if (algorithm.is_auto() && !algorithm.candidates.empty())
    return choose_all_reduce(call, algorithm.candidates).pattern;
  return collective(algorithm.row).all_reduce(call);
}

const std::vector<EndpointId>& slowest_group(const SumAlgorithm& algorithm,
                                             const std::vector<std::vector<EndpointId>>& groups,
                                             const Machine& machine, double bytes, RingOrder order) {
  if (!algorithm.by_bytes()) return groups.front();
  std::set<std::vector<std::uint32_t>> known;
  std::vector<const std::vector<EndpointId>*> kinds;
  for (const std::vector<EndpointId>& group : groups) {
    std::vector<std::uint32_t> on_hosts;  // ranks one after the other on the same host
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (i == 0 || machine.host_of(group[i]) != machine.host_of(group[i - 1])) on_hosts.push_back(0);
      ++on_hosts.back();
    }
    if (known.insert(std::move(on_hosts)).second) kinds.push_back(&group);
  }
  if (kinds.size() == 1) return groups.front();
  std::vector<double> times_s;
  for (const std::vector<EndpointId>* group : kinds)
    times_s.push_back(
        estimate_s(all_reduce_pattern(algorithm, *group, machine, bytes, order), machine, bytes));
  return *kinds[static_cast<std::size_t>(std::max_element(times_s.begin(), times_s.end()) - times_s.begin())];
}

std::string chosen_algorithm(const SumAlgorithm& automatic, const std::vector<EndpointId>& ranks,
                             const Machine& machine, double bytes, RingOrder order, bool half) {
  const CollectiveCall call{ranks, machine, bytes, order};
  const std::vector<SumAlgorithm> candidates =
      automatic.candidates.empty() ? usual_candidates(ranks.size()) : automatic.candidates;
  return half ? choose_half(call, candidates, false).name : choose_all_reduce(call, candidates).name;
}

Pattern reduce_scatter_pattern(const SumAlgorithm& algorithm, const std::vector<EndpointId>& ranks,
                               const Machine& machine, double bytes, RingOrder order) {
  return half_pattern(algorithm, {ranks, machine, bytes, order}, false);
}

Pattern all_gather_pattern(const SumAlgorithm& algorithm, const std::vector<EndpointId>& ranks,
                           const Machine& machine, double bytes, RingOrder order) {
  return half_pattern(algorithm, {ranks, machine, bytes, order}, true);
}

namespace {

/// "auto has no candidate: a.yaml needs ..., b.yaml needs ..." where all candidates are refused; empty where one is not.
template <class Refuses>
std::string why_none(const SumAlgorithm& automatic, Refuses refuses) {
  std::vector<std::string> reasons;
  for (const SumAlgorithm& candidate : automatic.candidates) {
    const std::string reason = refuses(candidate);
    if (reason.empty()) return {};
    reasons.push_back(fmt::format("{} {}", candidate.name(), reason));
  }
  return reasons.empty() ? "" : fmt::format("auto has no candidate: {}", fmt::join(reasons, ", "));
}

}  // namespace

std::string why_no_scatter(const SumAlgorithm& algorithm, const std::vector<EndpointId>& ranks,
                           const Machine& machine) {
  const CollectiveCall call{ranks, machine, 0};
  if (algorithm.is_auto())
    return why_none(algorithm, [&](const SumAlgorithm& of) { return own_scatter_needs(of, call); });
  const std::string needs = own_scatter_needs(algorithm, call);
  if (needs.empty()) return {};
  std::vector<std::string_view> others;
  for (const CollectiveAlgorithm& row : collective_table())
    if (row.half && row.scatter_needs(call).empty() && row.id != AllReduceAlgorithm::automatic)
      others.push_back(row.name);
  return fmt::format("{} {}; use {} or auto", algorithm.name(), needs, fmt::join(others, ", "));
}

std::string why_no_all_reduce(const SumAlgorithm& algorithm, const std::vector<EndpointId>& ranks,
                              const Machine& machine) {
  const auto refuses = [&](const SumAlgorithm& of) {
    return of.schedule ? of.schedule->why_not(ranks, machine) : std::string{};
  };
  if (algorithm.is_auto()) return why_none(algorithm, refuses);
  const std::string reason = refuses(algorithm);
  return reason.empty() ? reason : fmt::format("{} {}", algorithm.name(), reason);
}

}  // namespace convoy::collectives
