// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

using nlohmann::json;

namespace {

const std::string shared_queue =
    "experiment: queue\n"
    "model: cifar_two_conv\n"
    "training: {batch_per_device: 8, precision: fp32, optimizer: sgd}\n"
    "cluster: {server: gcp-n1-standard-32-p100x4, nodes: 1, fabric: {kind: switch, bandwidth: 1Gbps, "
    "latency: 25us, "
    "protocol: tcp}}\n"
    "strategy: {kind: data_parallel, sync: all_reduce, algorithm: ring}\n"
    "sweep: {cluster.nodes: [1, 2], cluster.devices_per_node: [1, 2, 4]}\n"
    "jobs:\n"
    "  gpus: 12\n"
    "  gpus_per_host: 4\n"
    "  cluster: {server: gcp-n1-standard-32-p100x4, nodes: 3, fabric: {kind: switch, bandwidth: 1Gbps, "
    "latency: 25us, "
    "protocol: tcp}}\n"
    "  trace: [{arrival_s: 0, gpus: 6, length_s: 50}, {arrival_s: 3, gpus: 6, length_s: 80}]\n"
    "  policies: [srtf]\n";

}  // namespace

TEST_CASE("shared queue: what jobs lose to each other is kept with the runs, for reports and comparisons") {
  const Workplace place;
  place.file("q.yaml", shared_queue);
  place.file("alone.yaml", shared_queue.substr(0, shared_queue.find("  cluster:")) +
                               shared_queue.substr(shared_queue.find("  trace:")));
  const Finished alone = place.convoy({"run", "alone.yaml", "--json"}),
                 run = place.convoy({"run", "q.yaml", "--out", "o"});
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(run.out.find("lost to sharing") != std::string::npos);
  const std::string results = place.read("o/results.json"), page = place.read("o/report.html");
  const json shared = json::parse(results)["schedules"][0], apart = json::parse(alone.out)["schedules"][0];
  const double loss = shared["sharing_loss"];
  CHECK(loss > 0.02);
  CHECK(loss <= 0.5);
  CHECK(shared["mean_completion_s"] > apart["mean_completion_s"]);
  CHECK_FALSE(apart.contains("sharing_loss"));
  // Once more, from what was kept; and from a store of shards, of which nobody has simulated the queue.
  CHECK(place.convoy({"run", "q.yaml", "--out", "o"}).exit_code == 0);
  CHECK(place.read("o/results.json") == results);
  CHECK(place.convoy({"report", "o"}).err.empty());
  CHECK(place.read("o/report.html") == page);
  for (const char* shard : {"1", "2"})
    REQUIRE(place
                .convoy({"run", "q.yaml", "--shard", shard + std::string("/2"), "--out",
                         std::string("s") + shard})
                .exit_code == 0);
  const Finished merged = place.convoy({"merge", "s1", "s2", "--out", "m"});
  CHECK(merged.exit_code == 0);
  CHECK(merged.err.find("the queue is missing: its jobs share links (jobs.cluster)") != std::string::npos);
  CHECK(place.convoy({"run", "q.yaml", "--out", "m"}).exit_code == 0);
  CHECK(place.read("m/results.json") == results);
}
