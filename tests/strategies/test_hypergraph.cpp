// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <variant>
#include <vector>

#include "sim/base/input_error.h"
#include "strategies/hypergraph/node_hypergraph.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

lab::Experiment experiment(const std::string& model, int devices, const std::string& options,
                           std::int64_t batch) {
  return {model, lab::star(devices, "1GB/s", "10us"), "{kind: hypergraph" + options + "}", batch};
}

std::string error_of(int devices, const std::string& options) {
  try {
    experiment("vgg16_cifar10", devices, options, 3);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

NodeHypergraph hypergraph_of(const std::string& model, Granularity granularity) {
  return make_hypergraph(build_training_graph(read_model(parse_yaml(model, "model")), {}), granularity, 2,
                         0.1);
}

constexpr Granularity by_channel{Granularity::Kind::channel, 1};

}  // namespace

TEST_CASE("vertices are channels with the layers that follow them, nets their outputs with all readers") {
  // 2x4x4 image -> conv of 3 channels 4x4, relu, pooled to 2x2 -> 12 features -> 5 neurons.
  const NodeHypergraph nodes = hypergraph_of(
      "{name: toy, input: [2, 4, 4], layers: [{name: conv, kind: conv2d, out_channels: 3, kernel: 3, "
      "padding: 1}, "
      "{name: relu, kind: relu}, {name: pool, kind: max_pool, kernel: 2}, {name: flatten, kind: flatten}, "
      "{name: fc, kind: linear, out_features: 5}]}",
      by_channel);
  const LayeredHypergraph& graph = nodes.graph;
  REQUIRE(graph.weight.size() == 3 + 5);
  // Forward and weight gradient of a conv channel (no data gradient into the image): 2 * 2*9*16 FLOPs each;
  // relu 16 forward and 16 backward; pooling 4 * 4 forward, 4 backward.
  CHECK(graph.weight[0] == 2 * 2 * 2 * 9 * 16 + 16 + 16 + 16 + 4);
  // A neuron: 2 * 12 FLOPs in each of forward, data and weight gradient.
  CHECK(graph.weight[3] == 3 * 2 * 12);
  REQUIRE(graph.nets.size() == 3);  // nobody reads the neurons
  for (std::uint32_t c = 0; c < 3; ++c) {
    CHECK(graph.nets[c].cost == approx(2 * 4 * 4));  // 2x2 pooled values of 4 bytes, there and back
    CHECK(graph.nets[c].pins == std::vector<std::uint32_t>{c, 3, 4, 5, 6, 7});
  }
}

TEST_CASE("grouped convolutions read their group, concatenations and slices what they are made of") {
  const NodeHypergraph nodes = hypergraph_of(
      "{name: toy, input: [2, 4, 4], layers: [{name: a, kind: conv2d, out_channels: 4, kernel: 1}, "
      "{name: b, kind: conv2d, out_channels: 4, kernel: 1, groups: 2}, "
      "{name: c, kind: concat, inputs: [a, b]}, {name: s, kind: slice, first: 3, last: 6}, "
      "{name: d, kind: conv2d, out_channels: 1, kernel: 1}]}",
      by_channel);
  REQUIRE(nodes.graph.weight.size() == 4 + 4 + 1);
  std::map<std::uint32_t, std::vector<std::uint32_t>> readers;  // by vertex, over all of its nets
  for (const Hypergraph::Net& net : nodes.graph.nets)
    for (std::size_t i = 1; i < net.pins.size(); ++i) readers[net.pins[0]].push_back(net.pins[i]);
  CHECK(readers[0] == std::vector<std::uint32_t>{4, 5});
  CHECK(readers[2] == std::vector<std::uint32_t>{6, 7});
  CHECK(readers[3] == std::vector<std::uint32_t>{6, 7, 8});  // channels 3, 4 and 5 of the eight reach d
  CHECK(readers[4] == std::vector<std::uint32_t>{8});
  CHECK(readers[5] == std::vector<std::uint32_t>{8});
  CHECK(readers.count(6) == 0);
}

TEST_CASE("cuts and joins along rows and columns keep channels, and transposing channels reads all of them") {
  const auto vertices = [](const std::string& layer) {
    return hypergraph_of(
               "{name: toy, input: [2, 4, 4], layers: [{name: a, kind: conv2d, out_channels: 4, kernel: "
               "1}, " +
                   layer + ", {name: d, kind: conv2d, out_channels: 1, kernel: 1}]}",
               by_channel)
        .graph;
  };
  // They belong to a's channels, of which d's one channel reads every one.
  for (const char* layer :
       {"{name: x, kind: slice, axis: 1, first: 1, last: 3}",
        "{name: x, kind: concat, axis: 2, inputs: [a, a]}", "{name: x, kind: transpose, axes: [0, 2, 1]}"}) {
    CAPTURE(layer);
    const LayeredHypergraph graph = vertices(layer);
    REQUIRE(graph.weight.size() == 4 + 1);
    REQUIRE(graph.nets.size() == 4);
    for (std::uint32_t c = 0; c < 4; ++c) CHECK(graph.nets[c].pins == std::vector<std::uint32_t>{c, 4});
  }
  // Every second channel of a, as vertices of its own: 4 reads channel 0, 5 channel 2.
  const LayeredHypergraph strided = vertices("{name: x, kind: slice, first: 0, last: 4, step: 2}");
  REQUIRE(strided.weight.size() == 4 + 2 + 1);
  REQUIRE(strided.nets.size() == 2 + 2);
  CHECK(strided.nets[0].pins == std::vector<std::uint32_t>{0, 4});
  CHECK(strided.nets[1].pins == std::vector<std::uint32_t>{2, 5});
  // Channels become rows: each of x's four reads all of a's.
  const LayeredHypergraph mixed = vertices("{name: x, kind: transpose, axes: [1, 0, 2]}");
  REQUIRE(mixed.weight.size() == 4 + 4 + 1);
  for (std::uint32_t c = 0; c < 4; ++c)
    CHECK(mixed.nets[c].pins == std::vector<std::uint32_t>{c, 4, 5, 6, 7});
}

TEST_CASE("collapsing channels into blocks changes no weight and no volume") {
  const NodeHypergraph fine = hypergraph_of("vgg16_cifar10", by_channel);
  for (const Granularity granularity : {Granularity{}, Granularity{Granularity::Kind::channels, 16},
                                        Granularity{Granularity::Kind::layer, 1}}) {
    const NodeHypergraph coarse = hypergraph_of("vgg16_cifar10", granularity);
    const auto weight = [](const NodeHypergraph& n) {
      return std::accumulate(n.graph.weight.begin(), n.graph.weight.end(), 0.0);
    };
    CHECK(weight(coarse) == approx(weight(fine)).epsilon(1e-12));
    Parts of_fine, of_coarse;  // a border after the fourth convolution
    for (const std::uint32_t layer : fine.graph.layer) of_fine.push_back(layer > 7 ? 1 : 0);
    for (const std::uint32_t layer : coarse.graph.layer) of_coarse.push_back(layer > 7 ? 1 : 0);
    CHECK(connectivity(coarse.graph, of_coarse) == approx(connectivity(fine.graph, of_fine)).epsilon(1e-12));
  }
}

// Gradients that parts make of the same nodes are added up, too (test_node_shares.cpp): there are at least as many
// additions as on one device, and as many where each layer is in one part.
TEST_CASE("what is sent is the connectivity of the partition, and all operations run once for every image") {
  for (const std::string& model :
       {std::string("vgg16_cifar10"), std::string("resnet18"), std::string("googlenet"),
        std::string("shufflenet_v2_x1_0"), std::string("densenet121")}) {
    for (const std::string method : {"hypergraph", "layerwise", "even", "random"}) {
      for (const int parts : {2, 3}) {
        CAPTURE(model);
        CAPTURE(method);
        CAPTURE(parts);
        const lab::Experiment e = experiment(model, parts, ", micro_batches: 2, method: " + method, 2);
        const ReplayResult result = e.run();
        CHECK(result.comm_bytes == approx(e.report().partition->connectivity_bytes).epsilon(1e-9));
        std::map<std::string, double> done, added, to_add;  // added: by layer
        double work = 0;
        for (const Role& role : e.plan().roles)
          for (const Task& task : role.program)
            for (const PlanOp& op : task.ops) {
              const std::string name = op.name.substr(0, op.name.find(" #"));
              const double flops = op.work.flops_per_image * op.images + op.work.flops_fixed;
              done[name] += flops;
              if (name.find("gradient_sum") != std::string::npos)
                added[name.substr(0, name.rfind('.'))] += flops;
            }
        for (const Operation& operation : e.graph().operations) {
          CAPTURE(operation.name);
          const double images = operation.phase == Phase::update ? 1 : 2 * parts;
          const double expected = operation.work.flops_per_image * images + operation.work.flops_fixed;
          if (operation.part == OperationPart::gradient_sum)
            to_add[e.graph().model.layers[operation.layer].name] += expected;
          else
            CHECK(done[operation.name] == approx(expected).epsilon(1e-9));
          work += expected;
        }
        for (const Layer& layer : e.graph().model.layers) {
          CAPTURE(layer.name);
          if (method == "layerwise") CHECK(added[layer.name] == approx(to_add[layer.name]).epsilon(1e-9));
          CHECK(added[layer.name] >= to_add[layer.name] * (1 - 1e-9));
        }
        CHECK(result.step_time_s >= work / 10e12 / parts);
      }
    }
  }
}

TEST_CASE("parts keep their own weights: together exactly one copy") {
  const lab::Experiment e = experiment("resnet18", 4, "", 2);
  double weights = 0;
  for (const Role& role : e.plan().roles)
    weights += role.resident_bytes[static_cast<std::size_t>(MemoryClass::weights)];
  CHECK(weights == approx(e.graph().resident_bytes()[static_cast<std::size_t>(MemoryClass::weights)]));
}

TEST_CASE("parts hold what they make: together what one device does, and what they send each other [law]") {
  const auto allocated = [](const lab::Experiment& e) {
    double bytes = 0;
    for (const Role& role : e.plan().roles)
      for (const Task& task : role.program)
        for (const PlanOp& op : task.ops)
          for (const MemoryDelta& delta : op.allocates)
            bytes += delta.bytes * static_cast<double>(role.members.size());
    return bytes;
  };
  for (const int parts : {2, 3, 4})
    for (const std::string more : {"", "{name: relu, kind: relu}, ", "{name: bn, kind: batch_norm}, "})
      for (const int channels : {4, 7, 12}) {
        CAPTURE(parts);
        CAPTURE(more);
        CAPTURE(channels);
        // No channel reads another one, so that nothing is sent; each part reads the whole image.
        const std::string model = fmt::format(
            "{{name: net, input: [3, 8, 8], layers: [{{name: conv, kind: conv2d, out_channels: {}, "
            "kernel: 3, padding: 1}}, {}{{name: pool, kind: max_pool, kernel: 2}}]}}",
            channels, more);
        const lab::Experiment e = experiment(model, parts, ", method: even, granularity: channel", 2);
        const lab::Experiment single = lab::Experiment::with_global_batch(
            model, lab::star(1, "1GB/s", "10us"), "{kind: single}", 2 * parts);
        CHECK(e.run().comm_bytes == 0);
        double images = 0;
        for (const Buffer& buffer : e.graph().buffers)
          if (buffer.role == BufferRole::image) images += buffer.bytes_per_image * 2 * parts;
        CHECK(allocated(e) == approx(allocated(single) + (parts - 1) * images).epsilon(1e-9));
      }
}

TEST_CASE("one part is exactly the single strategy") {
  for (const std::string more : {"", ", micro_batches: 4"}) {
    const lab::Experiment one = experiment("resnet18", 1, more, 8);
    const lab::Experiment single("resnet18", lab::star(1, "1GB/s", "10us"), "{kind: single" + more + "}", 8);
    const ReplayResult a = one.run(), b = single.run();
    CHECK(a.step_time_s == approx(b.step_time_s).epsilon(1e-12));
    CHECK(a.endpoints[0].peak_memory_bytes == b.endpoints[0].peak_memory_bytes);
    CHECK(a.comm_bytes == 0);
  }
}

TEST_CASE("two layers on two parts, two micro-batches, by hand") {
  // 5 images a micro-batch, 10 TFLOPS: forward 0.5 ms, backward 1 ms a layer; 10 values of 5 images: 200
  // bytes, d = 10.2 us. Part 0: forwards until 1 ms. Part 1: forward 0 at 0.5 + d, backward 0 until 2 + d,
  // forward and backward 1 until 3.5 + d. Part 0 gets that gradient at 3.5 + 2d and needs 1 ms more.
  const ReplayResult result =
      experiment(lab::custom_model(2, 0), 2, ", micro_batches: 2, method: layerwise", 5).run();
  CHECK(result.step_time_s == approx(4.5e-3 + 2 * 10.2e-6).epsilon(1e-9));
  CHECK(result.comm_bytes == 2 * 2 * 200);
}

TEST_CASE("micro-batches under way shorten the step of a partition in layers") {
  const auto step_s = [](int micro_batches) {
    return experiment("vgg16_cifar10", 4, fmt::format(", micro_batches: {}", micro_batches), 16)
        .run()
        .step_time_s;
  };
  CHECK(step_s(4) < 0.7 * step_s(1));
}

TEST_CASE("VGG-16 on CIFAR-10, batch 64: 93 % less is sent than by data parallelism, within four points") {
  for (const int parts : {2, 4, 8}) {
    CAPTURE(parts);
    const lab::Experiment e = experiment("vgg16_cifar10", parts, ", granularity: 8", 64 / parts);
    const double all_reduce = 2.0 * (parts - 1) * e.graph().gradient_bytes();
    CHECK(std::abs(e.report().partition->connectivity_bytes / all_reduce - 0.07) < 0.04);
    CHECK(e.report().partition->load_imbalance <= 1.1 + 1e-9);
  }
}

TEST_CASE("fewer bytes than any other balanced way to split, and better balance than whole layers") {
  for (const std::string model : {"vgg16_cifar10", "alexnet"}) {
    CAPTURE(model);
    std::map<std::string, PartitionSummary> of;
    for (const std::string method : {"hypergraph", "layerwise", "even", "random"})
      of[method] = *experiment(model, 4, ", method: " + method, 16).report().partition;
    CHECK(of["hypergraph"].connectivity_bytes < of["even"].connectivity_bytes / 3);
    CHECK(of["hypergraph"].connectivity_bytes < of["random"].connectivity_bytes / 3);
    CHECK(of["hypergraph"].load_imbalance <= 1.1 + 1e-9);
    CHECK(of["layerwise"].load_imbalance > 1.1);
  }
}

TEST_CASE("wrong parts, batches and granularities are errors that say what is allowed") {
  CHECK(error_of(2, ", parts: 4") ==
        "strategy:1:27: strategy.parts: 4 parts need a device each, and the cluster has 2; at most 2 here");
  CHECK(error_of(1025, "") ==
        "strategy:1:1: strategy.parts: the cluster has 1025 devices, and a network is cut into at most 1024 "
        "parts; write parts: 1024, or less");
  CHECK(error_of(2, ", micro_batches: 4") ==
        "test:1:1: training.batch_per_device: 3 on each of 2 devices, 6 images in all, cannot be divided "
        "into 4 micro-batches; 2 or 4 can");
  CHECK(error_of(2, ", granularity: fine") ==
        "strategy:1:33: strategy.granularity: unknown value 'fine'; allowed: auto, channel, layer");
  CHECK(
      error_of(2, ", method: even, granularity: layer") ==
      "strategy:1:47: strategy.granularity: layer leaves one vertex a layer, and method: even shares out the "
      "vertices of each layer: the first part would get everything; use auto, channel or a number, or "
      "method: "
      "layerwise");
  CHECK(error_of(2, ", epsilon: -0.1") ==
        "strategy:1:29: strategy.epsilon: -0.1 is out of range: between 0 and 1000 is allowed");
  CHECK(error_of(2, ", seed: 3") ==
        "strategy:1:26: strategy.seed: goes with method: random only; leave it out");
}

TEST_CASE("a device of half the speed gets half as much, unless all are to get the same") {
  // Layers of 48 equal channels on devices of 10 and 5 TFLOP/s: two thirds and one third.
  const auto busy = [](const std::string& shares) {
    const lab::Experiment lab{
        "{name: wide, input: [48, 16, 16], layers: [{name: a, kind: conv2d, out_channels: 48, kernel: 3, "
        "padding: 1}, {name: b, kind: conv2d, out_channels: 48, kernel: 3, padding: 1}]}",
        "{name: lab, nodes: [{name: f, count: 1, server: fast}, {name: s, count: 1, server: slow}], "
        "fabric: {kind: switch, bandwidth: 10GB/s, latency: 1us}, servers: "
        "{fast: {devices: [{device: quick, count: 1}], interconnect: {kind: none}}, "
        "slow: {devices: [{device: lame, count: 1}], interconnect: {kind: none}}}, devices: "
        "{quick: {peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 100TB/s, efficiency: 1.0, "
        "launch_overhead: 0us, idle_power: 50W, peak_power: 250W}, "
        "lame: {peak: {fp32: 5TFLOPS}, memory: 16GiB, memory_bandwidth: 100TB/s, efficiency: 1.0, "
        "launch_overhead: 0us, idle_power: 50W, peak_power: 250W}}}",
        "{kind: hypergraph, epsilon: 0.02, granularity: channel, shares: " + shares + "}", 32};
    const ReplayResult result = lab.run();
    return result.endpoints[0].compute_s / result.endpoints[1].compute_s;
  };
  CHECK(busy("probed") == approx(1).epsilon(0.06));
  CHECK(busy("equal") == approx(0.5).epsilon(0.06));
}

TEST_CASE("hypergraph: the order of micro-batches goes by the narrowest link of a message's way") {
  // Whether one host's NIC is slow, or both are: every message between two hosts crosses a slow link.
  const auto orders = [](const std::string& fast, const std::string& slow, const std::string& method) {
    const lab::Experiment e(
        "{name: m, input: [3, 16, 16], layers: ["
        "{name: a, kind: conv2d, out_channels: 12, kernel: 3, padding: 1}, "
        "{name: b, kind: conv2d, out_channels: 9, kernel: 5, padding: 2}, "
        "{name: c, kind: conv2d, out_channels: 16, kernel: 1}, "
        "{name: d, kind: conv2d, out_channels: 8, kernel: 3, padding: 1}]}",
        fmt::format("{{name: lab, nodes: [{{name: n, count: 1, server: box, nic_bandwidth: {}}}, {{name: m, "
                    "count: 1, server: box, nic_bandwidth: {}}}], fabric: {{kind: switch, bandwidth: 10GB/s, "
                    "latency: 1us}}, {}}}",
                    slow, fast, lab::ideal_servers()),
        fmt::format("{{kind: hypergraph, micro_batches: 4, method: {}}}", method), 16);
    std::string text;
    for (const Role& role : e.plan().roles)
      for (const Task& task : role.program) text += task.name + ", ";
    return text;
  };
  int changes = 0;
  for (const std::string method : {"hypergraph", "layerwise", "even"})
    for (const std::string slow : {"1MB/s", "10MB/s", "100MB/s", "1GB/s"}) {
      CAPTURE(method);
      CAPTURE(slow);
      CHECK(orders("10GB/s", slow, method) == orders(slow, slow, method));
      CHECK(orders(slow, "10GB/s", method) == orders(slow, slow, method));
      changes += orders("10GB/s", "10GB/s", method) != orders(slow, slow, method) ? 1 : 0;
    }
  CHECK(changes > 0);  // or the bandwidth would decide nothing here
}
