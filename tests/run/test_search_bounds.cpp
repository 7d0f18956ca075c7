// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "sim/run/search/assess.h"
#include "sim/run/search/prior_bound.h"
#include "tests/run/searches.h"
#include "tests/support/approx.h"

using namespace convoy;
using namespace convoy::searches;

namespace {

/// Every candidate's cost-table bound against its plan's bound and its simulation. @returns how many had one
int hold_prior_bounds(const convoy::Experiment& experiment, const std::vector<YamlNode>& candidates) {
  Preparer preparer(experiment);
  const YamlNode alone = parse_yaml("{kind: single}", "t");
  const PreparedRun base = preparer.prepare(0, &alone);
  CostTable table(*base.graph, base.machine, base.cost);
  const std::vector<std::optional<RunResult>> all = exhaustive(experiment, candidates);
  int bounded = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!all[i]) continue;
    const std::string candidate = to_flow(candidates[i]);
    CAPTURE(candidate);
    const std::optional<Assessment> prior =
        prior_bound(*read_strategy(candidates[i]), experiment.point(0).training.batch, base, table);
    if (!prior) continue;
    ++bounded;
    CHECK(prior->images == all[i]->global_batch);
    CHECK(prior->step_bound_s <= all[i]->step_time_s * (1 + 1e-9));
    CHECK(prior->energy_bound_j <= all[i]->energy_j * (1 + 1e-9));
    const Assessment planned = assess(preparer.prepare(0, &candidates[i]));
    if (planned.step_bound_s > 0) CHECK(prior->images == planned.images);
  }
  return bounded;
}

}  // namespace

TEST_CASE("search: no simulation goes below the cost table's bound, on random models and clusters") {
  int bounded = 0;
  for (unsigned seed = 101; seed <= 115; ++seed) {
    lab::Dice dice(seed);
    const std::string model = lab::random_model(dice);
    const lab::RandomCluster random = lab::random_cluster(dice, lab::fabrics()[seed % lab::fabrics().size()]);
    CAPTURE(seed);
    CAPTURE(model);
    const std::string cluster = random.text();
    CAPTURE(cluster);
    const std::string training =
        dice.coin() ? "{global_batch: 48, dataset: {samples: 1000}}" : "{batch_per_device: 12}";
    const Written written(experiment(model, cluster, "{kind: single}", training));
    const std::vector<YamlNode> candidates = multiplied_out(parse_yaml(
        "{all: [{kind: single, micro_batches: [1, 2, 3]}, "
        "{kind: data_parallel, sync: all_reduce, micro_batches: [1, 2], zero: [1, 3]}, "
        "{kind: data_parallel, sync: all_reduce, micro_batches: [1, 2], overlap: false}, "
        "{kind: data_parallel, sync: parameter_server, overlap: [true, false]}, "
        "{kind: data_parallel, sync: parameter_server, pull: at_first_use, compression: [none, fp16]}, "
        "{kind: pipeline, schedule: [gpipe, 1f1b, naive], micro_batches: [1, 2, 4, 6], replicas: [1, 2]}, "
        "{kind: pipeline, stages: 2, micro_batches: [2, 4, 8], recompute: [never, always]}, {kind: pardnn}, "
        "{kind: hypergraph, method: [hypergraph, layerwise, even, random], micro_batches: [1, 2]}, "
        "{kind: hypergraph, granularity: channel, parts: [1, 2, 3]}, "
        "{kind: hybrid, conv: [batch, filter, channel, pairs, height, width, replicated], fc: [batch, "
        "filter, "
        "channel, pairs], micro_batches: [1, 3]}, {kind: hybrid, conv: {height: [2, 3], width: [2, 3]}, fc: "
        "[replicated, pairs], zero: [0, 2]}, "
        "{kind: hybrid, replicas: 2, conv: [filter, height], fc: "
        "pairs}, "
        "{kind: pipeline, stages: auto, micro_batches: [1, 4]}, "
        "{kind: pipeline, stages: [1, 2, auto], micro_batches: [1, 2, 6], inner: [{kind: data_parallel, "
        "sync: "
        "all_reduce, zero: [0, 3]}, {kind: hybrid, conv: [batch, filter, height, pairs], fc: [filter, "
        "pairs]}, "
        "{kind: hybrid, replicas: 2, conv: pairs}]}]}",
        "t"));
    std::vector<YamlNode> strategies;
    for (const YamlNode& each : candidates) strategies.push_back(*each.find("all"));
    bounded += hold_prior_bounds(*written, strategies);
  }
  CHECK(bounded > 250);
}

TEST_CASE(
    "search: no simulation goes below the cost table's bound, with a framework's and a transport's costs") {
  for (const char* software :
       {"framework: pytorch, precision: fp16", "framework: tensorflow, recompute: sqrt",
        "framework: mxnet, execution: graph"}) {
    CAPTURE(software);
    const Written written(experiment("vgg16_cifar10",
                                     "{server: aws-p3.8xlarge, nodes: 2, devices_per_node: 2}",
                                     "{kind: single}", fmt::format("{{global_batch: 64, {}}}", software)));
    Preparer preparer(*written);
    const std::vector<YamlNode> all = usual_candidates(preparer.cluster((*written).point(0).cluster));
    CHECK(hold_prior_bounds(*written, all) > 20);
  }
}

TEST_CASE("search: the cost table's bound of a pipeline is as high as its stages allow") {
  // Four equal layers: 0.4 ms an image forward and 0.8 ms backward on one of 4 devices.
  struct Bound {
    std::string pipeline;
    int images;
    double least_ms;
  };
  for (const auto& [pipeline, images, least_ms] : std::vector<Bound>{
           // As many stages as devices: a micro-batch there and back, and a backward pass for each other one.
           {"stages: 4, micro_batches: 2", 40, 24 + 16.0 / 4},
           {"stages: 4, micro_batches: 4", 40, 12 + 3 * 8.0 / 4},
           {"stages: 4, micro_batches: 2, schedule: naive", 40, 2 * 24},
           // Fewer stages, on 2 devices or more each: no stage has more than 3, and so one of them has two
           // micro-batches only where there are more than 3.
           {"stages: 2, micro_batches: 2", 40, 24},
           {"stages: 2, micro_batches: 3", 48, 19.2},
           {"stages: 2, micro_batches: 4", 40, 12 + 8.0 / 2},
           // The devices compute all of it.
           {"stages: 1, micro_batches: 8", 80, 2 * 12 + 0.0},
           // Two pipelines of two devices.
           {"stages: 2, micro_batches: 2, replicas: 2", 40, 12 + 8.0 / 2},
           // The best of 1, 2 and 4 stages.
           {"stages: auto, micro_batches: 4", 40, 12},
       }) {
    CAPTURE(pipeline);
    const Written written(experiment(lab::custom_model(4, 0), lab::star(4, "1000000GB/s", "0us"),
                                     "{kind: single}", fmt::format("{{global_batch: {}}}", images)));
    Preparer preparer(*written);
    const YamlNode alone = parse_yaml("{kind: single}", "t");
    const PreparedRun base = preparer.prepare(0, &alone);
    CostTable table(*base.graph, base.machine, base.cost);
    const YamlNode candidate = parse_yaml("{kind: pipeline, " + pipeline + "}", "t");
    const std::optional<Assessment> bound =
        prior_bound(*read_strategy(candidate), (*written).point(0).training.batch, base, table);
    REQUIRE(bound);
    CHECK(bound->step_bound_s == approx(1e-3 * least_ms).epsilon(1e-9));
  }
}

TEST_CASE("search: what cannot be the best by the cost table is not planned, and ties are said to be ties") {
  const RunOutput found =
      Written(experiment("resnet18", "{server: aws-p3.8xlarge, nodes: 2}",
                         "{kind: auto, candidates: [{kind: data_parallel, sync: all_reduce, bucket: [20MiB, "
                         "25MiB, 30MiB]}, {kind: single, micro_batches: [1, 2, 4, 8, 16, 32]}, {kind: "
                         "data_parallel, sync: all_reduce, micro_batches: [8, 16]}]}",
                         "{batch_per_device: 64}"))
          .search();
  const SearchSummary& search = *found.result.search;
  CHECK(search.ranking.size() == 11);
  CHECK(search.pruned_by_cost_table == 11 - search.planned);
  int unplanned = 0;
  const double best = *search.ranking[0].value;
  for (const CandidateResult& row : search.ranking) {
    CAPTURE(row.strategy);
    unplanned += row.reason.find("a step for computing") != std::string::npos;
    REQUIRE(row.bound.has_value());
    if (row.tie) CHECK(row.reason.ends_with("; a tie: the difference is within its 80 % interval"));
    if (row.outcome == "pruned") CHECK(*row.bound > best);
  }
  CHECK(unplanned == search.pruned_by_cost_table);
  CHECK_FALSE(search.ranking[0].tie);
}
