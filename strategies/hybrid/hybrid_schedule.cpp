// SPDX-License-Identifier: MIT
#include "strategies/hybrid/hybrid_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strategies/hybrid/graph_index.h"

namespace convoy {
namespace {

using Over = Spread::Over;
using Kind = HybridSchedule::Exchange::Kind;
constexpr std::uint32_t none = HybridSchedule::none;

/// A tensor as it lies on the devices.
struct Held {
  Spread spread;
  std::vector<std::uint32_t> copies;  ///< none: a gradient that nobody has to make
  std::vector<std::uint32_t> ready;   ///< exchanges that bring it
  std::uint32_t made = 0;             ///< the step that makes it, before any exchange
};

struct Gradient {
  Held held;
  bool own;            ///< a sum may be written over it
  std::size_t reader;  ///< the layer that it comes from
};

/// An input as a layer reads it.
struct ReadInput {
  Held held;
  std::uint32_t halo = none;  ///< the copy of others' rows
};

class Scheduler {
 public:
  Scheduler(const TrainingGraph& graph, const std::vector<LayerSpread>& spreads, const Cut& images,
            const std::vector<std::uint32_t>& stages)
      : graph_(graph),
        spreads_(spreads),
        index_(graph),
        devices_(images.counts.size()),
        stage_of_(stages.empty() ? std::vector<std::uint32_t>(graph.model.layers.size(), 0) : stages),
        stages_(1 + *std::max_element(stage_of_.begin(), stage_of_.end())) {
    schedule_.parts.push_back({images, images});
    const std::size_t n = graph.model.layers.size();
    made_.resize(n);
    arrived_.assign(stages_, std::vector<std::optional<Held>>(n));
    converted_.assign(stages_, std::vector<std::vector<Held>>(n));
    image_.resize(stages_);
    read_.resize(n);
    gradient_.assign(stages_, std::vector<std::optional<Gradient>>(n));
    begins_.assign(2, std::vector<std::uint32_t>(stages_, none));
    ends_ = begins_;
    sums_done_.resize(n);
    own_copy_.assign(graph.buffers.size(), none);
    schedule_.last_step.assign(graph.operations.size(), none);
  }

  HybridSchedule run(const std::optional<TailParts>& tail) {
    std::vector<std::size_t> head, behind;
    for (std::size_t i = 0; i < spreads_.size(); ++i) (tail && tail->is_tail[i] ? behind : head).push_back(i);
    for (const std::size_t i : head) forward(i);
    if (tail) run_parts(*tail, head, behind);
    losses(head);
    for (auto i = head.rbegin(); i != head.rend(); ++i) backward(*i);
    for (const AtEnd& held : at_ends_) live(held.copy, 2 * ends_[held.backward][held.stage]);
    drop_what_nobody_needs();
    return std::move(schedule_);
  }

 private:
  /// Goes on with a stage's pass.
  void enter(std::size_t layer, bool backward) {
    stage_ = stage_of_[layer];
    // Parts of the images go forward and back within the backward pass.
    backward_ = backward || schedule_.parts.size() > 1;
    if (stages_ > 1 && begins_[backward_][stage_] == none)
      begins_[backward_][stage_] = add_step(HybridSchedule::no_op);
  }

  const Model& model() const { return graph_.model; }
  const ImagePart& part() const { return schedule_.parts[part_]; }
  static std::size_t at(LayerIndex layer) { return static_cast<std::size_t>(layer); }
  double tensor_bytes(LayerIndex layer) const {
    return element_bytes(graph_.options.precision) * static_cast<double>(elements(model().shape_of(layer)));
  }
  std::string in_part(std::string name) const {
    return part_ == 0 ? std::move(name) : fmt::format("{} #{}", name, part_ - 1);
  }

  void run_parts(const TailParts& tail, const std::vector<std::size_t>& head,
                 const std::vector<std::size_t>& behind) {
    std::vector<std::uint32_t> ends;  // the last step of each part
    std::vector<std::optional<Gradient>> border(spreads_.size());
    for (const ImagePart& images : tail.parts) {
      schedule_.parts.push_back(images);
      ++part_;
      not_before_ = ends.size() < 2 ? 0 : ends[ends.size() - 2];
      std::fill(converted_[0].begin(), converted_[0].end(), std::vector<Held>{});
      std::fill(sums_done_.begin(), sums_done_.end(), 0);
      image_[0].clear();
      for (const std::size_t i : behind) forward(i);
      losses(behind);
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

  /// The images of another part beside those there.
  static void append(std::optional<Gradient>& all, Gradient more) {
    if (!all) {
      all = std::move(more);
      return;
    }
    Held& held = all->held;
    held.copies.insert(held.copies.end(), more.held.copies.begin(), more.held.copies.end());
    held.ready.insert(held.ready.end(), more.held.ready.begin(), more.held.ready.end());
    held.made = std::max(held.made, more.held.made);
    all->own = all->own && more.own;
  }

  // Steps, copies and exchanges.

  std::uint32_t add_step(OpId op, std::optional<Spread> spread = std::nullopt) {
    const auto step = static_cast<std::uint32_t>(schedule_.steps.size());
    schedule_.steps.push_back({op, stage_, backward_, part_, std::move(spread)});
    ends_[backward_][stage_] = step;
    if (op != HybridSchedule::no_op) schedule_.last_step[op] = step;
    return step;
  }

  std::uint32_t add_copy(double bytes_per_image, double bytes_fixed, const Spread& spread,
                         MemoryClass memory_class = MemoryClass::activations) {
    schedule_.copies.push_back({memory_class, bytes_per_image, bytes_fixed, spread, part_});
    return static_cast<std::uint32_t>(schedule_.copies.size() - 1);
  }
  std::uint32_t add_copy(std::uint32_t buffer, const Spread& spread) {
    const Buffer& b = graph_.buffers[buffer];
    return add_copy(b.bytes_per_image, static_cast<double>(b.bytes_fixed), spread, b.memory_class);
  }

  void live(std::uint32_t copy, std::uint32_t time) {
    HybridSchedule::Copy& c = schedule_.copies[copy];
    c.first = c.first == none ? time : std::min(c.first, time);
    c.last = std::max(c.last, time);
  }

  /// The step reads or writes the tensor.
  void use(const Held& held, std::uint32_t step) {
    for (const std::uint32_t copy : held.copies) live(copy, 2 * step);
    for (const std::uint32_t exchange : held.ready) await(exchange, step, true);
  }

  void await(std::uint32_t id, std::uint32_t step, bool directly) {
    HybridSchedule::Exchange& exchange = schedule_.exchanges[id];
    if (exchange.awaited) return;
    exchange.awaited = true;
    if (directly) schedule_.steps[step].waits.push_back(id);
    for (const std::uint32_t copy : exchange.sources) live(copy, 2 * step);
    for (const std::uint32_t earlier : exchange.after_exchanges) await(earlier, step, false);
  }

  std::uint32_t add_exchange(Kind kind, const std::string& tensor, std::size_t layer, double bytes_per_image,
                             const Held& source) {
    schedule_.exchanges.push_back({kind,
                                   in_part(tensor),
                                   static_cast<std::uint32_t>(layer),
                                   bytes_per_image * part().total(),
                                   {},
                                   {},
                                   nullptr,
                                   0,
                                   std::max(source.made, not_before_),
                                   source.ready,
                                   source.copies});
    return static_cast<std::uint32_t>(schedule_.exchanges.size() - 1);
  }

  /// The tensor under another spread.
  Held convert(const Held& from, const Spread& to, const std::string& tensor, std::size_t layer,
               double bytes_per_image) {
    Held held = from;
    held.spread = to;
    if (same(from.spread, to) || devices_ == 1 || from.spread.over == Over::whole || from.copies.empty())
      return held;
    const bool partial = from.spread.over == Over::partial;
    const Kind kind = partial         ? (to.is_split() ? Kind::reduce_scatter : Kind::all_reduce)
                      : to.is_split() ? Kind::all_to_all
                                      : Kind::all_gather;
    const std::uint32_t id = add_exchange(kind, tensor, layer, bytes_per_image, from);
    HybridSchedule::Exchange& exchange = schedule_.exchanges[id];
    exchange.from = of_part(from.spread);
    exchange.to = of_part(to);
    held.ready = {id};
    if (kind != Kind::all_reduce) {
      const std::uint32_t copy = add_copy(bytes_per_image, 0, exchange.to);
      live(copy, 2 * exchange.after + 1);
      held.copies = {copy};
    }
    return held;
  }

  /// All images become those of the part under way.
  Spread of_part(const Spread& spread) const {
    if (spread.over != Over::images || spread.cut->size == part().images.size) return spread;
    return {Over::images, std::make_shared<Cut>(part().images)};
  }

  // Forward.

  /// A layer's input as the layer needs it.
  Held request(LayerIndex input, const Spread& needed, std::size_t reader) {
    if (input == image_input || index_.is_image(at(input))) {
      std::vector<Held>& images = image_[stage_];
      for (const Held& held : images)
        if (same(held.spread, needed)) return held;
      const std::optional<std::uint32_t> image = index_.image_buffer();
      if (!image) return {needed, {}, {}, 0};  // nobody looks at it
      images.push_back({needed, {add_copy(*image, needed)}, {}, 0});
      return images.back();
    }
    const Held& made = stage_of_[at(input)] == stage_ ? made_[at(input)] : arrive(input, needed, reader);
    if (same(made.spread, needed)) return made;
    std::vector<Held>& converted = converted_[stage_][at(input)];
    for (const Held& held : converted)
      if (same(held.spread, needed)) return held;
    const auto whole = std::find_if(converted.begin(), converted.end(),
                                    [](const Held& held) { return held.spread.over == Over::whole; });
    const Held& source = whole != converted.end()                                  ? *whole
                         : made.spread.over == Over::partial && !converted.empty() ? converted.front()
                                                                                   : made;
    const Held held = convert(source, needed, model().layers[at(input)].name, reader, tensor_bytes(input));
    converted.push_back(held);
    return held;
  }

  /// An output of another stage in the one under way. What is a sum of parts is summed before it is sent.
  const Held& arrive(LayerIndex input, const Spread& needed, std::size_t reader) {
    std::optional<Held>& there = arrived_[stage_][at(input)];
    if (there) return *there;
    const std::uint32_t home = stage_of_[at(input)];
    Held source = made_[at(input)];
    const std::string& name = model().layers[at(input)].name;
    if (source.spread.over == Over::partial) {
      std::vector<Held>& converted = converted_[home][at(input)];
      if (converted.empty())
        converted.push_back(convert(source, needed.over == Over::partial ? Spread{} : needed, name, reader,
                                    tensor_bytes(input)));
      source = converted.front();
    }
    there = send(source, home, tensor_bytes(input));
    return *there;
  }

  /// A tensor of stage `home`, as it is sent to the one under way at the end of home's pass.
  Held send(const Held& held, std::uint32_t home, double bytes_per_image) {
    schedule_.transfers.push_back({home, stage_, backward_, bytes_per_image, held.spread, held.ready});
    for (const std::uint32_t copy : held.copies) at_ends_.push_back({copy, home, backward_});
    for (const std::uint32_t exchange : held.ready) await_at_end(exchange, home);
    const std::uint32_t begin = begins_[backward_][stage_];
    const std::uint32_t copy = add_copy(bytes_per_image, 0, held.spread);
    live(copy, 2 * begin);
    return {held.spread, {copy}, {}, begin};
  }

  void await_at_end(std::uint32_t id, std::uint32_t home) {
    HybridSchedule::Exchange& exchange = schedule_.exchanges[id];
    if (exchange.sent) return;
    exchange.sent = true;
    for (const std::uint32_t copy : exchange.sources) at_ends_.push_back({copy, home, backward_});
    for (const std::uint32_t earlier : exchange.after_exchanges) await_at_end(earlier, home);
  }

  ReadInput read_input(std::size_t layer, std::size_t k) {
    const LayerIndex input = model().layers[layer].inputs[k];
    const InputSpread& spread = spreads_[layer].inputs[k];
    ReadInput read{request(input, spread.needed, layer)};
    if (!spread.halo) return read;
    Spread rows = spread.needed;
    rows.cut = std::make_shared<Cut>(Cut{spread.halo->counts, spread.needed.cut->size, {}});
    read.halo = add_copy(tensor_bytes(input), 0, rows);
    if (input == image_input || index_.is_image(at(input))) return read;
    const std::uint32_t id = add_halo(Kind::halo, model().layers[at(input)].name, layer, k, read.held);
    live(read.halo, 2 * schedule_.exchanges[id].after + 1);
    read.held.ready.push_back(id);
    return read;
  }

  std::uint32_t add_halo(Kind kind, const std::string& tensor, std::size_t layer, std::size_t k,
                         const Held& source) {
    const InputSpread& spread = spreads_[layer].inputs[k];
    const std::uint32_t id =
        add_exchange(kind, tensor, layer, tensor_bytes(model().layers[layer].inputs[k]), source);
    schedule_.exchanges[id].halo = &*spread.halo;
    schedule_.exchanges[id].halo_size = static_cast<double>(spread.needed.cut->size);
    return id;
  }

  void forward(std::size_t i) {
    const Layer& layer = model().layers[i];
    enter(i, false);
    read_[i].clear();
    for (std::size_t k = 0; k < layer.inputs.size(); ++k) read_[i].push_back(read_input(i, k));
    const std::optional<OpId> op = index_.forward(i);
    if (!op) {  // a view
      made_[i] = read_[i].front().held;
      made_[i].spread = spreads_[i].output;
      if (read_[i].front().halo != none) made_[i].copies.push_back(read_[i].front().halo);
      return;
    }
    const std::uint32_t step = add_step(*op);
    for (const ReadInput& read : read_[i]) use(read.held, step);
    use_forward_buffers(*op, i, step, spreads_[i].output);
    made_[i] = {spreads_[i].output, {}, {}, step};
    const std::uint32_t storage = *index_.storage(i);
    if (own_copy_[storage] != none && graph_.buffers[storage].born == *op)
      made_[i].copies = {own_copy_[storage]};
    else  // in place
      made_[i].copies = read_[i].front().held.copies;
  }

  /// Marks the copies of the graph's forward buffers that an operation of layer i uses. Its own are made with
  /// `own` when it bears them.
  void use_forward_buffers(OpId op, std::size_t i, std::uint32_t step, const Spread& own) {
    for (const std::uint32_t buffer : index_.used_by(op)) {
      if (!index_.is_forward(buffer)) continue;
      const OpId born = graph_.buffers[buffer].born;
      if (born == op && index_.image_buffer() != buffer) own_copy_[buffer] = add_copy(buffer, own);
      bool is_input = false;
      for (std::size_t k = 0; k < read_[i].size(); ++k) {
        if (index_.storage_of(model().layers[i].inputs[k]) != buffer) continue;
        is_input = true;
        for (const std::uint32_t copy : read_[i][k].held.copies) live(copy, 2 * step);
        if (read_[i][k].halo != none) live(read_[i][k].halo, 2 * step);
      }
      if (is_input) continue;
      if (own_copy_[buffer] != none && graph_.operations[born].layer == i)
        live(own_copy_[buffer], 2 * step);
      else  // the layer's output, in the place of a tensor before it
        for (const std::uint32_t copy : made_[i].copies) live(copy, 2 * step);
    }
  }

  // Losses: on the images of each device where the outputs are split by images or channels.

  Spread loss_spread(const Spread& output) const {
    switch (output.over) {
      case Over::channels:
        return {Over::images, std::make_shared<Cut>(part().loss)};
      case Over::partial:
        return {};
      default:
        return output;
    }
  }

  void losses(const std::vector<std::size_t>& layers) {
    std::vector<std::size_t> outputs;
    for (const std::size_t i : layers)
      if (index_.is_output(i)) outputs.push_back(i);
    std::vector<Held> read(spreads_.size());
    for (const std::size_t i : outputs) {
      const Spread spread = loss_spread(spreads_[i].output);
      const std::optional<OpId> op = index_.loss_forward(i);
      if (!op && spreads_[i].output.over != Over::partial) continue;
      enter(i, false);
      read[i] = request(static_cast<LayerIndex>(i), spread, i);
      if (!op) continue;
      const std::uint32_t step = add_step(*op, spread);
      use(read[i], step);
      for (const std::uint32_t buffer : index_.used_by(*op))
        if (graph_.buffers[buffer].born == *op) {
          own_copy_[buffer] = add_copy(buffer, spread);
          live(own_copy_[buffer], 2 * step);
        }
    }
    for (auto i = outputs.rbegin(); i != outputs.rend(); ++i) seed(*i, read[*i]);
  }

  /// @param output as the loss reads it
  void seed(std::size_t i, const Held& output) {
    if (!index_.needs_gradient(i)) return;
    enter(i, true);
    const std::optional<OpId> op = index_.loss_data_gradient(i);
    if (!op) {  // whatever comes before backward, it needs the output
      gradient_[stage_][i] = Gradient{{spreads_[i].output_gradient, {}, output.ready, output.made}, false, i};
      return;
    }
    const Spread& spread = output.spread;
    const std::uint32_t step = add_step(*op, spread);
    std::uint32_t copy = none;
    for (const std::uint32_t buffer : index_.used_by(*op)) {
      if (graph_.buffers[buffer].born == *op)
        live(copy = add_copy(buffer, spread), 2 * step);
      else
        live(own_copy_[buffer], 2 * step);
    }
    gradient_[stage_][i] = Gradient{{spread, {copy}, {}, step}, true, i};
  }

  // Backward.

  /// A gradient as its layer's backward pass needs it.
  Gradient at_output(std::size_t i, Gradient gradient) {
    const std::string name = fmt::format("gradient of {}", model().layers[i].name);
    Held held = convert(gradient.held, spreads_[i].output_gradient, name, gradient.reader,
                        tensor_bytes(static_cast<LayerIndex>(i)));
    const bool own = gradient.own || held.copies != gradient.held.copies;
    return {std::move(held), own, gradient.reader};
  }

  void backward(std::size_t i) {
    gather_gradients(i);
    std::optional<Gradient>& total = gradient_[stage_of_[i]][i];
    if (!total) return;
    enter(i, true);
    const Held gradient = at_output(i, std::move(*total)).held;
    total.reset();
    if (const std::optional<OpId> op = index_.data_gradient(i))
      data_gradient(i, *op, gradient);
    else
      for (std::size_t k = 0; k < spreads_[i].inputs.size(); ++k) {
        Held passed = gradient;
        passed.spread = spreads_[i].inputs[k].gradient;
        contribute(model().layers[i].inputs[k], {passed, false, i}, false);
      }
    if (const std::optional<OpId> op = index_.weight_gradient(i)) {
      const std::uint32_t step = add_step(*op);
      use(gradient, step);
      use_forward_buffers(*op, i, step, spreads_[i].output);
    }
  }

  /// Those that other stages have of the layer's output come back, each stage's summed.
  void gather_gradients(std::size_t i) {
    for (std::uint32_t s = stages_; s-- > 0;) {
      if (s == stage_of_[i] || !gradient_[s][i]) continue;
      Gradient there = std::move(*gradient_[s][i]);
      gradient_[s][i].reset();
      if (there.held.spread.over == Over::partial) there = at_output(i, std::move(there));
      enter(i, true);
      Held here = send(there.held, s, tensor_bytes(static_cast<LayerIndex>(i)));
      contribute(static_cast<LayerIndex>(i), {std::move(here), true, there.reader}, false);
    }
  }

  void data_gradient(std::size_t i, OpId op, const Held& gradient) {
    const Layer& layer = model().layers[i];
    const bool custom = std::holds_alternative<Custom>(layer.kind);
    const std::uint32_t step = add_step(op);
    use(gradient, step);
    use_forward_buffers(op, i, step, spreads_[i].output);
    std::vector<std::pair<LayerIndex, Gradient>> made;
    std::size_t next = 0;
    const std::vector<std::uint32_t> born = index_.gradients_born_by(op);
    for (std::size_t k = 0; k < layer.inputs.size(); ++k) {
      const LayerIndex input = layer.inputs[k];
      if (!index_.receives_gradient(input)) continue;
      const InputSpread& spread = spreads_[i].inputs[k];
      // Where the framework computes in place (MXNet's static plan) the gradient that is read becomes this
      // one.
      Held held{spread.gradient, gradient.copies, {}, step};
      if (next < born.size()) held.copies = {add_copy(born[next++], spread.gradient)};
      for (const std::uint32_t copy : held.copies) live(copy, 2 * step);
      if (spread.halo) {
        const std::uint32_t rows =
            add_copy(tensor_bytes(input), 0, schedule_.copies[read_[i][k].halo].spread);
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

  void contribute(LayerIndex to, Gradient more, bool sum_is_free) {
    if (!index_.receives_gradient(to)) return;
    const std::size_t i = at(to);
    std::optional<Gradient>& total = gradient_[stage_][i];
    if (!total) {
      total = std::move(more);
      return;
    }
    if (!same(total->held.spread, more.held.spread)) {
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
    const std::uint32_t step = add_step(op, total->held.spread);
    use(total->held, step);
    use(more.held, step);
    Held sum{total->held.spread, {}, {}, step};
    if (more.own) {
      sum.copies = more.held.copies;
    } else if (total->own) {
      sum.copies = total->held.copies;
    } else {
      const std::vector<std::uint32_t> born = index_.gradients_born_by(op);
      sum.copies = born.empty() ? more.held.copies : std::vector{add_copy(born.front(), sum.spread)};
      for (const std::uint32_t copy : sum.copies) live(copy, 2 * step);
    }
    total = Gradient{std::move(sum), true, more.reader};
  }

  void drop_what_nobody_needs() {
    for (HybridSchedule::Copy& copy : schedule_.copies)
      if (copy.first % 2 == 1 && copy.last == copy.first) copy.first = none;
  }

  const TrainingGraph& graph_;
  const std::vector<LayerSpread>& spreads_;
  GraphIndex index_;
  std::size_t devices_;
  std::vector<std::uint32_t> stage_of_;  ///< by layer
  std::uint32_t stages_;
  HybridSchedule schedule_;
  std::uint32_t part_ = 0;
  std::uint32_t stage_ = 0;                                ///< under way
  bool backward_ = false;                                  ///< its backward pass is
  std::vector<std::vector<std::uint32_t>> begins_, ends_;  ///< by pass and stage: its first and last step
  struct AtEnd {
    std::uint32_t copy, stage;
    bool backward;
  };
  std::vector<AtEnd> at_ends_;    ///< copies that stay until the end of a stage's pass
  std::uint32_t not_before_ = 0;  ///< exchanges of the part under way begin after this step
  std::vector<Held> made_;        ///< by layer: its output as it is made
  std::vector<std::vector<std::optional<Held>>> arrived_;  ///< by stage and layer of another one: its output
  std::vector<std::vector<std::vector<Held>>>
      converted_;                             ///< by stage and layer: outputs under other spreads
  std::vector<std::vector<Held>> image_;      ///< by stage: the image, as it is read
  std::vector<std::vector<ReadInput>> read_;  ///< by layer and input
  std::vector<std::vector<std::optional<Gradient>>> gradient_;  ///< by stage and layer: of its output, so far
  std::vector<int> sums_done_;                                  ///< by layer
  std::vector<std::uint32_t> own_copy_;                         ///< by forward buffer
};

}  // namespace

double HybridSchedule::bytes(const Copy& copy, std::size_t device) const {
  const double images = copy.spread.over == Spread::Over::images
                            ? static_cast<double>(copy.spread.cut->counts[device])
                            : parts[copy.part].total() * copy.spread.share(device);
  return copy.bytes_per_image * images + copy.bytes_fixed;
}

HybridSchedule schedule_hybrid(const TrainingGraph& graph, const std::vector<LayerSpread>& spreads,
                               const Cut& images, const std::optional<TailParts>& tail,
                               const std::vector<std::uint32_t>& stages) {
  return Scheduler(graph, spreads, images, stages).run(tail);
}

}  // namespace convoy
