// SPDX-License-Identifier: MIT
#include "strategies/hybrid/spread.h"

#include <algorithm>

namespace convoy {
namespace {

/// @param sent_by(position, step): position on the ring whose share the device at `position` passes on
template <class SentBy>
std::vector<Round> around(const std::vector<std::vector<std::uint32_t>>& rings, const Cut& cut,
                          SentBy sent_by) {
  const std::size_t n = cut.counts.size();
  const auto of_ring = 1.0 / static_cast<double>(rings.size());
  const bool even = std::all_of(cut.counts.begin(), cut.counts.end(),
                                [&](std::int64_t count) { return count == cut.counts.front(); });
  std::vector<Round> rounds;
  for (std::size_t step = 0; step + 1 < n; ++step) {
    Round round{{}, {}, 1};
    for (const std::vector<std::uint32_t>& ring : rings)
      for (std::size_t i = 0; i < n; ++i) {
        const double share = cut.share(ring[sent_by(i, step) % n]);
        if (share == 0) continue;
        round.pairs.emplace_back(ring[i], ring[(i + 1) % n]);
        round.fractions.push_back(share * of_ring);
      }
    if (even) {  // all steps are alike
      round.fractions = {of_ring / static_cast<double>(n)};
      round.repeat = static_cast<std::uint32_t>(n - 1);
      return {round};
    }
    rounds.push_back(std::move(round));
  }
  return rounds;
}

}  // namespace

bool same(const Spread& a, const Spread& b) {
  if (a.over != b.over) return false;
  if (a.cut == b.cut) return true;
  return a.cut->counts == b.cut->counts && a.cut->owner == b.cut->owner;
}

Cut even_images(std::int64_t images, std::size_t devices) {
  const auto n = static_cast<std::int64_t>(devices);
  Cut cut;
  cut.size = images;
  for (std::int64_t d = 0; d < n; ++d) cut.counts.push_back(images / n + (d < images % n ? 1 : 0));
  return cut;
}

Cut even_cut(std::int64_t size, std::size_t devices) {
  Cut cut = even_images(size, devices);
  for (std::uint32_t d = 0; d < devices; ++d)
    cut.owner.insert(cut.owner.end(), static_cast<std::size_t>(cut.counts[d]), d);
  return cut;
}

Cut cut_of(std::vector<std::uint32_t> owner, std::size_t devices) {
  Cut cut;
  cut.size = static_cast<std::int64_t>(owner.size());
  cut.counts.assign(devices, 0);
  for (const std::uint32_t d : owner) ++cut.counts[d];
  cut.owner = std::move(owner);
  return cut;
}

Traffic moved(const Spread& from, const Spread& to, std::size_t devices) {
  Traffic traffic(devices, std::vector<double>(devices, 0.0));
  if (from.over == to.over) {
    const double index = 1 / static_cast<double>(from.cut->size);
    for (std::size_t i = 0; i < from.cut->owner.size(); ++i)
      if (from.cut->owner[i] != to.cut->owner[i]) traffic[from.cut->owner[i]][to.cut->owner[i]] += index;
    return traffic;
  }
  for (std::size_t i = 0; i < devices; ++i)
    for (std::size_t j = 0; j < devices; ++j)
      if (i != j) traffic[i][j] = from.share(i) * to.share(j);
  return traffic;
}

std::vector<Round> at_once(const Traffic& traffic) {
  Round round{{}, {}, 1};
  for (std::uint32_t i = 0; i < traffic.size(); ++i)
    for (std::uint32_t j = 0; j < traffic.size(); ++j)
      if (traffic[i][j] > 0) {
        round.pairs.emplace_back(i, j);
        round.fractions.push_back(traffic[i][j]);
      }
  if (round.pairs.empty()) return {};
  return {round};
}

std::vector<Round> ring_all_gather(const std::vector<std::vector<std::uint32_t>>& rings, const Cut& cut) {
  const std::size_t n = cut.counts.size();
  return around(rings, cut, [n](std::size_t i, std::size_t step) { return i + n - step; });
}

std::vector<Round> ring_reduce_scatter(const std::vector<std::vector<std::uint32_t>>& rings, const Cut& cut) {
  const std::size_t n = cut.counts.size();
  // The sum that ends on position q begins on q + 1.
  return around(rings, cut, [n](std::size_t i, std::size_t step) { return i + 2 * n - 1 - step; });
}

}  // namespace convoy
