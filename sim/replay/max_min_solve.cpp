// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "sim/replay/max_min.h"

namespace convoy::inline replays {
namespace {

/// For this many rounds, only bundles that disagree are added; after that, all neighbours are added in each
/// round.
constexpr int careful_rounds = 4;

}  // namespace

void MaxMin::solve_anew(double now_s) {
  for (const std::uint32_t l : failed_) add_to_solve(l);
  for (int round = 0;; ++round) {
    open_links();
    fill();
    if (!add_who_disagrees()) break;
    if (round >= careful_rounds)
      for (std::size_t i = 0, count = solved_links_.size(); i < count; ++i)
        add_to_solve(solved_links_[i].link);
  }
  take_solution(now_s);
}

/// Adds all bundles of a link to those to be solved. Returns whether any of them is new.
bool MaxMin::add_to_solve(std::uint32_t l) {
  const std::size_t before = solved_bundles_.size();
  for (const Crossing& crossing : links_[l].crossings) {
    Bundle& bundle = bundles_[crossing.bundle];
    if (bundle.solve_place != none) continue;
    bundle.solve_place = static_cast<std::uint32_t>(solved_bundles_.size());
    solved_bundles_.push_back({crossing.bundle, 0, none});
  }
  return solved_bundles_.size() > before;
}

/// Computes what the bundles to be solved find on their links. A link that one bundle alone crosses is only a limit of it.
void MaxMin::open_links() {
  limits_.clear();
  for (std::uint32_t place = 0; place < solved_bundles_.size(); ++place) {
    SolvedBundle& solved = solved_bundles_[place];
    solved.bottleneck = none;
    LinkShare limit{infinite, none};
    const Bundle& bundle = bundles_[solved.bundle];
    for (std::uint32_t u = bundle.first_use; u < bundle.first_use + bundle.use_count; ++u) {
      Link& link = links_[uses_[u].link];
      if (link.crossings.size() == 1) {
        const double share_Bps = link.share_Bps();
        if (limit.place == none || share_Bps < limit.share_Bps) limit = {share_Bps, u};
      } else if (link.solve_place == none) {
        link.solve_place = static_cast<std::uint32_t>(solved_links_.size());
        solved_links_.push_back({uses_[u].link, 0, 0, 0, 0});
      }
    }
    if (limit.place != none) limits_.push_back(limit);
  }
  for (SolvedLink& solved : solved_links_) {
    const Link& link = links_[solved.link];
    solved = {solved.link, link.bandwidth_Bps, 0, 0, 0};
    for (const Crossing& crossing : link.crossings) {
      const Bundle& bundle = bundles_[crossing.bundle];
      const double weight = static_cast<double>(bundle.flow_count) * uses_[crossing.use].multiplicity;
      if (bundle.solve_place != none)
        solved.open_weight += weight;
      else
        solved.left_Bps -= weight * links_[bundle.bottleneck].rate_Bps;
    }
  }
}

/// Progressive filling: the link that offers the least, or the smallest limit, decides the rate of its bundles, then the
/// next one.
void MaxMin::fill() {
  const auto share_of = [](const SolvedLink& link) {
    return std::max(0.0, link.left_Bps) / link.open_weight;
  };
  const auto take = [](std::vector<LinkShare>& from) {
    std::pop_heap(from.begin(), from.end());
    const LinkShare least = from.back();
    from.pop_back();
    return least;
  };
  shares_.clear();
  for (std::uint32_t i = 0; i < solved_links_.size(); ++i) shares_.push_back({share_of(solved_links_[i]), i});
  std::make_heap(shares_.begin(), shares_.end());
  std::make_heap(limits_.begin(), limits_.end());
  open_bundles_ = solved_bundles_.size();
  while (open_bundles_ > 0) {
    if (shares_.empty() || (!limits_.empty() && limits_.front().share_Bps < shares_.front().share_Bps)) {
      const LinkShare least = take(limits_);
      const std::uint32_t link = uses_[least.place].link;
      SolvedBundle& solved = solved_bundles_[bundles_[links_[link].crossings.front().bundle].solve_place];
      if (solved.bottleneck == none) fix(solved, link, least.share_Bps);
      continue;
    }
    const LinkShare least = take(shares_);
    SolvedLink& link = solved_links_[least.place];
    if (link.open_weight <= 0) continue;
    const double share_Bps = share_of(link);
    if (share_Bps > least.share_Bps) {  // others took less than their part since
      shares_.push_back({share_Bps, least.place});
      std::push_heap(shares_.begin(), shares_.end());
      continue;
    }
    fix(link, share_Bps);
  }
}

void MaxMin::fix(SolvedLink& link, double share_Bps) {
  link.share_Bps = share_Bps;
  for (const Crossing& crossing : links_[link.link].crossings) {
    const Bundle& bundle = bundles_[crossing.bundle];
    if (bundle.solve_place == none) continue;
    SolvedBundle& solved = solved_bundles_[bundle.solve_place];
    if (solved.bottleneck == none) fix(solved, link.link, share_Bps);
  }
  link.left_Bps = 0;
}

void MaxMin::fix(SolvedBundle& solved, std::uint32_t bottleneck, double rate_Bps) {
  solved.bottleneck = bottleneck;
  solved.rate_Bps = rate_Bps;
  --open_bundles_;
  const Bundle& bundle = bundles_[solved.bundle];
  for (const Use& use : uses_of(bundle)) {
    const std::uint32_t place = links_[use.link].solve_place;
    if (place == none) continue;  // no other bundle crosses it
    SolvedLink& crossed = solved_links_[place];
    const double weight = static_cast<double>(bundle.flow_count) * use.multiplicity;
    crossed.left_Bps -= weight * rate_Bps;
    crossed.open_weight -= weight;
    crossed.fastest_Bps = std::max(crossed.fastest_Bps, rate_Bps);
  }
}

/// Whether a bundle whose rate was taken as fixed contradicts a link whose other bundles were solved: its
/// bottleneck is this link, which is no longer full or has faster bundles; or it is faster than the bundles
/// that have their bottleneck here.
bool MaxMin::disagrees(const SolvedLink& solved, const Bundle& other) const {
  const double rate_Bps = links_[other.bottleneck].rate_Bps;
  if (solved.share_Bps > 0 && rate_Bps > solved.share_Bps * (1 + equal_rates)) return true;
  if (other.bottleneck != solved.link)
    return solved.left_Bps < -equal_rates * links_[solved.link].bandwidth_Bps;
  return solved.left_Bps > equal_rates * links_[solved.link].bandwidth_Bps ||
         solved.fastest_Bps > rate_Bps * (1 + equal_rates);
}

bool MaxMin::add_who_disagrees() {
  bool added = false;
  for (std::size_t i = 0, count = solved_links_.size(); i < count; ++i) {
    const SolvedLink& solved = solved_links_[i];
    for (const Crossing& crossing : links_[solved.link].crossings) {
      const Bundle& other = bundles_[crossing.bundle];
      if (other.solve_place != none || !disagrees(solved, other)) continue;
      added |= add_to_solve(solved.link);
      break;
    }
  }
  return added;
}

void MaxMin::take_solution(double now_s) {
  for (const SolvedBundle& solved : solved_bundles_) {
    Bundle& bundle = bundles_[solved.bundle];
    bundle.solve_place = none;
    const std::uint32_t before = bundle.bottleneck;
    if (before == solved.bottleneck) continue;
    detach(solved.bundle, now_s);
    if (before != none) schedule(before);
    attach(solved.bundle, solved.bottleneck, now_s);
  }
  for (const SolvedBundle& solved : solved_bundles_) set_rate(solved.bottleneck, solved.rate_Bps, now_s);
  for (const SolvedLink& solved : solved_links_) links_[solved.link].solve_place = none;
  // Links that one bundle alone crosses, which decide its rate or have promised too much.
  for (const SolvedBundle& solved : solved_bundles_)
    for (const Use& use : uses_of(bundles_[solved.bundle])) {
      const Link& link = links_[use.link];
      if (link.crossings.size() == 1 && (use.link == solved.bottleneck || link.share_Bps() < link.floor_Bps))
        solved_links_.push_back({use.link, 0, 0, 0, 0});
    }
  for (const SolvedLink& solved : solved_links_) find_alone(solved.link);
  for (const SolvedLink& solved : solved_links_) promise_rate_unless_alone(solved.link);
  for (const SolvedLink& solved : solved_links_)
    if (links_[solved.link].clock.empty() && !keeps_floor(solved.link)) make_not_alone(solved.link);
  for (const SolvedLink& solved : solved_links_) make_simple(solved.link);
  solved_bundles_.clear();
  solved_links_.clear();
}

/// Whether all bundles that cross a bottleneck belong to it, and none of them crosses another bottleneck.
void MaxMin::find_alone(std::uint32_t l) {
  Link& link = links_[l];
  if (link.clock.empty()) return;
  link.alone = link.clock.size() == link.crossings.size();
  for (const Crossing& crossing : link.crossings)
    for (const Use& use : uses_of(bundles_[crossing.bundle])) {
      Link& other = links_[use.link];
      if (use.link == l || other.clock.empty()) continue;
      link.alone = other.alone = false;
      other.limit_Bps = other.rate_Bps;
    }
}

/// A bottleneck whose rate does not follow from this link alone promises exactly that rate.
void MaxMin::promise_rate_unless_alone(std::uint32_t l) {
  Link& link = links_[l];
  if (link.clock.empty()) return;
  link.alone = link.alone && link.share_Bps() <= least_other_share_Bps(l) * (1 + equal_rates);
  if (!link.alone) promise(l, link.rate_Bps);
}

/// Whether a link that is nobody's bottleneck offers each flow what it may take.
bool MaxMin::keeps_floor(std::uint32_t l) {
  return links_[l].share_Bps() >= links_[l].floor_Bps || lower_floor(l);
}

/// A link may become full although it is nobody's bottleneck: then the rates of the bundles that cross it
/// depend on each other.
void MaxMin::make_not_alone(std::uint32_t l) {
  for (const Crossing& crossing : links_[l].crossings) {
    Link& bottleneck = links_[bundles_[crossing.bundle].bottleneck];
    bottleneck.alone = false;
    bottleneck.limit_Bps = bottleneck.rate_Bps;
  }
}

/// From now on, the rate of a bottleneck's flows follows from this link alone, as long as all their other
/// links keep their floors.
void MaxMin::make_simple(std::uint32_t l) {
  Link& link = links_[l];
  if (link.clock.empty()) return;
  for (const Crossing& crossing : link.crossings)
    for (const Use& use : uses_of(bundles_[crossing.bundle]))
      if (link.alone && use.link != l && !keeps_floor(use.link)) link.alone = false;
  link.alone = link.alone && raise_limit(l);
  if (!link.alone) promise(l, link.rate_Bps);
}

}  // namespace convoy::replays
