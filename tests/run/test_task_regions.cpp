// SPDX-License-Identifier: MIT
// What tasks.json says that operations read and write, and that messages carry, is enough to follow every
// element of every tensor: a reader in plain Python, written from docs/tasks.md, finds all that is read there.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "sim/run/tasks_file.h"
#include "tests/laws/changed_plans.h"
#include "tests/prove/covered.h"
#include "tests/run/outside.h"
#include "tests/support/working_file.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

constexpr const char* script = "tests/run/check_regions.py";

std::string tasks_of(const lab::Experiment& experiment, const Plan& plan) {
  std::ostringstream out;
  write_tasks(plan, experiment.graph(), experiment.machine(), experiment.cost(),
              replay(plan, experiment.machine(), experiment.cost(), {}), out);
  return out.str();
}

/// Writes experiments in turn, and judges all of them.
class Regions {
 public:
  void add(const lab::Experiment& experiment, std::string what) {
    const Plan plan = plan_with_meaning(experiment);
    if (plan.service()) return;
    files_.push_back(fmt::format("{}.json", files_.size()));
    what_.push_back(std::move(what));
    std::ofstream(files_.back(), std::ios::binary) << tasks_of(experiment, plan);
  }
  std::size_t check() const {
    const OutsideVerdict verdict = judged_outside(script, files_);
    CHECK(verdict.exit_code == 0);
    for (std::size_t i = 0; i < files_.size(); ++i) {
      CAPTURE(what_[i]);
      CHECK((i < verdict.lines.size() ? verdict.lines[i] : "nothing") == files_[i] + ": the same");
    }
    return files_.size();
  }

 private:
  const WorkingFile folder_{"name", ""};
  std::vector<std::string> files_, what_;
};

}  // namespace

TEST_CASE("regions: all that random experiments of every strategy read is there, whole") {
  Regions regions;
  unsigned number = 0;
  for_random_plans(4, [&](const lab::Experiment& experiment, Dice&) {
    regions.add(experiment, fmt::format("experiment {}, {}", number++, experiment.strategy().label()));
  });
  CHECK(regions.check() > 80);
}

TEST_CASE("regions: so it is of random networks and strategies whose plans are proved") {
  Regions regions;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    Dice dice(seed);
    const CoveredExperiment it(dice);
    regions.add(lab::Experiment(it.model, it.cluster, it.strategy, it.batch),
                fmt::format("seed {}: {} {} {}", seed, it.model, it.cluster, it.strategy));
  }
  CHECK(regions.check() > 15);
}

TEST_CASE("regions: what is said wrongly in one place is noticed") {
  using nlohmann::json;
  // Inputs of both kinds of layers, a tensor that two layers read, and a sum of gradients.
  const std::string model =
      "{name: net, input: [3, 8, 8], loss: cross_entropy, layers: [{name: a, kind: conv2d, out_channels: 4, "
      "kernel: "
      "3, padding: 1}, {name: b, kind: conv2d, out_channels: 4, kernel: 3, padding: 1}, {name: sum, kind: "
      "add, "
      "inputs: [a, b]}, {name: c, kind: conv2d, out_channels: 8, kernel: 3, padding: 1}, {name: flat, kind: "
      "flatten}, "
      "{name: fc, kind: linear, out_features: 10}]}";
  std::vector<std::string> files, changed;
  const WorkingFile folder("name", "");
  const auto add = [&](const json& mutant, const std::string& what) {
    files.push_back(fmt::format("{}.json", files.size()));
    changed.push_back(what);
    std::ofstream(files.back()) << mutant;
  };
  for (const char* strategy :
       {"{kind: data_parallel, sync: all_reduce, algorithm: ring}",
        "{kind: pipeline, stages: 3, micro_batches: 2}",
        "{kind: data_parallel, sync: parameter_server, servers: 1}", "{kind: filter_parallel}",
        "{kind: pardnn}", "{kind: hybrid, conv: batch, fc: filter}"}) {
    const lab::Experiment experiment(model, star(3, "1GB/s", "10us"), strategy, 4);
    const json tasks = json::parse(tasks_of(experiment, plan_with_meaning(experiment)));
    const auto change = [&](const std::string& path, const auto& how) {
      json mutant = tasks;
      how(mutant[json::json_pointer(path)]);
      add(mutant, fmt::format("{}: {}", strategy, path));
    };
    const std::size_t before = files.size();
    for (std::size_t c = 0; c < tasks["communications"].size(); ++c) {
      const std::string carries = fmt::format("/communications/{}/carries", c);
      const json& results = tasks.at(json::json_pointer(carries)).value("results", json::array());
      for (std::size_t i = 0; i < results.size(); ++i)
        change(carries + "/results", [&](json& list) { list.erase(i); });
    }
    const json values = tasks.flatten();
    for (const auto& [path, value] : values.items()) {
      static const std::regex versions(".*/version"), first_images("/roles/.*/does/images/0"),
          ends(".*/does/part/(\\d+/)?channels/\\d+/1");
      if (std::regex_match(path, versions))
        change(path, [](json& version) { version = version.get<int>() + 1; });
      if (std::regex_match(path, first_images))
        change(path, [](json& first) { first = first.get<int>() + 1; });
      if (std::regex_match(path, ends)) change(path, [](json& end) { end = end.get<int>() - 1; });
    }
    CAPTURE(strategy);
    CHECK(files.size() > before + 8);
  }
  const OutsideVerdict verdict = judged_outside(script, files);
  REQUIRE(verdict.lines.size() == files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    CAPTURE(changed[i]);
    CHECK_MESSAGE(verdict.lines[i] != files[i] + ": the same", verdict.lines[i]);
  }
}
