// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "models/training_graph.h"
#include "tests/models/model_text.h"

using namespace convoy;

namespace {

TrainingGraph graph_of(const Model& model, Recomputation recompute) {
  TrainingOptions options;
  options.recompute = recompute;
  return build_training_graph(model, options);
}

std::string names(const TrainingGraph& graph) {
  std::string text;
  for (const Operation& op : graph.operations) text += op.name + " ";
  return text;
}

/// Most bytes of buffers that are there at a time, of one image.
double peak_bytes(const TrainingGraph& graph) {
  double peak = 0;
  for (OpId op = 0; op < graph.operations.size(); ++op) {
    double live = 0;
    for (const Buffer& buffer : graph.buffers)
      if (buffer.born <= op && op <= buffer.dies) live += buffer.bytes_per_image;
    peak = std::max(peak, live);
  }
  return peak;
}

/// The names of the operations that begin something else than the operation before them: "a.forward" where a
/// segment begins.
std::set<std::string> begins(const TrainingGraph& graph) {
  std::set<std::string> names;
  for (OpId op = 1; op < graph.operations.size(); ++op)
    if (graph.operations[op].again && !graph.operations[op - 1].again)
      names.insert(graph.operations[op].name);
  return names;
}

std::set<std::string> begins(const std::string& model, Recomputation recompute) {
  return begins(graph_of(read_model(parse_yaml(model, "model")), recompute));
}

// Every tensor has 16 values of 4 bytes.
const char* const three_stretches = R"(
  - {name: conv1, kind: conv2d, out_channels: 1, kernel: 1, bias: false}
  - {name: s1, kind: sigmoid}
  - {name: pool1, kind: max_pool, kernel: 1}
  - {name: conv2, kind: conv2d, out_channels: 1, kernel: 1, bias: false}
  - {name: s2, kind: sigmoid}
  - {name: pool2, kind: max_pool, kernel: 1}
  - {name: conv3, kind: conv2d, out_channels: 1, kernel: 1, bias: false}
)";

}  // namespace

TEST_CASE("recomputation runs a segment's forward operations again right before its backward pass") {
  const TrainingGraph graph = graph_of(toy("[1, 4, 4]", three_stretches), Recomputation::blocks);
  CHECK(names(graph) ==
        "conv1.forward s1.forward pool1.forward conv2.forward s2.forward pool2.forward conv3.forward "
        "conv3.data_gradient conv3.weight_gradient "
        "conv2.forward again s2.forward again pool2.forward again "
        "pool2.data_gradient s2.data_gradient conv2.data_gradient conv2.weight_gradient "
        "conv1.forward again s1.forward again pool1.forward again "
        "pool1.data_gradient s1.data_gradient conv1.weight_gradient "
        "conv1.update conv2.update conv3.update ");
  // What runs again reads the segment before in its first run, and gradients read what ran again.
  CHECK(graph.operations[9].inputs == std::vector<OpId>{2});
  CHECK(graph.operations[12].inputs == std::vector<OpId>{7, 10, 11});
  CHECK(graph.operations[9].work == graph.operations[3].work);
  CHECK(graph.parameters[1].first_use == 3);
  CHECK(graph.parameters[1].gradient == 15);
}

TEST_CASE("recomputation keeps the ends of segments, and the peak is the one counted by hand") {
  const Model model = toy("[1, 4, 4]", three_stretches);
  constexpr double tensor = 64, indices = 8 * 16;
  // All: the image, both sigmoids' results and both pools' indices and results. Recomputed: the image and the
  // pools' results.
  CHECK(saved_activation_bytes(graph_of(model, Recomputation::none)) == 5 * tensor + 2 * indices);
  CHECK(saved_activation_bytes(graph_of(model, Recomputation::blocks)) == 3 * tensor);
  // Without: conv3.data_gradient runs with all that is saved and pool2's gradient (made) there, conv3's
  // result has gone: the model has no loss. conv3.forward has as many bytes: its result in the gradient's
  // place.
  CHECK(peak_bytes(graph_of(model, Recomputation::none)) == 6 * tensor + 2 * indices);
  // With: at pool2.data_gradient there are the image, pool1's result, pool2's gradient, s2's result, pool2's
  // indices, s2's gradient. pool2.forward again has its result in place of s2's gradient.
  CHECK(peak_bytes(graph_of(model, Recomputation::blocks)) == 5 * tensor + indices);
}

TEST_CASE("recomputation by blocks cuts after pooling and where branches have come together") {
  const std::string stem =
      "{name: m, input: [3, 8, 8], layers: [{name: stem, kind: conv2d, out_channels: 4, "
      "kernel: 1}, {name: bn, kind: batch_norm}, {name: relu, kind: relu}, ";
  const std::string residual =
      "{name: a1, kind: conv2d, out_channels: 4, kernel: 1}, {name: add1, kind: add, "
      "inputs: [a1, relu]}, {name: relu1, kind: relu}, ";
  const std::string head =
      "{name: pool, kind: max_pool, kernel: 2}, {name: flat, kind: flatten}, {name: fc, kind: linear, "
      "out_features: 2}]}";
  using Names = std::set<std::string>;
  // The first residual block is one segment with the stem, to which no branch comes back; its last ReLU
  // writes over the sum, so the cut is behind it. The head's pooling is one of its own.
  CHECK(begins(stem + residual + head, Recomputation::blocks) ==
        Names{"stem.forward again", "pool.forward again"});
  CHECK(
      begins(stem +
                 "{name: p, kind: max_pool, kernel: 2}, {name: b, kind: conv2d, out_channels: 4, kernel: 1}, "
                 "{name: bn2, kind: batch_norm}, {name: c, kind: add, inputs: [bn2, p]}, " +
                 head,
             Recomputation::blocks) == Names{"stem.forward again", "b.forward again", "pool.forward again"});
  // Nothing but a chain: one segment, the last, of which all is kept.
  CHECK(
      begins(stem + "{name: c, kind: conv2d, out_channels: 4, kernel: 1}]}", Recomputation::blocks).empty());
  // A connection over the rest of the network leaves nowhere to cut behind the first share of the bytes.
  CHECK(begins(stem +
                   "{name: b, kind: conv2d, out_channels: 4, kernel: 1}, {name: p, kind: max_pool, kernel: "
                   "1}, {name: end, kind: add, inputs: [p, relu]}]}",
               Recomputation::sqrt)
            .empty());
}

TEST_CASE("recomputation of sixteen equal layers by sqrt makes four segments of four") {
  std::string layers;
  for (int i = 0; i < 16; ++i)
    layers += "  - {name: s" + std::to_string(i) + ", kind: conv2d, out_channels: 1, kernel: 1}\n";
  const TrainingGraph graph = graph_of(toy("[1, 4, 4]", layers), Recomputation::sqrt);
  using Names = std::set<std::string>;
  CHECK(begins(graph) == Names{"s0.forward again", "s4.forward again", "s8.forward again"});
  // A segment's last result is read by the next segment alone, which has kept it.
  CHECK(std::count_if(graph.operations.begin(), graph.operations.end(),
                      [](const Operation& op) { return op.again; }) == 9);
}

TEST_CASE("recomputation of every zoo model runs forward operations at most twice and saves memory") {
  for (const std::string& name : zoo_names()) {
    if (name.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") != std::string::npos) continue;
    CAPTURE(name);
    const Model model = read_model(parse_yaml(name, "model"));
    const TrainingGraph plain = graph_of(model, Recomputation::none);
    for (const Recomputation how : {Recomputation::blocks, Recomputation::sqrt}) {
      const TrainingGraph graph = graph_of(model, how);
      std::map<std::string, int> runs;
      for (const Operation& op : graph.operations) ++runs[op.name];
      std::size_t again = 0;
      for (const Operation& op : plain.operations) {
        CHECK(runs[op.name] == 1);
        again += static_cast<std::size_t>(runs[op.name + " again"]);
        if (op.phase != Phase::forward) CHECK(runs[op.name + " again"] == 0);
      }
      CHECK(graph.operations.size() == plain.operations.size() + again);
      for (OpId op = 0; op < graph.operations.size(); ++op)
        for (const OpId input : graph.operations[op].inputs) CHECK(input < op);
      CHECK(saved_activation_bytes(graph) <= saved_activation_bytes(plain));
      CHECK(graph.resident_bytes() == plain.resident_bytes());
      CHECK(peak_bytes(graph) <= peak_bytes(plain));
    }
  }
}
