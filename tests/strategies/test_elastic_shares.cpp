// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

#include "strategies/elastic/elastic_shares.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

std::int64_t sum(const std::vector<std::int64_t>& parts) {
  std::int64_t total = 0;
  for (const std::int64_t part : parts) total += part;
  return total;
}

/// 3x32x32 images through one convolution and a head; activations grow with the batch.
constexpr const char* small_network =
    "{name: small, input: [3, 32, 32], layers: [{name: conv, kind: conv2d, out_channels: 16, kernel: 3, "
    "padding: "
    "1}, {name: relu, kind: relu}, {name: flat, kind: flatten}, {name: fc, kind: linear, out_features: 10}]}";

std::string one_device(const std::string& memory) {
  return "{name: lab, nodes: [{name: n, count: 1, server: box}], fabric: {kind: switch, bandwidth: 1GB/s, "
         "latency: "
         "0us}, servers: {box: {devices: [{device: ideal, count: 1}], interconnect: {kind: none}}}, devices: "
         "{ideal: {peak: {fp32: 10TFLOPS}, memory: " +
         memory + ", memory_bandwidth: 500GB/s, efficiency: 1.0, launch_overhead: 0us}}}";
}

}  // namespace

TEST_CASE("elastic shares: 10 images coarsely, by 4, on 2 devices: 4 and 2, and 4") {
  CHECK(deal_coarse(10, 2, 4) == DealtBatch{{4, 2}, {4}});
}

TEST_CASE("elastic shares: coarse dealing leaves devices without images") {
  CHECK(deal_coarse(10, 4, 5) == DealtBatch{{5}, {5}, {}, {}});
}

TEST_CASE("elastic shares: 10 images evenly on 3 devices, at most 3 at once") {
  // 4, 3 and 3; four images do not fit at once: two and two
  CHECK(deal_uniform(10, 3, 3) == DealtBatch{{2, 2}, {3}, {3}});
}

TEST_CASE(
    "elastic shares: both add up to the batch, micro-batches fit, even shares differ by one, coarse ones "
    "by a micro-batch") {
  for (std::int64_t batch = 1; batch <= 60; ++batch)
    for (std::uint32_t devices = 1; devices <= std::min<std::int64_t>(batch, 9); ++devices)
      for (const std::int64_t micro_batch : {1, 3, 7, 64}) {
        const DealtBatch coarse = deal_coarse(batch, devices, micro_batch);
        const DealtBatch uniform = deal_uniform(batch, devices, micro_batch);
        for (const DealtBatch* dealt : {&coarse, &uniform}) {
          REQUIRE(dealt->size() == devices);
          std::int64_t total = 0, least = batch, most = 0;
          for (const auto& parts : *dealt) {
            total += sum(parts);
            least = std::min(least, sum(parts));
            most = std::max(most, sum(parts));
            for (const std::int64_t part : parts) REQUIRE((part >= 1 && part <= micro_batch));
          }
          REQUIRE(total == batch);
          REQUIRE(most - least <= (dealt == &uniform ? 1 : micro_batch));
        }
        // the slowest device: ceil(B / (n b)) micro-batches in both
        const auto rounds =
            static_cast<std::size_t>((batch + devices * micro_batch - 1) / (devices * micro_batch));
        REQUIRE(coarse[0].size() == rounds);
        REQUIRE(uniform[0].size() <= rounds);
      }
}

TEST_CASE(
    "elastic shares: the largest micro-batch fills the memory that the replay measures, and one image more "
    "overfills it") {
  for (const std::string memory : {"2MB", "5MB", "64MB"}) {
    const auto peak = [&](std::int64_t batch) {
      const lab::Experiment run(small_network, one_device(memory), "{kind: single}", batch);
      return run.run().endpoints[0].peak_memory_bytes;
    };
    const lab::Experiment any(small_network, one_device(memory), "{kind: single}", 1);
    const DeviceType& type = any.machine().device_types[0];
    const std::int64_t most = largest_micro_batch(any.graph(), type);
    CAPTURE(memory);
    REQUIRE(most >= 1);
    CHECK(peak(most) <= type.memory_bytes);
    CHECK(peak(most + 1) > type.memory_bytes);
  }
}

TEST_CASE("elastic shares: where the parameters alone do not fit, no image does") {
  const lab::Experiment any(small_network, one_device("100kB"), "{kind: single}", 1);
  CHECK(largest_micro_batch(any.graph(), any.machine().device_types[0]) == 0);
}

TEST_CASE("elastic shares: what an operation needs whatever the batch is takes room from its images") {
  const lab::Experiment any(small_network, one_device("5MB"), "{kind: single}", 1);
  const DeviceType& type = any.machine().device_types[0];
  const auto last = static_cast<OpId>(any.graph().operations.size() - 1);
  for (const std::int64_t bytes : {1'000'000, 2'000'000}) {
    TrainingGraph graph = any.graph();
    graph.buffers.push_back({"table", MemoryClass::activations, 0, bytes, 0, last, false, {0, last}});
    DeviceType smaller = type;
    smaller.memory_bytes -= static_cast<double>(bytes);
    CHECK(largest_micro_batch(graph, type) == largest_micro_batch(any.graph(), smaller));
    CHECK(largest_micro_batch(graph, type) < largest_micro_batch(any.graph(), type));
  }
}
