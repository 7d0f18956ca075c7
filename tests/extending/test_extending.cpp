// SPDX-License-Identifier: MIT
// The examples of docs/extending.md do what the page says.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <numeric>

#include "sim/base/input_error.h"
#include "sim/collectives/add_all_reduce.h"
#include "sim/costs/cost_model.h"
#include "sim/replay/replay.h"
#include "strategies/add_strategy.h"
#include "tests/extending/chain_fabric.h"
#include "tests/extending/dealt_layout.h"
#include "tests/extending/one_device.h"
#include "tests/extending/star_all_reduce.h"
#include "tests/support/approx.h"
#include "tests/support/hand.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

Plan plan_of(const std::string& strategy, const lab::Experiment& lab, std::int64_t batch) {
  const YamlNode node = parse_yaml(strategy, "s.yaml");
  YamlMap map(node, "strategy");
  map.text("kind");
  const std::unique_ptr<Strategy> made = one_device_entry().read(map);
  map.finish();
  return made->plan({lab.graph(), lab.machine(), lab.cost(), {batch, std::nullopt, {"e.yaml", 1, 1}}}).plan;
}

}  // namespace

TEST_CASE("extending: a program adds rows by their names, once, before the tables are in use") {
  const auto star = [](const CollectiveCall& call) { return star_all_reduce(call.ranks); };
  add_all_reduce("star", star);
  CHECK_THROWS_WITH_AS(add_all_reduce("star", star), "there is an all-reduce 'star'", std::logic_error);
  CHECK_THROWS_AS(add_all_reduce("ring", star), std::logic_error);
  add_strategy(one_device_entry());
  CHECK_THROWS_WITH_AS(add_strategy(one_device_entry()), "there is a strategy 'one_device'",
                       std::logic_error);
  CHECK(all_reduce_algorithm_names().back() == "star");
  CHECK(strategy_registry().back().kind == "one_device");
  CHECK(strategy_registry().back().keys.back().name == "transport");
  CHECK_THROWS_AS(add_all_reduce("comet", star), std::logic_error);
  StrategyEntry late = one_device_entry();
  late.kind = "late";
  CHECK_THROWS_AS(add_strategy(late), std::logic_error);
  // The summed rounds of the row are those of the pattern.
  const Machine machine = hand::star(4, 1e9, 0);
  const AllReduceAlgorithm id = collective_table().back().id;
  CHECK(&collective(id) == &collective_table().back());
  CHECK(all_reduce_pattern(id, {0, 1, 2, 3}, machine, 8).rounds.size() == 2);
  CHECK(why_no_scatter(id, {0, 1, 2, 3}, machine)
            .starts_with("star has no reduce-scatter or all-gather; use "));
  const YamlNode node = parse_yaml("{kind: one_device, device: 1}", "s.yaml");
  CHECK(read_strategy(node)->label() == "device 1 alone");
}

TEST_CASE("extending: the strategy is single on another device") {
  const lab::Experiment lab(lab::custom_model(3, 1000), lab::star(3, "1GB/s", "1us"), "{kind: single}", 8);
  const ReplayResult single = lab.run();
  const Plan plan = plan_of("{kind: one_device, device: 2}", lab, 8);
  const ReplayResult other = replay(plan, lab.machine(), lab.cost(), {});
  CHECK(other.step_time_s == single.step_time_s);
  CHECK(other.endpoints[2].compute_s == single.endpoints[0].compute_s);
  CHECK(other.endpoints[0].compute_s == 0);
  CHECK_THROWS_WITH_AS(plan_of("{kind: one_device, device: 3}", lab, 8),
                       "s.yaml:1:28: strategy.device: there is no device 3; the cluster has 3, 0 to 2",
                       InputError);
  CHECK_THROWS_WITH_AS(
      plan_of("{kind: one_device, devise: 3}", lab, 8),
      "s.yaml:1:20: strategy.devise: unknown key (did you mean 'device'?); known here: device, kind",
      InputError);
  CHECK(one_device_entry().keys.front().values == "0 | 0 to 1000000");
}

TEST_CASE("extending: a layout composes with all that hybrids do") {
  add_layout(dealt_layout());
  CHECK_THROWS_WITH_AS(add_layout(dealt_layout()), "there is a layout 'dealt'", std::logic_error);
  CHECK_THROWS_WITH_AS(add_layout({"filter", nullptr, nullptr}), "there is a layout 'filter'",
                       std::logic_error);
  // Channels divide by the devices: dealt out, every device has as many as if they were consecutive.
  const std::string model =
      "{name: part, input: [4, 16, 16], loss: cross_entropy, layers: [{name: a, kind: conv2d, out_channels: "
      "8, "
      "kernel: 3, padding: 1}, {name: ra, kind: relu}, {name: b, kind: conv2d, out_channels: 16, kernel: 3, "
      "padding: 1}, {name: rb, kind: relu}, {name: flat, kind: flatten}, {name: c, kind: linear, "
      "out_features: "
      "32}, {name: d, kind: linear, out_features: 8}]}";
  for (const std::string strategy :
       {"{kind: hybrid, conv: LAYOUT, fc: LAYOUT}", "{kind: hybrid, conv: batch, fc: LAYOUT, zero: 1}",
        "{kind: hybrid, conv: LAYOUT, fc: batch, zero: 2, micro_batches: 2}",
        "{kind: hybrid, conv: LAYOUT, fc: LAYOUT, replicas: 2, zero: 3}",
        "{kind: hybrid, conv: batch, fc: LAYOUT, scheme: c}",
        "{kind: pipeline, stages: 2, micro_batches: 4, inner: {kind: hybrid, conv: LAYOUT, fc: LAYOUT}}",
        "{kind: pipeline, stages: 2, micro_batches: 4, recompute: always, "
        "inner: {kind: hybrid, conv: LAYOUT, fc: LAYOUT}}"})
    for (const Recomputation recompute : {Recomputation::none, Recomputation::sqrt}) {
      TrainingOptions options;
      options.recompute = recompute;
      const auto with = [&](const std::string& layout) {
        std::string text = strategy;
        for (std::size_t at; (at = text.find("LAYOUT")) != std::string::npos;) text.replace(at, 6, layout);
        return lab::Experiment::with_global_batch(model, lab::star(4, "1GB/s", "1us"), text, 16, options);
      };
      CAPTURE(strategy);
      if (recompute != Recomputation::none && !with("filter").takes_recomputation()) continue;
      const lab::Experiment dealt = with("dealt"), filters = with("filter");
      const ReplayResult own = dealt.run(), theirs = filters.run();
      CHECK(own.step_time_s == approx(theirs.step_time_s));
      CHECK(own.comm_bytes == approx(theirs.comm_bytes));
      for (std::size_t d = 0; d < own.endpoints.size(); ++d) {
        CHECK(own.endpoints[d].compute_s == approx(theirs.endpoints[d].compute_s));
        CHECK(own.endpoints[d].peak_memory_bytes == theirs.endpoints[d].peak_memory_bytes);
      }
    }
  CHECK_THROWS_WITH_AS(
      lab::Experiment(
          "{name: part, input: [4, 8, 8], layers: [{name: a, kind: conv2d, out_channels: 8, kernel: 1, "
          "groups: 2}]}",
          lab::star(2, "1GB/s", "1us"), "{kind: hybrid, conv: dealt}", 4),
      doctest::Contains(
          "layer 'a' (conv2d with groups) cannot be shared out by dealt; allowed for it: batch"),
      InputError);
  CHECK_THROWS_AS(add_layout({"late", nullptr, nullptr}), std::logic_error);
}

TEST_CASE("extending: the all-reduce takes 2 (alpha + (N - 1) S/B)") {
  constexpr double bandwidth_Bps = 1e9, latency_s = 1e-3, bytes = 1e7;
  for (const std::uint32_t n : {2u, 3u, 8u}) {
    const Machine machine = hand::star(n, bandwidth_Bps, latency_s);
    std::vector<EndpointId> ranks(n);
    std::iota(ranks.begin(), ranks.end(), 0u);
    Plan plan;
    plan.patterns.push_back(star_all_reduce(ranks));
    plan.communications.push_back({"all-reduce", 0, bytes, Fidelity::chunk, 0});
    Role role;
    role.streams = {"communication"};
    role.members = ranks;
    Task task;
    task.name = "all-reduce";
    task.kind = Task::Kind::collective;
    task.stream = 0;
    role.program.push_back(task);
    plan.roles.push_back(role);
    const ReplayResult result = replay(plan, machine, CostModel(Precision::fp32), {});
    CAPTURE(n);
    CHECK(result.step_time_s == approx(2 * (latency_s + (n - 1) * bytes / bandwidth_Bps)).epsilon(1e-9));
    CHECK(result.comm_bytes == approx(2 * (n - 1) * bytes));
  }
}

TEST_CASE("extending: the fabric's ways are the cables between") {
  const YamlNode node = parse_yaml("{kind: chain, bandwidth: 1GB/s, latency: 2us}", "f.yaml");
  YamlMap map(node, "fabric");
  map.text("kind");
  const std::shared_ptr<const Fabric> fabric = read_chain_fabric(map);
  map.finish();
  std::vector<FabricHost> hosts;
  for (const char* name : {"a", "b", "c", "d"}) hosts.push_back({name, fabric->nic(), false});
  LinkTable links;
  const std::unique_ptr<const FabricRoutes> routes = fabric->build(hosts, links);
  CHECK(links.links().size() == 6);
  const auto way = [&](std::uint32_t from, std::uint32_t to) {
    std::vector<LinkId> taken;
    routes->append({from, 0}, {to, 0}, taken);
    std::string text;
    for (const LinkId link : taken) text += links.links()[link].name + " ";
    return text;
  };
  CHECK(way(0, 1) == "a-b.up ");
  CHECK(way(1, 3) == "b-c.up c-d.up ");
  CHECK(way(3, 0) == "c-d.down b-c.down a-b.down ");
}
