// SPDX-License-Identifier: MIT
#include "sim/schedule/afs_order.h"

#include <algorithm>
#include <limits>

namespace convoy {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

}  // namespace

AfsOrder::AfsOrder(std::vector<Offer>& offers) : offers_(offers), jobs_(offers.size()) {
  while (leaves_ < offers.size()) leaves_ *= 2;
  tree_.assign(2 * leaves_, none());
  for (std::size_t j = 0; j < offers.size(); ++j) {
    look_at(j);
    set_leaf(j);
  }
  for (std::size_t node = leaves_; node-- > 1;) tree_[node] = both(tree_[2 * node], tree_[2 * node + 1]);
}

void AfsOrder::look_at(std::size_t job) {
  const Offer& offer = offers_[job];
  Job& seen = jobs_[job];
  seen = {!offer.full(), offer.gpus == 0};
  if (!seen.open) return;
  const double now = offer.reached[offer.gpus], next = offer.reached[offer.gpus + 1];
  seen.length_s = offer.length_s(std::max(1u, offer.gpus));
  seen.gain_over_next = (next - now) / next;
  seen.gain_over_own = (next - now) / now;
}

AfsOrder::Bounds AfsOrder::none() { return {infinite, infinite, -infinite, -infinite, -infinite}; }

AfsOrder::Bounds AfsOrder::both(const Bounds& a, const Bounds& b) {
  return {std::min(a.shortest_waiting_s, b.shortest_waiting_s), std::min(a.shortest_s, b.shortest_s),
          std::max(a.longest_s, b.longest_s), std::max(a.most_over_next, b.most_over_next),
          std::max(a.most_over_own, b.most_over_own)};
}

void AfsOrder::set_leaf(std::size_t job) {
  const Job& seen = jobs_[job];
  Bounds& leaf = tree_[leaves_ + job];
  leaf = none();
  if (!seen.open) return;
  leaf.most_over_next = seen.gain_over_next;
  if (seen.waiting) {
    leaf.shortest_waiting_s = seen.length_s;
    leaf.longest_s = infinite;
  } else {
    leaf.shortest_s = leaf.longest_s = seen.length_s;
    leaf.most_over_own = seen.gain_over_own;
  }
}

bool AfsOrder::second_preferred(const Job& first, const Job& second) {
  if (first.waiting && second.waiting) return second.length_s < first.length_s;
  const bool second_is_shorter = !second.waiting && (first.waiting || second.length_s < first.length_s);
  return second_is_shorter ? second.gain_over_own >= first.gain_over_next
                           : second.gain_over_next > first.gain_over_own;
}

bool AfsOrder::possible(const Job& first, const Bounds& bounds) {
  if (first.waiting)
    return bounds.shortest_waiting_s < first.length_s || bounds.most_over_own >= first.gain_over_next;
  return (bounds.shortest_s < first.length_s && bounds.most_over_own >= first.gain_over_next) ||
         (bounds.longest_s >= first.length_s && bounds.most_over_next > first.gain_over_own);
}

std::size_t AfsOrder::find(const Job* first, std::size_t begin) const {
  return begin < jobs_.size() ? find_in(first, begin, 1, 0, leaves_) : jobs_.size();
}

std::size_t AfsOrder::find_in(const Job* first, std::size_t begin, std::size_t node, std::size_t from,
                              std::size_t size) const {
  if (from + size <= begin || from >= jobs_.size()) return jobs_.size();
  const Bounds& bounds = tree_[node];
  if (bounds.longest_s == -infinite || (first && !possible(*first, bounds))) return jobs_.size();
  if (size == 1) return !first || second_preferred(*first, jobs_[from]) ? from : jobs_.size();
  const std::size_t half = size / 2;
  const std::size_t left = find_in(first, begin, 2 * node, from, half);
  return left < jobs_.size() ? left : find_in(first, begin, 2 * node + 1, from + half, half);
}

void AfsOrder::extend_chain(std::size_t begin) {
  std::size_t next = find(chain_.empty() ? nullptr : &jobs_[chain_.back()], begin);
  while (next < jobs_.size()) {
    chain_.push_back(next);
    next = find(&jobs_[next], next + 1);
  }
}

void AfsOrder::share(std::uint32_t gpus) {
  for (std::size_t job = 0; gpus > 0; --gpus) {
    extend_chain(job);
    if (chain_.empty()) return;
    job = chain_.back();
    ++offers_[job].gpus;
    look_at(job);
    set_leaf(job);
    for (std::size_t node = (leaves_ + job) / 2; node > 0; node /= 2)
      tree_[node] = both(tree_[2 * node], tree_[2 * node + 1]);
    chain_.pop_back();  // nobody before the job has changed: the chain up to there stands
  }
}

}  // namespace convoy
