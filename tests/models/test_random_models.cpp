// SPDX-License-Identifier: MIT
// Laws over random small networks, and a second, slow implementation of shapes and FLOPs that counts one by
// one.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include "models/training_graph.h"
#include "sim/base/data_path.h"
#include "tests/models/model_text.h"

using namespace convoy;

namespace {

constexpr unsigned seed = 20260;
constexpr int rounds = 200;

/// A random network as YAML, with branches that are joined by concat, add or left as outputs.
struct RandomNetwork {
  explicit RandomNetwork(std::mt19937& random) {
    const int channels = pick(random, 1, 6), side = pick(random, 5, 12);
    input = fmt::format("[{}, {}, {}]", channels, side, side);
    const int count = pick(random, 1, 12);
    for (int i = 0; i < count; ++i) {
      const std::string name = fmt::format("n{}", i);
      const std::string reads = i == 0 ? "input" : pick_name(random, i);
      layers += fmt::format("  - {{name: {}, inputs: [{}], {}}}\n", name, reads, body(random));
      if (pick(random, 0, 3) == 0)
        layers += fmt::format("  - {{name: {0}j, kind: {1}, inputs: [{0}, {0}]}}\n", name,
                              pick(random, 0, 1) ? "add" : "concat");
    }
  }

  static int pick(std::mt19937& random, int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  }
  static std::string pick_name(std::mt19937& random, int below) {
    const int i = pick(random, -1, below - 1);
    return i < 0 ? "input" : fmt::format("n{}", i);
  }
  static std::string body(std::mt19937& random) {
    switch (pick(random, 0, 8)) {
      case 0:
        return "kind: relu";
      case 1:
        return "kind: batch_norm";
      case 2:
        return "kind: max_pool, kernel: 2, stride: 1, padding: 1, ceil: true";
      case 3:
        return "kind: dropout";
      case 4:
        return "kind: sigmoid";
      case 5:
        return "kind: avg_pool, kernel: 3, stride: 1, padding: 1";
      default:
        return fmt::format("kind: conv2d, out_channels: {}, kernel: [{}, {}], stride: {}, padding: {}",
                           pick(random, 1, 5), pick(random, 1, 3), pick(random, 1, 3), pick(random, 1, 2),
                           pick(random, 1, 2));
    }
  }

  std::string input, layers;
};

/// Positions a window can take, found by trying every one.
std::int64_t count_positions(std::int64_t in, std::int64_t kernel, std::int64_t stride,
                             std::int64_t padding) {
  std::int64_t count = 0;
  for (std::int64_t begin = -padding; begin + kernel <= in + padding; begin += stride) ++count;
  return count;
}

/// Multiply-adds of a convolution, output by output and weight by weight.
std::int64_t count_macs(const Conv2d& conv, const Shape& in, const Shape& out) {
  std::int64_t macs = 0;
  for (std::int64_t o = 0; o < elements(out); ++o)
    for (std::int64_t c = 0; c < in[0]; ++c) macs += conv.kernel.h * conv.kernel.w;
  return macs;
}

void check_laws(const TrainingGraph& graph) {
  for (std::size_t id = 0; id < graph.operations.size(); ++id) {
    const Operation& op = graph.operations[id];
    CHECK(op.layer < graph.model.layers.size());
    CHECK(op.phase == op.work.phase);
    for (const OpId input : op.inputs) CHECK(input < id);
    CHECK(std::is_sorted(op.inputs.begin(), op.inputs.end()));
    CHECK(op.work.flops_per_image >= 0);
    CHECK(op.work.bytes_per_image >= 0);
    if (op.reader == Operation::no_reader) continue;
    const std::vector<LayerIndex>& read = graph.model.layers[op.reader].inputs;
    CHECK(std::find(read.begin(), read.end(), static_cast<LayerIndex>(op.layer)) != read.end());
    CHECK(op.name.starts_with(graph.model.layers[op.layer].name + ".gradient_sum"));
  }
  std::map<std::string, int> names;
  for (const Operation& op : graph.operations) CHECK(++names[op.name] == 1);
  for (const Buffer& buffer : graph.buffers) {
    CHECK(buffer.born <= buffer.dies);
    CHECK(buffer.dies < graph.operations.size());
    // gradients of parameters are of no image; those of a shared parameter wait for one another
    CHECK((buffer.role == BufferRole::parameter_gradient ? buffer.bytes_fixed : buffer.bytes_per_image) > 0);
    REQUIRE(!buffer.uses.empty());
    CHECK(buffer.uses.front() == buffer.born);
    CHECK(buffer.uses.back() == buffer.dies);
    CHECK(std::adjacent_find(buffer.uses.begin(), buffer.uses.end(), std::greater_equal<>()) ==
          buffer.uses.end());
    if (buffer.saved) CHECK(graph.operations[buffer.born].phase == Phase::forward);
    if (buffer.saved) CHECK(graph.operations[buffer.dies].phase != Phase::forward);
  }
  for (const Parameter& parameter : graph.parameters) {
    CHECK(graph.operations[parameter.first_use].phase == Phase::forward);
    CHECK(graph.operations[parameter.gradient].phase == Phase::weight_gradient);
    CHECK(graph.operations[parameter.update].phase == Phase::update);
    CHECK(graph.operations[parameter.update].inputs == std::vector<OpId>{parameter.gradient});
    CHECK(graph.operations[parameter.gradient].layer == parameter.layer);
  }
  // Multiply-adds: each weight gradient costs its forward pass, and so does each data gradient that there is.
  std::map<std::uint32_t, double> forward;
  for (const Operation& op : graph.operations) {
    const bool multiplies = op.work.kind == KernelKind::convolution || op.work.kind == KernelKind::matmul ||
                            op.work.kind == KernelKind::depthwise_convolution;
    // Attention has a softmax besides, and four or five products backward (test_transformers.cpp).
    if (!multiplies || std::holds_alternative<Attention>(graph.model.layers[op.layer].kind)) continue;
    if (op.phase == Phase::forward)
      forward[op.layer] = op.work.flops_per_image;
    else
      CHECK(op.work.flops_per_image == forward.at(op.layer));
    CHECK(op.work.flops_per_image == 2.0 * static_cast<double>(graph.model.layers[op.layer].macs));
  }
}

}  // namespace

TEST_CASE("a view between a layer and those that read it changes no operation and no byte [law]") {
  std::mt19937 random(seed + 1);
  int with_views = 0;
  for (int round = 0; round < rounds / 4; ++round) {
    const RandomNetwork network(random);
    CAPTURE(network.layers);
    Model model;
    try {
      model = toy(network.input, network.layers);
    } catch (const InputError&) {
      continue;
    }
    // Behind some layers the same values under the same shape, which all others read.
    std::string layers;
    std::map<std::string, std::string> seen_as;
    for (const Layer& layer : model.layers) {
      std::string text = network.layers;
      const std::size_t begin = text.find("{name: " + layer.name + ",");
      text = text.substr(begin, text.find('\n', begin) - begin);
      const std::size_t reads = text.find("inputs: [") + 9, end = text.find(']', reads);
      std::string inputs;
      for (const LayerIndex input : layer.inputs) {
        const std::string name =
            input == image_input ? "input" : model.layers[static_cast<std::size_t>(input)].name;
        inputs += (inputs.empty() ? "" : ", ") + (seen_as.contains(name) ? seen_as[name] : name);
      }
      layers += "  - " + text.replace(reads, end - reads, inputs) + "\n";
      if (RandomNetwork::pick(random, 0, 1)) continue;
      const Shape& shape = layer.output;
      layers += fmt::format("  - {{name: {0}v, kind: reshape, output: [{1}, {2}, {3}], inputs: [{0}]}}\n",
                            layer.name, shape[0], shape[1], shape[2]);
      seen_as[layer.name] = layer.name + "v";
      ++with_views;
    }
    CAPTURE(layers);
    for (const Framework framework : {Framework::pytorch, Framework::tensorflow}) {
      TrainingOptions options{Precision::fp32, Optimizer::momentum};
      options.framework = framework;
      const TrainingGraph plain = build_training_graph(model, options),
                          viewed = build_training_graph(toy(network.input, layers), options);
      CHECK(plain.operations.size() == viewed.operations.size());
      const auto bytes_of = [](const TrainingGraph& graph) {
        std::multiset<std::tuple<OpId, OpId, double>> buffers;
        for (const Buffer& buffer : graph.buffers)
          buffers.emplace(buffer.born, buffer.dies, buffer.bytes_per_image);
        return buffers;
      };
      CHECK(bytes_of(plain) == bytes_of(viewed));
    }
  }
  CHECK(with_views > 20);
}

TEST_CASE("random networks agree with a count one by one, and their graphs are sound") {
  MESSAGE("seed ", seed);
  std::mt19937 random(seed);
  int read = 0;
  for (int round = 0; round < rounds; ++round) {
    const RandomNetwork network(random);
    CAPTURE(network.layers);
    Model model;
    try {
      model = toy(network.input, network.layers);
    } catch (const InputError&) {
      continue;  // shrunk to nothing
    }
    ++read;
    for (const Layer& layer : model.layers) {
      const Shape& in = model.shape_of(layer.inputs[0]);
      if (const auto* conv = std::get_if<Conv2d>(&layer.kind)) {
        CHECK(layer.output == Shape{conv->out_channels,
                                    count_positions(in[1], conv->kernel.h, conv->stride.h, conv->padding.h),
                                    count_positions(in[2], conv->kernel.w, conv->stride.w, conv->padding.w)});
        CHECK(layer.macs == count_macs(*conv, in, layer.output));
        CHECK(layer.parameter_elements() ==
              conv->out_channels * in[0] * conv->kernel.h * conv->kernel.w + conv->out_channels);
      } else if (std::holds_alternative<Pool>(layer.kind)) {
        const bool max = std::get<Pool>(layer.kind).mode == Pool::Mode::max;
        CHECK(layer.output == Shape{in[0], count_positions(in[1], max ? 2 : 3, 1, 1),
                                    count_positions(in[2], max ? 2 : 3, 1, 1)});
      } else if (std::holds_alternative<Concat>(layer.kind)) {
        CHECK(layer.output == Shape{2 * in[0], in[1], in[2]});
      } else {
        CHECK(layer.output == in);
      }
    }
    check_laws(build_training_graph(model, {Precision::fp32, Optimizer::momentum}));
    const double full = saved_activation_bytes(build_training_graph(model, {}));
    const double half =
        saved_activation_bytes(build_training_graph(model, {Precision::fp16, Optimizer::sgd}));
    CHECK(half <= full);
    CHECK(half >= full / 2);
  }
  CHECK(read > rounds / 2);
}

namespace {

/// A chain of layers whose every pair of numbers may differ between rows and columns.
/// @param turned the same network on images with rows for columns
std::string uneven_network(unsigned chain_seed, bool turned) {
  std::mt19937 random(chain_seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto pair = [&](int h, int w) {
    return turned ? fmt::format("[{}, {}]", w, h) : fmt::format("[{}, {}]", h, w);
  };
  /// Numbers from 1 to `most`, drawn in one order whatever the direction.
  const auto drawn = [&](int most) {
    const int h = 1 + below(most), w = 1 + below(most);
    return pair(h, w);
  };
  const int height = 9 + below(12), width = 9 + below(12);
  std::string text =
      fmt::format("name: net\ninput: {}\nlayers:\n", turned ? fmt::format("[3, {}, {}]", width, height)
                                                            : fmt::format("[3, {}, {}]", height, width));
  for (int i = 0, count = 1 + below(5); i < count; ++i) {
    std::string body;
    switch (below(10)) {
      case 0:
        body = "kind: batch_norm";
        break;
      case 1:
        body = "kind: adaptive_avg_pool, size: " + drawn(5);
        break;
      case 2:
        body = "kind: upsample, size: " + drawn(20);
        break;
      case 3:
      case 4: {
        const int h = below(3), w = below(3);
        body = fmt::format("kind: {}_pool, kernel: {}, stride: {}, padding: {}", below(2) ? "max" : "avg",
                           pair(h + 1, w + 1), drawn(3), pair((h + 1) / 2, (w + 1) / 2));
        break;
      }
      case 5: {
        const int top = below(3), left = below(3);
        body = fmt::format("kind: pad, {}: {}, {}: {}", turned ? "left" : "top", top, turned ? "top" : "left",
                           left);
        break;
      }
      case 6: {
        const bool rows = below(2);
        body = fmt::format("kind: slice, axis: {}, first: 0, last: 2", rows != turned ? 1 : 2);
        break;
      }
      case 7:
        body = fmt::format("kind: conv_transpose2d, out_channels: {}, kernel: {}, stride: {}", 1 + below(4),
                           drawn(3), drawn(3));
        break;
      default:
        body =
            fmt::format("kind: conv2d, out_channels: {}, kernel: {}, stride: {}, padding: {}, dilation: {}",
                        1 + below(4), drawn(3), drawn(3), drawn(2), drawn(2));
    }
    text += fmt::format("  - {{name: n{}, {}}}\n", i, body);
  }
  return text + "  - {name: flat, kind: flatten}\n  - {name: fc, kind: linear, out_features: 7}\n";
}

/// Of an operation on images that are turned over.
Work turned_over(Work work) {
  std::swap(work.kernel_h, work.kernel_w);
  std::swap(work.out_h, work.out_w);
  return work;
}

}  // namespace

TEST_CASE("rows and columns are alike: a network turned over computes, moves and holds as much [law]") {
  int compared = 0, uneven = 0;
  for (unsigned chain_seed = 1; chain_seed <= 400; ++chain_seed) {
    CAPTURE(chain_seed);
    const std::string text = uneven_network(chain_seed, false), turned = uneven_network(chain_seed, true);
    CAPTURE(text);
    const std::string error = error_of(text);
    if (!error.empty()) {  // shrunk to nothing
      CHECK_FALSE(error_of(turned).empty());
      continue;
    }
    ++compared;
    for (const Framework framework : {Framework::pytorch, Framework::tensorflow})
      for (const Precision precision : {Precision::fp32, Precision::fp16}) {
        TrainingOptions options{precision, Optimizer::momentum};
        options.framework = framework;
        const TrainingGraph one = build_training_graph(model_from(text), options),
                            other = build_training_graph(model_from(turned), options);
        REQUIRE(one.operations.size() == other.operations.size());
        for (std::size_t id = 0; id < one.operations.size(); ++id) {
          CAPTURE(one.operations[id].name);
          // A linear layer's rows are those of its matrix.
          const Work& work = one.operations[id].work;
          const bool matrix = work.kind == KernelKind::matmul;
          CHECK((matrix ? work : turned_over(work)) == other.operations[id].work);
          uneven += !matrix && work.kernel_h != work.kernel_w;
        }
        REQUIRE(one.buffers.size() == other.buffers.size());
        for (std::size_t b = 0; b < one.buffers.size(); ++b)
          CHECK(one.buffers[b].bytes_per_image == other.buffers[b].bytes_per_image);
        for (std::size_t l = 0; l < one.model.layers.size(); ++l)
          CHECK(one.model.layers[l].parameter_elements() == other.model.layers[l].parameter_elements());
      }
  }
  CHECK(compared > 150);
  CHECK(uneven > 150);
}

TEST_CASE("the graphs of all zoo models are sound") {
  for (std::string name : zoo_names()) {
    if (name == "wrn_DEPTH_WIDTH") name = "wrn_16_2";
    CAPTURE(name);
    check_laws(build_training_graph(model_from(name), {Precision::bf16, Optimizer::adam}));
  }
}
