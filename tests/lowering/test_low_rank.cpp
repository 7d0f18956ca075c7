// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "models/low_rank_shape.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

const std::string two_layers =
    "{name: net, input: [3, 8, 8], layers: [{name: f, kind: flatten}, {name: a, kind: linear, out_features: "
    "64}, {name: r, kind: relu}, {name: b, kind: linear, out_features: 10}]}";
constexpr double two_layers_parameters = 64 * 192 + 64 + 10 * 64 + 10;

lab::Experiment two_layers_with(const std::string& more, int nodes, const std::string& network = two_layers) {
  return {network, lab::star(nodes, "1GB/s", "20us"),
          "{kind: data_parallel, sync: all_reduce, overlap: false" + more + "}", 4};
}

std::string powersgd(int rank) { return fmt::format(", compression: {{kind: powersgd, rank: {}}}", rank); }

/// Of the matrix [64, 192], of [10, 64] where that is worth it, and of two biases.
struct Factors {
  double r, s, whole;  ///< ranks of both matrices; s is 0 where the second goes whole
  explicit Factors(int rank) : r(rank), s(std::min(rank, 10)), whole(64 + 10) {
    if ((10 + 64) * s >= 640) s = 0, whole += 640;
  }
  double first_bytes() const { return 4 * (64 * r + 10 * s + whole); }
  double second_bytes() const { return 4 * (192 * r + 64 * s); }
};

double kernel_s(double flops, double bytes) { return std::max(flops / 10e12, bytes / 500e9); }
double product_s(double n, double m, double r) {
  return kernel_s(2 * n * m * r, 4 * (n * m + n * r + m * r));
}
double orthogonal_s(double n, double r) {
  double flops = 0, values = 0;  // column by column
  for (int c = 0; c < static_cast<int>(r); ++c) {
    flops += 3 * n, values += 3 * n;
    const double after = r - 1 - c;
    if (after > 0) flops += 4 * n * after, values += 2 * n + 7 * n * after;
  }
  return kernel_s(flops, 4 * values);
}

}  // namespace

TEST_CASE("PowerSGD: two all-reduces of (n + m) r elements a matrix, vectors and small matrices whole") {
  for (const int rank : {1, 2, 8, 16})
    for (const int nodes : {2, 5}) {
      CAPTURE(rank);
      CAPTURE(nodes);
      const Factors of(rank);
      const ReplayResult run = two_layers_with(powersgd(rank), nodes).run();
      CHECK(run.comm_bytes ==
            approx(2.0 * (nodes - 1) * (of.first_bytes() + of.second_bytes())).epsilon(1e-12));
      const double n = nodes;
      const auto all_reduce_s = [&](double bytes) { return 2 * (n - 1) * (20e-6 + bytes / n / 1e9); };
      double ops_s = 2 * kernel_s(two_layers_parameters, 3 * 4 * two_layers_parameters) +
                     2 * kernel_s(of.whole, 8 * of.whole) + 3 * product_s(64, 192, of.r) +
                     orthogonal_s(64, of.r);
      if (of.s > 0) ops_s += 3 * product_s(10, 64, of.s) + orthogonal_s(10, of.s);
      CHECK(run.step_time_s == approx(two_layers_with(powersgd(rank), 1).run().step_time_s + ops_s +
                                      all_reduce_s(of.first_bytes()) + all_reduce_s(of.second_bytes()))
                                   .epsilon(1e-9));
    }
}

TEST_CASE("PowerSGD: memory is that of the residual, the kept factors and the first message") {
  constexpr std::size_t gradients = 1, workspace = 4;
  const Factors of(2);
  const auto plain = two_layers_with("", 4), low = two_layers_with(powersgd(2), 4);
  CHECK(low.plan().roles[0].resident_bytes[gradients] - plain.plan().roles[0].resident_bytes[gradients] ==
        approx(4 * two_layers_parameters + of.second_bytes()));
  CHECK(low.run().endpoints[0].memory_at_peak[workspace] <= of.first_bytes());
  double allocated = 0;
  for (const Task& task : low.plan().roles[0].program)
    for (const PlanOp& op : task.ops)
      for (const MemoryDelta& memory : op.allocates)
        if (memory.memory_class == MemoryClass::workspace) allocated += memory.bytes;
  CHECK(allocated == approx(of.first_bytes()));
}

TEST_CASE("PowerSGD: buckets of vectors alone have one message, and with overlap the bytes are the same") {
  const auto comms = [](const lab::Experiment& it) { return it.plan().communications.size(); };
  const lab::Experiment small = two_layers_with(powersgd(2) + ", bucket: 1B", 4);
  CHECK(comms(small) == 4 + 2);  // two biases, two matrices with two factors each
  const lab::Experiment overlapped(two_layers, lab::star(4, "1GB/s", "20us"),
                                   "{kind: data_parallel, sync: all_reduce, bucket: 1B" + powersgd(2) + "}",
                                   4);
  CHECK(overlapped.run().comm_bytes == approx(small.run().comm_bytes).epsilon(1e-12));
  CHECK(overlapped.run().step_time_s <= small.run().step_time_s);
  CHECK(overlapped.run(false).step_time_s == approx(overlapped.run().step_time_s).epsilon(1e-9));
}

TEST_CASE("PowerSGD: the matrix of a weight is that of PyTorch's view(shape[0], -1)") {
  const lab::Experiment it = two_layers_with(
      "", 1,
      "{name: net, input: [8, 8, 8], layers: [{name: c, kind: conv2d, out_channels: 32, kernel: 3, padding: "
      "1}, {name: n, kind: batch_norm}, {name: t, kind: conv_transpose2d, out_channels: 16, kernel: 2, "
      "stride: 2, bias: false}, {name: d, kind: conv2d, out_channels: 16, kernel: 3, groups: 16}, {name: "
      "f, kind: flatten}, {name: l, kind: linear, out_features: 4, bias: false}]}");
  const auto shape = [&](const std::string& name, std::int64_t rank) {
    for (const Parameter& parameter : it.graph().parameters)
      if (parameter.name == name)
        if (const auto of =
                low_rank_shape(it.graph().model, parameter, static_cast<double>(parameter.elements), rank))
          return fmt::format("{} {} {}", of->rows, of->columns, of->rank);
    return std::string("whole");
  };
  CHECK(shape("c.weight", 4) == "32 72 4");
  CHECK(shape("c.bias", 4) == "whole");
  CHECK(shape("n.weight", 1) == "whole");
  CHECK(shape("t.weight", 4) == "32 64 4");  // [in, out, 2, 2]
  CHECK(shape("d.weight", 1) == "16 9 1");
  CHECK(shape("d.weight", 6) == "whole");  // 25 x 6 >= 144
  CHECK(shape("l.weight", 3) == "4 3136 3");
  CHECK(shape("l.weight", 8) == "whole");
}

TEST_CASE("signs: one bit a gradient, with a scale and a residual, or by majority without") {
  constexpr std::size_t gradients = 1;
  for (const bool mean : {true, false}) {
    CAPTURE(mean);
    const std::string how = mean ? ", compression: sign" : ", compression: {kind: sign, combine: majority}";
    const int nodes = 4;
    const double bytes = 4 * two_layers_parameters;
    const double sent = (two_layers_parameters + 2) / 8 + (mean ? 4 : 0);  // 13002 gradients are 1626 bytes
    const lab::Experiment it = two_layers_with(how, nodes);
    const ReplayResult run = it.run();
    CHECK(run.comm_bytes == approx(nodes * (nodes - 1) * (1626.0 + (mean ? 4 : 0))).epsilon(1e-12));
    CHECK(sent == approx(1626 + (mean ? 4 : 0)).epsilon(1e-3));
    const double buffer = 1626.0 + (mean ? 4 : 0);
    const double ops_s = kernel_s((mean ? 5 : 1) * two_layers_parameters, (mean ? 7 : 1) * bytes + buffer) +
                         kernel_s(nodes * two_layers_parameters, bytes + nodes * buffer);
    CHECK(run.step_time_s ==
          approx(two_layers_with(how, 1).run().step_time_s + ops_s + (nodes - 1) * (20e-6 + buffer / 1e9))
              .epsilon(1e-9));
    CHECK(it.plan().roles[0].resident_bytes[gradients] -
              two_layers_with("", nodes).plan().roles[0].resident_bytes[gradients] ==
          approx(mean ? bytes : 0));
  }
}

TEST_CASE("PowerSGD and signs: labels and errors") {
  const auto error = [](const std::string& strategy) -> std::string {
    try {
      const lab::Experiment it(two_layers, lab::star(4, "1GB/s", "20us"), strategy, 4);
    } catch (const InputError& wrong) {
      return wrong.what();
    }
    return "no error";
  };
  const std::string sums = "{kind: data_parallel, sync: all_reduce, compression: ";
  const std::string servers = "{kind: data_parallel, sync: parameter_server, compression: ";
  CHECK(two_layers_with(powersgd(4), 2).strategy().label() ==
        "ring all-reduce, PowerSGD of rank 4, no overlap");
  CHECK(two_layers_with(", compression: sign", 2).strategy().label() ==
        "ring all-reduce, signs of gradients, no overlap");
  CHECK(error(sums + "powersgd}").find("powersgd needs its rank; write {kind: powersgd, rank: 4}") !=
        std::string::npos);
  CHECK(error(sums + "{kind: powersgd}}").find("key 'rank' is missing") != std::string::npos);
  CHECK(error(sums + "{kind: powersgd, rank: 0}}").find("rank: 0 is out of range") != std::string::npos);
  CHECK(error(sums + "{kind: sign, rank: 2}}").find("rank: goes with kind: powersgd only") !=
        std::string::npos);
  CHECK(
      error(sums + "{kind: top_k, ratio: 0.1, combine: mean}}").find("combine: goes with kind: sign only") !=
      std::string::npos);
  CHECK(error(sums + "{kind: powersgd, rank: 2}, zero: 1}").find("goes with zero: 0") != std::string::npos);
  CHECK(error(servers + "{kind: powersgd, rank: 2}}").find("powersgd goes with sync: all_reduce") !=
        std::string::npos);
  CHECK(error(servers + "sign}").find("sign goes with sync: all_reduce") != std::string::npos);
  CHECK(error("{kind: pipeline, stages: 2, micro_batches: 4, schedule: 1f1b, weights: stash, inner: {kind: "
              "data_parallel, sync: all_reduce, compression: {kind: powersgd, rank: 2}}}")
            .find("powersgd goes with pipelines that are flushed") != std::string::npos);
  CHECK(error("{kind: pipeline, stages: 2, micro_batches: 4, schedule: 1f1b, inner: {kind: data_parallel, "
              "sync: all_reduce, compression: {kind: powersgd, rank: 2}}}") == "no error");
}
