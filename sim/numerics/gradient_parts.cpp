// SPDX-License-Identifier: MIT
#include "sim/numerics/gradient_parts.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace convoy::inline numerics {

GradientParts united(const GradientParts& a, const GradientParts& b) {
  GradientParts both;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

std::optional<TwoParts> two_to_add_up(const ListedGradients& all, const GradientParts& whole) {
  std::optional<TwoParts> best;
  std::pair<int, std::size_t> of_best;  // summands of the graph, and parts
  for (const auto& [a, a_is_summand] : all)
    for (const auto& [b, b_is_summand] : all) {
      if (&a == &b) break;
      GradientParts both = united(a, b);
      if (both.size() != a.size() + b.size() || all.contains(both)) continue;
      const std::pair of_both{a_is_summand + b_is_summand, both.size()};
      if (best && of_both <= of_best) continue;
      if (!std::includes(whole.begin(), whole.end(), both.begin(), both.end())) continue;
      best = {a, b, std::move(both)}, of_best = of_both;
    }
  return best;
}

GradientContents::GradientContents(const TrainingGraph& graph, const NetworkIndex& index)
    : has(graph), whole(graph.model.layers.size()) {
  std::vector<OpId> own(whole.size());
  for (OpId op = 0; op < graph.operations.size(); ++op) {
    const Operation& operation = graph.operations[op];
    if (operation.phase != Phase::data_gradient) continue;
    if (operation.part == OperationPart::loss) whole[operation.layer] = {{op, 0}};
    if (operation.part == OperationPart::layer) own[operation.layer] = op;
  }
  for (auto l = static_cast<std::uint32_t>(whole.size()); l-- > 0;)
    for (const Slot& reader : index.readers_of(l)) {
      GradientParts more;
      if (has.data_gradient[reader.first]) {
        more = {{own[reader.first], ways_.longer(0, reader)}};
      } else {
        for (const Maker& maker : whole[reader.first])
          more.emplace_back(maker.first, ways_.longer(maker.second, reader));
        std::sort(more.begin(), more.end());
      }
      whole[l] = united(whole[l], more);
    }
}

GradientParts GradientContents::handed_on(const GradientParts& parts, const Slot& input) const {
  GradientParts of_input;
  for (const Maker& maker : parts) of_input.emplace_back(maker.first, ways_.find(maker.second, input));
  std::sort(of_input.begin(), of_input.end());
  return of_input;
}

GradientParts GradientContents::through(const GradientParts& parts, const Slot& input) const {
  GradientParts of_output;
  for (const Maker& maker : parts)
    if (maker.second != 0 && ways_.last(maker.second).by == input)
      of_output.emplace_back(maker.first, ways_.last(maker.second).before);
  std::sort(of_output.begin(), of_output.end());
  return of_output;
}

std::optional<GradientParts> GradientContents::taken_from(const GradientParts& parts,
                                                          const Slot& input) const {
  GradientParts of_output = through(parts, input);
  if (of_output.size() < parts.size()) return std::nullopt;
  return of_output;
}

}  // namespace convoy::numerics
