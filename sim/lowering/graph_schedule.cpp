// SPDX-License-Identifier: MIT
#include "sim/lowering/graph_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/lowering/graph_scheduler.h"

namespace convoy::inline lowering {
GraphScheduler::GraphScheduler(const TrainingGraph& graph, const std::vector<LayerSharding>& shardings,
                               const Shards& images, const std::vector<std::uint32_t>& stages)
    : graph_(graph),
      tensor_bytes_(graph),
      shardings_(shardings),
      index_(graph),
      devices_(images.counts.size()),
      stage_of_(stages.empty() ? std::vector<std::uint32_t>(graph.model.layers.size(), 0) : stages),
      stages_(1 + *std::max_element(stage_of_.begin(), stage_of_.end())) {
  schedule_.parts.push_back({images, images});
  const std::size_t n = graph.model.layers.size();
  made_.resize(n);
  storage_.resize(n);
  arrived_.assign(stages_, std::vector<std::optional<PlacedTensor>>(n));
  converted_.assign(stages_, std::vector<std::vector<PlacedTensor>>(n));
  image_.resize(stages_);
  read_.resize(n);
  gradient_.assign(stages_, std::vector<std::optional<Gradient>>(n));
  begins_.assign(2, std::vector<std::uint32_t>(stages_, none));
  ends_ = begins_;
  sums_done_.resize(n);
  own_copy_.assign(graph.buffers.size(), none);
}

std::string GraphScheduler::in_part(std::string name) const {
  return part_ == 0 ? std::move(name) : fmt::format("{} #{}", name, part_ - 1);
}

GraphSchedule GraphScheduler::run(const std::optional<TailParts>& tail, bool recomputes) {
  std::vector<std::size_t> head, behind;
  for (std::size_t i = 0; i < shardings_.size(); ++i) (tail && tail->is_tail[i] ? behind : head).push_back(i);
  for (const std::size_t i : head) forward(i);
  if (tail) run_parts(*tail, head, behind);
  std::vector<PlacedTensor> read = losses(head);
  if (recomputes) {
    again_ = true;
    recompute_stages();
    read = losses(head);
    again_ = false;
  }
  seed(head, read);
  std::size_t kept = index_.segments().size();  // segments that have not been recomputed
  std::uint32_t entered = stages_;              // the stage whose backward pass was entered last
  for (auto i = head.rbegin(); i != head.rend(); ++i) {
    if (stages_ > 1 && index_.forward(*i) && stage_of_[*i] < entered)
      gather_gradients(entered = stage_of_[*i]);
    if (kept > 0 && index_.segments()[kept - 1].end == *i + 1) recompute(index_.segments()[--kept]);
    backward(*i);
  }
  std::vector<bool> is_sent(schedule_.copies.size(), false);
  for (const AtEnd& held : at_ends_) {
    // What an exchange brings that begins with the pass' last step is there from the end of that step on.
    const Lifetime& life = schedule_.copies[held.copy].life;
    const std::size_t end = std::size_t{2} * ends_[held.backward][held.stage];
    live(held.copy, static_cast<std::uint32_t>(life.is_used() ? std::max(end, life.first) : end));
    is_sent[held.copy] = true;
  }
  drop_what_nobody_needs(is_sent);
  return std::move(schedule_);
}

void GraphScheduler::enter(std::size_t layer, bool backward) {
  stage_ = stage_of_[layer];
  // Parts of the images go forward and back within the backward pass.
  backward_ = backward || schedule_.parts.size() > 1;
  if (stages_ > 1 && !again_ && begins_[backward_][stage_] == none)
    begins_[backward_][stage_] = add_step(GraphSchedule::no_op);
}

void GraphScheduler::run_parts(const TailParts& tail, const std::vector<std::size_t>& head,
                               const std::vector<std::size_t>& behind) {
  std::vector<std::uint32_t> ends;  // the last step of each part
  std::vector<std::optional<Gradient>> border(shardings_.size());
  for (const ImagePart& images : tail.parts) {
    schedule_.parts.push_back(images);
    ++part_;
    not_before_ = ends.size() < 2 ? 0 : ends[ends.size() - 2];
    std::fill(converted_[0].begin(), converted_[0].end(), std::vector<PlacedTensor>{});
    std::fill(sums_done_.begin(), sums_done_.end(), 0);
    image_[0].clear();
    for (const std::size_t i : behind) forward(i);
    seed(behind, losses(behind));
    for (auto i = behind.rbegin(); i != behind.rend(); ++i) backward(*i);
    for (const std::size_t i : head)
      if (std::optional<Gradient> gradient = std::exchange(gradient_[0][i], std::nullopt))
        append(border[i], at_output(i, std::move(*gradient)));
    ends.push_back(static_cast<std::uint32_t>(schedule_.steps.size()) - 1);
  }
  part_ = 0;
  not_before_ = 0;
  image_[0].clear();
  gradient_[0] = std::move(border);
}

void GraphScheduler::append(std::optional<Gradient>& all, Gradient more) {
  if (!all) {
    all = std::move(more);
    return;
  }
  PlacedTensor& held = all->held;
  held.copies.insert(held.copies.end(), more.held.copies.begin(), more.held.copies.end());
  held.ready.insert(held.ready.end(), more.held.ready.begin(), more.held.ready.end());
  held.made = std::max(held.made, more.held.made);
  all->own = all->own && more.own;
}

std::uint32_t GraphScheduler::add_step(OpId op, std::optional<Sharding> sharding) {
  const auto step = static_cast<std::uint32_t>(schedule_.steps.size());
  schedule_.steps.push_back({op, stage_, backward_, part_, std::move(sharding), {}, again_});
  ends_[backward_][stage_] = step;
  if (op == GraphSchedule::no_op) return step;
  const LayerSharding& of_layer = shardings_[graph_.operations[op].layer];
  for (const std::uint32_t scratch : index_.scratch_of(op)) {
    const std::uint32_t copy =
        add_copy(scratch, of_layer.sums_inputs ? of_layer.inputs.front().needed : of_layer.output);
    if (graph_.buffers[scratch].memory_class == MemoryClass::gradients)
      schedule_.copies[copy].parameters_of = graph_.operations[op].layer;
    live(copy, 2 * step);
  }
  return step;
}

std::uint32_t GraphScheduler::add_copy(double bytes_per_image, double bytes_fixed, const Sharding& sharding,
                                       MemoryClass memory_class) {
  schedule_.copies.push_back({memory_class, bytes_per_image, bytes_fixed, sharding, part_});
  return static_cast<std::uint32_t>(schedule_.copies.size() - 1);
}

void GraphScheduler::await(std::uint32_t id, std::uint32_t step, bool directly) {
  GraphSchedule::Exchange& exchange = schedule_.exchanges[id];
  if (exchange.awaited) return;
  exchange.awaited = true;
  if (directly) schedule_.steps[step].waits.push_back(id);
  for (const std::uint32_t copy : exchange.sources) live(copy, 2 * step);
  for (const std::uint32_t earlier : exchange.after_exchanges) await(earlier, step, false);
}

std::uint32_t GraphScheduler::add_exchange(Kind kind, const std::string& tensor, std::size_t of,
                                           std::size_t layer, const PlacedTensor& source) {
  schedule_.exchanges.push_back({kind,
                                 in_part(tensor),
                                 static_cast<std::uint32_t>(layer),
                                 tensor_bytes(static_cast<LayerIndex>(of)) * part().total(),
                                 {},
                                 {},
                                 nullptr,
                                 0,
                                 std::max(source.made, not_before_),
                                 part_,
                                 {maker_of(source), static_cast<std::uint32_t>(of)},
                                 0,
                                 source.ready,
                                 source.copies});
  return static_cast<std::uint32_t>(schedule_.exchanges.size() - 1);
}

GraphScheduler::PlacedTensor GraphScheduler::convert(const PlacedTensor& from, const Sharding& to,
                                                     const std::string& tensor, std::size_t of,
                                                     std::size_t layer) {
  PlacedTensor held = from;
  held.sharding = to;
  if (same(from.sharding, to) || devices_ == 1 || from.sharding.over == Over::replicate ||
      from.copies.empty())
    return held;
  const bool partial = from.sharding.over == Over::partial;
  const Kind kind = partial         ? (to.is_split() ? Kind::reduce_scatter : Kind::all_reduce)
                    : to.is_split() ? Kind::all_to_all
                                    : Kind::all_gather;
  const std::uint32_t id = add_exchange(kind, tensor, of, layer, from);
  GraphSchedule::Exchange& exchange = schedule_.exchanges[id];
  exchange.from = of_part(from.sharding);
  exchange.to = of_part(to);
  held.ready = {id};
  if (kind != Kind::all_reduce) {
    const std::uint32_t copy = add_copy(tensor_bytes(static_cast<LayerIndex>(of)), 0, exchange.to);
    live(copy, 2 * exchange.after + 1);
    held.copies = {copy};
  }
  return held;
}

Shards any_images() { return {{0}, 0, {}}; }

std::optional<double> GraphSchedule::images(std::uint32_t part) const {
  if (parts.front().images.size == 0) return std::nullopt;
  return parts[part].total();
}

StageMemory GraphSchedule::memory(const Copy& copy, std::size_t device) const {
  const std::optional<double> all = images(copy.part);
  if (!all) return {copy.memory_class, copy.bytes_per_image, copy.bytes_fixed};
  const double own = copy.sharding.over == Sharding::Over::batch
                         ? static_cast<double>(copy.sharding.shards->counts[device])
                         : *all * copy.sharding.share(device);
  return {copy.memory_class, 0, copy.bytes_per_image * own + copy.bytes_fixed};
}

GraphSchedule schedule_graph(const TrainingGraph& graph, const std::vector<LayerSharding>& shardings,
                             const Shards& images, const std::optional<TailParts>& tail,
                             const std::vector<std::uint32_t>& stages, bool recomputes) {
  return GraphScheduler(graph, shardings, images, stages).run(tail, recomputes);
}

}  // namespace convoy::lowering
