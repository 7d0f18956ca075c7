// SPDX-License-Identifier: MIT
// What a lower bound promises, over random models, clusters and strategies; and how near it comes where theory
// says so. The seed of a random case is printed when it fails.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "sim/replay/lower_bound.h"
#include "tests/laws/random_experiment.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

/// Strategies of every kind whose plans wait for each other in ways of their own.
const std::vector<std::string>& strategies() {
  static const std::vector<std::string> table{
      "{kind: single, micro_batches: 2}",
      "{kind: data_parallel, sync: all_reduce, algorithm: ring, bucket: 300kB}",
      "{kind: data_parallel, sync: all_reduce, algorithm: ring, bucket: 50kB, fidelity: chunk}",
      "{kind: data_parallel, sync: all_reduce, algorithm: tree, overlap: false}",
      "{kind: data_parallel, sync: all_reduce, algorithm: halving_doubling, bucket: 300kB}",
      "{kind: data_parallel, sync: all_reduce, algorithm: hierarchical, shares: speed}",
      "{kind: data_parallel, sync: parameter_server, servers: 1}",
      "{kind: data_parallel, sync: parameter_server, servers: 2, sharding: even, pull: after_all}",
      "{kind: data_parallel, sync: parameter_server, placement: colocated, local_aggregation: true}",
      "{kind: data_parallel, sync: parameter_server, mode: async}",
      "{kind: data_parallel, sync: parameter_server, mode: async, sharding: even, overlap: false}",
      "{kind: data_parallel, sync: parameter_server, mode: ssp, staleness: 1}",
      "{kind: data_parallel, sync: parameter_server, mode: ssp, staleness: 4, placement: colocated}",
      "{kind: data_parallel, sync: parameter_server, backup_workers: 1}",
      "{kind: pipeline, schedule: naive, micro_batches: 2}",
      "{kind: pipeline, schedule: gpipe, micro_batches: 4}",
      "{kind: pipeline, schedule: 1f1b, micro_batches: 4, recompute: always}",
      "{kind: filter_parallel, shares: equal}",
      "{kind: filter_parallel, shares: probed, overlap: true}",
      "{kind: hypergraph, micro_batches: 2}",
      "{kind: pardnn}",
  };
  return table;
}

/// Nothing where the strategy cannot run on the cluster.
std::optional<Experiment> planned(const std::string& model, const std::string& cluster,
                                  const std::string& strategy) {
  try {
    return Experiment(model, cluster, strategy, 8);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace

TEST_CASE("no replay of any strategy takes less than its lower bound, and computing takes what it says") {
  int compared = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    Dice dice(seed);
    const std::string model = random_model(dice);
    const RandomCluster cluster = random_cluster(dice, fabrics()[seed % fabrics().size()]);
    for (const std::string& strategy : strategies()) {
      CAPTURE(seed);
      CAPTURE(model);
      CAPTURE(cluster.text());
      CAPTURE(strategy);
      const std::optional<Experiment> it = planned(model, cluster.text(), strategy);
      if (!it) continue;
      ++compared;
      const LowerBound bound = lower_bound(it->plan(), it->machine(), it->cost());
      const ReplayResult result = it->run();
      CHECK(bound.step_time_s <= result.step_time_s * (1 + 1e-9) + 1e-12);
      for (std::size_t d = 0; d < bound.compute_s.size(); ++d)
        CHECK(bound.compute_s[d] == doctest::Approx(result.endpoints[d].compute_s).epsilon(1e-9));
    }
  }
  CHECK(compared > 500);
}
