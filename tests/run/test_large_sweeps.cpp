// SPDX-License-Identifier: MIT
// Of a large sweep, runs are read from the store again by whoever wants them whole. What is written is the same.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "sim/results/result_fields.h"
#include "sim/results/write_csv.h"
#include "sim/results/write_explain.h"
#include "sim/results/write_json.h"
#include "sim/results/write_report.h"
#include "sim/results/write_table.h"
#include "sim/run/sweep.h"
#include "tests/results/filler.h"
#include "tests/results/results_fixture.h"

using namespace convoy;

namespace {

/// Everything that is written of results, one after the other.
std::string all_written(const SweepResults& results) {
  std::ostringstream out;
  write_json(results, out);
  write_csv(results, out);
  write_report(results, {}, {}, out);
  write_table(results, out);
  out << what_varies(results) << explanation(results);
  return out.str();
}

/// A run with every field, or with some of what only some runs have.
RunResult drawn_run(std::mt19937& draw, bool whole) {
  RunResult run;
  FieldFiller filler;
  run_fields(filler, run);
  const auto maybe = [&](auto&... parts) {
    if (!whole && draw() % 2 == 0) ((parts = {}), ...);
  };
  maybe(run.phases, run.reconfigurations);
  maybe(run.stages);
  maybe(run.partition);
  maybe(run.search);
  maybe(run.layouts);
  maybe(run.variability);
  maybe(run.counterfactuals, run.refused_changes);
  maybe(run.learning);
  maybe(run.interval);
  maybe(run.staleness);
  maybe(run.bubble_fraction);
  maybe(run.epoch_time_s, run.cost_usd_per_epoch);
  maybe(run.warnings);
  if (draw() % 2 == 0) run.per_device.front().peak_memory_bytes = run.peak_memory_bytes;
  run.model = draw() % 2 == 0 ? "toy" : "vgg16";
  run.strategy = draw() % 2 == 0 ? "ring <all-reduce> & more" : "pipeline";
  run.devices = std::int64_t{1} << draw() % 4;
  run.step_time_s = 0.1 * static_cast<double>(1 + draw() % 9);
  run.throughput_images_per_s = static_cast<double>(1 + draw() % 1000);
  run.fits = draw() % 4 != 0;
  run.network_model = "max-min";
  return run;
}

}  // namespace

TEST_CASE("large sweeps: runs that are read again are written as those that are kept") {
  const std::uint32_t seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 draw(seed);
  Results all{"drawn", {}, {}};
  all.manifest.network_model = "max-min";
  Store store;
  constexpr std::size_t size = 60;
  StoreSubject subject{"drawn", {}, {}, nullptr, {}};
  std::vector<SweepPoints::Coordinates> points;
  for (std::size_t i = 0; i < size; ++i) {
    RunResult run = drawn_run(draw, i < 2);
    run.id = point_id(i);
    run.point = coordinates({{"cluster.nodes", std::to_string(run.devices)},
                             {"strategy.bucket", fmt::format("{}MiB", 1 + draw() % 3)},
                             {"strategy", i % 2 == 0 ? "{kind: single, l: [1, 'x']}" : "'7'"}});
    subject.points.push_back({i, PointKey::of(run.id)});
    points.push_back(run.point);
    all.runs.push_back(std::move(run));
  }
  all.points = static_cast<std::int64_t>(size);
  subject.sweep = std::make_shared<const SweepPoints>(SweepPoints::listed(std::move(points)));
  store.set_subject(subject);
  for (const RunResult& run : all.runs) store.put(PointKey::of(run.id), stored_form({run, {}}, false));
  const std::string expected = all_written(all);
  const bool kept = all_written(load_sweep(store, nullptr, size)) == expected;
  const bool read_again = all_written(load_sweep(store, nullptr, 0)) == expected;
  CHECK(kept);
  CHECK(read_again);
}
