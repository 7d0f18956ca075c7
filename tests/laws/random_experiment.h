// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <random>
#include <string>
#include <vector>

#include "tests/support/lab.h"

namespace convoy::lab {

/// Random choices that are the same on every machine (the distributions of <random> are not).
class Dice {
 public:
  explicit Dice(unsigned seed) : engine_(seed) {}
  int between(int low, int high) {
    return low + static_cast<int>(engine_() % static_cast<unsigned>(high - low + 1));
  }
  bool coin() { return between(0, 1) == 1; }
  template <class T>
  const T& one_of(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(between(0, static_cast<int>(choices.size()) - 1))];
  }

 private:
  std::mt19937 engine_;
};

/// A small network: convolutions, normalisation, activations, pooling, residual additions, a classifier; or
/// layers given by their costs.
inline std::string random_model(Dice& dice) {
  if (dice.between(0, 3) == 0) return custom_model(dice.between(1, 5), dice.between(0, 3) * 400'000);
  std::string layers;
  int side = 16, channels = 3;
  const auto add = [&](const std::string& keys) { layers += fmt::format("{{{}}}, ", keys); };
  for (int block = 0, blocks = dice.between(1, 4); block < blocks; ++block) {
    switch (dice.between(0, 3)) {
      case 0:
        channels = 8 * dice.between(1, 8);
        add(fmt::format("name: conv{}, kind: conv2d, out_channels: {}, kernel: 3, padding: 1", block,
                        channels));
        break;
      case 1:
        add(fmt::format("name: bn{}, kind: batch_norm", block));
        add(fmt::format("name: relu{}, kind: relu", block));
        break;
      case 2:
        add(fmt::format("name: left{}, kind: conv2d, out_channels: {}, kernel: 1", block, channels));
        add(fmt::format("name: right{}, kind: conv2d, out_channels: {}, kernel: 3, padding: 1", block,
                        channels));
        add(fmt::format("name: sum{0}, kind: add, inputs: [left{0}, right{0}]", block));
        break;
      default:
        if (side <= 4) break;
        side /= 2;
        add(fmt::format("name: pool{}, kind: max_pool, kernel: 2, stride: 2", block));
    }
  }
  add("name: flat, kind: flatten");
  add(fmt::format("name: fc, kind: linear, out_features: {}", 10 * dice.between(1, 100)));
  return fmt::format("{{name: net, input: [3, 16, 16], layers: [{}]}}", layers);
}

/// A cluster in the parts that laws change.
struct RandomCluster {
  std::string nodes;   ///< value of `nodes`
  std::string fabric;  ///< kind and its keys
  double bandwidth_Bps = 0, latency_s = 0;
  double peak_flops = 10e12, memory_Bps = 500e9;
  int devices = 1;  ///< a host
  std::string interconnect = "{kind: none}";
  std::vector<std::string> precisions = {};  ///< beside fp32, with the same peak
  /// Of the servers of another kind (`crate`), and what their devices have over those of the first: all 1 but one.
  int other_devices = 1;
  double other_peak = 1, other_memory_Bps = 1, other_power = 1;

  std::string text() const {
    return fmt::format(
        "{{name: lab, nodes: {}, fabric: {{kind: {}, bandwidth: {:.6f}GB/s, latency: {:.6f}us}}, servers: "
        "{{box: {{devices: [{{device: ideal, count: {}}}], interconnect: {}}}, "
        "crate: {{devices: [{{device: other, count: {}}}], interconnect: {}}}}}, "
        "devices: {{ideal: {}, other: {}}}}}",
        nodes, fabric, bandwidth_Bps / 1e9, latency_s * 1e6, devices, interconnect, other_devices,
        other_devices == devices ? interconnect : "{kind: pcie, bandwidth: 3GB/s, latency: 5us}",
        device_text(1, 1, 1, 2), device_text(other_peak, other_memory_Bps, other_power, 3));
  }

 private:
  std::string device_text(double peak, double memory, double power, int reserved_kB) const {
    std::string peaks = fmt::format("fp32: {:.6f}TFLOPS", peak * peak_flops / 1e12);
    for (const std::string& precision : precisions)
      peaks += fmt::format(", {}: {:.6f}TFLOPS", precision, peak * peak_flops / 1e12);
    return fmt::format(
        "{{peak: {{{}}}, memory: 16GiB, memory_bandwidth: {:.6f}GB/s, efficiency: 1.0, idle_power: {:.6f}W, "
        "peak_power: {:.6f}W, reserved: {}kB}}",
        peaks, memory * memory_Bps / 1e9, 50 * power, 250 * power, reserved_kB);
  }
};

inline const std::vector<std::string>& fabrics() {
  static const std::vector<std::string> table{
      "switch",
      "shared",
      "ring",
      "full_mesh",
      "fat_tree, hosts_per_leaf: 2, oversubscription: 2, nics: 2",
      "torus, dims: [3, 3]",
      "dragonfly, groups: 3, routers: 2, hosts: 2, nics: 4",
  };
  return table;
}

inline const std::vector<std::string>& interconnects() {
  static const std::vector<std::string> table{
      "{kind: none}",
      "{kind: pcie, bandwidth: 3GB/s, latency: 5us}",
      "{kind: pcie, bandwidth: 3GB/s, latency: 5us, switches: [[0], [1, 2, 3]], uplink: 2GB/s}",
      "{kind: nvlink, bandwidth: 25GB/s, latency: 2us}",
      "{kind: nvlink, bandwidth: 25GB/s, latency: 2us, pcie: {bandwidth: 12GB/s, latency: 4us}}",
      "{kind: nvswitch, bandwidth: 100GB/s, latency: 2us, pcie: {bandwidth: 12GB/s, latency: 4us}}",
  };
  return table;
}

/// 1 to 7 hosts of 1 or 4 devices, some with a straggler among them, some with servers of another kind, whose devices
/// differ in one thing: peak, bandwidth of their memory, power, or how many a host has.
inline RandomCluster random_cluster(Dice& dice, const std::string& fabric) {
  RandomCluster cluster;
  cluster.fabric = fabric;
  cluster.bandwidth_Bps = dice.between(1, 100) * 1e8;
  cluster.latency_s = dice.between(0, 50) * 1e-6;
  if (dice.coin()) {
    cluster.devices = 4;
    cluster.interconnect = dice.one_of(interconnects());
  }
  const int hosts = dice.between(1, 4);
  cluster.other_devices = cluster.devices;
  std::string others;
  if (dice.between(0, 2) == 0) {
    others = fmt::format(", {{name: other, count: {}, server: crate}}", dice.between(1, 2));
    switch (dice.between(0, 3)) {
      case 0:
        cluster.other_peak = 0.6;
        break;
      case 1:
        cluster.other_memory_Bps = 0.4;
        break;
      case 2:
        cluster.other_power = 1.7;
        break;
      default:
        cluster.other_devices = cluster.devices == 1 ? 1 : 2;
    }
  }
  cluster.nodes = fmt::format("[{{name: n, count: {}, server: box{}}}{}{}]", hosts,
                              dice.coin() ? "" : ", speed_spread: 0.2",
                              dice.coin() ? "" : ", {name: slow, count: 1, server: box, speed: 0.7}", others);
  return cluster;
}

inline std::string random_all_reduce(Dice& dice, const std::string& fidelity) {
  return fmt::format(
      "{{kind: data_parallel, sync: all_reduce, algorithm: {}, bucket: {}kB, overlap: {}, fidelity: {}}}",
      dice.one_of<std::string>(
          {"ring", "tree", "halving_doubling", "hierarchical", "double_binary_tree", "nccl", "auto"}),
      dice.one_of<int>({10, 300, 2000, 100000}), dice.coin(), fidelity);
}

inline std::string random_parameter_server(Dice& dice) {
  return fmt::format(
      "{{kind: data_parallel, sync: parameter_server, servers: {}, placement: {}, sharding: {}, overlap: {}, "
      "local_aggregation: {}, pull: {}}}",
      1, dice.coin() ? "dedicated" : "colocated", dice.coin() ? "tensor" : "even", dice.coin(), dice.coin(),
      dice.coin() ? "as_ready" : "after_all");
}

}  // namespace convoy::lab
