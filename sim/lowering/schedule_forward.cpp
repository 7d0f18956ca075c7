// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/lowering/graph_scheduler.h"

namespace convoy::inline lowering {
GraphScheduler::PlacedTensor GraphScheduler::request(LayerIndex input, const Sharding& needed,
                                                     std::size_t reader) {
  if (input == image_input || index_.is_image(at(input))) {
    std::vector<PlacedTensor>& images = image_[stage_];
    for (const PlacedTensor& held : images)
      if (same(held.sharding, needed)) return held;
    const std::optional<std::uint32_t> image = index_.image_buffer();
    if (!image) return {needed, {}, {}, 0};  // nobody looks at it
    images.push_back({needed, {add_copy(*image, needed)}, {}, 0});
    return images.back();
  }
  const PlacedTensor& made =
      stage_of_[at(input)] == stage_ ? made_[at(input)] : arrive(input, needed, reader);
  if (same(made.sharding, needed)) return made;
  std::vector<PlacedTensor>& converted = converted_[stage_][at(input)];
  for (const PlacedTensor& held : converted)
    if (same(held.sharding, needed)) return held;
  const auto whole = std::find_if(converted.begin(), converted.end(), [](const PlacedTensor& held) {
    return held.sharding.over == Over::replicate;
  });
  const PlacedTensor& source = whole != converted.end()                                    ? *whole
                               : made.sharding.over == Over::partial && !converted.empty() ? converted.front()
                                                                                           : made;
  const PlacedTensor held = convert(source, needed, model().layers[at(input)].name, at(input), reader);
  converted.push_back(held);
  return held;
}

const GraphScheduler::PlacedTensor& GraphScheduler::arrive(LayerIndex input, const Sharding& needed,
                                                           std::size_t reader) {
  std::optional<PlacedTensor>& there = arrived_[stage_][at(input)];
  if (there) return *there;
  const std::uint32_t home = stage_of_[at(input)];
  PlacedTensor source = made_[at(input)];
  const std::string& name = model().layers[at(input)].name;
  if (source.sharding.over == Over::partial) {
    std::vector<PlacedTensor>& converted = converted_[home][at(input)];
    if (converted.empty())
      converted.push_back(
          convert(source, needed.over == Over::partial ? Sharding{} : needed, name, at(input), reader));
    source = converted.front();
  }
  there = send(source, home, input);
  return *there;
}

GraphScheduler::PlacedTensor GraphScheduler::send(const PlacedTensor& held, std::uint32_t home,
                                                  LayerIndex output) {
  const double bytes_per_image = tensor_bytes(output);
  const OpId maker = maker_of(held);
  schedule_.transfers.push_back({home, stage_, backward_, bytes_per_image, held.sharding, held.ready,
                                 {maker, static_cast<std::uint32_t>(output)}});
  for (const std::uint32_t copy : held.copies) at_ends_.push_back({copy, home, backward_});
  for (const std::uint32_t exchange : held.ready) await_at_end(exchange, home);
  const std::uint32_t begin = begins_[backward_][stage_];
  const std::uint32_t copy = add_copy(bytes_per_image, 0, held.sharding);
  live(copy, 2 * begin);
  return {held.sharding, {copy}, {}, begin, maker};
}

void GraphScheduler::await_at_end(std::uint32_t id, std::uint32_t home) {
  GraphSchedule::Exchange& exchange = schedule_.exchanges[id];
  if (exchange.sent) return;
  exchange.sent = true;
  for (const std::uint32_t copy : exchange.sources) at_ends_.push_back({copy, home, backward_});
  for (const std::uint32_t earlier : exchange.after_exchanges) await_at_end(earlier, home);
}

GraphScheduler::ReadInput GraphScheduler::read_input(std::size_t layer, std::size_t k) {
  const LayerIndex input = model().layers[layer].inputs[k];
  const InputSharding& sharding = shardings_[layer].inputs[k];
  ReadInput read{request(input, sharding.needed, layer)};
  if (!sharding.halo) return read;
  Sharding rows = sharding.needed;
  rows.shards = std::make_shared<Shards>(Shards{sharding.halo->counts, sharding.needed.shards->size, {}});
  read.halo = add_copy(tensor_bytes(input), 0, rows);
  if (input == image_input || index_.is_image(at(input))) return read;
  const std::uint32_t id = add_halo(Kind::halo, model().layers[at(input)].name, layer, k, read.held);
  live(read.halo, 2 * schedule_.exchanges[id].after + 1);
  read.held.ready.push_back(id);
  return read;
}

void GraphScheduler::read_inputs(std::size_t layer) {
  read_[layer].clear();
  for (std::size_t k = 0; k < model().layers[layer].inputs.size(); ++k)
    read_[layer].push_back(read_input(layer, k));
}

std::uint32_t GraphScheduler::add_halo(Kind kind, const std::string& tensor, std::size_t layer, std::size_t k,
                                       const PlacedTensor& source) {
  const InputSharding& sharding = shardings_[layer].inputs[k];
  const std::uint32_t id = add_exchange(kind, tensor, at(model().layers[layer].inputs[k]), layer, source);
  schedule_.exchanges[id].input = k;
  schedule_.exchanges[id].halo = &*sharding.halo;
  schedule_.exchanges[id].halo_size = static_cast<double>(sharding.needed.shards->size);
  return id;
}

void GraphScheduler::forward(std::size_t i, std::optional<OpId> op, bool again) {
  const Layer& layer = model().layers[i];
  enter(i, again);
  read_inputs(i);
  storage_[i] = storage_of(layer.inputs.front());
  if (!op) {  // a view
    made_[i] = read_[i].front().held;
    made_[i].sharding = shardings_[i].output;
    if (read_[i].front().halo != none) made_[i].copies.push_back(read_[i].front().halo);
    return;
  }
  const std::uint32_t step = add_step(*op);
  for (const ReadInput& read : read_[i]) use(read.held, step);
  use_forward_buffers(*op, i, step, shardings_[i].output);
  made_[i] = {shardings_[i].output, {}, {}, step};
  if (const std::optional<std::uint32_t> own = index_.output_born_by(*op)) {
    storage_[i] = own;
    made_[i].copies = {own_copy_[*own]};
  } else {  // in place
    made_[i].copies = read_[i].front().held.copies;
  }
}

void GraphScheduler::recompute(const GraphIndex::Segment& segment) {
  for (std::size_t i = 0; i < segment.end; ++i) converted_[stage_][i].clear();
  for (std::size_t i = segment.begin; i < segment.end; ++i) {
    if (index_.forward_again(i) || !index_.forward(i))
      forward(i, index_.forward_again(i), true);
    else  // backward reads what has been made anew, and is all that does
      read_inputs(i);
  }
}

void GraphScheduler::recompute_stages() {
  std::vector<bool> goes_back(stages_, false);
  for (std::size_t i = 0; i < stage_of_.size(); ++i)
    if (index_.needs_gradient(i)) goes_back[stage_of_[i]] = true;
  for (std::uint32_t s = 0; s < stages_; ++s)
    if (goes_back[s]) std::fill(converted_[s].begin(), converted_[s].end(), std::vector<PlacedTensor>{});
  for (std::size_t i = 0; i < stage_of_.size(); ++i)
    if (goes_back[stage_of_[i]]) forward(i, index_.forward(i), true);
}

void GraphScheduler::use_forward_buffers(OpId op, std::size_t i, std::uint32_t step, const Sharding& own) {
  for (const std::uint32_t buffer : index_.used_by(op)) {
    if (!index_.is_forward(buffer)) continue;
    const OpId born = graph_.buffers[buffer].born;
    if (born == op && index_.image_buffer() != buffer) own_copy_[buffer] = add_copy(buffer, own);
    bool is_input = false;
    for (std::size_t k = 0; k < read_[i].size(); ++k) {
      if (storage_of(model().layers[i].inputs[k]) != buffer) continue;
      is_input = true;
      use(read_[i][k].held, step);
      if (read_[i][k].halo != none) live(read_[i][k].halo, 2 * step);
    }
    if (is_input) continue;
    if (storage_[i] == buffer && graph_.operations[born].layer != i)  // its output, in the place of its input
      for (const std::uint32_t copy : made_[i].copies) live(copy, 2 * step);
    else if (own_copy_[buffer] != none && stage_of_[graph_.operations[born].layer] == stage_)
      live(own_copy_[buffer], 2 * step);
  }
}

Sharding GraphScheduler::loss_sharding(const Sharding& output) const {
  switch (output.over) {
    case Over::channel:
      return {Over::batch, std::make_shared<Shards>(part().loss)};
    case Over::partial:
      return {};
    default:
      return output;
  }
}

std::vector<GraphScheduler::PlacedTensor> GraphScheduler::losses(const std::vector<std::size_t>& layers) {
  std::vector<PlacedTensor> read(shardings_.size());
  for (const std::size_t i : layers) {
    if (!index_.is_output(i) || (again_ && !index_.needs_gradient(i))) continue;
    const Sharding sharding = loss_sharding(shardings_[i].output);
    const std::optional<OpId> op = index_.loss_forward(i);
    if (!op && shardings_[i].output.over != Over::partial) continue;
    enter(i, again_);
    read[i] = request(static_cast<LayerIndex>(i), sharding, i);
    if (!op) continue;
    const std::uint32_t step = add_step(*op, sharding);
    use(read[i], step);
    for (const std::uint32_t buffer : index_.used_by(*op))
      if (graph_.buffers[buffer].born == *op) {
        own_copy_[buffer] = add_copy(buffer, sharding);
        live(own_copy_[buffer], 2 * step);
      }
  }
  return read;
}

void GraphScheduler::seed(const std::vector<std::size_t>& layers, const std::vector<PlacedTensor>& read) {
  for (auto i = layers.rbegin(); i != layers.rend(); ++i)
    if (index_.is_output(*i)) seed(*i, read[*i]);
}

void GraphScheduler::seed(std::size_t i, const PlacedTensor& output) {
  if (!index_.needs_gradient(i)) return;
  enter(i, true);
  const std::optional<OpId> op = index_.loss_data_gradient(i);
  if (!op) {  // whatever comes before backward, it needs the output
    gradient_[stage_][i] = Gradient{{shardings_[i].output_gradient, {}, output.ready, output.made}, false, i};
    return;
  }
  const Sharding& sharding = output.sharding;
  const std::uint32_t step = add_step(*op, sharding);
  std::uint32_t copy = none;
  for (const std::uint32_t buffer : index_.used_by(*op)) {
    if (graph_.buffers[buffer].born == *op)
      live(copy = add_copy(buffer, sharding), 2 * step);
    else
      live(own_copy_[buffer], 2 * step);
  }
  gradient_[stage_][i] = Gradient{{sharding, {copy}, {}, step}, true, i};
}

}  // namespace convoy::lowering
