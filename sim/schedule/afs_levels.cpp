// SPDX-License-Identifier: MIT
#include "sim/schedule/afs_levels.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace convoy::inline schedule {
namespace {

/// The first number of GPUs after `from` at which a gain is below `level`, or all useful GPUs if there is
/// none.
std::uint32_t first_below(const std::vector<double>& gains, std::uint32_t from, double level) {
  std::uint32_t w = from + 1;
  while (w < gains.size() && gains[w] >= level) ++w;
  return w;
}

}  // namespace

AfsGains::AfsGains(const OfferCurve& curve) {
  constexpr double rounding = 1e-9;
  for (std::uint32_t w = 0; w < curve.useful(); ++w) {
    const double now = curve.reached[w], next = curve.reached[w + 1];
    over_next.push_back((next - now) / next);
    over_own.push_back(now > 0 ? (next - now) / now : std::numeric_limits<double>::infinity());
    // On a straight line, as between two measured numbers of GPUs, this is the same quotient as that of
    // over_next with one GPU less: rounding must not make it smaller.
    if (w > 0 && over_own[w] < over_next[w - 1] && over_own[w] >= over_next[w - 1] * (1 - rounding))
      over_own[w] = over_next[w - 1];
  }
}

bool AfsLevels::Rank::operator<(const Rank& other) const {
  return std::tie(waiting, length_s, left_images, job) <
         std::tie(other.waiting, other.length_s, other.left_images, other.job);
}

void AfsLevels::insert(std::size_t job) {
  const auto [found, added] = group_of_curve_.emplace(offers_[job].curve.get(), groups_.size());
  if (added) groups_.push_back({AfsGains(*offers_[job].curve), {}, {}});
  group_of_.resize(std::max(group_of_.size(), job + 1));
  group_of_[job] = found->second;
  groups_[found->second].jobs.insert({offers_[job].left_images, job});
}

void AfsLevels::erase(std::size_t job) {
  groups_[group_of_[job]].jobs.erase({offers_[job].left_images, job});
}

void AfsLevels::change(std::size_t job, double left_images) {
  groups_[group_of_[job]].jobs.change({offers_[job].left_images, job}, left_images);
  offers_[job].left_images = left_images;
}

AfsLevels::Rank AfsLevels::rank(std::size_t job, std::uint32_t gpus) const {
  const Offer& offer = offers_[job];
  return {gpus == 0, offer.length_s(std::max(1u, gpus)), offer.left_images, job};
}

AfsLevels::Level AfsLevels::next_level() const {
  Level level;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const Group& group = groups_[g];
    for (std::size_t s = 0; s < group.stretches.size(); ++s) {
      const Stretch& stretch = group.stretches[s];
      if (stretch.gpus == group.gains.over_next.size()) continue;
      const double gain = group.gains.over_next[stretch.gpus];
      if (gain < level.gain) continue;
      const Rank last = rank(group.job(stretch.end - 1), stretch.gpus);
      if (gain > level.gain || level.longest < last) level = {gain, g, s, last};
    }
  }
  return level;
}

std::vector<AfsLevels::Move> AfsLevels::moves_at(const Level& level) const {
  std::vector<Move> moves;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const Group& group = groups_[g];
    std::size_t begin = 0;
    for (std::size_t s = 0; s < group.stretches.size(); begin = group.stretches[s++].end) {
      const auto [end, gpus] = group.stretches[s];
      if (gpus == group.gains.over_own.size() || group.gains.over_own[gpus] < level.gain) continue;
      const auto jobs = group.jobs.entries().begin();
      const auto first = jobs + static_cast<std::ptrdiff_t>(begin);
      const auto shorter = std::partition_point(
          first, jobs + static_cast<std::ptrdiff_t>(end),
          [&, on = gpus](const JobOrder::Entry& entry) { return rank(entry.job, on) < level.longest; });
      const std::size_t count = static_cast<std::size_t>(shorter - first);
      if (count == 0) continue;
      moves.push_back(
          {g, s, begin, begin + count, gpus, first_below(group.gains.over_own, gpus, level.gain)});
    }
  }
  const Group& group = groups_[level.group];
  const auto [end, gpus] = group.stretches[level.stretch];
  moves.push_back(
      {level.group, level.stretch, end - 1, end, gpus, first_below(group.gains.over_next, gpus, level.gain)});
  return moves;
}

void AfsLevels::Group::append(std::size_t end, std::uint32_t gpus) {
  if (end == (stretches.empty() ? 0 : stretches.back().end)) return;
  if (!stretches.empty() && stretches.back().gpus == gpus)
    stretches.back().end = end;
  else
    stretches.push_back({end, gpus});
}

void AfsLevels::carry_out(std::vector<Move> moves) {
  std::sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) {
    return std::tie(a.group, a.begin) < std::tie(b.group, b.begin);
  });
  for (auto move = moves.begin(); move != moves.end();) {
    const std::size_t g = move->group;
    const std::vector<Stretch> before = std::exchange(groups_[g].stretches, {});
    for (std::size_t s = 0; s < before.size(); ++s) {
      for (; move != moves.end() && move->group == g && move->stretch == s; ++move)
        groups_[g].append(move->end, move->to);
      groups_[g].append(before[s].end, before[s].gpus);
    }
  }
}

void AfsLevels::give(std::size_t job, std::uint32_t gpus) {
  if (gpus == 0) return;
  if (offers_[job].gpus == 0) given_.push_back(job);
  offers_[job].gpus += gpus;
}

void AfsLevels::give_stretches() {
  for (const Group& group : groups_) {
    std::size_t i = 0;
    for (const Stretch& stretch : group.stretches) {
      for (; stretch.gpus > 0 && i < stretch.end; ++i) give(group.job(i), stretch.gpus);
      i = stretch.end;
    }
  }
}

void AfsLevels::give_in_order(std::vector<Move> moves, std::uint32_t gpus) {
  const auto next_rank = [&](std::size_t m) {
    return rank(groups_[moves[m].group].job(moves[m].begin), moves[m].from);
  };
  std::vector<Rank> next;  // by move: those that are not done
  for (std::size_t m = 0; m < moves.size(); ++m) next.push_back(next_rank(m));
  while (gpus > 0 && !moves.empty()) {
    const std::size_t m = static_cast<std::size_t>(std::min_element(next.begin(), next.end()) - next.begin());
    Move& move = moves[m];
    const std::uint32_t given = std::min(gpus, move.to - move.from);
    give(next[m].job, given);
    gpus -= given;
    if (++move.begin < move.end) {
      next[m] = next_rank(m);
    } else {
      moves.erase(moves.begin() + static_cast<std::ptrdiff_t>(m));
      next.erase(next.begin() + static_cast<std::ptrdiff_t>(m));
    }
  }
}

std::vector<std::size_t> AfsLevels::share(std::uint32_t gpus) {
  for (Group& group : groups_) {
    group.stretches.clear();
    group.append(group.jobs.entries().size(), 0);
  }
  for (;;) {
    const Level level = next_level();
    const std::vector<Move> moves = level.gain < 0 ? std::vector<Move>{} : moves_at(level);
    std::uint64_t needed = 0;
    for (const Move& move : moves) needed += (move.end - move.begin) * (move.to - move.from);
    if (moves.empty() || needed > gpus) {
      give_stretches();
      give_in_order(moves, gpus);
      return std::exchange(given_, {});
    }
    carry_out(moves);
    gpus -= static_cast<std::uint32_t>(needed);
  }
}

}  // namespace convoy::schedule
