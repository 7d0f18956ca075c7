// SPDX-License-Identifier: MIT
#include "models/training_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "models/layer_costs.h"
#include "models/memory_rules.h"
#include "models/segments.h"
#include "models/static_plan.h"

namespace convoy {
namespace {

using BufferId = std::uint32_t;

/// A gradient of some tensor, once made. The seed at an output without a loss has no buffer.
struct Gradient {
  OpId op;  ///< the operation it can be read after
  std::optional<BufferId> buffer;
  bool own;  ///< the buffer belongs to this gradient alone, so a sum may be written over it
};

/// Where a tensor lies. Views and in-place results share the storage of what they look at or write over.
struct Storage {
  BufferId buffer;
  bool exclusive;      ///< no tensor in it has two readers
  bool output_needed;  ///< some layer's data gradient reads a result that lies in it
};

class Builder {
 public:
  Builder(const Model& model, const TrainingOptions& options)
      : element_(element_bytes(options.precision)), framework_(framework_memory(options.framework)) {
    graph_.model = model;
    graph_.options = options;
    const std::size_t n = model.layers.size();
    readers_.resize(n);
    needs_gradient_.resize(n);
    forward_.resize(n);
    weight_gradient_.resize(n);
    storage_.resize(n);
    extra_.resize(n);
    gradient_.resize(n);
    sums_.resize(n);
    costs_.reserve(n);
    rules_.reserve(n);
    for (std::size_t i = 0; i < n; ++i) {
      costs_.push_back(layer_costs(model, i));
      rules_.push_back(memory_rules(model.layers[i], options.framework));
      for (const LayerIndex input : model.layers[i].inputs)
        if (input != image_input) ++readers_[at(input)];
    }
    graph_.operations.reserve(5 * n);
    graph_.buffers.reserve(4 * n);
  }

  TrainingGraph build() {
    const std::size_t n = graph_.model.layers.size();
    for (std::size_t i = 0; i < n; ++i) forward(i);
    first_forward_ = forward_;
    forward_count_ = static_cast<OpId>(graph_.operations.size());
    std::vector<std::size_t> segments = segment_layers();
    for (std::size_t i = 0; i < n; ++i)
      if (readers_[i] == 0) loss_forward(i);
    for (std::size_t i = n; i-- > 0;)
      if (readers_[i] == 0) seed_gradient(i);
    for (std::size_t end = n; end > 0; end = segments.back(), segments.pop_back()) {
      if (end < n) forward_again(segments.back(), end);
      for (std::size_t i = end; i-- > segments.back();)
        if (needs_gradient_[i]) backward(i);
    }
    for (std::size_t i = 0; i < n; ++i) update(i);
    if (framework_.static_plan) add_plan();
    for (Buffer& buffer : graph_.buffers) {
      std::sort(buffer.uses.begin(), buffer.uses.end());
      buffer.uses.erase(std::unique(buffer.uses.begin(), buffer.uses.end()), buffer.uses.end());
    }
    std::stable_sort(graph_.buffers.begin(), graph_.buffers.end(),
                     [](const Buffer& a, const Buffer& b) { return a.born < b.born; });
    return std::move(graph_);
  }

 private:
  static std::size_t at(LayerIndex layer) { return static_cast<std::size_t>(layer); }
  const Layer& layer(std::size_t i) const { return graph_.model.layers[i]; }
  double bytes_of(const Shape& shape) const { return element_ * static_cast<double>(elements(shape)); }

  OpId add_operation(std::string name, std::size_t i, const Work& work, std::vector<OpId> inputs) {
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    const auto id = static_cast<OpId>(graph_.operations.size());
    graph_.operations.push_back(
        {std::move(name), static_cast<std::uint32_t>(i), work.phase, work, std::move(inputs)});
    graph_.operations.back().again = again_;
    return id;
  }

  OpId add_kernel(std::size_t i, const KernelCost& cost, Phase phase, std::vector<OpId> inputs) {
    const OpId op =
        add_operation(fmt::format("{}.{}{}", layer(i).name, to_string(phase), again_ ? " again" : ""), i,
                      layer_work(graph_.model, i, costs_[i].kernel, cost, phase, graph_.options.precision),
                      std::move(inputs));
    add_workspace(i, op);
    return op;
  }

  /// cuDNN's non-fused Winograd F(4x4, 3x3) (Lavin and Gray, arXiv:1509.09308, section 4) keeps the
  /// transforms of its input, filters and output: 6x6 values for each 4x4 tile of a channel's output and each
  /// filter. From how many channels on it is taken is fitted to VGG-16 (results/published/memory.yaml).
  void add_workspace(std::size_t i, OpId op) {
    constexpr std::int64_t fewest_channels = 512, tile = 4, transformed = 36;
    const auto* conv = std::get_if<Conv2d>(&layer(i).kind);
    const Work& work = graph_.operations[op].work;
    if (!framework_.winograd || graph_.options.precision != Precision::fp32 || !conv ||
        conv->kernel != Size2{3, 3} || conv->stride != Size2{} || conv->dilation != Size2{} ||
        conv->groups != 1 || std::min(work.in_channels, work.out_channels) < fewest_channels)
      return;
    const std::int64_t tiles = (work.out_h + tile - 1) / tile * ((work.out_w + tile - 1) / tile);
    add_scratch(graph_.operations[op].name + ".workspace", MemoryClass::workspace,
                static_cast<double>(4 * transformed * tiles * (work.in_channels + work.out_channels)),
                static_cast<double>(4 * transformed * work.in_channels * work.out_channels), op);
  }

  /// What a plan made before training takes beyond what is live at a time.
  void add_plan() {
    const auto backward_end = std::find_if(graph_.operations.begin(), graph_.operations.end(),
                                           [](const Operation& op) { return op.phase == Phase::update; });
    if (backward_end == graph_.operations.begin()) return;
    const auto last = static_cast<OpId>(backward_end - graph_.operations.begin() - 1);
    const BufferId plan = add_buffer("memory plan", planned_bytes(graph_) - live_bytes(graph_), 0);
    graph_.buffers[plan].memory_class = MemoryClass::workspace;
    use(plan, last);
  }

  BufferId add_buffer(std::string name, double bytes, OpId born) {
    graph_.buffers.push_back(
        {std::move(name), MemoryClass::activations, bytes, 0, born, born, false, {born}});
    return static_cast<BufferId>(graph_.buffers.size() - 1);
  }

  /// Bytes that are there while one operation runs.
  void add_scratch(std::string name, MemoryClass memory_class, double bytes, double bytes_fixed, OpId op) {
    graph_.buffers.push_back(
        {std::move(name), memory_class, bytes, static_cast<std::int64_t>(bytes_fixed), op, op, false, {op}});
  }

  /// `op` reads the buffer, which therefore lives until then.
  void use(BufferId buffer, OpId op) {
    graph_.buffers[buffer].dies = std::max(graph_.buffers[buffer].dies, op);
    graph_.buffers[buffer].uses.push_back(op);
  }
  void use_saved(BufferId buffer, OpId op) {
    use(buffer, op);
    if (graph_.buffers[buffer].born < forward_count_) graph_.buffers[buffer].saved = true;
  }

  // Forward. The image and views of it have no operation that makes them.

  void forward(std::size_t i) {
    const std::vector<LayerIndex>& inputs = layer(i).inputs;
    bool needs = !layer(i).parameters.empty() || std::holds_alternative<Custom>(layer(i).kind);
    std::vector<OpId> producers;
    for (const LayerIndex input : inputs) {
      if (input == image_input) continue;
      needs = needs || needs_gradient_[at(input)];
      if (forward_[at(input)]) producers.push_back(*forward_[at(input)]);
    }
    needs_gradient_[i] = needs;
    if (rules_[i].view) {
      forward_[i] = producers.empty() ? std::nullopt : std::optional(producers.front());
      storage_[i] = storage_of(inputs.front());
      if (storage_[i]) storage_[i]->exclusive &= readers_[i] <= 1;
      return;
    }
    const OpId op = add_kernel(i, *costs_[i].forward, Phase::forward, std::move(producers));
    forward_[i] = op;
    for (const LayerIndex input : inputs) {
      const BufferId buffer = input_buffer(input, op);
      again_ ? use_saved(buffer, op) : use(buffer, op);
    }
    const std::optional<Storage> input = storage_of(inputs.front());
    if (rules_[i].overwrites && inputs.front() != image_input && input && input->exclusive &&
        !input->output_needed) {
      storage_[i] = Storage{input->buffer, readers_[i] <= 1, rules_[i].output_for_data};
      if (!again_) overwritten_.emplace_back(op, input->buffer);
    } else {
      storage_[i] = Storage{add_buffer(layer(i).name + ".output", bytes_of(layer(i).output), op),
                            readers_[i] <= 1, rules_[i].output_for_data};
    }
    if (needs && !rules_[i].extra.empty() && costs_[i].data_gradient)
      extra_[i] = add_buffer(fmt::format("{}.{}", layer(i).name, rules_[i].extra), rules_[i].extra_bytes, op);
  }

  /// Empty for the image before any operation has read it, and for views of it.
  std::optional<Storage> storage_of(LayerIndex input) const {
    return input == image_input ? std::nullopt : storage_[at(input)];
  }

  BufferId input_buffer(LayerIndex input, OpId op) {
    if (const std::optional<Storage> storage = storage_of(input)) return storage->buffer;
    if (!image_) image_ = add_buffer("input", bytes_of(graph_.model.input), op);
    return *image_;
  }

  // Recomputation. A segment's storages are made anew: those of its first run have gone, but for what later
  // segments and the loss have kept.

  /// First layers of the segments, ascending, the first 0.
  std::vector<std::size_t> segment_layers() const {
    ForwardPass pass{graph_.operations, graph_.buffers, std::vector<char>(graph_.buffers.size(), 0),
                     std::vector<std::uint32_t>(forward_count_, ForwardPass::no_buffer)};
    if (image_) pass.is_image[*image_] = 1;
    for (const auto& [op, buffer] : overwritten_) pass.overwrites[op] = buffer;
    std::vector<std::size_t> layers{0};
    for (const OpId op : segment_begins(pass, graph_.options.recompute))
      layers.push_back(graph_.operations[op].layer);
    return layers;
  }

  /// As PyTorch's checkpoint, it stops with the last layer that has made something for the backward pass
  /// (torch.utils.checkpoint.set_checkpoint_early_stop).
  void forward_again(std::size_t begin, std::size_t end) {
    std::size_t stop = end;
    while (stop > begin && !needed_again(stop - 1, end)) --stop;
    again_ = true;
    for (std::size_t i = begin; i < stop; ++i) forward(i);
    again_ = false;
  }

  /// Whether backward before layer `end` reads the layer's result or what it makes besides.
  bool needed_again(std::size_t i, std::size_t end) const {
    if (needs_gradient_[i] && costs_[i].data_gradient && gradient_goes_on(i) &&
        (rules_[i].output_for_data || !rules_[i].extra.empty()))
      return true;
    for (std::size_t reader = i + 1; reader < end; ++reader) {
      const std::vector<LayerIndex>& inputs = layer(reader).inputs;
      if (std::find(inputs.begin(), inputs.end(), static_cast<LayerIndex>(i)) == inputs.end()) continue;
      if (rules_[reader].view && needed_again(reader, end)) return true;
      if (!needs_gradient_[reader]) continue;
      if (rules_[reader].input_for_weights && costs_[reader].weight_gradient) return true;
      if (rules_[reader].input_for_data && costs_[reader].data_gradient && gradient_goes_on(reader))
        return true;
    }
    return false;
  }

  // The loss, and where gradients begin.

  Work loss_work(std::size_t i, Phase phase) const {
    // Log-softmax (maximum, difference, exponential, sum, difference: 5 a class) and one pick; backward:
    // exponential, difference, product. Log probabilities stay fp32 in every precision.
    const double classes = static_cast<double>(elements(layer(i).output));
    Work work;
    work.kind = KernelKind::softmax_loss;
    work.phase = phase;
    work.flops_per_image = (phase == Phase::forward ? 5 : 3) * classes;
    work.bytes_per_image = (element_ + 4) * classes;
    return work;
  }

  void loss_forward(std::size_t i) {
    if (!graph_.model.cross_entropy_loss || !needs_gradient_[i]) return;
    std::vector<OpId> inputs;
    if (forward_[i]) inputs.push_back(*forward_[i]);
    const OpId op = add_operation(layer(i).name + ".loss.forward", i, loss_work(i, Phase::forward), inputs);
    if (storage_[i]) use(storage_[i]->buffer, op);
    losses_.emplace_back(op, add_buffer(layer(i).name + ".log_probabilities",
                                        4 * static_cast<double>(elements(layer(i).output)), op));
  }

  void seed_gradient(std::size_t i) {
    if (!needs_gradient_[i]) return;
    if (!graph_.model.cross_entropy_loss) {
      gradient_[i] = Gradient{*forward_[i], std::nullopt, false};
      return;
    }
    const auto [loss, log_probabilities] = losses_.back();
    losses_.pop_back();
    const std::string name = layer(i).name + ".loss.data_gradient";
    const OpId op = add_operation(name, i, loss_work(i, Phase::data_gradient), {loss});
    use(log_probabilities, op);
    gradient_[i] =
        Gradient{op, add_buffer(layer(i).name + ".output_gradient", bytes_of(layer(i).output), op), true};
  }

  // Backward.

  void backward(std::size_t i) {
    const Gradient gradient = *gradient_[i];
    if (!costs_[i].data_gradient) {
      for (const LayerIndex input : layer(i).inputs)
        if (receives_gradient(input)) contribute(i, input, {gradient.op, gradient.buffer, false}, false);
    } else if (gradient_goes_on(i)) {
      data_gradient(i, gradient, std::holds_alternative<Custom>(layer(i).kind));
    }
    if (costs_[i].weight_gradient) weight_gradient(i, gradient);
  }

  bool receives_gradient(LayerIndex input) const {
    return input != image_input && needs_gradient_[at(input)];
  }

  /// Whether the layer's data gradient runs: there is something before it to hand a gradient to.
  bool gradient_goes_on(std::size_t i) const {
    return std::holds_alternative<Custom>(layer(i).kind) ||
           std::any_of(layer(i).inputs.begin(), layer(i).inputs.end(),
                       [&](LayerIndex input) { return receives_gradient(input); });
  }

  void data_gradient(std::size_t i, const Gradient& gradient, bool custom) {
    std::vector<OpId> inputs{gradient.op};
    for (const LayerIndex input : layer(i).inputs) {
      if (rules_[i].input_for_data && input != image_input && forward_[at(input)])
        inputs.push_back(*forward_[at(input)]);
      if (custom && receives_gradient(input) && gradient_[at(input)])
        inputs.push_back(gradient_[at(input)]->op);
    }
    if (rules_[i].output_for_data || extra_[i]) inputs.push_back(*forward_[i]);
    const OpId op = add_kernel(i, *costs_[i].data_gradient, Phase::data_gradient, std::move(inputs));
    if (gradient.buffer) use(*gradient.buffer, op);
    if (rules_[i].input_for_data)
      for (const LayerIndex input : layer(i).inputs) use_saved(input_buffer(input, op), op);
    if (rules_[i].output_for_data) use_saved(storage_[i]->buffer, op);
    if (extra_[i]) use_saved(*extra_[i], op);
    if (rules_[i].gradient_overwrites && gradient.own && gradient.buffer && layer(i).inputs.size() == 1) {
      if (receives_gradient(layer(i).inputs.front()))
        contribute(i, layer(i).inputs.front(), {op, gradient.buffer, true}, custom);
      return;
    }
    for (const LayerIndex input : layer(i).inputs) {
      if (!receives_gradient(input)) continue;
      const BufferId made =
          add_buffer(layer(at(input)).name + ".output_gradient", bytes_of(layer(at(input)).output), op);
      contribute(i, input, {op, made, true}, custom);
    }
  }

  void weight_gradient(std::size_t i, const Gradient& gradient) {
    std::vector<OpId> inputs{gradient.op};
    for (const LayerIndex input : layer(i).inputs)
      if (rules_[i].input_for_weights && input != image_input && forward_[at(input)])
        inputs.push_back(*forward_[at(input)]);
    const OpId op = add_kernel(i, *costs_[i].weight_gradient, Phase::weight_gradient, std::move(inputs));
    weight_gradient_[i] = op;
    if (framework_.gradients_aside)
      add_scratch(layer(i).name + ".parameter_gradient", MemoryClass::gradients, 0,
                  element_ * static_cast<double>(layer(i).parameter_elements()), op);
    if (gradient.buffer) use(*gradient.buffer, op);
    if (rules_[i].input_for_weights)
      for (const LayerIndex input : layer(i).inputs) use_saved(input_buffer(input, op), op);
  }

  /// One reader's gradient of a layer's output. From the second reader on they are added up, at the cost of
  /// reading two tensors and writing one; a custom layer's given costs hold that already.
  void contribute(std::size_t reader, LayerIndex to, const Gradient& more, bool sum_is_free) {
    std::optional<Gradient>& total = gradient_[at(to)];
    if (!total) {
      total = more;
      return;
    }
    OpId op = more.op;
    if (!sum_is_free) {
      const int count = ++sums_[at(to)];
      Work work;
      work.kind = KernelKind::elementwise;
      work.phase = Phase::data_gradient;
      work.flops_per_image = static_cast<double>(elements(layer(at(to)).output));
      work.bytes_per_image = 3 * bytes_of(layer(at(to)).output);
      const std::string name =
          layer(at(to)).name + ".gradient_sum" + (count > 1 ? fmt::format("{}", count) : "");
      op = add_operation(name, at(to), work, {total->op, more.op});
      graph_.operations[op].reader = static_cast<std::uint32_t>(reader);
    }
    if (total->buffer) use(*total->buffer, op);
    if (more.buffer) use(*more.buffer, op);
    if (more.own)
      total = Gradient{op, more.buffer, true};
    else if (total->own)
      total->op = op;
    else
      total = Gradient{
          op, add_buffer(layer(at(to)).name + ".output_gradient", bytes_of(layer(at(to)).output), op), true};
  }

  void update(std::size_t i) {
    if (layer(i).parameters.empty()) return;
    const Work work = update_work(layer(i), graph_.options.precision, graph_.options.optimizer);
    const OpId op = add_operation(layer(i).name + ".update", i, work, {*weight_gradient_[i]});
    for (const ParameterTensor& tensor : layer(i).parameters)
      graph_.parameters.push_back({fmt::format("{}.{}", layer(i).name, tensor.name),
                                   static_cast<std::uint32_t>(i), tensor.elements, *first_forward_[i],
                                   *weight_gradient_[i], op});
  }

  TrainingGraph graph_;
  double element_;
  const FrameworkMemory& framework_;
  std::vector<LayerCosts> costs_;
  std::vector<MemoryRules> rules_;
  std::vector<std::uint32_t> readers_;
  std::vector<bool> needs_gradient_;
  std::vector<std::optional<OpId>> forward_;  // of a view: of what it looks at; the last run
  std::vector<std::optional<OpId>> first_forward_;
  OpId forward_count_ = 0;                              // operations of the first run
  bool again_ = false;                                  // forward operations are being run again
  std::vector<std::pair<OpId, BufferId>> overwritten_;  // by operations of the first run
  std::vector<std::optional<OpId>> weight_gradient_;
  std::vector<std::optional<Storage>> storage_;
  std::vector<std::optional<BufferId>> extra_;
  std::vector<std::optional<Gradient>> gradient_;  // of the layer's output
  std::vector<int> sums_;
  std::optional<BufferId> image_;
  std::vector<std::pair<OpId, BufferId>> losses_;
};

}  // namespace

double TrainingGraph::gradient_bytes() const {
  double count = 0;
  for (const Parameter& parameter : parameters) count += static_cast<double>(parameter.elements);
  return count * element_bytes(options.precision);
}

StateBytes TrainingGraph::resident_bytes() const {
  return convoy::resident_bytes(gradient_bytes() / element_bytes(options.precision), options);
}

StateBytes without_optimizer(StateBytes bytes) {
  bytes[static_cast<std::size_t>(MemoryClass::optimizer)] = 0;
  return bytes;
}

StateBytes resident_bytes(double elements, const TrainingOptions& options) {
  static constexpr std::array<double, 3> optimizer_bytes{
      0, 4, 8};  // fp32 state a parameter: none, velocity, two moments
  const double element = element_bytes(options.precision);
  std::array<double, memory_class_count> bytes{};
  const int copies = 1 + framework_memory(options.framework).copies_of_weights;
  bytes[static_cast<std::size_t>(MemoryClass::weights)] =
      (element < 4 ? copies * element + 4 : copies * element) * elements;
  bytes[static_cast<std::size_t>(MemoryClass::gradients)] = element * elements;
  bytes[static_cast<std::size_t>(MemoryClass::optimizer)] =
      optimizer_bytes[static_cast<std::size_t>(options.optimizer)] * elements;
  return bytes;
}

TrainingGraph build_training_graph(const Model& model, const TrainingOptions& options) {
  return Builder(model, options).build();
}

double saved_activation_bytes(const TrainingGraph& graph) {
  double bytes = 0;
  for (const Buffer& buffer : graph.buffers)
    if (buffer.saved) bytes += buffer.bytes_per_image;
  return bytes;
}

}  // namespace convoy
