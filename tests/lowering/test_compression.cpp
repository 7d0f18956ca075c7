// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/lowering/compression.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

constexpr int network_layers = 3;
constexpr std::int64_t parameters = 300'001;
constexpr double layer_bytes = 4.0 * parameters, model_bytes = network_layers * layer_bytes;
constexpr double memory_Bps = 500e9;  // of lab's ideal device
const std::string top_1_percent = ", compression: {kind: top_k, ratio: 0.01}";
constexpr double kept = 3001;  // ceil(0.01 300001)

/// A message a layer, all sent after backward.
ReplayResult all_reduce(int nodes, const std::string& more) {
  return lab::Experiment(lab::custom_model(network_layers, parameters), lab::star(nodes, "1GB/s", "20us"),
                         "{kind: data_parallel, sync: all_reduce, overlap: false, bucket: 1kB" + more + "}",
                         4)
      .run();
}

ReplayResult servers(int nodes, const std::string& more, const std::string& reduce_bandwidth = "") {
  std::string cluster = lab::star(nodes, "1GB/s", "20us");
  if (!reduce_bandwidth.empty())
    cluster.replace(cluster.find("interconnect: {kind: none}"), 26,
                    "interconnect: {kind: none}, host: {reduce_bandwidth: " + reduce_bandwidth + "}");
  return lab::Experiment(
             lab::custom_model(network_layers, parameters), cluster,
             "{kind: data_parallel, sync: parameter_server, overlap: false, sharding: even" + more + "}", 4)
      .run();
}

TrainingGraph graph(Precision precision) {
  return build_training_graph(read_model(parse_yaml(lab::custom_model(1, 1000), "model")),
                              {precision, Optimizer::sgd});
}

Compression of(const std::string& value) {
  const YamlNode node = parse_yaml("{compression: " + value + "}", "s.yaml");
  YamlMap map(node, "strategy");
  Compression compression;
  compression_key().read(map, compression);
  map.finish();
  return compression;
}

std::string error_of(const std::string& value) {
  try {
    of(value);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("quantised gradients: b bits each and two scales, gathered from all and decoded from all") {
  // Bytes a device sends of each layer's message: the codes, rounded up to a byte, and 8 bytes of scales.
  for (const int bits : {1, 2, 4, 8})
    for (const int nodes : {2, 4}) {
      CAPTURE(bits);
      CAPTURE(nodes);
      const double n = nodes, sent = std::ceil(parameters * bits / 8.0) + 8, e = layer_bytes;
      const std::string how = fmt::format(", compression: {{kind: quantised, bits: {}}}", bits);
      const ReplayResult run = all_reduce(nodes, how);
      CHECK(run.comm_bytes == approx(network_layers * n * (n - 1) * sent).epsilon(1e-12));
      // All of it after backward: compress all, gather around the ring in turn, decode each as it comes. The
      // last message's decoding is all that is left when it is there; those before it fit between.
      const double compress_s = ((bits == 1 ? 6 : 2) * e + sent) / memory_Bps;
      const double decompress_s = (e + n * sent) / memory_Bps;
      const double gather_s = (n - 1) * (20e-6 + sent / 1e9);
      const double wait_s = all_reduce(1, how).step_time_s + network_layers * compress_s;
      double there_s = wait_s, decoded_s = wait_s;
      for (int layer = 0; layer < network_layers; ++layer) {
        there_s += gather_s;
        decoded_s = std::max(decoded_s, there_s) + decompress_s;
      }
      CHECK(run.step_time_s == approx(decoded_s).epsilon(1e-6));
      const auto resident = [&](const std::string& more) {
        const lab::Experiment lab(
            lab::custom_model(network_layers, parameters), lab::star(nodes, "1GB/s", "20us"),
            "{kind: data_parallel, sync: all_reduce, overlap: false, bucket: 1kB" + more + "}", 4);
        return lab.plan().roles[0].resident_bytes[static_cast<std::size_t>(MemoryClass::gradients)];
      };
      CHECK(resident(how) - resident("") == approx(bits == 1 ? model_bytes : 0));
    }
  CHECK(error_of("quantised") ==
        "s.yaml:1:15: strategy.compression: quantised needs its bits; write {kind: quantised, bits: 8}");
  CHECK(error_of("{kind: quantised, bits: 3}") ==
        "s.yaml:1:39: strategy.compression.bits: expected 1, 2, 4 or 8");
  CHECK(error_of("{kind: quantised, ratio: 0.1}").find("ratio: goes with kind: top_k only") !=
        std::string::npos);
}

TEST_CASE("compressed messages: 2 bytes a gradient, or k of value and index, k rounded up") {
  const TrainingGraph fp32 = graph(Precision::fp32);
  CHECK(Compressor(of("none"), fp32, 4).sent_bytes(4000) == 4000);
  CHECK(Compressor(of("fp16"), fp32, 4).sent_bytes(4000) == 2000);
  CHECK(Compressor(of("fp16"), graph(Precision::tf32), 4).sent_bytes(4000) == 2000);
  const auto pairs = [&](double ratio, double gradients) {
    return Compressor(of(fmt::format("{{kind: top_k, ratio: {}}}", ratio)), fp32, 4)
               .sent_bytes(4 * gradients) /
           8;
  };
  CHECK(pairs(0.01, 1000) == 10);
  CHECK(pairs(0.01, 1001) == 11);
  CHECK(pairs(0.01, 700) == 7);  // 0.01 * 700 is 7.000000000000001 in binary
  CHECK(pairs(0.07, 100) == 7);
  CHECK(pairs(0.001, 10) == 1);
  CHECK(pairs(1, 1000) == 1000);
  // Mixed precision: 2 + 4 bytes a pair.
  CHECK(Compressor(of("{kind: top_k, ratio: 0.5}"), graph(Precision::fp16), 4).sent_bytes(2 * 1000) == 3000);
}

TEST_CASE("fp16 halves an all-reduce's bytes exactly, in every algorithm") {
  for (const int nodes : {2, 5, 8})
    for (const char* algorithm : {"ring", "tree", "halving_doubling", "hierarchical", "auto"}) {
      const std::string chosen = fmt::format(", algorithm: {}", algorithm);
      CAPTURE(nodes);
      CAPTURE(chosen);
      // auto may choose otherwise for half the size: the others have the same pattern.
      const double plain = all_reduce(nodes, chosen).comm_bytes;
      const double half = all_reduce(nodes, chosen + ", compression: fp16").comm_bytes;
      if (chosen != ", algorithm: auto") CHECK(half == plain / 2);
      CHECK(half < plain);
    }
}

TEST_CASE("top-k: every device sends (N-1) k pairs of 8 bytes a message") {
  for (const int nodes : {2, 4, 7}) {
    const ReplayResult result = all_reduce(nodes, top_1_percent);
    for (int d = 0; d < nodes; ++d)
      CHECK(result.endpoints[static_cast<std::size_t>(d)].sent_bytes ==
            approx((nodes - 1) * network_layers * kept * 8).epsilon(1e-12));
  }
}

TEST_CASE("step time with compression is that of its kernels and of its bytes") {
  // 1.2 ms of computation a layer. fp16: 6 bytes a gradient to compress and 6 to decompress, which all but
  // the last do while the next is under way.
  const int nodes = 4;
  const double compute_s = network_layers * 1.2e-3, convert_s = 6.0 * parameters / memory_Bps;
  const double half_s = 2 * 3 * (20e-6 + layer_bytes / 2 / nodes / 1e9);
  CHECK(all_reduce(nodes, ", compression: fp16").step_time_s ==
        approx(compute_s + network_layers * (convert_s + half_s) + convert_s).epsilon(1e-9));
  // top-k: 5 passes over the gradients, and 12 bytes a pair; then one pass, and 16 bytes for each of N pairs.
  const double compress_s = (5 * layer_bytes + kept * 12) / memory_Bps;
  const double decompress_s = (layer_bytes + nodes * kept * 16) / memory_Bps;
  const double gather_s = 3 * (20e-6 + kept * 8 / 1e9);
  const ReplayResult sparse = all_reduce(nodes, top_1_percent);
  CHECK(sparse.endpoints[0].compute_s ==
        approx(compute_s + network_layers * (compress_s + decompress_s)).epsilon(1e-9));
  CHECK(sparse.step_time_s ==
        approx(compute_s + network_layers * (compress_s + gather_s) + decompress_s).epsilon(1e-9));
}

TEST_CASE("memory with compression: buffers in workspace, and top-k's residual with the gradients") {
  constexpr std::size_t gradients = 1, workspace = 4;
  const int nodes = 4;
  const auto most = [&](const std::string& more, std::size_t memory_class) {
    return all_reduce(nodes, more).endpoints[0].memory_at_peak[memory_class];
  };
  CHECK(most("", gradients) == model_bytes);
  CHECK(most("", workspace) == 0);
  CHECK(most(", compression: fp16", gradients) == model_bytes);
  CHECK(most(", compression: fp16", workspace) == model_bytes / 2);
  CHECK(most(top_1_percent, gradients) == 2 * model_bytes);
  CHECK(most(top_1_percent, workspace) == nodes * network_layers * kept * 8);
}

TEST_CASE(
    "memory with compression: a server's clients keep a residual of every gradient, however they are sent") {
  std::string layers;
  double gradient_bytes = 0;
  for (const int thousands : {700, 1, 90, 300}) {
    layers += fmt::format(
        "{{name: l{0}, kind: custom, forward_flops: 1e9, backward_flops: 2e9, parameters: {0}000, output: "
        "[10], "
        "memory_bytes: 0}}, ",
        thousands);
    gradient_bytes += 4e3 * thousands;
  }
  constexpr std::size_t gradients = 1;
  for (const char* sent :
       {"bucket: 1kB", "bucket: 1MB", "bucket: 100MB", "bucket: 1kB, servers: 2, mode: async"}) {
    CAPTURE(sent);
    const lab::Experiment it(
        fmt::format("{{name: unlike, input: [3, 8, 8], layers: [{}]}}", layers),
        lab::star(3, "1GB/s", "20us"),
        fmt::format("{{kind: data_parallel, sync: parameter_server, sharding: even, {}{}}}", sent,
                    top_1_percent),
        4);
    for (const Role& role : it.plan().roles)
      if (role.name != "server") CHECK(role.resident_bytes[gradients] == approx(2 * gradient_bytes));
  }
}

TEST_CASE("memory with compression: a pipeline that never runs empty has one residual, not one an update") {
  const lab::Experiment pipeline(
      lab::custom_model(2, parameters), lab::star(4, "1GB/s", "20us"),
      "{kind: pipeline, stages: 2, micro_batches: 4, schedule: 1f1b, weights: stash, inner: {kind: "
      "data_parallel, sync: all_reduce" +
          top_1_percent + "}}",
      8);
  constexpr std::size_t gradients = 1;
  for (const Role& role : pipeline.plan().roles) CHECK(role.resident_bytes[gradients] == 2 * layer_bytes);
}

TEST_CASE("parameter servers get compressed gradients and give whole parameters") {
  for (const std::string mode : {"", ", mode: async", ", servers: 2", ", servers: 2, bucket: 1kB"}) {
    CAPTURE(mode);
    const double way = servers(3, mode).comm_bytes / 2;
    CHECK(way == approx(3 * model_bytes).epsilon(1e-12));
    CHECK(servers(3, mode + ", compression: fp16").comm_bytes == approx(1.5 * way).epsilon(1e-12));
    // One message: k of all gradients; a message a layer: k of each.
    const double pairs = mode.ends_with("1kB") ? network_layers * kept : 9001;  // ceil(0.01 900003)
    CHECK(servers(3, mode + top_1_percent).comm_bytes == approx(way + 3 * pairs * 8).epsilon(1e-12));
  }
  CHECK(servers(3, ", compression: fp16").endpoints[0].memory_at_peak[4] == model_bytes / 2);
  CHECK(servers(3, top_1_percent).endpoints[0].memory_at_peak[1] == 2 * model_bytes);
  CHECK(servers(3, top_1_percent).endpoints[0].memory_at_peak[4] == 9001 * 8);
}

TEST_CASE("a server adds up as many bytes from fp16 as from fp32, and of top-k what it gets") {
  // One worker: compute, compress, push, add at 2 GB/s, pull; synchronous and asynchronous alike.
  for (const std::string mode : {"sync", "async"}) {
    CAPTURE(mode);
    const auto step_s = [&](const std::string& compression) {
      return servers(1, ", mode: " + mode + compression, "2GB/s").step_time_s;
    };
    const double compute_s = network_layers * 1.2e-3, pull_s = 20e-6 + model_bytes / 1e9;
    CHECK(step_s("") ==
          approx(compute_s + 20e-6 + model_bytes / 1e9 + model_bytes / 2e9 + pull_s).epsilon(1e-9));
    CHECK(step_s(", compression: fp16") == approx(compute_s + 1.5 * model_bytes / memory_Bps + 20e-6 +
                                                  model_bytes / 2 / 1e9 + model_bytes / 2e9 + pull_s)
                                               .epsilon(1e-9));
    const double pairs_bytes = 9001 * 8;
    CHECK(step_s(top_1_percent) == approx(compute_s + (5 * model_bytes + 9001 * 12) / memory_Bps + 20e-6 +
                                          pairs_bytes / 1e9 + pairs_bytes / 2e9 + pull_s)
                                       .epsilon(1e-9));
  }
}

TEST_CASE("one device compresses nothing") {
  for (const std::string& compression : {std::string(", compression: fp16"), top_1_percent}) {
    const ReplayResult alone = all_reduce(1, compression), plain = all_reduce(1, "");
    CHECK(alone.step_time_s == approx(plain.step_time_s).epsilon(1e-9));
    CHECK(alone.endpoints[0].peak_memory_bytes == plain.endpoints[0].peak_memory_bytes);
  }
}

TEST_CASE("compression: labels and errors") {
  CHECK(label_of(of("none")) == "");
  CHECK(label_of(of("{kind: none}")) == "");
  CHECK(label_of(of("fp16")) == ", fp16 gradients");
  CHECK(label_of(of("{kind: top_k, ratio: 0.001}")) == ", top 0.1 % of gradients");
  CHECK(error_of("int8") ==
        "s.yaml:1:15: strategy.compression: unknown value 'int8'; allowed: none, fp16, top_k, quantised, "
        "sign, powersgd");
  CHECK(error_of("top_k") ==
        "s.yaml:1:15: strategy.compression: top_k needs its ratio; write {kind: top_k, ratio: 0.01}");
  CHECK(error_of("{kind: top_k}") == "s.yaml:1:15: strategy.compression: key 'ratio' is missing");
  CHECK(error_of("{kind: top_k, ratio: 0}") ==
        "s.yaml:1:36: strategy.compression.ratio: must be more than zero");
  CHECK(error_of("{kind: top_k, ratio: 2}") ==
        "s.yaml:1:36: strategy.compression.ratio: 2 is out of range: between 0 and 1 is allowed");
  CHECK(error_of("{kind: fp16, ratio: 0.1}") ==
        "s.yaml:1:35: strategy.compression.ratio: goes with kind: top_k only; leave it out");
  const auto refused = [](const Compression& compression, Precision precision) -> std::string {
    try {
      Compressor(compression, graph(precision), 2);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK(refused(of("fp16"), Precision::bf16) ==
        "s.yaml:1:15: strategy.compression: with precision bf16 gradients are sent in 2 bytes already; leave "
        "fp16 out, or use top_k");
  CHECK(refused(of("{kind: top_k, ratio: 0.1}"), Precision::bf16) == "no error");
  const auto strategy = [](const std::string& text) -> std::string {
    try {
      lab::Experiment(lab::custom_model(2, 1000), lab::star(3, "1GB/s", "20us"), text, 4);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK(strategy("{kind: data_parallel, sync: all_reduce, algorithm: tree, compression: {kind: top_k, ratio: "
                 "0.1}}") ==
        "strategy:1:52: strategy.algorithm: with compression: top_k, tree has no reduce-scatter or "
        "all-gather; use ring, hierarchical, nccl or auto");
  CHECK(strategy("{kind: data_parallel, sync: parameter_server, local_aggregation: true, compression: {kind: "
                 "top_k, ratio: 0.1}}") ==
        "strategy:1:85: strategy.compression: top_k with local_aggregation: how many of a node's gradients "
        "differ in index is not known; leave out one of the two");
}
