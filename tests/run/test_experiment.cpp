// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sim/run/experiment.h"
#include "sim/run/manifest.h"

using namespace convoy;

namespace {

Experiment load(const std::string& text, const std::vector<std::string>& settings = {}) {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("convoy-" + std::to_string(::getpid()))).string();
  std::ofstream(file) << text;
  Experiment experiment = Experiment::load(file, settings);
  std::filesystem::remove(file);
  return experiment;
}

constexpr const char* plain =
    "experiment: e\nmodel: m\ntraining: {batch_per_device: 8}\ncluster: {nodes: 2}\nstrategy: {kind: s}\n";

}  // namespace

TEST_CASE("experiment: the sweep is the product of its lists, the last changing fastest") {
  const Experiment experiment =
      load(std::string(plain) + "sweep: {model: [a, b], training.batch_per_device: [1, 2, 3]}\n");
  REQUIRE(experiment.size() == 6);
  CHECK(experiment.swept());
  std::string seen;
  for (std::size_t i = 0; i < 6; ++i) {
    const Point point = experiment.point(i);
    seen += point.model->scalar + std::to_string(*point.training.batch.per_device) + " ";
    CHECK(experiment.coordinates(i)[0].second.scalar == point.model->scalar);
  }
  CHECK(seen == "a1 a2 a3 b1 b2 b3 ");
}

TEST_CASE("experiment: defaults and all of training") {
  const Training standard = load(plain).point(0).training;
  CHECK(standard.options.precision == Precision::fp32);
  CHECK(standard.options.optimizer == Optimizer::sgd);
  CHECK_FALSE(standard.samples);
  CHECK_FALSE(standard.anchor);
  const Training full =
      load(plain, {"training={global_batch: 64, precision: bf16, optimizer: adam, dataset: {samples: 1e6}, "
                   "anchor: {images_per_s: 51.9, batch: 64, device: k80}}"})
          .point(0)
          .training;
  CHECK(full.batch.global == 64);
  CHECK_FALSE(full.batch.per_device);
  CHECK(full.options.precision == Precision::bf16);
  CHECK(full.options.optimizer == Optimizer::adam);
  CHECK(full.samples == 1000000);
  CHECK(full.anchor->images_per_s == 51.9);
  CHECK(full.anchor->batch == 64);
  CHECK(full.anchor->device == "k80");
}

TEST_CASE("experiment: whole sub-trees are swept, and parts of them set after that") {
  const Experiment experiment =
      load(std::string(plain) + "sweep:\n  strategy: [{kind: a}, {kind: b}]\n  strategy.x: [1, 2]\n");
  CHECK(to_flow(experiment.point(3).strategy) == "{kind: b, x: 2}");
}

TEST_CASE("experiment: settings are in order, the last one wins") {
  CHECK(*load(plain, {"training.batch_per_device=2", "training.batch_per_device=4"})
             .point(0)
             .training.batch.per_device == 4);
  CHECK(load(plain, {"sweep.cluster.nodes=[1, 2, 3]"}).size() == 3);
  CHECK(load(plain, {"model={name: x, input: [3, 8, 8]}"}).point(0).model->kind == YamlNode::Kind::mapping);
}

TEST_CASE("experiment: content tells experiments apart, and only them") {
  const std::string content = load(plain).content();
  CHECK(content == load(std::string("# a comment\n") + plain).content());
  CHECK(content != load(plain, {"training.batch_per_device=9"}).content());
  CHECK(content != load(plain, {"training.batch_per_device='8'"}).content());
  CHECK(content != load(plain, {"sweep.model=[m]"}).content());
}

TEST_CASE("fingerprint: values that readers take differently differ") {
  const auto of = [](const char* text) { return fingerprint(parse_yaml(text, "t")); };
  CHECK(of("{a: 1}") != of("{a: '1'}"));
  CHECK(of("[a, b]") != of("['a, b']"));
  CHECK(of("{a: null}") != of("{a: 'null'}"));
  CHECK(of("[[a], b]") != of("[[a, b]]"));
  CHECK(of("{a: 1, b: 2}") == of("{a: 1,   b: 2}"));
}
