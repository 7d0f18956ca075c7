// SPDX-License-Identifier: MIT
#include "sim/lowering/stage_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace convoy::inline lowering {

StageMessages::StageMessages(std::vector<StageEdge> edges, const StagedPasses& passes, Fidelity fidelity,
                             Plan& plan)
    : edges_(std::move(edges)), passes_(passes), fidelity_(fidelity), plan_(plan) {
  if (!passes_.endless) return;
  for (std::uint32_t s = 0; s + 1 < passes_.stages.size(); ++s)
    if (std::none_of(edges_.begin(), edges_.end(),
                     [&](const StageEdge& edge) { return edge.from == s && edge.to == s + 1; }))
      edges_.push_back({s, s + 1});
}

bool StageMessages::goes(std::size_t edge, std::uint32_t stage, bool backward, bool leaves) const {
  const StageEdge& e = edges_[edge];
  return (passes_.endless || (backward ? e.backward_bytes : e.forward_bytes) > 0) &&
         stage == (backward == leaves ? e.to : e.from);
}

CommId StageMessages::of(std::size_t edge, const Pass& pass) {
  const auto [it, fresh] = messages_.try_emplace({edge, pass.backward, pass.micro_batch});
  if (!fresh) return it->second;
  const StageEdge& e = edges_[edge];
  const std::uint32_t from = pass.backward ? e.to : e.from, to = pass.backward ? e.from : e.to;
  const std::vector<EndpointId>&senders = devices(from, pass), &receivers = devices(to, pass);
  const auto [pattern, fresh_pattern] =
      patterns_.try_emplace({edge, pass.backward, senders.front(), receivers.front()}, plan_.patterns.size());
  if (fresh_pattern) {
    Pattern pairs{{}, {{{{0, 1}}, {1.0}, 1}}};
    for (std::size_t r = 0; r < senders.size(); ++r) pairs.groups.push_back({senders[r], receivers[r]});
    plan_.patterns.push_back(std::move(pairs));
  }
  plan_.communications.push_back(
      {fmt::format("{} #{}, stage {} to {}", pass.backward ? "gradients" : "activations", pass.micro_batch,
                   from, to),
       static_cast<std::uint32_t>(pattern->second),
       pass.images * (pass.backward ? e.backward_bytes : e.forward_bytes), fidelity_, 0, CommPurpose::other,
       plan_.meaning ? meaning_of(e, pass) : no_meaning});
  return it->second = static_cast<CommId>(plan_.communications.size() - 1);
}

void StageMessages::count_uses(std::vector<double>& uses_per_step) const {
  for (const auto& [key, pattern] : patterns_) {
    const StageEdge& edge = edges_[std::get<0>(key)];
    uses_per_step[pattern] = static_cast<double>(passes_.endless->micro_batches) /
                             static_cast<double>(std::lcm(slot_count(edge.from), slot_count(edge.to)));
  }
}

std::uint32_t StageMessages::meaning_of(const StageEdge& edge, const Pass& pass) {
  CommMeaning meaning;
  meaning.results = pass.backward ? edge.backward : edge.forward;
  meaning.micro_batch = pass.micro_batch;
  meaning.images = {pass.first_image, pass.images};
  plan_.meaning->communications.push_back(std::move(meaning));
  return static_cast<std::uint32_t>(plan_.meaning->communications.size() - 1);
}

}  // namespace convoy::lowering
