// SPDX-License-Identifier: MIT
#include "tests/laws/strategy_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/data_path.h"
#include "tests/laws/expected_volumes.h"

namespace convoy::lab {
namespace {

OperationCounts once(const Trial&) { return {}; }
OperationCounts by_servers(const Trial&) { return {.updates = 0}; }
OperationCounts with_sums(const Trial&) { return {.sums = " sum"}; }
OperationCounts with_partial_sums(const Trial&) { return {.sums = ".partial_gradient_sum"}; }
OperationCounts with_sums_on_replicas(const Trial& trial) {
  return {.updates = placed_replicas(trial), .sums = " sum"};
}
OperationCounts with_partial_sums_on_replicas(const Trial& trial) {
  return {.updates = placed_replicas(trial), .sums = ".partial_gradient_sum"};
}
OperationCounts on_every_device(const Trial& trial) {
  return {.updates = static_cast<double>(trial.machine.devices.size())};
}
OperationCounts with_compression(const Trial& trial) {
  return {.updates = static_cast<double>(trial.machine.devices.size()), .sums = "compressed"};
}
OperationCounts with_factors(const Trial& trial) {
  return {.updates = static_cast<double>(trial.machine.devices.size()), .of_messages = "message "};
}
OperationCounts with_averages(const Trial& trial) {
  return {.updates = static_cast<double>(trial.machine.devices.size()), .of_messages = "average "};
}
OperationCounts by_servers_with_compression(const Trial&) { return {.updates = 0, .sums = "compressed"}; }
OperationCounts on_every_replica(const Trial& trial) {
  return {.updates = static_cast<double>(trial.report.stages.front().devices.size())};
}

std::string sharded_options(Dice& dice, const StrategySetting& setting, int stage, int micro_batches) {
  return fmt::format(
      "{{kind: data_parallel, sync: all_reduce, zero: {}, algorithm: {}, bucket: {}kB, overlap: {}, "
      "fidelity: "
      "{}, micro_batches: {}}}",
      stage, dice.coin() ? "ring" : "auto", dice.one_of<int>({10, 300, 2000, 100000}), dice.coin(),
      dice.one_of<std::string>({"auto", "chunk", "fluid"}), setting.devices > 1 ? micro_batches : 1);
}

std::string server_options(Dice& dice, const StrategySetting& setting, const std::string& more) {
  const bool dedicated = dice.coin();
  return fmt::format(
      "{{kind: data_parallel, sync: parameter_server, servers: {}, placement: {}, sharding: {}, overlap: "
      "{}, micro_batches: {}{}}}",
      dice.between(1, dedicated ? 3 : setting.hosts), dedicated ? "dedicated" : "colocated",
      dice.one_of<std::string>({"tensor", "even", "even, bucket: 300kB"}), dice.coin(),
      setting.devices > 1 ? dice.one_of<int>({1, 2}) : 1, more);
}

/// What replicas of placed work take beside its own keys.
std::string placed_options(Dice& dice, const StrategySetting& setting) {
  std::string text =
      fmt::format(", micro_batches: {}", setting.devices > 1 ? dice.one_of<int>({1, 2, 4}) : 1);
  if (setting.devices % 2 != 0) return text;
  text += ", replicas: 2";
  if (dice.coin())
    text += fmt::format(
        ", inner: {{kind: data_parallel, sync: all_reduce, algorithm: ring, bucket: {}kB, overlap: {}}}",
        dice.one_of<int>({10, 300, 100000}), dice.coin());
  return text;
}

/// A pipeline of one or two stages, each data-parallel.
std::string nested_options(Dice& dice, const StrategySetting& setting, int zero) {
  return fmt::format(
      "{{kind: pipeline, stages: {}, micro_batches: {}, schedule: {}, inner: {{kind: "
      "data_parallel, sync: all_reduce, bucket: {}kB, overlap: {}, zero: {}}}}}",
      setting.devices % 2 == 0 && setting.layers >= 5 ? 2 : 1,
      setting.devices > 1 ? dice.one_of<int>({1, 2, 4}) : 1,
      dice.one_of<std::string>({"naive", "gpipe", "1f1b"}), dice.one_of<int>({10, 300, 100000}), dice.coin(),
      zero);
}

}  // namespace

const std::vector<StrategyRow>& strategy_rows() {
  static const std::vector<StrategyRow> table{
      {"single",
       [](Dice& dice, const StrategySetting& setting) {
         return fmt::format("{{kind: single, micro_batches: {}}}",
                            setting.devices > 1 ? dice.one_of<int>({1, 2, 4}) : 1);
       },
       once, Alone::single, false, [](const Trial&) { return std::optional(0.0); }},
      {"rings and trees",
       [](Dice& dice, const StrategySetting&) {
         return fmt::format(
             "{{kind: data_parallel, sync: all_reduce, algorithm: {}, bucket: {}kB, overlap: {}, fidelity: "
             "{}}}",
             dice.coin() ? "ring" : "tree", dice.one_of<int>({10, 300, 2000, 100000}), dice.coin(),
             dice.one_of<std::string>({"auto", "chunk", "fluid"}));
       },
       on_every_device, Alone::single, false, all_reduced},
      {"sums in cycles",
       [](Dice& dice, const StrategySetting&) {
         return fmt::format(
             "{{kind: data_parallel, sync: all_reduce, algorithm: {}, bucket: {}kB, overlap: {}, cycle: {}}}",
             dice.coin() ? "ring" : "tree", dice.one_of<int>({10, 300, 100000}), dice.coin(),
             dice.one_of<std::string>({"100us", "1ms", "20ms"}));
       },
       on_every_device, Alone::single},
      {"other all-reduces",
       [](Dice& dice, const StrategySetting&) {
         return random_all_reduce(dice, dice.one_of<std::string>({"auto", "chunk", "fluid"}));
       },
       on_every_device, Alone::single},
      {"half-precision gradients",
       [](Dice& dice, const StrategySetting&) {
         return fmt::format(
             "{{kind: data_parallel, sync: all_reduce, algorithm: {}, bucket: {}kB, overlap: {}, "
             "compression: "
             "fp16}}",
             dice.coin() ? "ring" : "tree", dice.one_of<int>({10, 300, 2000}), dice.coin());
       },
       with_compression, Alone::single, false, half_reduced},
      {"the largest gradients",
       [](Dice& dice, const StrategySetting&) {
         return fmt::format(
             "{{kind: data_parallel, sync: all_reduce, algorithm: {}, bucket: 1GB, overlap: {}, compression: "
             "{{kind: top_k, ratio: 0.01}}}}",
             dice.coin() ? "ring" : "auto", dice.coin());
       },
       with_compression, Alone::single, false, hundredth_gathered},
      {"quantised gradients",
       [](Dice& dice, const StrategySetting&) {
         return fmt::format(
             "{{kind: data_parallel, sync: all_reduce, algorithm: {}, bucket: 1GB, overlap: {}, compression: "
             "{{kind: quantised, bits: 4}}}}",
             dice.coin() ? "ring" : "auto", dice.coin());
       },
       with_compression, Alone::single, false, codes_gathered},
      {"signs",
       [](Dice& dice, const StrategySetting&) {
         return fmt::format(
             "{{kind: data_parallel, sync: all_reduce, algorithm: ring, bucket: 1GB, overlap: {}, "
             "compression: "
             "sign}}",
             dice.coin());
       },
       with_compression, Alone::single, false, signs_gathered},
      {"PowerSGD",
       [](Dice& dice, const StrategySetting&) {
         return fmt::format(
             "{{kind: data_parallel, sync: all_reduce, algorithm: {}, bucket: {}kB, overlap: {}, "
             "compression: "
             "{{kind: powersgd, rank: 2}}}}",
             dice.coin() ? "ring" : "tree", dice.one_of<int>({10, 300, 100000}), dice.coin());
       },
       with_factors, Alone::single, false, factors_reduced<2>},
      {"local SGD",
       [](Dice& dice, const StrategySetting&) {
         return fmt::format(
             "{{kind: data_parallel, sync: all_reduce, algorithm: {}, bucket: {}kB, sync_every: {}}}",
             dice.coin() ? "ring" : "tree", dice.one_of<int>({10, 300, 100000}), dice.between(2, 4));
       },
       with_averages, Alone::single, false, averaged},
      {"gossip with one peer a step",
       [](Dice& dice, const StrategySetting&) {
         return fmt::format(
             "{{kind: data_parallel, sync: gossip, neighbours: one_peer, bucket: {}kB, overlap: {}}}",
             dice.one_of<int>({10, 300, 100000}), dice.coin());
       },
       with_averages, Alone::single, false, sent_to_one},
      {"gossip at each device's own pace",
       [](Dice& dice, const StrategySetting&) {
         return fmt::format("{{kind: data_parallel, sync: gossip, asynchronous: true, bucket: {}kB}}",
                            dice.one_of<int>({10, 300, 100000}));
       },
       with_averages, Alone::single, false, exchanged_with_one},
      {"gossip between hosts",
       [](Dice& dice, const StrategySetting&) {
         return fmt::format(
             "{{kind: data_parallel, sync: gossip, neighbours: one_peer, sum_in_hosts: true, bucket: {}kB, overlap: "
             "{}}}",
             dice.one_of<int>({10, 300, 100000}), dice.coin());
       },
       with_averages, Alone::single, false, sent_between_hosts},
      {"schedules of files",
       [](Dice& dice, const StrategySetting&) {
         return fmt::format(
             "{{kind: data_parallel, sync: all_reduce, algorithm: {{file: {}/collectives/{}}}, bucket: {}kB, "
             "overlap: {}, fidelity: {}}}",
             data_path("configs"), dice.coin() ? "ring.yaml" : "tree.yaml", dice.one_of<int>({10, 300, 100000}),
             dice.coin(), dice.one_of<std::string>({"auto", "chunk", "fluid"}));
       },
       on_every_device, Alone::single, false, all_reduced},
      {"ZeRO-1",
       [](Dice& dice, const StrategySetting& setting) {
         return sharded_options(dice, setting, 1, dice.one_of<int>({1, 4}));
       },
       once, Alone::single, false, sharded<2>},
      {"ZeRO-2",
       [](Dice& dice, const StrategySetting& setting) { return sharded_options(dice, setting, 2, 1); }, once,
       Alone::single, false, sharded<2>},
      {"ZeRO-3",
       [](Dice& dice, const StrategySetting& setting) { return sharded_options(dice, setting, 3, 1); }, once,
       Alone::single, false, sharded<3>},
      {"ZeRO-3 with micro-batches",
       [](Dice& dice, const StrategySetting& setting) { return sharded_options(dice, setting, 3, 2); }, once,
       Alone::single, false, sharded<6>},
      {"sync servers",
       [](Dice& dice, const StrategySetting& setting) {
         return server_options(dice, setting, dice.coin() ? "" : ", pull: after_all");
       },
       by_servers, Alone::without_update, false, pushed_and_pulled},
      {"sync servers with local aggregation",
       [](Dice& dice, const StrategySetting& setting) {
         return server_options(dice, setting, ", local_aggregation: true");
       },
       by_servers, Alone::without_update},
      {"async servers",
       [](Dice& dice, const StrategySetting& setting) {
         return server_options(dice, setting, ", mode: async");
       },
       by_servers, Alone::without_update, false, pushed_and_pulled},
      {"stale-synchronous servers",
       [](Dice& dice, const StrategySetting& setting) {
         return server_options(dice, setting, fmt::format(", mode: ssp, staleness: {}", dice.between(1, 5)));
       },
       by_servers, Alone::without_update, false, pushed_and_pulled},
      {"servers that get half-precision gradients",
       [](Dice& dice, const StrategySetting& setting) {
         return server_options(dice, setting,
                               fmt::format(", mode: {}{}", dice.coin() ? "sync" : "async",
                                           setting.devices > 1 ? ", compression: fp16" : ""));
       },
       by_servers_with_compression, Alone::without_update, false,
       [](const Trial& trial) {
         return trial.machine.devices.size() > 1 ? half_pushed_and_pulled(trial) : pushed_and_pulled(trial);
       }},
      {"servers with backup workers",
       [](Dice& dice, const StrategySetting& setting) {
         return server_options(
             dice, setting, fmt::format(", backup_workers: {}", dice.between(0, (setting.devices - 1) / 2)));
       },
       by_servers, Alone::without_update},
      {"filter_parallel",
       [](Dice& dice, const StrategySetting& setting) {
         return fmt::format(
             "{{kind: filter_parallel, shares: {}, broadcast: {}, master: {}, overlap: {}, micro_batches: "
             "{}}}",
             dice.coin() ? "equal" : "probed", dice.coin() ? "direct" : "scatter_allgather",
             dice.between(0, setting.devices - 1), dice.coin(),
             setting.devices > 1 ? dice.one_of<int>({1, 2, 4}) : 1);
       },
       with_sums, Alone::single, false, filters_and_slices},
      {"replicas of filter_parallel",
       [](Dice& dice, const StrategySetting& setting) {
         return fmt::format("{{kind: filter_parallel, broadcast: {}, overlap: {}{}}}",
                            dice.coin() ? "direct" : "scatter_allgather", dice.coin(),
                            placed_options(dice, setting));
       },
       with_sums_on_replicas, Alone::single, false, connectivity_and_sums},
      {"hypergraph",
       [](Dice& dice, const StrategySetting& setting) {
         const auto method =
             dice.one_of<std::string>({"hypergraph", "hypergraph", "layerwise", "even", "random"});
         // One vertex a layer leaves method even nothing to share out, and is refused.
         const auto granularity =
             dice.one_of<std::string>({"auto", method == "even" ? "channel" : "layer", "3"});
         return fmt::format("{{kind: hypergraph, method: {}, granularity: {}, micro_batches: {}}}", method,
                            granularity, setting.devices > 1 ? dice.one_of<int>({1, 2, 4}) : 1);
       },
       with_partial_sums, Alone::single, false, connectivity_of_partition},
      {"replicas of hypergraph",
       [](Dice& dice, const StrategySetting& setting) {
         return fmt::format("{{kind: hypergraph, method: {}{}}}", dice.coin() ? "hypergraph" : "even",
                            placed_options(dice, setting));
       },
       with_partial_sums_on_replicas, Alone::single, false, connectivity_and_sums},
      {"pardnn",
       [](Dice& dice, const StrategySetting& setting) {
         return fmt::format("{{kind: pardnn, refine: {}, micro_batches: {}}}", dice.coin(),
                            setting.devices > 1 ? dice.one_of<int>({1, 2, 4}) : 1);
       },
       with_sums, Alone::single, false, connectivity_of_partition},
      {"replicas of pardnn",
       [](Dice& dice, const StrategySetting& setting) {
         return fmt::format("{{kind: pardnn, refine: {}{}}}", dice.coin(), placed_options(dice, setting));
       },
       with_sums_on_replicas, Alone::single, false, connectivity_and_sums},
      {"pipeline",
       [](Dice& dice, const StrategySetting& setting) {
         const int stages = setting.devices % 2 == 0 && setting.layers >= 5 ? 2 : 1;
         return fmt::format(
             "{{kind: pipeline, stages: {}, replicas: {}, micro_batches: {}, schedule: {}, partition: {}}}",
             stages, setting.devices / stages, setting.devices > 1 ? dice.one_of<int>({1, 2, 4}) : 1,
             dice.one_of<std::string>({"naive", "gpipe", "1f1b"}),
             dice.one_of<std::string>({"even", "balanced", "optimal"}));
       },
       on_every_replica, Alone::single},
      {"pipeline of data-parallel stages",
       [](Dice& dice, const StrategySetting& setting) { return nested_options(dice, setting, 0); },
       on_every_replica, Alone::single},
      {"pipeline of stages with ZeRO",
       [](Dice& dice, const StrategySetting& setting) {
         return nested_options(dice, setting, dice.between(1, 3));
       },
       once, Alone::single},
      {"pipeline of hybrid stages",
       [](Dice& dice, const StrategySetting& setting) {
         const bool cut = setting.devices % 2 == 0 && setting.layers >= 5;
         return fmt::format(
             "{{kind: pipeline, stages: {}, micro_batches: {}, schedule: {}, inner: {{kind: hybrid, conv: "
             "batch, fc: "
             "batch, bucket: {}kB, overlap: {}}}}}",
             cut ? 2 : 1, cut ? dice.one_of<int>({1, 2}) : 1,
             dice.one_of<std::string>({"naive", "gpipe", "1f1b"}), dice.one_of<int>({10, 300, 100000}),
             dice.coin());
       },
       on_every_replica, Alone::single},
      {"hybrid with micro-batches",
       [](Dice& dice, const StrategySetting& setting) {
         return fmt::format(
             "{{kind: hybrid, conv: batch, fc: batch, micro_batches: {}, bucket: {}kB, overlap: {}}}",
             setting.devices > 1 ? dice.one_of<int>({2, 4}) : 1, dice.one_of<int>({10, 300, 100000}),
             dice.coin());
       },
       on_every_device, Alone::single},
      {"hybrid with ZeRO",
       [](Dice& dice, const StrategySetting&) {
         return fmt::format("{{kind: hybrid, conv: batch, fc: batch, zero: {}, bucket: {}kB, overlap: {}}}",
                            dice.between(1, 2), dice.one_of<int>({10, 300, 100000}), dice.coin());
       },
       once, Alone::single, false, sharded<2>},
      {"hybrid",
       [](Dice& dice, const StrategySetting& setting) {
         // The smallest feature maps have four rows.
         const int group = setting.devices % 4 == 0 ? 4 : setting.devices % 3 == 0 ? 3 : 1;
         return fmt::format(
             "{{kind: hybrid, conv: {}, fc: batch, replicas: {}, bucket: {}kB, overlap: {}, algorithm: {}}}",
             dice.one_of<std::string>({"batch", "height", "width"}), setting.devices / group,
             dice.one_of<int>({10, 300, 100000}), dice.coin(), dice.coin() ? "ring" : "auto");
       },
       on_every_device, Alone::single},
      {"elastic",
       [](Dice& dice, const StrategySetting& setting) {
         return fmt::format(
             "{{kind: elastic, inner: {{kind: data_parallel, sync: all_reduce, algorithm: ring}}, schedule: "
             "[{{at_step: 0, devices: {}}}, {{at_step: 3, devices: {}}}], balance: {}, micro_batch: "
             "1000000}}",
             dice.between(1, setting.devices), setting.devices, dice.coin() ? "uniform" : "coarse");
       },
       on_every_device, Alone::single, true, all_reduced},
  };
  return table;
}

}  // namespace convoy::lab
