// SPDX-License-Identifier: MIT
#include "strategies/partition/fm_refinement.h"

#include <algorithm>

namespace convoy {
namespace {

constexpr int max_passes = 12;
constexpr std::size_t max_vain_moves = 400;  ///< without a new best, before a pass gives up

}  // namespace

FmRefinement::FmRefinement(const Hypergraph& graph, Parts& parts, std::uint32_t count, double limit)
    : graph_(graph),
      parts_(parts),
      count_(count),
      limit_(limit),
      nets_of_(graph.weight.size()),
      pins_in_(graph.nets.size() * count, 0),
      leaving_(graph.weight.size(), 0.0),
      entering_(graph.weight.size() * count, 0.0),
      part_weight_(count, 0.0) {
  for (std::uint32_t n = 0; n < graph.nets.size(); ++n)
    for (const std::uint32_t v : graph.nets[n].pins) {
      nets_of_[v].push_back(n);
      ++pins_in(n, parts[v]);
    }
  for (std::uint32_t v = 0; v < parts.size(); ++v) {
    part_weight_[parts[v]] += graph.weight[v];
    for (const std::uint32_t n : nets_of_[v]) {
      if (pins_in(n, parts[v]) == 1) leaving_[v] += graph.nets[n].cost;
      for (std::uint32_t p = 0; p < count; ++p)
        if (pins_in(n, p) == 0) entering_[v * count + p] += graph.nets[n].cost;
    }
  }
  cost_ = connectivity(graph, parts);
}

double FmRefinement::gain(std::uint32_t vertex, std::uint32_t to) const {
  return leaving_[vertex] - entering_[vertex * count_ + to];
}

FmRefinement::Score FmRefinement::score() const {
  double excess = 0;
  for (const double weight : part_weight_) excess += std::max(0.0, weight - limit_);
  return {excess, cost_};
}

/// Into a part with room, or out of a part above the limit into one that stays below it.
bool FmRefinement::allowed(std::uint32_t vertex, std::uint32_t to) const {
  const double weight = graph_.weight[vertex], after = part_weight_[to] + weight;
  return after <= limit_ || weight == 0 ||
         (part_weight_[parts_[vertex]] > limit_ && after < part_weight_[parts_[vertex]]);
}

bool FmRefinement::best_move(const std::vector<char>& locked, Move& best) const {
  bool found = false;
  const bool overloaded =
      std::any_of(part_weight_.begin(), part_weight_.end(), [&](double w) { return w > limit_; });
  for (std::uint32_t v = 0; v < parts_.size(); ++v) {
    if (locked[v] || (overloaded && part_weight_[parts_[v]] <= limit_)) continue;
    for (std::uint32_t p = 0; p < count_; ++p) {
      if (p == parts_[v] || (found && gain(v, p) <= best.gain) || !allowed(v, p)) continue;
      best = {v, p, gain(v, p)};
      found = true;
    }
  }
  return found;
}

void FmRefinement::move(std::uint32_t vertex, std::uint32_t to) {
  const std::uint32_t from = parts_[vertex];
  cost_ -= gain(vertex, to);
  part_weight_[from] -= graph_.weight[vertex];
  part_weight_[to] += graph_.weight[vertex];
  parts_[vertex] = to;
  leaving_[vertex] = 0;
  for (const std::uint32_t n : nets_of_[vertex]) {
    const double cost = graph_.nets[n].cost;
    const std::uint32_t left = --pins_in(n, from), there = ++pins_in(n, to);
    if (there == 1) leaving_[vertex] += cost;
    if (left > 1 && there > 2) continue;
    for (const std::uint32_t pin : graph_.nets[n].pins) {
      if (left == 0) entering_[pin * count_ + from] += cost;
      if (left == 1 && parts_[pin] == from) leaving_[pin] += cost;
      if (there == 1) entering_[pin * count_ + to] -= cost;
      if (there == 2 && pin != vertex && parts_[pin] == to) leaving_[pin] -= cost;
    }
  }
}

bool FmRefinement::pass() {
  const Score start = score();
  Score best = start;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> undo;  // vertex and where it came from
  std::size_t kept = 0;
  std::vector<char> locked(parts_.size(), 0);
  for (Move next{}; undo.size() - kept < max_vain_moves && best_move(locked, next);) {
    undo.emplace_back(next.vertex, parts_[next.vertex]);
    locked[next.vertex] = 1;
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

}  // namespace convoy
