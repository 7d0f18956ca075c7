// SPDX-License-Identifier: MIT
#include "strategies/elastic/state_moves.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace convoy::inline strategies {
namespace {

/// Who has which values.
class Holders {
 public:
  Holders(const SetByDevice& held, EndpointId devices) {
    // From each border to the next one the same sets have all values.
    std::vector<std::pair<std::int64_t, std::size_t>> borders;
    for (std::size_t set = 0; set < held.numbers(); ++set)
      for (const IndexRange& range : held.numbered(set)) {
        borders.emplace_back(range.begin, set);
        borders.emplace_back(range.end, set);
      }
    std::sort(borders.begin(), borders.end());
    std::vector<std::vector<EndpointId>> with_set(held.numbers());
    for (EndpointId device = 0; device < devices; ++device) with_set[held.number(device)].push_back(device);
    std::map<std::set<std::size_t>, std::size_t> known;
    std::set<std::size_t> inside;
    std::int64_t begin = 0;
    for (const auto& [border, set] : borders) {
      if (!inside.empty() && begin < border) {
        const auto [it, fresh] = known.try_emplace(inside, groups_.size());
        if (fresh) groups_.push_back(devices_of(inside, with_set));
        stretches_.push_back({{begin, border}, it->second});
      }
      if (!inside.erase(set)) inside.insert(set);
      begin = border;
    }
  }

  /// Those who have the same values.
  const std::vector<EndpointId>& group(std::size_t number) const { return groups_[number]; }

  /// Of some values, those of each group that has any.
  std::map<std::size_t, IndexSet> by_group(const IndexSet& values) const {
    std::map<std::size_t, IndexSet> found;
    for (const IndexRange& range : values)
      for (auto at = std::partition_point(stretches_.begin(), stretches_.end(),
                                          [&](const Stretch& of) { return of.range.end <= range.begin; });
           at != stretches_.end() && at->range.begin < range.end; ++at)
        found[at->group].push_back(
            {std::max(range.begin, at->range.begin), std::min(range.end, at->range.end)});
    for (auto& [group, ranges] : found) ranges = united(std::move(ranges));
    return found;
  }

 private:
  struct Stretch {
    IndexRange range;
    std::size_t group;
  };

  static std::vector<EndpointId> devices_of(const std::set<std::size_t>& sets,
                                            const std::vector<std::vector<EndpointId>>& with_set) {
    std::vector<EndpointId> devices;
    for (const std::size_t set : sets)
      devices.insert(devices.end(), with_set[set].begin(), with_set[set].end());
    return devices;
  }

  std::vector<std::vector<EndpointId>> groups_;
  std::vector<Stretch> stretches_;  ///< ascending
};

class MoveFinder {
 public:
  MoveFinder(const ParameterElements& elements, const Machine& machine)
      : elements_(elements), machine_(machine), sent_bytes_(machine.devices.size(), 0.0) {}

  /// @param kind the member of KeptValues that these are of
  void add(const SetByDevice& before, const SetByDevice& after, IndexSet KeptValues::*kind) {
    const auto devices = static_cast<EndpointId>(machine_.devices.size());
    const Holders holders(before, devices);
    std::map<std::pair<std::size_t, std::size_t>, std::map<std::size_t, IndexSet>> needed;
    for (EndpointId to = 0; to < devices; ++to) {
      const auto [of, fresh] = needed.try_emplace({before.number(to), after.number(to)});
      if (fresh) of->second = holders.by_group(difference(after.of(to), before.of(to)));
      for (const auto& [group, values] : of->second) send(holders.group(group), to, values, kind);
    }
  }

  std::vector<StateMove> moves() && {
    std::vector<StateMove> result;
    for (auto& [of, values] : moves_) result.push_back({0, of.first, of.second, std::move(values)});
    return result;
  }

 private:
  void send(const std::vector<EndpointId>& holders, EndpointId to, const IndexSet& values,
            IndexSet KeptValues::*kind) {
    KeptValues sent;
    sent.*kind = values;
    const double bytes = elements_.bytes(sent);
    if (bytes == 0) return;  // states that the optimizer does not keep
    const auto cost = [&](EndpointId from) {
      return std::tuple{machine_.devices[from].host != machine_.devices[to].host, sent_bytes_[from], from};
    };
    const EndpointId from = *std::min_element(holders.begin(), holders.end(),
                                              [&](EndpointId a, EndpointId b) { return cost(a) < cost(b); });
    sent_bytes_[from] += bytes;
    IndexSet& of_pair = moves_[{from, to}].*kind;
    of_pair = united(std::move(of_pair), values);
  }

  const ParameterElements& elements_;
  const Machine& machine_;
  std::vector<double> sent_bytes_;  ///< by device
  std::map<std::pair<EndpointId, EndpointId>, KeptValues> moves_;
};

}  // namespace

std::vector<StateMove> moves_between(const HeldStates& before, const HeldStates& after,
                                     const ParameterElements& elements, const Machine& machine) {
  MoveFinder finder(elements, machine);
  finder.add(before.parameters, after.parameters, &KeptValues::parameters);
  finder.add(before.states, after.states, &KeptValues::states);
  return std::move(finder).moves();
}

std::vector<StateMove> moves_of_everything(const Pattern& pattern, const ParameterElements& elements) {
  std::vector<StateMove> moves;
  for (std::size_t r = 0; r < pattern.rounds.size(); ++r)
    for (const auto& [from, to] : pattern.rounds[r].pairs)
      moves.push_back({r, pattern.groups[0][from], pattern.groups[0][to], elements.all()});
  return moves;
}

MoveTraffic traffic_of(const std::vector<StateMove>& moves, const ParameterElements& elements,
                       EndpointId devices) {
  MoveTraffic traffic;
  std::vector<EndpointId>& group = traffic.pattern.groups.emplace_back(devices);
  std::iota(group.begin(), group.end(), EndpointId{0});
  Round round;
  for (const StateMove& move : moves) {
    round.pairs.emplace_back(move.from, move.to);
    round.fractions.push_back(elements.bytes(move.values));
    traffic.bytes += round.fractions.back();
  }
  for (double& fraction : round.fractions) fraction /= traffic.bytes;
  traffic.pattern.rounds.push_back(std::move(round));
  return traffic;
}

}  // namespace convoy::strategies
