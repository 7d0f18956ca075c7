// SPDX-License-Identifier: MIT
#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/plan/plan.h"

namespace convoy::inline plans {

std::uint64_t Round::message_count() const {
  if (!all_to_all) return pairs.size();
  std::vector<std::uint32_t> senders, receivers, both;
  for (const AllToAll::Part& part : all_to_all->senders) senders.push_back(part.member);
  for (const AllToAll::Part& part : all_to_all->receivers) receivers.push_back(part.member);
  std::sort(senders.begin(), senders.end());
  std::sort(receivers.begin(), receivers.end());
  std::set_intersection(senders.begin(), senders.end(), receivers.begin(), receivers.end(),
                        std::back_inserter(both));
  return std::uint64_t{senders.size()} * receivers.size() - both.size();
}

double Round::largest_fraction() const {
  const auto largest = [](const std::vector<AllToAll::Part>& parts) {
    double share = 0;
    for (const AllToAll::Part& part : parts) share = std::max(share, part.share);
    return share;
  };
  double fraction = all_to_all ? largest(all_to_all->senders) * largest(all_to_all->receivers) : 0;
  if (rotation) return *std::max_element(rotation->shares.begin(), rotation->shares.end());
  for (const double of_pair : fractions) fraction = std::max(fraction, of_pair);
  return fraction;
}

std::vector<Round> Round::listed() const {
  if (!rotation) return {*this};
  std::vector<Round> rounds;
  for (std::uint32_t k = 0; k < repeat; ++k) {
    Round& round = rounds.emplace_back();
    round.latency_s = latency_s;
    for (std::size_t pair = 0; pair < pairs.size(); ++pair) {
      const double share = rotation->share(pair, k);
      if (share == 0) continue;
      round.pairs.push_back(pairs[pair]);
      round.fractions.push_back(share);
    }
  }
  return rounds;
}

Round Round::reversed() const {
  Round back = *this;
  for (auto& [from, to] : back.pairs) std::swap(from, to);
  if (back.all_to_all) std::swap(back.all_to_all->senders, back.all_to_all->receivers);
  return back;
}

}  // namespace convoy::plans
