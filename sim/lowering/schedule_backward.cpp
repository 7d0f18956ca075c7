// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/lowering/graph_scheduler.h"

namespace convoy::inline lowering {
GraphScheduler::Gradient GraphScheduler::at_output(std::size_t i, Gradient gradient) {
  const std::string name = fmt::format("gradient of {}", model().layers[i].name);
  PlacedTensor held = convert(gradient.held, shardings_[i].output_gradient, name, i, gradient.reader);
  const bool own = gradient.own || held.copies != gradient.held.copies;
  return {std::move(held), own, gradient.reader};
}

void GraphScheduler::backward(std::size_t i) {
  gather_gradient(i);  // of a view, which may lie behind layers of later stages
  std::optional<Gradient>& total = gradient_[stage_of_[i]][i];
  if (!total) return;
  enter(i, true);
  const PlacedTensor gradient = at_output(i, std::move(*total)).held;
  total.reset();
  if (const std::optional<OpId> op = index_.data_gradient(i))
    data_gradient(i, *op, gradient);
  else
    for (std::size_t k = 0; k < shardings_[i].inputs.size(); ++k) {
      PlacedTensor passed = gradient;
      passed.sharding = shardings_[i].inputs[k].gradient;
      contribute(model().layers[i].inputs[k], {passed, false, i}, false);
    }
  if (const std::optional<OpId> op = index_.weight_gradient(i)) {
    const std::uint32_t step = add_step(*op);
    use(gradient, step);
    use_forward_buffers(*op, i, step, shardings_[i].output);
  }
}

void GraphScheduler::gather_gradients(std::uint32_t stage) {
  for (std::size_t i = stage_of_.size(); i-- > 0;)
    if (stage_of_[i] == stage) gather_gradient(i);
}

void GraphScheduler::gather_gradient(std::size_t i) {
  for (std::uint32_t s = stages_; s-- > 0;) {
    if (s == stage_of_[i] || !gradient_[s][i]) continue;
    Gradient there = std::move(*gradient_[s][i]);
    gradient_[s][i].reset();
    if (there.held.sharding.over == Over::partial) there = at_output(i, std::move(there));
    enter(i, true);
    PlacedTensor here = send(there.held, s, static_cast<LayerIndex>(i));
    contribute(static_cast<LayerIndex>(i), {std::move(here), true, there.reader}, false);
  }
}

void GraphScheduler::data_gradient(std::size_t i, OpId op, const PlacedTensor& gradient) {
  const Layer& layer = model().layers[i];
  const bool custom = std::holds_alternative<Custom>(layer.kind);
  const std::uint32_t step = add_step(op);
  use(gradient, step);
  use_forward_buffers(op, i, step, shardings_[i].output);
  std::vector<std::pair<LayerIndex, Gradient>> made;
  std::size_t next = 0;
  const std::vector<std::uint32_t> born = index_.gradients_born_by(op);
  for (std::size_t k = 0; k < layer.inputs.size(); ++k) {
    const LayerIndex input = layer.inputs[k];
    if (!index_.receives_gradient(input)) continue;
    const InputSharding& sharding = shardings_[i].inputs[k];
    // Where the framework computes in place (MXNet's static plan) the gradient that is read becomes this
    // one.
    PlacedTensor held{sharding.gradient, gradient.copies, {}, step};
    if (next < born.size()) held.copies = {add_copy(born[next++], sharding.gradient)};
    for (const std::uint32_t copy : held.copies) live(copy, 2 * step);
    if (sharding.halo) {
      const std::uint32_t rows =
          add_copy(tensor_bytes(input), 0, schedule_.copies[read_[i][k].halo].sharding);
      live(rows, 2 * step);
      const std::uint32_t id = add_halo(
          Kind::halo_back, fmt::format("gradient of {}", model().layers[at(input)].name), i, k, held);
      schedule_.exchanges[id].sources.push_back(rows);
      held.ready.push_back(id);
    }
    made.emplace_back(input, Gradient{std::move(held), true, i});
  }
  for (auto& [input, own] : made) contribute(input, std::move(own), custom);
}

void GraphScheduler::contribute(LayerIndex to, Gradient more, bool sum_is_free) {
  if (!index_.receives_gradient(to)) return;
  const std::size_t i = at(to);
  std::optional<Gradient>& total = gradient_[stage_][i];
  if (!total) {
    total = std::move(more);
    return;
  }
  if (!same(total->held.sharding, more.held.sharding)) {
    total = at_output(i, std::move(*total));
    more = at_output(i, std::move(more));
  }
  if (sum_is_free) {  // in the operation that made the second, which reads the first
    for (const std::uint32_t copy : total->held.copies) live(copy, 2 * more.held.made);
    more.held.ready.insert(more.held.ready.end(), total->held.ready.begin(), total->held.ready.end());
    if (more.held.copies.empty()) more.held.copies = total->held.copies;
    total = std::move(more);
    return;
  }
  const OpId op = index_.sums(i).at(static_cast<std::size_t>(sums_done_[i]++));
  const std::uint32_t step = add_step(op, total->held.sharding);
  use(total->held, step);
  use(more.held, step);
  PlacedTensor sum{total->held.sharding, {}, {}, step};
  if (more.own) {
    sum.copies = more.held.copies;
  } else if (total->own) {
    sum.copies = total->held.copies;
  } else {
    const std::vector<std::uint32_t> born = index_.gradients_born_by(op);
    sum.copies = born.empty() ? more.held.copies : std::vector{add_copy(born.front(), sum.sharding)};
    for (const std::uint32_t copy : sum.copies) live(copy, 2 * step);
  }
  total = Gradient{std::move(sum), true, more.reader};
}

}  // namespace convoy::lowering
