// SPDX-License-Identifier: MIT
#include "sim/replay/uncontended_collectives.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "sim/replay/flow_model.h"
#include "sim/replay/round_classes.h"

namespace convoy::inline replays {
namespace {

constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();
/// Large compared with what a flow model does in one moment, and a power of two, so that dividing by it does
/// not round.
constexpr double measured_bytes = 0x1p50;

}  // namespace

UncontendedCollectives::UncontendedCollectives(const FoldedPlan& folded, const LinkClock& clock)
    : machine_(folded.machine),
      table_(folded.table),
      folding_(folded.folding),
      clock_(clock),
      crossed_(folded.folding.links.size(), false),
      place_(clock.size(), nowhere) {}

std::optional<UncontendedCollective> UncontendedCollectives::find(
    std::span<const std::vector<std::uint32_t>> flows, const std::vector<Round>& rounds) {
  UncontendedCollective group;
  std::size_t most_uses = 0;  // no more than that, so that the list does not have to grow
  for (const std::vector<std::uint32_t>& of_round : flows)
    for (const std::uint32_t f : of_round) most_uses += clock_.count(folding_.route_class[f]);
  group.uses.reserve(std::min(most_uses, clock_.size()));
  bool found = true;
  for (std::size_t r = 0; r < flows.size() && found; ++r)
    found = flows[r].empty() || add_round(flows[r], rounds[r], group);
  for (const UncontendedCollective::Use& use : group.uses) place_[use.clock] = nowhere;
  if (!found) return std::nullopt;
  group.uses.shrink_to_fit();
  return group;
}

UncontendedCollective::Use& UncontendedCollectives::use_of(std::uint32_t clock,
                                                           UncontendedCollective& group) {
  if (place_[clock] == nowhere) {
    place_[clock] = static_cast<std::uint32_t>(group.uses.size());
    group.uses.push_back({clock, 0, 0});
  }
  return group.uses[place_[clock]];
}

/// @return whether it has been crossed before in this round
bool UncontendedCollectives::cross(std::uint32_t link_class) {
  const bool before = crossed_[link_class];
  crossed_[link_class] = true;
  return before;
}

/// Whether flows of a round meet on a link.
bool UncontendedCollectives::share_links(const std::vector<std::uint32_t>& flows) {
  bool shared = false;
  for (const std::uint32_t f : flows)
    for (const LinkUse& use : route(f)) shared = cross(use.link) || use.multiplicity > 1 || shared;
  for (const std::uint32_t f : flows)
    for (const LinkUse& use : route(f)) crossed_[use.link] = false;
  return shared;
}

/// A round whose shares rotate, over links that no two of its flows share: what each repetition takes is the most
/// that a pair takes, at as much as it carries in it.
bool UncontendedCollectives::add_rotation(const std::vector<std::uint32_t>& flows, const Round& round,
                                          UncontendedCollective& group) {
  if (share_links(flows)) return false;
  const double latency_s = this->latency_s(flows.front());
  const RotatingShares& rotation = *round.rotation;
  std::vector<double> whole_s;                              // per byte, of each flow, at a share of 1
  std::map<std::uint32_t, std::vector<std::size_t>> users;  // flows by clock
  for (std::size_t i = 0; i < flows.size(); ++i) {
    whole_s.push_back(0);
    for (const LinkUse& use : route(flows[i])) whole_s[i] = std::max(whole_s[i], 1 / link_Bps(use.link));
    clock_.for_each(folding_.route_class[flows[i]], [&](std::uint32_t clock) {
      std::vector<std::size_t>& of_clock = users[clock];
      if (of_clock.empty() || of_clock.back() != i) of_clock.push_back(i);
    });
  }
  std::vector<double> times(flows.size());
  for (std::uint32_t k = 0; k < round.repeat; ++k) {
    for (std::size_t i = 0; i < flows.size(); ++i)
      times[i] = whole_s[i] * rotation.share(flow(flows[i]).pair, k);
    const double longest_s = *std::max_element(times.begin(), times.end());
    if (longest_s == 0) continue;  // nobody has anything to send
    group.latency_s += latency_s;
    group.s_per_byte += longest_s;
    for (const auto& [clock, of_clock] : users) {
      double time_s = 0;
      for (const std::size_t i : of_clock) time_s = std::max(time_s, times[i]);
      if (time_s == 0) continue;
      UncontendedCollective::Use& use = use_of(clock, group);
      use.latency_s += latency_s;
      use.s_per_byte += time_s;
    }
  }
  return true;
}

/// @return whether all its flows have the same latency
bool UncontendedCollectives::add_round(const std::vector<std::uint32_t>& flows, const Round& round,
                                       UncontendedCollective& group) {
  const double latency_s = this->latency_s(flows.front());
  for (const std::uint32_t f : flows)
    if (this->latency_s(f) != latency_s) return false;
  if (round.rotation) return add_rotation(flows, round, group);
  const double repeat = round.repeat;
  const std::vector<double> times = times_s_per_byte(flows);
  group.latency_s += latency_s * repeat;
  group.s_per_byte += *std::max_element(times.begin(), times.end()) * repeat;
  if (group.uses.empty()) {  // its first round: nothing to add to
    for (std::size_t i = 0; i < flows.size(); ++i)
      clock_.for_each(folding_.route_class[flows[i]], [&](std::uint32_t clock) {
        UncontendedCollective::Use& use = use_of(clock, group);
        use.latency_s = latency_s * repeat;
        use.s_per_byte = std::max(use.s_per_byte, times[i] * repeat);
      });
    return true;
  }
  if (round_s_.empty()) round_s_.resize(clock_.size(), -1);
  for (std::size_t i = 0; i < flows.size(); ++i)
    clock_.for_each(folding_.route_class[flows[i]],
                    [&](std::uint32_t clock) { round_s_[clock] = std::max(round_s_[clock], times[i]); });
  for (const std::uint32_t f : flows)
    clock_.for_each(folding_.route_class[f], [&](std::uint32_t clock) {
      const double time_s = std::exchange(round_s_[clock], -1);
      if (time_s < 0) return;  // done
      UncontendedCollective::Use& use = use_of(clock, group);
      use.latency_s += latency_s * repeat;
      use.s_per_byte += time_s * repeat;
    });
  return true;
}

/// Time of each flow per byte of the communication.
std::vector<double> UncontendedCollectives::times_s_per_byte(const std::vector<std::uint32_t>& flows) {
  std::vector<double> result;
  result.reserve(flows.size());
  bool shared = false;
  for (std::size_t i = 0; i < flows.size() && !shared; ++i) {
    double time_s = 0;
    for (const LinkUse& use : route(flows[i])) {
      shared = cross(use.link) || shared;
      time_s = std::max(time_s, use.multiplicity / link_Bps(use.link));
    }
    result.push_back(time_s * flow(flows[i]).fraction);
  }
  for (const std::uint32_t f : flows)
    for (const LinkUse& use : route(f)) crossed_[use.link] = false;
  return shared ? shared_times_s_per_byte(flows) : result;
}

std::vector<double> UncontendedCollectives::shared_times_s_per_byte(const std::vector<std::uint32_t>& flows) {
  if (number_.empty()) number_.resize(crossed_.size(), nowhere);
  std::vector<double> link_bandwidth_Bps, bytes;
  std::vector<LinkUse> uses;  // of all flows, one after the other
  for (const std::uint32_t f : flows) {
    bytes.push_back(flow(f).fraction * measured_bytes);
    for (const LinkUse& use : route(f)) {
      if (number_[use.link] == nowhere) {
        number_[use.link] = static_cast<std::uint32_t>(link_bandwidth_Bps.size());
        link_bandwidth_Bps.push_back(link_Bps(use.link));
      }
      uses.push_back({number_[use.link], use.multiplicity});
    }
  }
  std::vector<std::span<const LinkUse>> routes;
  for (std::size_t first = 0; const std::uint32_t f : flows) {
    routes.emplace_back(uses.data() + first, route(f).size());
    first += route(f).size();
    for (const LinkUse& use : route(f)) number_[use.link] = nowhere;
  }

  const RoundClasses classes = round_classes(bytes, routes, link_bandwidth_Bps);
  FlowModel model(classes.link_bandwidth_Bps);
  std::vector<double> times(classes.bytes.size(), 0);
  for (std::size_t c = 0; c < times.size(); ++c) {
    if (classes.bytes[c] == 0 || classes.routes[c].empty()) continue;
    const std::uint32_t route = model.add_route(classes.routes[c], std::numeric_limits<double>::infinity());
    model.start_flow(classes.bytes[c], route) = [&model, &times, c] {
      times[c] = model.now_s() / measured_bytes;
    };
  }
  while (model.advance()) continue;
  std::vector<double> result;
  for (const std::uint32_t c : classes.class_of) result.push_back(times[c]);
  return result;
}

}  // namespace convoy::replays
