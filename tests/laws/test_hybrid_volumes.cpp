// SPDX-License-Identifier: MIT
// What hybrid parallelism sends, against a second way to find it: devices have sets of values (images,
// channels, rows, columns), and each value that a device needs and has not is sent to it once.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "sim/base/input_error.h"
#include "tests/laws/random_experiment.h"
#include "tests/support/approx.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

enum Axis { images, channels, volume_rows, columns };

/// The values of a tensor that a device has: the product of its indices along the axes.
using Box = std::array<std::set<std::int64_t>, 4>;
/// By device; `sum`: every device has full size, to be added up.
struct Lies {
  std::vector<Box> boxes;
  bool whole = false, sum = false;
};

std::set<std::int64_t> all_of(std::int64_t size) {
  std::set<std::int64_t> indices;
  for (std::int64_t i = 0; i < size; ++i) indices.insert(i);
  return indices;
}

double size(const Box& box) {
  double product = 1;
  for (const auto& axis : box) product *= static_cast<double>(axis.size());
  return product;
}

double common(const Box& a, const Box& b) {
  Box both;
  for (std::size_t axis = 0; axis < a.size(); ++axis)
    std::set_intersection(a[axis].begin(), a[axis].end(), b[axis].begin(), b[axis].end(),
                          std::inserter(both[axis], both[axis].begin()));
  return size(both);
}

bool is_grid(const std::string& layout) { return layout.size() == 3 && layout[1] == 'x'; }

/// A network without branches in which each layer lies on n devices as the rules say, and the bytes that they
/// send.
class Chain {
 public:
  Chain(const Model& model, std::int64_t devices, std::int64_t batch)
      : model_(model), n_(devices), batch_(batch) {}

  /// @param layouts of each layer; "" follows
  double bytes(const std::vector<std::string>& layouts) {
    double values = 0;
    Lies made;
    bool from_image = true, gradient = false;  // whether the tensor between two layers has one
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      const Layer& layer = model_.layers[i];
      const Shape in = shape(model_.shape_of(static_cast<LayerIndex>(i) - 1)), out = shape(layer.output);
      const std::string layout = layouts[i].empty() ? followed(layer, made) : layouts[i];
      Lies own, needed;  // of the input, without and with others' rows
      bool partial_gradient = false;
      if (layout == "batch") {
        own = needed = split(in, images);
      } else if (const std::int64_t across = columns_of(layout); across > 0) {
        own = needed = split_by_space(in, across);
        const Lies results = split_by_space(out, across);
        for (std::int64_t d = 0; d < n_; ++d)
          for (const Axis axis : {volume_rows, columns})
            add_windows(layer, axis, in, results.boxes[at(d)], needed.boxes[at(d)]);
      } else if (layout == "channel" || layout == "features") {
        own = needed = split(in, channels);
        if (layout == "features") own = needed = made;
      } else {
        own.whole = needed.whole = true;
        partial_gradient = layout == "filter";
      }
      if (!from_image) {
        values += brought(made, own, needed, in);
        if (gradient) values += brought_back(made, own, needed, in, partial_gradient);
      }
      gradient = gradient || !layer.parameters.empty();
      from_image = false;
      made = made_by(layer, layout, out);
    }
    // Whoever computes the loss needs the last sum.
    if (made.sum && gradient)
      values += 2 * static_cast<double>(n_ - 1) * this->values(shape(model_.layers.back().output));
    return values * 4;
  }

 private:
  static std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }
  static Shape shape(const Shape& shape) { return shape.size() == 1 ? Shape{shape[0], 1, 1} : shape; }
  double values(const Shape& shape) const { return static_cast<double>(batch_ * elements(shape)); }

  Lies split(const Shape& shape, Axis axis) const {
    const std::array<std::int64_t, 4> sizes{batch_, shape[0], shape[1], shape[2]};
    Lies lies;
    for (std::int64_t d = 0; d < n_; ++d) {
      Box box;
      for (std::size_t a = 0; a < 4; ++a)
        box[a] = a == static_cast<std::size_t>(axis) ? part_of(sizes[a], n_, d) : all_of(sizes[a]);
      lies.boxes.push_back(box);
    }
    return lies;
  }

  /// Devices side by side where rows and columns are split, "2x3" for two rows of three; 0 where neither is.
  std::int64_t columns_of(const std::string& layout) const {
    if (layout == "height" || layout == "width") return layout == "height" ? 1 : n_;
    return is_grid(layout) ? layout[2] - '0' : 0;
  }

  /// By rows and columns of a grid with `across` devices in each row.
  Lies split_by_space(const Shape& shape, std::int64_t across) const {
    Lies lies;
    for (std::int64_t d = 0; d < n_; ++d)
      lies.boxes.push_back({all_of(batch_), all_of(shape[0]), part_of(shape[1], n_ / across, d / across),
                            part_of(shape[2], across, d % across)});
    return lies;
  }

  /// Part `part` of consecutive indices; what does not divide gives the first parts one more.
  static std::set<std::int64_t> part_of(std::int64_t size, std::int64_t parts, std::int64_t part) {
    std::set<std::int64_t> indices;
    const std::int64_t before = part * (size / parts) + std::min(part, size % parts);
    for (std::int64_t i = 0; i < size / parts + (part < size % parts ? 1 : 0); ++i)
      indices.insert(before + i);
    return indices;
  }

  Lies made_by(const Layer& layer, const std::string& layout, const Shape& out) const {
    if (layout == "batch") return split(out, images);
    if (layout == "filter" || layout == "features") return split(out, channels);
    if (std::holds_alternative<AdaptiveAvgPool>(layer.kind) && layout != "replicated")
      return {{}, false, true};
    if (const std::int64_t across = columns_of(layout); across > 0) return split_by_space(out, across);
    return {{}, layout == "replicated", layout == "channel"};
  }

  std::string followed(const Layer&, const Lies& made) const {
    if (made.whole || made.sum) return "replicated";
    const Box &first = made.boxes.front(), &last = made.boxes.back();
    if (first[images] != last[images]) return "batch";
    if (first[channels] != last[channels]) return "features";
    std::set<std::set<std::int64_t>> across;
    for (const Box& box : made.boxes) across.insert(box[columns]);
    return fmt::format("{}x{}", made.boxes.size() / across.size(), across.size());
  }

  static void add_windows(const Layer& layer, Axis axis, const Shape& in, const Box& out, Box& box) {
    Size2 kernel{1, 1}, stride{1, 1}, padding{0, 0}, dilation{1, 1};
    if (const auto* conv = std::get_if<Conv2d>(&layer.kind))
      kernel = conv->kernel, stride = conv->stride, padding = conv->padding, dilation = conv->dilation;
    if (const auto* pool = std::get_if<Pool>(&layer.kind))
      kernel = pool->kernel, stride = pool->stride, padding = pool->padding;
    if (std::holds_alternative<AdaptiveAvgPool>(layer.kind)) return;
    const bool h = axis == volume_rows;
    for (const std::int64_t o : out[axis])
      for (std::int64_t t = 0; t < (h ? kernel.h : kernel.w); ++t) {
        const std::int64_t i =
            o * (h ? stride.h : stride.w) + t * (h ? dilation.h : dilation.w) - (h ? padding.h : padding.w);
        if (i >= 0 && i < in[h ? 1 : 2]) box[axis].insert(i);
      }
  }

  /// Sent so that everybody has what it needs: first its own share, then others' rows.
  double brought(const Lies& made, const Lies& own, const Lies& needed, const Shape& in) const {
    const double all = values(in), others = static_cast<double>(n_ - 1);
    if (made.whole) return halo(own, needed);
    if (made.sum) return own.whole ? 2 * others * all : others * all + halo(own, needed);
    double sum = halo(own, needed);
    for (std::int64_t d = 0; d < n_; ++d)
      sum += own.whole ? all - size(made.boxes[at(d)])
                       : size(own.boxes[at(d)]) - common(own.boxes[at(d)], made.boxes[at(d)]);
    return sum;
  }

  /// Of the gradient: to the producer's share, or added up for everyone where everyone has the tensor.
  double brought_back(const Lies& made, const Lies& own, const Lies& needed, const Shape& in,
                      bool partial) const {
    const double all = values(in), others = static_cast<double>(n_ - 1);
    const bool for_all = made.whole || made.sum;
    if (own.whole && !partial) return 0;  // all have all of it
    if (own.whole) return (for_all ? 2 : 1) * others * all;
    if (for_all) return others * all + halo(own, needed);
    double sum = halo(own, needed);
    for (std::int64_t d = 0; d < n_; ++d)
      sum += size(made.boxes[at(d)]) - common(own.boxes[at(d)], made.boxes[at(d)]);
    return sum;
  }

  double halo(const Lies& own, const Lies& needed) const {
    double sum = 0;
    for (std::size_t d = 0; d < own.boxes.size(); ++d) {
      Box both = needed.boxes[d];
      for (std::size_t axis = 0; axis < 4; ++axis)
        both[axis].insert(own.boxes[d][axis].begin(), own.boxes[d][axis].end());
      sum += size(both) - size(own.boxes[d]);
    }
    return sum;
  }

  const Model& model_;
  std::int64_t n_, batch_;
};

struct RandomChain {
  std::string text;
  std::vector<std::string> names;  ///< of layers that get a layout
};

RandomChain random_chain(Dice& dice) {
  RandomChain chain;
  std::string layers;
  const auto add = [&](const std::string& keys) { layers += "{" + keys + "}, "; };
  const int convolutions = dice.between(1, 4);
  for (int i = 0; i < convolutions; ++i) {
    chain.names.push_back(fmt::format("conv{}", i));
    const int kernel = dice.one_of<int>({1, 2, 3, 5});
    add(fmt::format(
        "name: conv{}, kind: conv2d, out_channels: {}, kernel: {}, stride: {}, padding: {}, dilation: {}", i,
        dice.between(5, 12), kernel, dice.between(1, 2), dice.between(0, kernel / 2 + 1),
        kernel == 3 ? dice.between(1, 2) : 1));
    if (dice.coin()) add(fmt::format("name: bn{}, kind: batch_norm", i));
    if (dice.coin()) add(fmt::format("name: relu{}, kind: relu", i));
    if (dice.between(0, 2) == 0)
      add(fmt::format("name: pool{}, kind: {}, kernel: {}, stride: {}", i,
                      dice.coin() ? "max_pool" : "avg_pool", dice.between(2, 3), dice.between(1, 2)));
  }
  add("name: mean, kind: adaptive_avg_pool, size: 1");
  add("name: flat, kind: flatten");
  for (int i = 0; i < dice.between(1, 3); ++i) {
    chain.names.push_back(fmt::format("fc{}", i));
    add(fmt::format("name: fc{}, kind: linear, out_features: {}", i, dice.between(5, 20)));
    if (dice.coin()) add(fmt::format("name: frelu{}, kind: relu", i));
  }
  chain.text = fmt::format("{{name: chain, input: [6, 24, 20], layers: [{}]}}", layers);
  return chain;
}

}  // namespace

TEST_CASE("hybrid: a chain of layers sends every value that a device needs and has not, once") {
  int compared = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    Dice dice(seed);
    const RandomChain chain = random_chain(dice);
    const int devices = dice.between(2, 6), replicas = dice.between(1, 2);
    const int across = devices % 2 == 0 && dice.coin() ? devices / 2 : dice.coin() ? devices : 1;
    const std::string grid = fmt::format("{}x{}", devices / across, across);
    const std::int64_t batch = replicas * dice.between(devices, 3 * devices);
    std::string groups;
    std::map<std::string, std::string> layout_of;
    for (const std::string& name : chain.names) {
      const bool conv = name.starts_with("conv");
      layout_of[name] = dice.one_of<std::string>(
          conv ? std::vector<std::string>{"batch", "filter", "channel", "height", "width", grid, "replicated"}
               : std::vector<std::string>{"batch", "filter", "channel", "replicated"});
      groups += fmt::format("{{layers: {}, layout: {}}}, ", name,
                            is_grid(layout_of[name])
                                ? fmt::format("{{height: {}, width: {}}}", grid.front(), grid.back())
                                : layout_of[name]);
    }
    const std::string strategy =
        fmt::format("{{kind: hybrid, replicas: {}, groups: [{}]}}", replicas, groups);
    CAPTURE(seed);
    CAPTURE(chain.text);
    CAPTURE(strategy);
    CAPTURE(devices);
    CAPTURE(batch);
    try {
      const Model model = read_model(parse_yaml(chain.text, "model"));
      const Experiment experiment = Experiment::with_global_batch(
          chain.text, star(devices * replicas, "10Gbps", "1us"), strategy, batch);
      double expected = 0;
      std::vector<std::string> layouts;
      for (const Layer& layer : model.layers) {
        const std::string& layout = layouts.emplace_back(layout_of[layer.name]);
        if (layer.parameters.empty()) continue;
        // Weights: all-reduce 2 (n - 1) S over those that have the same ones.
        const bool norm = std::holds_alternative<Normalization>(layer.kind);
        const double all = 4.0 * static_cast<double>(layer.parameter_elements());
        const std::string of = norm ? layout_of["conv" + layer.name.substr(2)] : layout;
        const double bias =
            of == "channel" && !norm ? 4.0 * static_cast<double>(layer.parameters[1].elements) : 0.0;
        if (of == "batch" || of == "height" || of == "width" || is_grid(of))
          expected += 2.0 * (devices * replicas - 1) * all;
        else if (of == "replicated" || (of == "channel" && norm))
          expected += 2.0 * (replicas - 1) * devices * all;
        else
          expected += 2.0 * (replicas - 1) * (all + (devices - 1) * bias);
      }
      expected += replicas * Chain(model, devices, batch / replicas).bytes(layouts);
      CHECK(experiment.run().comm_bytes == approx(expected).epsilon(1e-9));
      ++compared;
    } catch (const InputError& error) {  // padding that leaves nothing, fewer rows than devices
      CAPTURE(error.what());
      const std::string what = error.what();
      CHECK(
          (what.find("too few for") != std::string::npos || what.find("kernel spans") != std::string::npos));
    }
  }
  CHECK(compared >= 150);
}

TEST_CASE(
    "hybrid: heads and hidden features of a transformer split as Megatron-LM splits them [closed form]") {
  // Two blocks of 12 channels in 4 heads on 6 + 1 tokens. Shoeybi et al., arXiv:1909.08053, section 3: one
  // all-reduce of the tokens after attention and one after the hidden layer, forward, and as many of
  // gradients backward. Nothing else has a gradient that is summed, but for what every device computes alike.
  const auto text = [](const std::string& packed_heads) {
    std::string layers = "{name: token, kind: class_token}, ";
    for (const char* block : {"a", "b"})
      layers += fmt::format(
          "{{name: {0}norm, kind: layer_norm}}, {{name: {0}qkv, kind: linear, channels: true, out_features: "
          "36}}, {{name: {0}attention, kind: attention, heads: {1}}}, {{name: {0}project, kind: linear, "
          "channels: true, out_features: 12}}, {{name: {0}expand, kind: linear, channels: true, "
          "out_features: "
          "48}}, {{name: {0}gelu, kind: gelu}}, {{name: {0}contract, kind: linear, channels: true, "
          "out_features: 12}}, ",
          block, packed_heads);
    return fmt::format("{{name: tokens, input: [12, 6], layers: [{}]}}", layers);
  };
  const std::int64_t batch = 4;
  for (const int devices : {2, 4}) {
    CAPTURE(devices);
    const auto sent = [&](const std::string& heads) {
      return Experiment::with_global_batch(text(heads), star(devices, "10Gbps", "1us"),
                                           "{kind: hybrid, fc: pairs}", batch)
          .run()
          .comm_bytes;
    };
    const double tokens = 4.0 * 12 * 7 * static_cast<double>(batch);
    CHECK(sent("4") == approx(2 * (2 + 2) * 2.0 * (devices - 1) * tokens).epsilon(1e-9));
    // Three heads lie on two devices: every device computes attention from what it gathers.
    CHECK(sent("3") > sent("4"));
  }
}

TEST_CASE("hybrid: convolutions of volumes split by channels in pairs, and not by rows") {
  const std::string model =
      "{name: volumes, input: [4, 3, 3, 3], layers: [{name: a, kind: conv3d, out_channels: 8, kernel: 3, "
      "padding: 1}, {name: relu, kind: relu}, {name: b, kind: conv3d, out_channels: 6, kernel: 1}]}";
  const auto sent = [&](const std::string& layout) {
    return Experiment::with_global_batch(model, star(2, "10Gbps", "1us"),
                                         "{kind: hybrid, conv: " + layout + "}", 4)
        .run()
        .comm_bytes;
  };
  // One sum of the result of four images over two devices.
  CHECK(sent("pairs") == approx(2.0 * 1 * 4 * 6 * 27 * 4).epsilon(1e-9));
  CHECK_THROWS_AS(sent("height"), InputError);
}

TEST_CASE("grouped convolutions of volumes are split between groups, as those of images are") {
  const auto sent = [](const std::string& kind, const std::string& input) {
    const std::string model = fmt::format(
        "{{name: grouped, input: {1}, layers: [{{name: a, kind: {0}, out_channels: 8, kernel: 1}}, {{name: "
        "b, "
        "kind: {0}, out_channels: 8, kernel: 1, groups: 4}}]}}",
        kind, input);
    return Experiment::with_global_batch(model, star(2, "10Gbps", "1us"), "{kind: hybrid, conv: filter}", 4)
        .run()
        .comm_bytes;
  };
  CHECK(sent("conv3d", "[4, 3, 3, 3]") == approx(sent("conv2d", "[4, 9, 3]")).epsilon(1e-9));
}
