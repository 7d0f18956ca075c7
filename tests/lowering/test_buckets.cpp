// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <limits>
#include <numeric>
#include <random>

#include "sim/lowering/buckets.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

/// Parameters with these elements, whose gradients are completed by these operations.
TrainingGraph graph_of(const std::vector<std::pair<std::int64_t, OpId>>& parameters,
                       Precision precision = Precision::fp32) {
  TrainingGraph graph;
  graph.options.precision = precision;
  for (const auto& [elements, gradient] : parameters)
    graph.parameters.push_back({"p", 0, elements, 0, gradient, 0});
  return graph;
}

using Indices = std::vector<std::size_t>;

}  // namespace

TEST_CASE(
    "buckets take gradients as backward completes them: the last layer first, the last tensor of a layer "
    "first") {
  // Layers with weight and bias: 0, 1 | 2, 3 | 4, completed by operations 9, 7, 5.
  const TrainingGraph graph = graph_of({{10, 9}, {1, 9}, {20, 7}, {2, 7}, {30, 5}});
  const std::vector<Bucket> buckets = bucket_per_tensor(graph);
  REQUIRE(buckets.size() == 5);
  const std::size_t order[]{4, 3, 2, 1, 0};
  for (std::size_t b = 0; b < 5; ++b) {
    CHECK(buckets[b].parameters == Indices{order[b]});
    CHECK(buckets[b].ready == graph.parameters[order[b]].gradient);
    CHECK(buckets[b].bytes == 4.0 * static_cast<double>(graph.parameters[order[b]].elements));
  }
}

TEST_CASE("a bucket closes when it holds its size or more") {
  // In order of completion, bytes: 40, 40, 120, 8, 72.
  const TrainingGraph graph = graph_of({{18, 5}, {2, 4}, {30, 3}, {10, 2}, {10, 1}});
  const auto contents = [&](double size) {
    std::vector<Indices> result;
    for (const Bucket& bucket : fill_buckets(graph, size)) result.push_back(bucket.parameters);
    return result;
  };
  CHECK(contents(80) == std::vector<Indices>{{4, 3}, {2}, {1, 0}});
  CHECK(contents(81) == std::vector<Indices>{{4, 3, 2}, {1, 0}});
  CHECK(contents(40) == std::vector<Indices>{{4}, {3}, {2}, {1, 0}});
  CHECK(contents(1) == std::vector<Indices>{{4}, {3}, {2}, {1}, {0}});
  CHECK(contents(std::numeric_limits<double>::infinity()) == std::vector<Indices>{{4, 3, 2, 1, 0}});
  CHECK(fill_buckets(graph, 81)[0].ready == 3);
  CHECK(fill_buckets(graph, 81)[0].bytes == 200);
}

TEST_CASE("the first bucket closes at a size of its own, as compute_bucket_assignment_by_size does") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::vector<std::pair<std::int64_t, OpId>> parameters;
    const auto count = 1 + random() % 30;
    for (std::uint32_t p = 0; p < count; ++p)
      parameters.emplace_back(1 + random() % 1000, static_cast<OpId>(count - p));
    const TrainingGraph graph = graph_of(parameters);
    std::vector<double> elements;
    for (const auto& [values, gradient] : parameters) elements.push_back(static_cast<double>(values));
    const double first = 1 + random() % 4000, later = 1 + random() % 20000;
    // PyTorch's reducer.cpp: a bucket takes tensors until it has reached its limit, and then the next limit
    // applies; the last limit stays.
    std::vector<Indices> expected;
    std::vector<double> limits{first, later};
    std::size_t limit = 0;
    Indices open;
    double bytes = 0;
    for (std::size_t p = parameters.size(); p-- > 0;) {
      open.push_back(p);
      bytes += 4 * elements[p];
      if (bytes < limits[limit]) continue;
      expected.push_back(std::move(open));
      open.clear();
      bytes = 0;
      limit = 1;
    }
    if (!open.empty()) expected.push_back(open);
    std::vector<Indices> found;
    for (const Bucket& bucket : fill_buckets_of(graph, later, elements, false, first))
      found.push_back(bucket.parameters);
    CHECK(found == expected);
    CHECK(fill_buckets_of(graph, later, elements, false, 0).size() == fill_buckets(graph, later).size());
  }
}

TEST_CASE("gradients are counted in the precision they are sent in") {
  CHECK(fill_buckets(graph_of({{100, 1}}, Precision::fp32), 1)[0].bytes == 400);
  CHECK(fill_buckets(graph_of({{100, 1}}, Precision::tf32), 1)[0].bytes == 400);
  CHECK(fill_buckets(graph_of({{100, 1}}, Precision::fp16), 1)[0].bytes == 200);
}

TEST_CASE("a model without parameters has no buckets") { CHECK(fill_buckets(graph_of({}), 100).empty()); }

TEST_CASE("every parameter of a model is in one bucket, and none is sent before it is complete") {
  const TrainingGraph graph =
      build_training_graph(read_model(parse_yaml("resnet18", "model")), {Precision::fp32, Optimizer::sgd});
  for (const double size : {0.0, 1e5, 25.0 * 1024 * 1024, 1e12}) {
    CAPTURE(size);
    std::vector<int> seen(graph.parameters.size(), 0);
    double bytes = 0;
    OpId last = 0;
    for (const Bucket& bucket : fill_buckets(graph, size)) {
      double sum = 0;
      for (const std::size_t p : bucket.parameters) {
        ++seen[p];
        sum += 4.0 * static_cast<double>(graph.parameters[p].elements);
        CHECK(graph.parameters[p].gradient <= bucket.ready);
      }
      CHECK(sum == bucket.bytes);
      CHECK(bucket.ready >= last);
      last = bucket.ready;
      bytes += sum;
    }
    CHECK(seen == std::vector<int>(graph.parameters.size(), 1));
    CHECK(bytes == graph.gradient_bytes());
  }
}

TEST_CASE("buckets of whole layers close between layers only") {
  // In order of completion, bytes: 120 (layer of operation 5), 8 and 80 (7), 4 and 40 (9).
  const TrainingGraph graph = graph_of({{10, 9}, {1, 9}, {20, 7}, {2, 7}, {30, 5}});
  const auto by_layer = [](const TrainingGraph& of, double size) {
    std::vector<double> elements;
    for (const Parameter& parameter : of.parameters)
      elements.push_back(static_cast<double>(parameter.elements));
    return fill_buckets_of(of, size, elements, true);
  };
  const auto contents = [&](double size) {
    std::vector<Indices> result;
    for (const Bucket& bucket : by_layer(graph, size)) result.push_back(bucket.parameters);
    return result;
  };
  CHECK(contents(1) == std::vector<Indices>{{4}, {3, 2}, {1, 0}});
  CHECK(contents(121) == std::vector<Indices>{{4, 3, 2}, {1, 0}});
  CHECK(contents(209) == std::vector<Indices>{{4, 3, 2, 1, 0}});
  CHECK(by_layer(graph, 121)[0].bytes == 208);
  CHECK(by_layer(graph, 121)[0].ready == 7);
  CHECK(by_layer(graph_of({}), 1).empty());
}

TEST_CASE(
    "in cycles, gradients that are complete by the same moment go together, half a cycle after the last "
    "one") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto count = 1 + random() % 30;
    std::vector<std::pair<std::int64_t, OpId>> parameters;
    for (std::uint32_t p = 0; p < count; ++p)
      parameters.emplace_back(1 + random() % 1000, static_cast<OpId>(count - 1 - p));
    const TrainingGraph graph = graph_of(parameters);
    std::vector<double> elements;
    for (const auto& [values, gradient] : parameters) elements.push_back(static_cast<double>(values));
    BucketCycles cycles{1e-3 * (1 + random() % 8), {}};
    double now_s = 0;
    for (std::uint32_t op = 0; op < count; ++op)
      cycles.made_s.push_back(now_s += 1e-6 * static_cast<double>(random() % 4000));
    const double bucket_bytes = random() % 2 ? 1e12 : 1 + random() % 8000;
    const std::vector<Bucket> buckets = fill_buckets_of(graph, bucket_bytes, elements, false, 0, cycles);
    std::vector<int> seen(count, 0);
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      const double sent_s = cycles.made_s[buckets[b].ready] + buckets[b].wait_s;
      CHECK(buckets[b].wait_s > 0);
      for (const std::size_t p : buckets[b].parameters) {
        ++seen[p];
        const double wait_s = sent_s - cycles.made_s[graph.parameters[p].gradient];
        CHECK(wait_s > -1e-12);
        CHECK(wait_s <= cycles.length_s * (1 + 1e-9));
      }
      // The next one is of a later moment, or this one is full.
      if (b + 1 == buckets.size()) continue;
      const double next_s = cycles.made_s[buckets[b + 1].ready] + buckets[b + 1].wait_s;
      if (buckets[b + 1].cycle == buckets[b].cycle)
        CHECK(buckets[b].bytes >= bucket_bytes);
      else
        CHECK(next_s - sent_s ==
              doctest::Approx((buckets[b].cycle - buckets[b + 1].cycle) * cycles.length_s));
    }
    CHECK(seen == std::vector<int>(count, 1));
    CHECK(buckets.back().cycle == 0);
    CHECK(buckets.back().wait_s == doctest::Approx(cycles.length_s / 2));
  }
}

TEST_CASE("buckets whose trees have as many chunks share them, and take the time of trees of their own") {
  // 16 MB and 20 MB in as many chunks as a tree has at most, and 4 kB in one.
  std::string layers;
  for (const char* parameters : {"4000000", "1000", "5000000"})
    layers += std::string("{name: l") + parameters +
              ", kind: custom, forward_flops: 1e9, backward_flops: 2e9, parameters: " + parameters +
              ", output: [10], memory_bytes: 0}, ";
  const lab::Experiment it(
      "{name: toy, input: [3, 32, 32], layers: [" + layers + "]}", lab::star(8, "1GB/s", "20us"),
      "{kind: data_parallel, sync: all_reduce, algorithm: double_binary_tree, bucket: 1B}", 4);
  REQUIRE(it.plan().communications.size() == 3);
  CHECK(it.plan().patterns.size() == 2);
  CHECK(it.plan().communications[0].pattern == it.plan().communications[2].pattern);
  Plan apart = it.plan();
  apart.communications[2].pattern = static_cast<std::uint32_t>(apart.patterns.size());
  apart.patterns.push_back(Pattern(apart.patterns[apart.communications[0].pattern]));
  const ReplayResult own = replay(apart, it.machine(), it.cost(), {}), shared = it.run();
  CHECK(shared.step_time_s == own.step_time_s);
  CHECK(shared.comm_bytes == approx(own.comm_bytes).epsilon(1e-12));
}
