// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

double sent_bytes(const Plan& plan, const std::function<bool(const std::string&)>& named) {
  double sum = 0;
  for (const Communication& comm : plan.communications) {
    if (!named(comm.name)) continue;
    const Pattern& pattern = plan.patterns[comm.pattern];
    for (const Round& round : pattern.rounds)
      round.for_each_message([&](auto, auto, double fraction) {
        sum += comm.bytes * fraction * round.repeat * static_cast<double>(pattern.groups.size());
      });
  }
  return sum;
}
double sent_bytes(const Plan& plan, const std::string& prefix) {
  return sent_bytes(plan, [&](const std::string& name) { return name.starts_with(prefix); });
}

std::vector<std::string> names(const Plan& plan) {
  std::vector<std::string> result;
  for (const Communication& comm : plan.communications) result.push_back(comm.name);
  return result;
}

const std::string perceptron =
    "{name: mlp, input: [64], layers: [{name: fc1, kind: linear, out_features: 256}, {name: relu1, kind: "
    "relu}, "
    "{name: fc2, kind: linear, out_features: 64}, {name: relu2, kind: relu}, {name: fc3, kind: linear, "
    "out_features: 256}, {name: relu3, kind: relu}, {name: fc4, kind: linear, out_features: 64}]}";

const std::string convolutions =
    "{name: convs, input: [4, 32, 32], layers: ["
    "{name: conv1, kind: conv2d, out_channels: 8, kernel: 3, padding: 1}, {name: bn1, kind: batch_norm}, "
    "{name: relu1, kind: relu}, "
    "{name: conv2, kind: conv2d, out_channels: 6, kernel: 5, padding: 2}, {name: relu2, kind: relu}, "
    "{name: conv3, kind: conv2d, out_channels: 4, kernel: 3, padding: 2, dilation: 2}]}";

}  // namespace

TEST_CASE("hybrid: a filter layer and a channel layer cost one all-reduce forward and one backward") {
  // Shoeybi et al., section 3: fc1 and fc2 are a pair, fc3 and fc4 the next. On 4 devices and 32 images S =
  // 32 * 64 * 4 bytes are summed after fc2, after fc4, and of the gradient of fc2's output; the image has
  // none.
  const Experiment experiment(perceptron, star(4, "1GB/s", "1us"), "{kind: hybrid, fc: pairs}", 8);
  CHECK(names(experiment.plan()) == std::vector<std::string>{"all-reduce of fc2", "all-reduce of fc4",
                                                             "all-reduce of gradient of relu2"});
  CHECK(experiment.run().comm_bytes == 3 * 2 * 3 * (32 * 64 * 4));
  // Weights where they are used: fc1 and fc3 with their biases in four, fc2 and fc4 with whole biases.
  const double parameters = 2 * (64 * 256 + 256 + 256 * 64) / 4.0 + 2 * 64;
  CHECK(experiment.plan().roles.at(0).resident_bytes[0] == 4 * parameters);
  REQUIRE(experiment.plan().roles.size() == 1);
}

TEST_CASE(
    "hybrid: one weird trick sends its activations and the convolutions' gradients, as the paper has it") {
  // AlexNet on 8 devices with 16 images each. Gathered and scattered back: the fully connected layers' inputs
  // of 9216, 4096 and 4096 features; logits all to all; 2,469,696 parameters of convolutions are summed.
  const Experiment experiment("alexnet", star(8, "1GB/s", "1us"), "{kind: hybrid, conv: batch, fc: filter}",
                              16);
  const double batch = 128, n = 8;
  CHECK(sent_bytes(experiment.plan(), "all-gather") == (n - 1) * batch * (9216 + 4096 + 4096) * 4);
  CHECK(sent_bytes(experiment.plan(), "reduce-scatter") == (n - 1) * batch * (9216 + 4096 + 4096) * 4);
  CHECK(sent_bytes(experiment.plan(), "all-to-all") == approx(2 * (n - 1) / n * batch * 1000 * 4));
  CHECK(sent_bytes(experiment.plan(), "all-reduce bucket") == approx(2 * (n - 1) * 2469696.0 * 4));
  const double sent = experiment.run().comm_bytes;
  double told = 0;
  for (const LayerGroup& group : experiment.report().layouts)
    told += group.exchange_bytes + group.gradient_bytes;
  CHECK(told == approx(sent));
  REQUIRE(experiment.report().layouts.size() == 2);
  const LayerGroup& fc = experiment.report().layouts[1];
  CHECK(fc.layout == "filter");
  CHECK(fc.layers == std::vector<std::string>{"fc6", "relu6", "dropout7", "fc7", "relu7", "fc8"});
  CHECK(fc.parameter_bytes == (61100840 - 2469696) / 8 * 4);
  CHECK(fc.gradient_bytes == 0);
}

TEST_CASE("hybrid: halos are the rows of the kernel's reach at each border, forward and backward") {
  // 32 rows on 4 devices, 8 images, 3 borders. conv1 reads the image. conv2 (5x5) gets 2 rows of 8 channels
  // from each side, conv3 (3x3, dilation 2) 2 rows of 6 channels; gradients go back as they came.
  for (const char* layout : {"height", "width"}) {
    const Experiment experiment(convolutions, star(4, "1GB/s", "1us"),
                                fmt::format("{{kind: hybrid, conv: {}}}", layout), 2);
    const double row = 32 * 8 * 4, borders = 3;
    CHECK(sent_bytes(experiment.plan(), "halo exchange of relu1") == approx(borders * 2 * 2 * 8 * row));
    CHECK(sent_bytes(experiment.plan(), "halo exchange of relu2") == approx(borders * 2 * 2 * 6 * row));
    CHECK(sent_bytes(experiment.plan(), "halo exchange back of gradient of relu1") ==
          approx(borders * 2 * 2 * 8 * row));
    CHECK(sent_bytes(experiment.plan(), "halo exchange back of gradient of relu2") ==
          approx(borders * 2 * 2 * 6 * row));
    // Weights are everybody's: (4*9+1)*8, two of bn1, (8*25+1)*6, (6*9+1)*4.
    const double parameters = 296 + 16 + 1206 + 220;
    CHECK(sent_bytes(experiment.plan(), "all-reduce") == approx(2 * 3 * parameters * 4));
    CHECK(sent_bytes(experiment.plan(), "") == approx(experiment.run().comm_bytes));
    // The first and last device have one neighbour: they are like each other, but not like the others.
    CHECK(experiment.plan().roles.size() == 2);
  }
}

TEST_CASE("hybrid: on a fast network a split layer takes its share of the time, a replicated one all of it") {
  // Two layers of 1 + 2 GFLOP an image on 10 TFLOPS: 4 images take 4 * 0.3 ms each alone; 2 devices, 8
  // images.
  const auto step_s = [](const std::string& first, const std::string& second) {
    return Experiment(custom_model(2, 1000), star(2, "1000000GB/s", "0us"),
                      fmt::format("{{kind: hybrid, groups: [{{layers: body0, layout: {}}}, {{layers: body1, "
                                  "layout: {}}}]}}",
                                  first, second),
                      4)
        .run()
        .step_time_s;
  };
  CHECK(step_s("batch", "batch") == approx(2.4e-3).epsilon(1e-4));
  CHECK(step_s("batch", "filter") == approx(2.4e-3).epsilon(1e-4));
  CHECK(step_s("filter", "channel") == approx(2.4e-3).epsilon(1e-4));
  CHECK(step_s("replicated", "filter") == approx(3.6e-3).epsilon(1e-4));
  CHECK(step_s("replicated", "replicated") == approx(4.8e-3).epsilon(1e-4));
}

TEST_CASE("hybrid: an exchange is on the critical path, but for the weight gradient that goes on meanwhile") {
  // fc is custom: 8 images of 1 GFLOP forward, 1 data and 1 weight gradient each; halves take 0.4 ms each.
  // body0 (batch) has the same per device. body1's input is 10 features: 8 * 10 * 4 = 320 bytes, of which
  // each device sends half at 1 MB/s: 0.16 ms gathered before body1, and as much scattered back while body1's
  // weight gradient (0.4 ms) runs. No parameters to sum but body0's 10, 40 bytes: 2 * 20 bytes in turn, 0.04
  // ms.
  const std::string model =
      "{name: two, input: [3, 4, 4], layers: [{name: body0, kind: custom, forward_flops: 1e9, "
      "backward_flops: 2e9, "
      "parameters: 10, output: [10]}, {name: body1, kind: custom, forward_flops: 1e9, backward_flops: 2e9, "
      "parameters: 1000, output: [10]}]}";
  const Experiment experiment(model, star(2, "1MB/s", "0us"),
                              "{kind: hybrid, groups: [{layers: body1, layout: filter}]}", 4);
  CHECK(experiment.run().step_time_s == approx(0.4e-3 + 0.16e-3 + 3 * 0.4e-3 + 2 * 0.4e-3 + 0.04e-3));
}

TEST_CASE("hybrid: replicas share the batch and sum shares of weights among those that have the same") {
  const Experiment experiment(perceptron, star(6, "1GB/s", "1us"), "{kind: hybrid, fc: filter, replicas: 2}",
                              4);
  CHECK(experiment.plan().images == 24);
  // 256 features on 3 devices: 86, 85, 85; 64: 22, 21, 21. fc1 64*256+256, fc2 256*64+64, fc3 and fc4 the
  // same.
  const double parameters = 2 * (64 * 256 + 256 + 256 * 64 + 64);
  const auto over_replicas = [](const std::string& name) {
    return name.find("over replicas") != std::string::npos;
  };
  CHECK(sent_bytes(experiment.plan(), over_replicas) == approx(2 * parameters * 4));
  // Two groups of 12 images gather 256 + 64 + 256 features twice over; no image and no loss.
  CHECK(sent_bytes(experiment.plan(), "all-gather") == approx(2 * 2 * 12 * 4 * (256 + 64 + 256.0)));
  // The first of each group has one more feature; the others are alike.
  REQUIRE(experiment.plan().roles.size() == 2);
  CHECK(experiment.plan().roles[0].members == std::vector<EndpointId>{0, 3});
  CHECK(experiment.plan().roles[1].members == std::vector<EndpointId>{1, 2, 4, 5});
}

TEST_CASE("hybrid: schemes b and c send as much as a, and run the fully connected layers part by part") {
  std::map<std::string, double> bytes, memory;
  for (const std::string scheme : {"a", "b", "c"}) {
    const Experiment experiment("alexnet", star(4, "1GB/s", "1us"),
                                "{kind: hybrid, conv: batch, fc: filter, scheme: " + scheme + "}", 32);
    const ReplayResult result = experiment.run();
    bytes[scheme] =
        sent_bytes(experiment.plan(), "all-gather") + sent_bytes(experiment.plan(), "reduce-scatter");
    memory[scheme] = result.endpoints[3].peak_memory_bytes;
    double images = 0, times = 0;
    for (const Role& role : experiment.plan().roles)
      for (const Task& task : role.program)
        for (const PlanOp& op : task.ops)
          if (op.name.starts_with("fc7.weight_gradient"))
            images += op.images * static_cast<double>(role.members.size()), ++times;
    // Losses are everybody's in every part: logits and their gradients go from each of four to the others.
    for (const Communication& comm : experiment.plan().communications)
      if (comm.name.starts_with("all-to-all"))
        CHECK(experiment.plan().patterns[comm.pattern].rounds[0].message_count() == 4 * 3);
    CHECK(images == 4 * 128);  // every device all images, with a quarter of the features
    CHECK(times == (scheme == "a" ? 1 : 4) * static_cast<double>(experiment.plan().roles.size()));
  }
  CHECK(bytes["b"] == approx(bytes["a"]));
  CHECK(bytes["c"] == approx(bytes["a"]));
  CHECK(memory["c"] < memory["a"]);
}

TEST_CASE("hybrid: schemes b and c do every image once, also where there are fewer images than devices") {
  const auto plan = [](const std::string& scheme, std::int64_t images) {
    return Experiment::with_global_batch(perceptron, star(4, "1GB/s", "1us"),
                                         "{kind: hybrid, fc: filter, scheme: " + scheme + "}", images);
  };
  for (std::int64_t images = 1; images <= 9; ++images) {
    CAPTURE(images);
    for (const std::string scheme : {"b", "c"}) {
      CAPTURE(scheme);
      const Experiment experiment = plan(scheme, images);
      for (const Role& role : experiment.plan().roles) {
        double done = 0, parts = 0;
        for (const Task& task : role.program)
          for (const PlanOp& op : task.ops)
            if (op.name.starts_with("fc3.weight_gradient")) done += op.images, ++parts;
        CHECK(done == images);
        CHECK(parts == (scheme == "b" ? std::min<std::int64_t>(images, 4)
                                      : std::max<std::int64_t>(1, std::min<std::int64_t>(images / 4, 4))));
      }
      CHECK(experiment.run().step_time_s > 0);
    }
    // Fewer than one a device cannot be cut into parts of an image of each.
    if (images < 8) CHECK(plan("c", images).run().step_time_s == approx(plan("a", images).run().step_time_s));
  }
}

TEST_CASE("hybrid: scheme c hides the gathers that scheme a waits for") {
  // The second layer is twice as long as what it receives: all but the first part's gather hide behind it.
  const std::string model =
      "{name: two, input: [3, 4, 4], layers: [{name: conv, kind: conv2d, out_channels: 8, kernel: 1}, {name: "
      "body, "
      "kind: custom, forward_flops: 1e9, backward_flops: 2e9, parameters: 1000, output: [10]}]}";
  const auto step_s = [&](const std::string& scheme) {
    return Experiment(model, star(4, "10MB/s", "0us"),
                      "{kind: hybrid, groups: [{layers: body, layout: filter}], scheme: " + scheme + "}", 16)
        .run()
        .step_time_s;
  };
  // 64 images of 128 values: 32,768 bytes, of which each device gets three quarters: 2.4576 ms, forward and
  // back. Of the body's 10 features two devices have 3: they compute 64 * 0.3 ms * 3 / 10 = 5.76 ms, of which
  // 1.92 ms after the data gradient hide part of the way back.
  const double compute_s = 5.76e-3, gather_s = 2.4576e-3, weight_s = 1.92e-3;
  const double others_s = 2 * 3 / 4.0 * (32 * 4) / 10e6;  // 24 weights and 8 biases of conv are summed
  CHECK(step_s("a") == approx(compute_s + gather_s + (gather_s - weight_s) + others_s).epsilon(1e-5));
  // c: only the first part's gather, and the last one's way back after its weight gradient, are seen.
  CHECK(step_s("c") == approx(compute_s + gather_s / 4 + (gather_s - weight_s) / 4 + others_s).epsilon(1e-5));
}

TEST_CASE("hybrid: depthwise convolutions keep to their channels, and shuffled channels their owners") {
  const std::string model =
      "{name: mobile, input: [4, 8, 8], layers: [{name: conv1, kind: conv2d, out_channels: 8, kernel: 1}, "
      "{name: shuffle, kind: channel_shuffle, groups: 2}, "
      "{name: deep, kind: conv2d, out_channels: 8, kernel: 3, padding: 1, groups: 8}, "
      "{name: conv2, kind: conv2d, out_channels: 8, kernel: 1}]}";
  const Experiment experiment(model, star(4, "1GB/s", "1us"),
                              "{kind: hybrid, conv: filter, groups: [{layers: conv2, layout: channel}]}", 2);
  // Nothing but the sum of conv2's outputs: 8 images of 8 * 64 values.
  CHECK(names(experiment.plan()) == std::vector<std::string>{"all-reduce of conv2"});
  CHECK(experiment.run().comm_bytes == 2 * 3 * 8 * 8 * 64 * 4);
}

TEST_CASE("hybrid: gradients of several readers that are partial sums are added before they are sent") {
  const std::string model =
      "{name: branches, input: [4, 8, 8], layers: [{name: stem, kind: conv2d, out_channels: 8, kernel: 1}, "
      "{name: left, kind: conv2d, out_channels: 8, kernel: 1, inputs: [stem]}, "
      "{name: right, kind: conv2d, out_channels: 8, kernel: 3, padding: 1, inputs: [stem]}, "
      "{name: both, kind: concat, inputs: [left, right]}]}";
  const Experiment experiment(model, star(4, "1GB/s", "1us"),
                              "{kind: hybrid, conv: filter, groups: [{layers: stem, layout: batch}]}", 2);
  CHECK(names(experiment.plan()) == std::vector<std::string>{"all-gather of stem",
                                                             "reduce-scatter of gradient of stem",
                                                             "all-reduce bucket 0"});
}

TEST_CASE("hybrid: global average pooling of rows sums means, not maps") {
  const std::string model =
      "{name: pooled, input: [4, 8, 8], layers: [{name: conv1, kind: conv2d, out_channels: 8, kernel: 1}, "
      "{name: mean, kind: adaptive_avg_pool, size: 1}, {name: flat, kind: flatten}, {name: fc, kind: linear, "
      "out_features: 10}]}";
  const Experiment experiment(model, star(4, "1GB/s", "1us"), "{kind: hybrid, conv: height, fc: replicated}",
                              2);
  CHECK(sent_bytes(experiment.plan(), "all-reduce of mean") == 2 * 3 * 8 * 8 * 4);
  CHECK(sent_bytes(experiment.plan(), "all-gather") == 0);
  CHECK(sent_bytes(experiment.plan(), "all-reduce bucket") == 2 * 3 * 40 * 4);  // of conv1, 4 * 8 + 8
}

TEST_CASE("hybrid: cropped rows come from whoever has them, and U-Net stays split by rows to its end") {
  const std::string model =
      "{name: crop, input: [2, 12, 12], layers: [{name: conv1, kind: conv2d, out_channels: 4, kernel: 1}, "
      "{name: rows, kind: slice, axis: 1, first: 0, last: 8}, {name: columns, kind: slice, axis: 2, first: "
      "2, last: "
      "10}, {name: conv2, kind: conv2d, out_channels: 2, kernel: 1}]}";
  const Experiment experiment(model, star(2, "1GB/s", "1us"), "{kind: hybrid, conv: height}", 2);
  // Rows 4 to 7 become the second device's; it has 6 to 11: two rows of 4 channels, 12 columns and 4 images.
  CHECK(sent_bytes(experiment.plan(), "halo exchange of conv1") == 2 * 4 * 12 * 4 * 4);
  CHECK(sent_bytes(experiment.plan(), "halo exchange back of gradient of conv1") == 2 * 4 * 12 * 4 * 4);
  CHECK(sent_bytes(experiment.plan(), "all-gather") == 0);
  CHECK(experiment.run().step_time_s == approx(experiment.run(false).step_time_s));
  const Experiment unet("unet", star(4, "1GB/s", "1us"), "{kind: hybrid, conv: height}", 1);
  REQUIRE(unet.report().layouts.size() == 1);
  CHECK(unet.report().layouts[0].layout == "height");
}

TEST_CASE("hybrid: devices of two types have roles of their own, with equal shares") {
  const std::string cluster =
      "{name: lab, nodes: [{name: a, count: 1, server: box}, {name: b, count: 1, server: other}], fabric: "
      "{kind: "
      "switch, bandwidth: 1GB/s, latency: 0us}, servers: {box: {devices: [{device: ideal, count: 1}], "
      "interconnect: "
      "{kind: none}}, other: {devices: [{device: slow, count: 1}], interconnect: {kind: none}}}, devices: "
      "{ideal: "
      "{peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 1.0}, slow: {peak: "
      "{fp32: "
      "5TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 1.0}}}";
  const Experiment experiment(perceptron, cluster, "{kind: hybrid, fc: filter}", 4);
  REQUIRE(experiment.plan().roles.size() == 2);
  CHECK(experiment.plan().roles[0].program[0].ops[0].work ==
        experiment.plan().roles[1].program[0].ops[0].work);
}

TEST_CASE(
    "hybrid: scheme b: each device sends its images to all others itself, and gets back from each itself") {
  const Experiment experiment = Experiment::with_global_batch(
      "{name: net, input: [4, 8, 8], layers: [{name: conv, kind: conv2d, out_channels: 4, kernel: 3, "
      "padding: "
      "1}, {name: flat, kind: flatten}, {name: fc, kind: linear, out_features: 6}]}",
      star(3, "1GB/s", "1us"), "{kind: hybrid, conv: batch, fc: filter, scheme: b}", 7);
  std::multiset<std::uint32_t> senders, receivers;
  for (const Communication& comm : experiment.plan().communications) {
    const bool gather = comm.name.starts_with("all-gather of");
    if (!gather && !comm.name.starts_with("reduce-scatter of")) continue;
    CAPTURE(comm.name);
    std::set<std::uint32_t> from, to;
    double sent = 0;
    for (const Round& round : experiment.plan().patterns[comm.pattern].rounds)
      round.for_each_message([&](std::uint32_t sender, std::uint32_t receiver, double fraction) {
        from.insert(sender), to.insert(receiver);
        sent += fraction * round.repeat;
      });
    CHECK(sent == approx(2.0));
    REQUIRE((gather ? from : to).size() == 1);
    (gather ? senders : receivers).insert(*(gather ? from : to).begin());
  }
  CHECK(senders == std::multiset<std::uint32_t>{0, 1, 2});
  CHECK(receivers == std::multiset<std::uint32_t>{0, 1, 2});
}
