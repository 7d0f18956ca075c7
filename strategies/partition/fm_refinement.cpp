// SPDX-License-Identifier: MIT
#include "strategies/partition/fm_refinement.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace convoy::inline partition {
namespace {

constexpr int max_passes = 12;
constexpr std::size_t max_vain_moves = 400;  ///< without a new best, before a pass gives up
constexpr std::uint32_t bucket_size = 32;
constexpr double rounding = 1e-9;  ///< of a limit: what sums of weights may be off by
constexpr double no_gain = -std::numeric_limits<double>::infinity();
constexpr double unknown_gain = std::numeric_limits<double>::infinity();

}  // namespace

FmRefinement::FmRefinement(const LayeredNets& graph, Parts& parts, std::vector<double> limits)
    : graph_(graph),
      parts_(parts),
      limits_(std::move(limits)),
      count_(limits_.size()),
      vertices_(graph.weight.size()),
      nets_of_(vertices_),
      nets_of_layer_(graph.members.size()),
      pins_in_(graph.nets.size() * count_, 0),
      layer_in_(graph.members.size() * count_, 0),
      leaving_(vertices_, 0.0),
      entering_(vertices_ * count_, 0.0),
      part_weight_(count_, 0.0),
      locked_(vertices_, 0),
      above_(count_, 0),
      best_(count_ * (vertices_ / bucket_size + 1)),
      known_(best_.size(), 0),
      most_(count_, unknown_gain),
      change_(graph.members.size()) {
  count_pins();
  find_gains();
  cost_ = connectivity(graph, parts, static_cast<Part>(count_));
}

void FmRefinement::count_pins() {
  for (std::uint32_t v = 0; v < vertices_; ++v) {
    part_weight_[parts_[v]] += graph_.weight[v];
    ++layer_in(graph_.layer[v], parts_[v]);
  }
  for (std::uint32_t n = 0; n < graph_.nets.size(); ++n) {
    for (const std::uint32_t v : graph_.nets[n].pins) {
      nets_of_[v].push_back(n);
      ++pins_in(n, parts_[v]);
    }
    for (const std::uint32_t layer : graph_.nets[n].layers) {
      nets_of_layer_[layer].push_back(n);
      for (std::uint32_t p = 0; p < count_; ++p) pins_in(n, p) += layer_in(layer, p);
    }
  }
}

void FmRefinement::find_gains() {
  for (std::uint32_t n = 0; n < graph_.nets.size(); ++n)
    for (const std::uint32_t v : graph_.nets[n].pins) {
      const double cost = graph_.nets[n].cost;
      if (pins_in(n, parts_[v]) == 1) leaving_[v] += cost;
      for (std::uint32_t p = 0; p < count_; ++p)
        if (pins_in(n, p) == 0) entering_[p * vertices_ + v] += cost;
    }
  std::vector<double> leaving(count_), entering(count_);
  for (std::uint32_t layer = 0; layer < nets_of_layer_.size(); ++layer) {
    if (nets_of_layer_[layer].empty()) continue;
    std::fill(leaving.begin(), leaving.end(), 0.0);
    std::fill(entering.begin(), entering.end(), 0.0);
    for (const std::uint32_t n : nets_of_layer_[layer])
      for (std::uint32_t p = 0; p < count_; ++p) {
        if (pins_in(n, p) == 0) entering[p] += graph_.nets[n].cost;
        if (pins_in(n, p) == 1 && layer_in(layer, p) == 1) leaving[p] += graph_.nets[n].cost;
      }
    for (const std::uint32_t v : graph_.members[layer]) {
      leaving_[v] += leaving[parts_[v]];
      for (std::uint32_t p = 0; p < count_; ++p) entering_[p * vertices_ + v] += entering[p];
    }
  }
}

FmRefinement::Score FmRefinement::score() const {
  double excess = 0;
  for (std::uint32_t p = 0; p < count_; ++p) excess += std::max(0.0, part_weight_[p] - limits_[p]);
  return {excess, cost_};
}

void FmRefinement::forget_gains() {
  std::fill(known_.begin(), known_.end(), 0);
  std::fill(most_.begin(), most_.end(), unknown_gain);
}

double FmRefinement::mark_overloaded() {
  double most = 0;
  std::vector<std::uint32_t> changed;
  for (std::uint32_t p = 0; p < count_; ++p) {
    const double over = part_weight_[p] - limits_[p];
    if ((over > 0) != (above_[p] != 0)) changed.push_back(p);
    most = std::max(most, over);
  }
  const bool was_overloaded = std::exchange(overloaded_, most > 0);
  for (const std::uint32_t p : changed) {
    above_[p] = above_[p] != 0 ? 0 : 1;
    if (was_overloaded == overloaded_) change_candidates(p);
  }
  if (was_overloaded != overloaded_) forget_gains();
  return most;
}

/// Vertices of `part` may leave it from now on, or no longer: buckets take them in, or forget a best move
/// that may have been theirs.
void FmRefinement::change_candidates(std::uint32_t part) {
  const std::size_t buckets = best_.size() / count_;
  for (std::uint32_t v = 0; v < vertices_; ++v) {
    if (parts_[v] != part || locked_[v] != 0) continue;
    for (std::uint32_t to = 0; to < count_; ++to) {
      if (to == part) continue;
      const std::size_t at = to * buckets + v / bucket_size;
      const double of_this = gain(v, to);
      if (above_[part] != 0) {
        most_[to] = std::max(most_[to], of_this);
        best_[at].gain = std::max(best_[at].gain, of_this);
        best_[at].lightest = std::min(best_[at].lightest, graph_.weight[v]);
      } else if (of_this >= best_[at].gain) {
        known_[at] = 0;
      }
    }
  }
}

bool FmRefinement::may_leave(std::uint32_t vertex) const {
  return (locked_[vertex] == 0) & (!overloaded_ || above_[parts_[vertex]] != 0);
}

/// Into a part with room, or out of a part above its limit into one that stays less above its own.
bool FmRefinement::allowed(std::uint32_t vertex, std::uint32_t to) const {
  const double weight = graph_.weight[vertex], after = part_weight_[to] + weight - limits_[to];
  const double over = part_weight_[parts_[vertex]] - limits_[parts_[vertex]];
  return after <= 0 || weight == 0 || (over > 0 && after < over);
}

const FmRefinement::Best& FmRefinement::best_of(std::uint32_t bucket, std::uint32_t to) {
  const std::size_t at = to * (best_.size() / count_) + bucket;
  Best& best = best_[at];
  if (known_[at]) return best;
  known_[at] = 1;
  const double* const entering = &entering_[to * vertices_];
  double most = no_gain, lightest = std::numeric_limits<double>::infinity();
  const auto end = static_cast<std::uint32_t>(std::min<std::size_t>(vertices_, (bucket + 1) * bucket_size));
  for (std::uint32_t v = bucket * bucket_size; v < end; ++v) {
    // All are computed and most are used: without branches this is the quickest.
    const bool counts = (parts_[v] != to) & may_leave(v);
    most = std::max(most, counts ? leaving_[v] - entering[v] : no_gain);
    lightest = std::min(lightest, counts ? graph_.weight[v] : std::numeric_limits<double>::infinity());
  }
  return best = {most, lightest};
}

/// The vertex stays where it goes next, so that its bucket has to look anew for parts into which its move was
/// the best one. `lightest` may be lighter than what is left: then the bucket is looked into in vain.
void FmRefinement::lock(std::uint32_t vertex) {
  const std::size_t buckets = best_.size() / count_;
  for (std::uint32_t p = 0; p < count_; ++p) {
    const std::size_t at = p * buckets + vertex / bucket_size;
    if (known_[at] && gain(vertex, p) >= best_[at].gain) known_[at] = 0;
  }
  locked_[vertex] = 1;
}

void FmRefinement::look_into(std::uint32_t bucket, std::uint32_t to, Move& best) const {
  const auto end = static_cast<std::uint32_t>(std::min<std::size_t>(vertices_, (bucket + 1) * bucket_size));
  for (std::uint32_t v = bucket * bucket_size; v < end; ++v) {
    if (parts_[v] == to || !may_leave(v)) continue;
    const double of_this = gain(v, to);
    const bool better = of_this > best.gain ||
                        (of_this == best.gain && (v < best.vertex || (v == best.vertex && to < best.to)));
    if (better && allowed(v, to)) best = {v, to, of_this};
  }
}

void FmRefinement::look_at_part(std::uint32_t to, double over, Move& best) {
  const auto buckets = static_cast<std::uint32_t>(best_.size() / count_);
  const double room = (limits_[to] - part_weight_[to] + over) + rounding * limits_[to];
  double most = no_gain;
  for (std::uint32_t b = 0; b < buckets; ++b) {
    const Best& of_bucket = best_of(b, to);
    most = std::max(most, of_bucket.gain);
    if (of_bucket.gain == no_gain || of_bucket.gain < best.gain) continue;
    if (of_bucket.gain == best.gain && b * bucket_size > best.vertex) continue;
    if (of_bucket.lightest <= room || of_bucket.lightest == 0) look_into(b, to, best);
  }
  most_[to] = most;
}

/// The move of the greatest gain; of equal ones that of the first vertex, into the first part. Begins with
/// the part that promises most, so that few others have to be looked at.
bool FmRefinement::best_move(Move& best) {
  best = {static_cast<std::uint32_t>(vertices_), 0, no_gain};
  const double over = mark_overloaded();
  const auto first = static_cast<std::uint32_t>(std::max_element(most_.begin(), most_.end()) - most_.begin());
  look_at_part(first, over, best);
  for (std::uint32_t p = 0; p < count_; ++p)
    if (p != first && most_[p] >= best.gain) look_at_part(p, over, best);
  return best.gain != no_gain;
}

/// A gain has changed: what its bucket knows follows, or is forgotten where the best of it may now be
/// another's.
void FmRefinement::revise(std::uint32_t vertex, std::uint32_t part, double before) {
  if (parts_[vertex] == part || !may_leave(vertex)) return;
  const double now = gain(vertex, part);
  most_[part] = std::max(most_[part], now);
  const std::size_t at = part * (best_.size() / count_) + vertex / bucket_size;
  if (!known_[at]) return;
  if (now >= best_[at].gain)
    best_[at].gain = now;
  else if (before == best_[at].gain)
    known_[at] = 0;
}

void FmRefinement::change_leaving(std::uint32_t vertex, double by) {
  const double before = leaving_[vertex];
  leaving_[vertex] += by;
  for (std::uint32_t p = 0; p < count_; ++p) revise(vertex, p, before - entering_[p * vertices_ + vertex]);
}

void FmRefinement::change_entering(std::uint32_t vertex, std::uint32_t part, double by) {
  const double before = gain(vertex, part);
  entering_[part * vertices_ + vertex] += by;
  revise(vertex, part, before);
}

std::uint32_t FmRefinement::only_member(std::uint32_t layer, std::uint32_t part, std::uint32_t other) const {
  for (const std::uint32_t v : graph_.members[layer])
    if (parts_[v] == part && v != other) return v;
  return other;
}

void FmRefinement::move_in_net(std::uint32_t net, std::uint32_t vertex, std::uint32_t from,
                               std::uint32_t to) {
  const std::uint32_t left = pins_in(net, from), there = pins_in(net, to);
  if (left > 1 && there > 2) return;
  const double cost = graph_.nets[net].cost;
  if (there == 1) leaving_[vertex] += cost;
  for (const std::uint32_t pin : graph_.nets[net].pins) {
    if (left == 0) change_entering(pin, from, cost);
    if (left == 1 && parts_[pin] == from) change_leaving(pin, cost);
    if (there == 1) change_entering(pin, to, -cost);
    if (there == 2 && pin != vertex && parts_[pin] == to) change_leaving(pin, -cost);
  }
  for (const std::uint32_t layer : graph_.nets[net].layers) {
    LayerChange& change = change_[layer];
    const std::uint32_t others = layer_in(layer, to) - (graph_.layer[vertex] == layer ? 1 : 0);
    if (left == 0) change.entering_from += cost;
    if (left == 1 && layer_in(layer, from) == 1) change.leaving_from += cost;
    if (there == 1) change.entering_to -= cost;
    if (there == 2 && others == 1) change.leaving_to -= cost;
    changed_.push_back(layer);
  }
}

void FmRefinement::apply_changes(std::uint32_t vertex, std::uint32_t from, std::uint32_t to) {
  for (const std::uint32_t layer : changed_) {
    const LayerChange change = std::exchange(change_[layer], LayerChange{});
    if (change.entering_from != 0)
      for (const std::uint32_t v : graph_.members[layer]) change_entering(v, from, change.entering_from);
    if (change.entering_to != 0)
      for (const std::uint32_t v : graph_.members[layer]) change_entering(v, to, change.entering_to);
    if (change.leaving_from != 0)
      change_leaving(only_member(layer, from, static_cast<std::uint32_t>(vertices_)), change.leaving_from);
    if (change.leaving_to != 0) change_leaving(only_member(layer, to, vertex), change.leaving_to);
  }
  changed_.clear();
}

void FmRefinement::move(std::uint32_t vertex, std::uint32_t to) {
  const std::uint32_t from = parts_[vertex], layer = graph_.layer[vertex];
  cost_ -= gain(vertex, to);
  part_weight_[from] -= graph_.weight[vertex];
  part_weight_[to] += graph_.weight[vertex];
  parts_[vertex] = to;
  leaving_[vertex] = 0;
  --layer_in(layer, from);
  ++layer_in(layer, to);
  for (const std::vector<std::uint32_t>* nets : {&nets_of_[vertex], &nets_of_layer_[layer]})
    for (const std::uint32_t n : *nets) {
      --pins_in(n, from);
      ++pins_in(n, to);
      move_in_net(n, vertex, from, to);
    }
  apply_changes(vertex, from, to);
}

bool FmRefinement::pass() {
  const Score start = score();
  Score best = start;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> undo;  // vertex and where it came from
  std::size_t kept = 0;
  std::fill(locked_.begin(), locked_.end(), 0);
  forget_gains();
  for (Move next{}; undo.size() - kept < max_vain_moves && best_move(next);) {
    undo.emplace_back(next.vertex, parts_[next.vertex]);
    lock(next.vertex);
    move(next.vertex, next.to);
    if (const Score now = score(); now < best) best = now, kept = undo.size();
  }
  while (undo.size() > kept) {
    move(undo.back().first, undo.back().second);
    undo.pop_back();
  }
  return best < start;
}

void FmRefinement::run() {
  for (int i = 0; i < max_passes && pass(); ++i) {
  }
}

}  // namespace convoy::partition
