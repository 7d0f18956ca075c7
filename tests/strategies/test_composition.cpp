// SPDX-License-Identifier: MIT
// What goes with which strategy: found by planning and replaying every pair, and told in docs/strategies.md.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "sim/base/input_error.h"
#include "sim/costs/input_pipeline.h"
#include "sim/lowering/input_feed.h"
#include "sim/plan/validate.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

/// A `strategy:` mapping in which OUTER and INNER stand where keys can be added.
struct Composed {
  const char *name, *mapping;
};
const Composed composed_rows[] = {
    {"`single`", "{kind: single OUTER}"},
    {"`data_parallel`, all-reduce", "{kind: data_parallel, sync: all_reduce OUTER}"},
    {"`data_parallel`, `sync_every: 4`", "{kind: data_parallel, sync: all_reduce, sync_every: 4 OUTER}"},
    {"`data_parallel`, gossip", "{kind: data_parallel, sync: gossip OUTER}"},
    {"`data_parallel`, gossip, `asynchronous`",
     "{kind: data_parallel, sync: gossip, asynchronous: true OUTER}"},
    {"`data_parallel`, servers", "{kind: data_parallel, sync: parameter_server OUTER}"},
    {"`data_parallel`, servers, `local_aggregation: host`",
     "{kind: data_parallel, sync: parameter_server, local_aggregation: host OUTER}"},
    {"`data_parallel`, servers, `local_aggregation: owner`",
     "{kind: data_parallel, sync: parameter_server, local_aggregation: owner OUTER}"},
    {"`data_parallel`, servers, `local_aggregation: ring`",
     "{kind: data_parallel, sync: parameter_server, local_aggregation: ring OUTER}"},
    {"`data_parallel`, servers, `mode: async`",
     "{kind: data_parallel, sync: parameter_server, mode: async OUTER}"},
    {"`elastic` over all-reduce",
     "{kind: elastic, schedule: [{at_step: 0, devices: 4}], inner: {kind: data_parallel, sync: all_reduce "
     "INNER} "
     "OUTER}"},
    {"`hybrid`", "{kind: hybrid, conv: batch, fc: batch OUTER}"},
    {"`pipeline`", "{kind: pipeline, stages: 2, inner: {kind: data_parallel, sync: all_reduce INNER} OUTER}"},
    {"`pipeline`, `weights: stash`",
     "{kind: pipeline, stages: 2, weights: stash, inner: {kind: data_parallel, sync: all_reduce INNER} "
     "OUTER}"},
    {"`pipeline` of `hybrid`",
     "{kind: pipeline, stages: 2, inner: {kind: hybrid, conv: batch, fc: batch INNER} OUTER}"},
    {"`filter_parallel`",
     "{kind: filter_parallel, replicas: 2, inner: {kind: data_parallel, sync: all_reduce INNER} OUTER}"},
    {"`hypergraph`",
     "{kind: hypergraph, replicas: 2, inner: {kind: data_parallel, sync: all_reduce INNER} OUTER}"},
    {"`pardnn`", "{kind: pardnn, replicas: 2, inner: {kind: data_parallel, sync: all_reduce INNER} OUTER}"},
};

std::string with(std::string text, const std::string& mark, const std::string& key) {
  if (const std::size_t at = text.find(mark); at != std::string::npos) text.replace(at, mark.size(), key);
  return text;
}

/// The mapping with a key where the strategy takes it, or its inner one; nothing where neither does.
std::optional<std::string> taking(const Composed& row, const std::string& key) {
  const std::string added = key.empty() ? "" : ", " + key;
  for (const bool outer : {true, false}) {
    const std::string text =
        with(with(row.mapping, "OUTER", outer ? added : ""), "INNER", outer ? "" : added);
    if (!outer && std::string(row.mapping).find("INNER") == std::string::npos) break;
    try {
      read_strategy(parse_yaml(text, "s.yaml"));
      return text;
    } catch (const InputError&) {
    }
  }
  return std::nullopt;
}

lab::Experiment composed(const std::string& strategy, const TrainingOptions& options) {
  const std::string model =
      "{name: toy, input: [16, 16, 16], layers: ["
      "{name: conv1, kind: conv2d, out_channels: 16, kernel: 3, padding: 1}, {name: bn1, kind: batch_norm},"
      "{name: conv2, kind: conv2d, out_channels: 16, kernel: 3, padding: 1}, {name: bn2, kind: batch_norm},"
      "{name: relu2, kind: relu}, {name: conv3, kind: conv2d, out_channels: 16, kernel: 3, padding: 1},"
      "{name: bn3, kind: batch_norm}, {name: flat, kind: flatten}, {name: fc, kind: linear, out_features: "
      "16}]}";
  const std::string cluster =
      "{nodes: [{name: n, count: 1, server: box}], fabric: {kind: switch, bandwidth: 10Gbps, latency: 25us, "
      "protocol: tcp}, servers: {box: {devices: [{device: exact, count: 4}], vcpus: 16, interconnect: {kind: "
      "pcie, bandwidth: 12GB/s, latency: 5us}}}, devices: {exact: {peak: {fp32: 10TFLOPS, fp16: 10TFLOPS}, "
      "memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 1.0}}}";
  lab::Experiment experiment = lab::Experiment::with_global_batch(model, cluster, strategy, 16, options);
  validate(experiment.plan(), experiment.machine());
  CHECK(experiment.run().step_time_s > 0);
  return experiment;
}

TrainingOptions with_momentum() {
  TrainingOptions options;
  options.optimizer = Optimizer::momentum;
  return options;
}

/// One process drives all devices of a host, in half precision: what replicas then wait for.
TrainingOptions one_process() {
  TrainingOptions options;
  options.precision = Precision::fp16;
  options.framework = Framework::tensorflow1;
  options.execution = ExecutionMode::graph;
  options.layout = Layout::nhwc;
  return options;
}

bool any_op(const lab::Experiment& experiment, const std::string& part) {
  for (const Role& role : experiment.plan().roles)
    for (const Task& task : role.program)
      for (const PlanOp& op : task.ops)
        if (op.name.find(part) != std::string::npos) return true;
  return false;
}

double resident_of(const lab::Experiment& experiment, MemoryClass memory_class) {
  double bytes = 0;
  for (const Role& role : experiment.plan().roles)
    bytes += role.resident_bytes[static_cast<std::size_t>(memory_class)] *
             static_cast<double>(role.members.size());
  return bytes;
}

// Whether a strategy can do something. Where it takes the key it must show in the plan.

bool takes_recomputation(const Composed& row) {
  const std::string plain = taking(row, "").value();
  if (read_strategy(parse_yaml(plain, "s.yaml"))->refuses_recomputation().empty()) {
    TrainingOptions options = with_momentum();
    options.recompute = Recomputation::sqrt;
    CHECK(any_op(composed(plain, options), "again"));
    return true;
  }
  const std::optional<std::string> text = taking(row, "recompute: always");
  if (text) CHECK(any_op(composed(*text, with_momentum()), "again"));
  return text.has_value();
}

bool takes_micro_batches(const Composed& row) {
  const std::optional<std::string> text = taking(row, "micro_batches: 2");
  if (text) CHECK(any_op(composed(*text, with_momentum()), "#1"));
  return text.has_value();
}

bool takes_zero(const Composed& row) {
  const std::optional<std::string> text = taking(row, "zero: 1");
  if (text) {
    const lab::Experiment sharded = composed(*text, with_momentum());
    const lab::Experiment whole = composed(taking(row, "").value(), with_momentum());
    CHECK(resident_of(sharded, MemoryClass::optimizer) < 0.9 * resident_of(whole, MemoryClass::optimizer));
  }
  return text.has_value();
}

bool takes_compression(const Composed& row) {
  const std::optional<std::string> text = taking(row, "compression: fp16");
  if (text)
    CHECK(composed(*text, with_momentum()).run().comm_bytes <
          composed(taking(row, "").value(), with_momentum()).run().comm_bytes);
  return text.has_value();
}

bool copies_buckets(const Composed& row) {
  return any_op(composed(taking(row, "").value(), with_momentum()), "filled");
}

bool launches_together(const Composed& row) {
  const std::optional<std::string> text = taking(row, "bucket: 1B");
  return text && any_op(composed(*text, one_process()), "launched");
}

bool holds_normalizations(const Composed& row) {
  const std::optional<std::string> text = taking(row, "bucket: 1B");
  if (!text) return false;
  const lab::Experiment experiment = composed(*text, one_process());
  for (const Role& role : experiment.plan().roles)
    for (const Task& task : role.program)
      if (task.name.ends_with(", held")) return true;
  return false;
}

bool reads_input(const Composed& row) {
  lab::Experiment experiment = composed(taking(row, "").value(), with_momentum());
  const InputSpec spec = read_input(parse_yaml("{kind: jpeg, library: pil}", "i.yaml"), "training.input");
  add_input(experiment.plan(), experiment.graph(), experiment.machine(), spec);
  const double with_input_s = experiment.run().step_time_s;
  // The long run of steps of random lengths is known to a part in a thousand.
  const double known_to = experiment.plan().service() ? 1e-3 : 1e-9;
  CHECK(with_input_s >=
        16 / input_rate(spec, experiment.machine().host_types[0], 4).images_per_s * (1 - known_to));
  return experiment.plan().input.has_value();
}

struct Ability {
  const char* name;
  bool (*takes)(const Composed&);
};
const Ability abilities[] = {
    {"recomputation", &takes_recomputation},
    {"`micro_batches`", &takes_micro_batches},
    {"`zero`", &takes_zero},
    {"`compression`", &takes_compression},
    {"bucket copies", &copies_buckets},
    {"launches together", &launches_together},
    {"held normalizations", &holds_normalizations},
    {"`input`", &reads_input},
};

}  // namespace

TEST_CASE(
    "docs/strategies.md tells what goes with which strategy, and all of that can be planned and replayed") {
  std::string head = "| |", rule = "|---|", table;
  for (const Ability& ability : abilities) {
    head += fmt::format(" {} |", ability.name);
    rule += "---|";
  }
  for (const Composed& row : composed_rows) {
    CAPTURE(std::string(row.name));
    table += fmt::format("| {} |", row.name);
    for (const Ability& ability : abilities) {
      CAPTURE(std::string(ability.name));
      table += ability.takes(row) ? " yes |" : " |";
    }
    table += "\n";
  }
  table = head + "\n" + rule + "\n" + table;
  std::ifstream in(std::string(CONVOY_SOURCE) + "/docs/strategies.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  CHECK_MESSAGE(page.find(table) != std::string::npos, table);
}
