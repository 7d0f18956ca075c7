// SPDX-License-Identifier: MIT
#include "sim/replay/max_min.h"

#include <algorithm>
#include <cmath>

namespace convoy::inline replays {

std::uint32_t MaxMin::number_of(std::uint32_t link) {
  if (number_[link] == none) number_[link] = add_link(link_bandwidth_Bps_[link], false);
  return number_[link];
}

std::uint32_t MaxMin::add_link(double bandwidth_Bps, bool of_each_flow) {
  links_.emplace_back().bandwidth_Bps = bandwidth_Bps;
  links_.back().of_each_flow = of_each_flow;
  end_places_.push_back(IndexedHeap<EndPlace>::nowhere);
  return static_cast<std::uint32_t>(links_.size() - 1);
}

std::uint32_t MaxMin::add_route(std::span<const LinkUse> uses, double flow_limit_Bps) {
  Colour hash = bits(flow_limit_Bps);
  for (const LinkUse& use : uses) hash = mix(hash, std::uint64_t{use.link} << 32 | use.multiplicity);
  const bool limited = flow_limit_Bps < infinite;
  const std::uint32_t hash_number = route_hashes_.number(hash);
  if (hash_number == latest_of_hash_.size()) latest_of_hash_.push_back(none);
  for (std::uint32_t id = latest_of_hash_[hash_number]; id != none; id = bundles_[id].same_hash) {
    const std::span<Use> known = uses_of(bundles_[id]);
    if (known.size() != uses.size() + limited) continue;
    const bool same =
        std::equal(uses.begin(), uses.end(), known.begin(), [&](const LinkUse& a, const Use& b) {
          return number_[a.link] == b.link && a.multiplicity == b.multiplicity;
        });
    if (same && (!limited || (links_[known.back().link].of_each_flow &&
                              links_[known.back().link].bandwidth_Bps == flow_limit_Bps)))
      return id;
  }
  const auto id = static_cast<std::uint32_t>(bundles_.size());
  Bundle bundle;
  bundle.same_hash = latest_of_hash_[hash_number];
  bundle.first_use = static_cast<std::uint32_t>(uses_.size());
  for (const LinkUse& use : uses) uses_.push_back({number_of(use.link), use.multiplicity, 0});
  if (limited) uses_.push_back({add_link(flow_limit_Bps, true), 1, 0});
  bundle.use_count = static_cast<std::uint32_t>(uses_.size()) - bundle.first_use;
  bundles_.push_back(std::move(bundle));
  latest_of_hash_[hash_number] = id;
  return id;
}

void MaxMin::start(std::uint32_t route, double bytes, std::uint32_t flow, double now_s) {
  Bundle& bundle = bundles_[route];
  if (const double rate_Bps = rate_alone_Bps(bundle); rate_Bps > 0) {
    for (const Use& use : uses_of(bundle)) links_[use.link].lone = route;
    bundle.lone_flow = flow;
    bundle.lone_rate_Bps = rate_Bps;
    bundle.lone_end_s = now_s + bytes / rate_Bps;
    ends_.set(uses_of(bundle).front().link, bundle.lone_end_s, EndPlace{end_places_});
    return;
  }
  for (const Use& use : uses_of(bundle))
    if (links_[use.link].lone != none) join_others(links_[use.link].lone, now_s);
  start_among_others(route, bytes, flow, now_s);
}

/// The rate of a flow that begins now and has all the links of the bundle to itself; 0 where it has not.
double MaxMin::rate_alone_Bps(const Bundle& bundle) {
  double rate_Bps = infinite;
  for (const Use& use : uses_of(bundle)) {
    const Link& link = links_[use.link];
    if (link.lone != none || link.changed || link.weight > 0 || !link.crossings.empty()) return 0;
    rate_Bps =
        std::min(rate_Bps, link.of_each_flow ? link.bandwidth_Bps : link.bandwidth_Bps / use.multiplicity);
  }
  return rate_Bps;
}

/// A lone flow goes on as one of several.
void MaxMin::join_others(std::uint32_t b, double now_s) {
  Bundle& bundle = bundles_[b];
  const double left_bytes = std::max(0.0, bundle.lone_end_s - now_s) * bundle.lone_rate_Bps;
  forget_lone(bundle);
  start_among_others(b, left_bytes, bundle.lone_flow, now_s);
}

/// The bundle's links forget its lone flow.
void MaxMin::forget_lone(Bundle& bundle) {
  ends_.remove(uses_of(bundle).front().link, EndPlace{end_places_});
  for (const Use& use : uses_of(bundle)) links_[use.link].lone = none;
  bundle.lone_rate_Bps = 0;
}

void MaxMin::start_among_others(std::uint32_t route, double bytes, std::uint32_t flow, double now_s) {
  Bundle& bundle = bundles_[route];
  double count = bundle.bytes;
  if (bundle.bottleneck != none) {
    advance(links_[bundle.bottleneck], now_s);
    count += links_[bundle.bottleneck].bytes;
  }
  bundle.ends.push_back({count + bytes, flow});
  std::push_heap(bundle.ends.begin(), bundle.ends.end());
  ++bundle.flow_count;
  for (const Use& use : uses_of(bundle)) links_[use.link].weight += use.multiplicity;
  if (bundle.clock_place != none && bundle.ends.front().flow == flow) reschedule(route);
  change(bundle, route);
}

void MaxMin::set_bandwidth(std::uint32_t crossed, double bandwidth_Bps, double now_s) {
  const std::uint32_t link = number_of(crossed);
  if (links_[link].lone != none) join_others(links_[link].lone, now_s);
  advance(links_[link], now_s);
  links_[link].bandwidth_Bps = bandwidth_Bps;
  touch(link);
}

double MaxMin::rate_Bps(std::uint32_t route) const {
  const Bundle& bundle = bundles_[route];
  if (bundle.lone_rate_Bps > 0) return bundle.lone_rate_Bps;
  return bundle.bottleneck == none ? 0 : links_[bundle.bottleneck].rate_Bps;
}

/// Ends the lone flow, or the next flows of the bottleneck, whose time has come first.
void MaxMin::take_next_ended(double now_s, double within_s, std::vector<std::uint32_t>& ended) {
  const std::uint32_t id = ends_.top().number;
  Link& link = links_[id];
  if (link.lone != none) {
    ended.push_back(bundles_[link.lone].lone_flow);
    forget_lone(bundles_[link.lone]);
    return;
  }
  advance(link, now_s);
  const double gone_bytes = link.bytes + link.rate_Bps * within_s;
  bool first = true;  // ends at this very moment, however its bytes were rounded
  while (!link.clock.empty() && (first || link.clock.top().key <= gone_bytes)) {
    first = false;
    const std::uint32_t b = link.clock.top().number;
    Bundle& bundle = bundles_[b];
    ended.push_back(bundle.ends.front().flow);
    std::pop_heap(bundle.ends.begin(), bundle.ends.end());
    bundle.ends.pop_back();
    --bundle.flow_count;
    for (const Use& use : uses_of(bundle)) links_[use.link].weight -= use.multiplicity;
    change(bundle, b);
    if (bundle.ends.empty())
      link.clock.remove(b, ClockPlace{bundles_});
    else
      link.clock.set(b, bundle.ends.front().at_bytes - bundle.bytes, ClockPlace{bundles_});
  }
  schedule(id);
}

// --- clocks ---

void MaxMin::change(Bundle& bundle, std::uint32_t id) {
  if (bundle.changed) return;
  bundle.changed = true;
  changed_bundles_.push_back(id);
}

void MaxMin::touch(std::uint32_t link) {
  if (links_[link].changed) return;
  links_[link].changed = true;
  changed_links_.push_back(link);
}

void MaxMin::advance(Link& link, double now_s) {
  link.bytes += link.rate_Bps * (now_s - link.at_s);
  link.at_s = now_s;
}

void MaxMin::set_rate(std::uint32_t link, double rate_Bps, double now_s) {
  if (links_[link].rate_Bps != rate_Bps) {
    advance(links_[link], now_s);
    links_[link].rate_Bps = rate_Bps;
  }
  schedule(link);
}

/// Schedules the link for the time at which the first of its bundles ends.
void MaxMin::schedule(std::uint32_t id) {
  const Link& link = links_[id];
  if (link.clock.empty() || link.rate_Bps == 0)
    ends_.remove(id, EndPlace{end_places_});
  else
    ends_.set(id, link.at_s + std::max(0.0, link.clock.top().key - link.bytes) / link.rate_Bps,
              EndPlace{end_places_});
}

void MaxMin::reschedule(std::uint32_t b) {
  const Bundle& bundle = bundles_[b];
  links_[bundle.bottleneck].clock.set(b, bundle.ends.front().at_bytes - bundle.bytes, ClockPlace{bundles_});
}

void MaxMin::attach(std::uint32_t b, std::uint32_t l, double now_s) {
  Link& link = links_[l];
  if (link.clock.empty()) {
    link.rate_Bps = link.bytes = 0;
    link.limit_Bps = infinite;
    link.alone = true;
  }
  advance(link, now_s);
  bundles_[b].bottleneck = l;
  bundles_[b].bytes -= link.bytes;
  reschedule(b);
}

void MaxMin::detach(std::uint32_t b, double now_s) {
  Bundle& bundle = bundles_[b];
  if (bundle.bottleneck == none) return;
  Link& link = links_[bundle.bottleneck];
  advance(link, now_s);
  bundle.bytes += link.bytes;
  link.clock.remove(b, ClockPlace{bundles_});
  bundle.bottleneck = none;
}

void MaxMin::enter_links(std::uint32_t b) {
  Bundle& bundle = bundles_[b];
  bundle.active = true;
  for (std::uint32_t u = bundle.first_use; u < bundle.first_use + bundle.use_count; ++u) {
    std::vector<Crossing>& crossings = links_[uses_[u].link].crossings;
    uses_[u].place = static_cast<std::uint32_t>(crossings.size());
    crossings.push_back({b, u});
  }
}

void MaxMin::leave_links(std::uint32_t b, double now_s) {
  detach(b, now_s);
  Bundle& bundle = bundles_[b];
  bundle.active = false;
  bundle.bytes = 0;
  for (const Use& use : uses_of(bundle)) {
    Link& link = links_[use.link];
    const Crossing last = link.crossings.back();
    link.crossings[use.place] = last;
    uses_[last.use].place = use.place;
    link.crossings.pop_back();
    if (link.crossings.empty()) link.floor_Bps = 0;
  }
}

// --- the effects of a change ---

void MaxMin::settle(double now_s) {
  for (const std::uint32_t b : changed_bundles_) {
    Bundle& bundle = bundles_[b];
    for (const Use& use : uses_of(bundle)) touch(use.link);
    if (bundle.flow_count == 0) {
      if (bundle.active) leave_links(b, now_s);
    } else if (!bundle.active) {
      enter_links(b);
    } else if (bundle.clock_place == none) {  // all its flows have ended, and others have begun
      detach(b, now_s);
      for (FlowEnd& end : bundle.ends) end.at_bytes -= bundle.bytes;
      bundle.bytes = 0;
    }
  }
  for (const std::uint32_t b : changed_bundles_) {
    Bundle& bundle = bundles_[b];
    bundle.changed = false;
    if (bundle.flow_count == 0) continue;
    if (bundle.bottleneck == none) attach_to_least_share(b, now_s);
  }
  changed_bundles_.clear();
  failed_.clear();
  for (const std::uint32_t l : changed_links_) {
    links_[l].changed = false;
    if (!stays_simple(l, now_s)) failed_.push_back(l);
  }
  changed_links_.clear();
  if (!failed_.empty()) solve_anew(now_s);
}

void MaxMin::attach_to_least_share(std::uint32_t b, double now_s) {
  std::uint32_t least = none;
  double other_Bps = infinite;
  for (const Use& use : uses_of(bundles_[b])) {
    const double share_Bps = links_[use.link].share_Bps();
    if (least == none || share_Bps < links_[least].share_Bps()) {
      if (least != none) other_Bps = std::min(other_Bps, links_[least].share_Bps());
      least = use.link;
    } else {
      other_Bps = std::min(other_Bps, share_Bps);
    }
  }
  attach(b, least, now_s);
  Link& bottleneck = links_[least];
  bottleneck.limit_Bps = std::min(bottleneck.limit_Bps, other_Bps);
  for (const Use& use : uses_of(bundles_[b]))
    if (use.link != least)
      links_[use.link].floor_Bps = std::max(links_[use.link].floor_Bps, bottleneck.limit_Bps);
}

/// Whether the rate of the link's flows (whose number may have changed) still follows from this link alone.
bool MaxMin::stays_simple(std::uint32_t l, double now_s) {
  Link& link = links_[l];
  if (link.crossings.empty()) {
    schedule(l);
    return true;
  }
  const double share_Bps = link.share_Bps();
  if (link.clock.empty()) {
    schedule(l);
    return keeps_floor(l);
  }
  if (!link.alone || link.clock.size() != link.crossings.size()) return false;
  if (share_Bps > link.limit_Bps && !raise_limit(l)) return false;
  set_rate(l, share_Bps, now_s);
  return true;
}

/// The smallest share that another link offers to a flow of this bottleneck.
double MaxMin::least_other_share_Bps(std::uint32_t l) {
  double least_Bps = infinite;
  for (const auto& entry : links_[l].clock.entries())
    for (const Use& use : uses_of(bundles_[entry.number]))
      if (use.link != l) least_Bps = std::min(least_Bps, links_[use.link].share_Bps());
  return least_Bps;
}

/// The bottleneck promises a limit, and the other links of its flows promise to offer as much.
void MaxMin::promise(std::uint32_t l, double limit_Bps) {
  links_[l].limit_Bps = limit_Bps;
  for (const auto& entry : links_[l].clock.entries())
    for (const Use& use : uses_of(bundles_[entry.number]))
      if (use.link != l) links_[use.link].floor_Bps = std::max(links_[use.link].floor_Bps, limit_Bps);
}

/// A bottleneck is about to go faster than it promised: asks whether all links allow it.
bool MaxMin::raise_limit(std::uint32_t l) {
  const double share_Bps = links_[l].share_Bps(), least_Bps = least_other_share_Bps(l);
  if (share_Bps > least_Bps * (1 + equal_rates)) return false;
  // Halfway, so that neither side has to ask again soon.
  promise(l, least_Bps < infinite ? std::max(share_Bps, std::sqrt(share_Bps * least_Bps)) : infinite);
  return true;
}

/// A link offers less than it promised: asks whether its flows can do with it.
bool MaxMin::lower_floor(std::uint32_t l) {
  Link& link = links_[l];
  const double share_Bps = link.share_Bps();
  double floor_Bps = 0;
  for (const Crossing& crossing : link.crossings) {
    const std::uint32_t b = bundles_[crossing.bundle].bottleneck;
    Link& bottleneck = links_[b];
    const bool simple = bottleneck.alone && bottleneck.clock.size() == bottleneck.crossings.size();
    const double rate_Bps = simple ? bottleneck.share_Bps() : bottleneck.rate_Bps;
    if (rate_Bps > share_Bps * (1 + equal_rates)) return false;
    const double middle_Bps = std::max(rate_Bps, std::sqrt(rate_Bps * share_Bps));
    bottleneck.limit_Bps = std::min(bottleneck.limit_Bps, middle_Bps);
    floor_Bps = std::max(floor_Bps, bottleneck.limit_Bps);
  }
  link.floor_Bps = floor_Bps;
  return true;
}

}  // namespace convoy::replays
