// SPDX-License-Identifier: MIT
// What a plan may use and draw: constraints one by one, and power beside training.
#include <doctest/doctest.h>

#include <cmath>

#include "sim/planning/answer.h"
#include "tests/planning/plan_text.h"
#include "tests/support/approx.h"

using namespace convoy;
using plans::answer_of;

TEST_CASE("planner: each constraint by itself is kept by all that is shown, and changes the choice") {
  const std::string servers =
      "servers: [aws-p3.8xlarge, aws-p3.16xlarge, gcp-a2-highgpu-1g], nodes: [1, 2, 4], batch_per_device: "
      "[16, 64]";
  const auto plan = [&](const std::string& objective, const std::string& constraints) {
    return answer_of(plans::spec_of("{epochs: 30}", fmt::format("{{objective: {}, constraints: {{{}}}, {}}}",
                                                                objective, constraints, servers)),
                     false);
  };
  const PlanAnswer quickest = plan("time", ""), cheapest = plan("cost", "");
  REQUIRE((quickest.choice && cheapest.choice));
  const CandidateResultOfPlan& quick = *quickest.choice;
  const Figures &of_quick = quick.figures, &of_cheap = cheapest.choice->figures;
  const double usd = std::sqrt(of_quick.cost_usd * of_cheap.cost_usd);
  const double time_s = std::sqrt(of_quick.time_s * of_cheap.time_s);
  const auto check = [&](const std::string& objective, const std::string& constraints, auto keeps) {
    CAPTURE(constraints);
    const PlanAnswer answer = plan(objective, constraints);
    REQUIRE(answer.choice);
    CHECK(keeps(*answer.choice));
    CHECK_FALSE(keeps(objective == "time" ? quick : *cheapest.choice));
    for (const CandidateResultOfPlan& other : answer.front) CHECK(keeps(other));
    for (const CandidateResultOfPlan& other : answer.runners_up) CHECK(keeps(other));
  };
  using Shown = CandidateResultOfPlan;
  check("time", fmt::format("budget: {}USD", usd), [&](const Shown& c) { return c.figures.cost_usd <= usd; });
  check("cost", fmt::format("deadline: {}s", time_s),
        [&](const Shown& c) { return c.figures.time_s <= time_s; });
  check("time", fmt::format("max_devices: {}", quick.devices - 1),
        [&](const Shown& c) { return c.devices < quick.devices; });
  check("time", fmt::format("max_global_batch: {}", quick.global_batch - 1),
        [&](const Shown& c) { return c.global_batch < quick.global_batch; });
  const std::string provider = quick.order.front().first.substr(0, 3),
                    other = provider == "aws" ? "gcp" : "aws";
  check("time", fmt::format("providers: [{}]", other),
        [&](const Shown& c) { return c.order.front().first.starts_with(other); });
}

TEST_CASE("planner: hosts and idle devices draw power while a run starts up and evaluates") {
  const std::string plan =
      "{objective: energy, servers: [aws-p3.16xlarge], nodes: [2], batch_per_device: [64]}";
  const PlanAnswer alone = answer_of(plans::spec_of("{epochs: 30}", plan), false);
  const PlanAnswer more = answer_of(
      plans::spec_of("{epochs: 30, start_up: 600s, evaluation: {time: 20s, every: 3}}", plan), false);
  REQUIRE((alone.choice && more.choice));
  const ServerSpec server = load_server("aws-p3.16xlarge", {});
  double idle_w = server.host.host_power_w;
  for (const auto& [device, count] : server.devices) idle_w += device.idle_power_w * count;
  CHECK(idle_w > 8 * 50);
  const double beside_s = 600 + 10 * 20;
  CHECK(more.choice->figures.time_s - alone.choice->figures.time_s == approx(beside_s));
  CHECK(more.choice->figures.energy_j - alone.choice->figures.energy_j == approx(2 * idle_w * beside_s));
}

TEST_CASE("planner: less memory that may be used leaves out more batches, and in the end all") {
  const double usable_bytes = load_device("v100-sxm2-16gb", {}).usable_memory_bytes;
  std::int64_t before = 0, some = 0;
  for (const double percent : {100.0, 50.0, 25.0, 12.5, 1.0}) {
    CAPTURE(percent);
    const PlanAnswer answer =
        answer_of(plans::spec_of("{epochs: 30}",
                                 fmt::format("{{constraints: {{memory: {}%}}, servers: [aws-p3.2xlarge], "
                                             "batch_per_device: [16, 1024, 4096, 16384, 65536]}}",
                                             percent)),
                  true);
    const auto left_out = answer.pruned.find("memory");
    const std::int64_t count = left_out == answer.pruned.end() ? 0 : left_out->second;
    CHECK(count >= before);
    before = count;
    some += count > 0 && answer.choice ? 1 : 0;
    if (answer.choice) CHECK(answer.choice->peak_memory_bytes <= percent / 100 * usable_bytes);
  }
  CHECK(some > 0);
  CHECK(before == 5);
}
