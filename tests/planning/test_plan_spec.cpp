// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <bit>
#include <map>
#include <set>

#include "tests/planning/plan_text.h"

using namespace convoy;

TEST_CASE("plan: patterns, counts up to a limit, and what is left out") {
  const PlanSpec spec =
      plans::spec_of("{epochs: 1}", "{servers: ['aws-p3.*', gcp-a2-highgpu-8g], nodes: {max: 9}}");
  CHECK(spec.servers ==
        std::vector<std::string>{"aws-p3.16xlarge", "aws-p3.2xlarge", "aws-p3.8xlarge", "gcp-a2-highgpu-8g"});
  CHECK(spec.nodes == std::vector<std::int64_t>{1, 2, 4, 8});
  CHECK(spec.objective == PlanObjective::cost);
  CHECK(spec.precisions == std::vector<Precision>{Precision::fp32});
  CHECK(spec.strategies.size() == 1);
  CHECK(plans::spec_of("{epochs: 1}", "{strategies: auto}").strategies.empty());
  const PlanSpec many = plans::spec_of(
      "{epochs: 1}",
      "{strategies: [{kind: data_parallel, sync: all_reduce, algorithm: [ring, tree]}, {kind: single}]}");
  CHECK(many.strategies.size() == 3);
}

TEST_CASE("plan: batches are powers of two that fit where none are given") {
  const Trials trials =
      plans::trials_of(plans::spec_of("{epochs: 1}", "{servers: [aws-p3.2xlarge], precision: fp16}",
                                      "{dataset: {samples: 1281167}}", "resnet50"));
  std::int64_t largest = 0;
  for (const Setup& setup : trials.space().setups) {
    CHECK(setup.batch_per_device == largest * 2 + (largest == 0));
    largest = std::max(largest, setup.batch_per_device);
  }
  // 16 GiB hold ResNet-50 in half precision with 128 images, not with 512.
  CHECK(largest >= 128);
  CHECK(largest < 512);
}

TEST_CASE("plan: where the goal's table has other batches, those that come to one are tried too") {
  const plans::WrittenTable table("batch,epochs\n96,10\n192,9\n256,11\n1000,12\n");
  const Trials trials =
      plans::trials_of(plans::spec_of(fmt::format("{{table: {}}}", table.file),
                                      "{servers: [aws-p3.2xlarge, aws-p3.8xlarge], nodes: [1, 3]}"));
  // By hand: runs with 96 images took more epochs than those with 192; 192, 256 and 1000 are left, of which
  // 256 is a power of two on one device. Devices: 1, 3, 4, 12.
  std::map<std::int64_t, std::set<std::int64_t>> others;
  for (const Setup& setup : trials.space().setups)
    if (!std::has_single_bit(static_cast<std::uint64_t>(setup.batch_per_device)))
      others[setup.devices].insert(setup.global_batch);
  CHECK(others == std::map<std::int64_t, std::set<std::int64_t>>{{1, {192, 1000}}, {4, {192, 1000}}});
  // On 3 and 12 devices 192 comes to 64 and 16 images a device, which are powers of two; 256 and 1000 to no number.
  for (const Setup& setup : trials.space().setups) CHECK(setup.global_batch <= 4096 * 12);
  const Estimates estimates(trials);
  for (std::size_t s = 0; s < trials.space().setups.size(); ++s)
    CHECK(estimates.facts().epochs(s).has_value() == (trials.space().setups[s].global_batch <= 1000));
}

TEST_CASE("plan: what is wrong is said with its place") {
  const auto error = [](const std::string& plan) { return plans::error_of("{epochs: 1}", plan); };
  CHECK(error("{servers: [aws-p9*]}")
            .find(":5:18: plan.servers: no server of the catalogue is called 'aws-p9*'") == 0);
  CHECK(error("{objective: price}").find("plan.objective") != std::string::npos);
  CHECK(error("{constraints: {budget: 500}}").find("'500' is no sum above 0 such as 500USD") !=
        std::string::npos);
  CHECK(error("{constraints: {dead_line: 5h}}").find("did you mean 'deadline'") != std::string::npos);
  CHECK(error("{constraints: {providers: [gpc]}}").find("'gpc' (did you mean 'gcp'?); allowed are aws, ") !=
        std::string::npos);
  CHECK(error("{market: sport}").find("did you mean 'spot'") != std::string::npos);
  CHECK(error("{region: us-east-9}")
            .find(":5:16: plan.region: no price in a region 'us-east-9' (did you mean") == 0);
  CHECK(error("{on_interruption: stop}").find("allowed are") != std::string::npos);
  CHECK(error("{failures: {repairs: 1h}}").find("did you mean 'repair'") != std::string::npos);
  CHECK(error("{failures: often}").find(":5:18: plan.failures") == 0);
  CHECK(error("{nodes: []}").find("the list is empty") != std::string::npos);
  CHECK(error("{strategies: [{kind: auto}]}").find("strategies: auto") != std::string::npos);
  CHECK(plans::error_of("{epochs: 1}", "{}", "{global_batch: 8, dataset: {samples: 9}}")
            .find("max_global_batch") != std::string::npos);
}
