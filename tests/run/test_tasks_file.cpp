// SPDX-License-Identifier: MIT
// What the program writes of a replay is enough to replay it: a simulator in plain Python, written from
// docs/tasks.md, finds the same times, bytes and memory.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "sim/run/search/search_spec.h"
#include "sim/run/sweep.h"
#include "sim/run/tasks_file.h"
#include "tests/laws/changed_plans.h"
#include "tests/laws/pipelines.h"
#include "tests/run/outside.h"
#include "tests/support/working_file.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

/// What scripts/replay_tasks.py says of files in the working folder.
OutsideVerdict replayed_outside(const std::vector<std::string>& files) {
  return judged_outside("scripts/replay_tasks.py", files);
}

using Law = std::function<void(const lab::Experiment&, const Plan&)>;

/// @param experiments calls a law with each of them, the same ones every time, and captures what they are
/// @return their number
std::size_t check_outside(const std::function<void(const Law&)>& experiments) {
  const WorkingFile folder("name", "");
  std::vector<std::string> files;
  experiments([&](const lab::Experiment& experiment, const Plan& plan) {
    files.push_back(fmt::format("{}.json", files.size()));
    std::ofstream out(files.back(), std::ios::binary);
    const ReplayResult replayed = replay(plan, experiment.machine(), experiment.cost(), {});
    write_tasks(plan, experiment.graph(), experiment.machine(), experiment.cost(), replayed, out);
  });
  const OutsideVerdict verdict = replayed_outside(files);
  std::size_t next = 0;
  experiments([&](const lab::Experiment&, const Plan&) {
    const std::string& file = files[next];
    CHECK((next < verdict.lines.size() ? verdict.lines[next] : "nothing") == file + ": the same");
    ++next;
  });
  CHECK(verdict.exit_code == 0);
  return files.size();
}

}  // namespace

TEST_CASE("tasks: what is written of random experiments of every strategy replays to the same outside") {
  const std::size_t count = check_outside([](const Law& law) {
    for_random_plans(4, [&](const lab::Experiment& experiment, Dice& dice) {
      Plan plan = experiment.plan();
      if (plan.service()) return;
      if (dice.coin()) {
        InputFeed& feed = plan.input.emplace();
        feed.prefetch = static_cast<std::uint32_t>(dice.between(0, 3));
        for (const Host& host : experiment.machine().hosts)
          feed.interval_s.push_back(host.device_count * dice.between(0, 40) * 1e-4);
        feed.limit.resize(feed.interval_s.size());
      }
      law(experiment, plan);
    });
  });
  CHECK(count > 80);
}

TEST_CASE("tasks: so does what is written of random pipelines that are never flushed") {
  check_outside([](const Law& law) {
    for (unsigned seed = 1; seed <= 8; ++seed) {
      Dice dice(seed);
      const std::string model = branched_model(dice), weights = dice.coin() ? "stash" : "double_buffered";
      const std::string cluster =
          star(4, fmt::format("{}MB/s", dice.between(50, 5000)), fmt::format("{}us", dice.between(0, 50)));
      const std::string strategy = fmt::format(
          "{{kind: pipeline, stages: {}, micro_batches: {}, weights: {}}}", dice.between(2, 4), 12, weights);
      CAPTURE(seed);
      CAPTURE(model);
      CAPTURE(cluster);
      CAPTURE(strategy);
      const auto experiment = lab::Experiment::with_global_batch(model, cluster, strategy, 24);
      law(experiment, experiment.plan());
    }
  });
}

namespace {

/// Messages and operations of all endpoints.
std::uint64_t size_of(const Plan& plan) {
  std::uint64_t size = 0;
  for (const Communication& comm : plan.communications)
    for (const Round& round : plan.patterns[comm.pattern].rounds)
      size += round.message_count() * round.repeat * plan.patterns[comm.pattern].groups.size();
  for (const Role& role : plan.roles)
    for (const Task& task : role.program) size += task.ops.size() * role.members.size();
  return size;
}

}  // namespace

TEST_CASE("tasks: so does what is written of the experiments in configs/") {
  constexpr std::uint64_t largest = 12000;  // what plain Python does in seconds
  const WorkingFile folder("name", "");
  std::vector<std::string> files, points;
  std::size_t refused = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::string(CONVOY_SOURCE) + "/configs")) {
    const std::string among = entry.path().parent_path().filename();
    if (entry.path().extension() != ".yaml" || among == "networks" || among == "collectives") continue;
    const auto experiment = runs::Experiment::load(entry.path().string(), {});
    if (experiment.plan() || experiment.study()) continue;
    Preparer preparer(experiment);
    preparer.ask_for_meaning();  // readers leave out what they do not need
    for (const std::size_t index : std::set<std::size_t>{0, experiment.size() / 2, experiment.size() - 1}) {
      if (is_search(experiment.point(index).strategy)) continue;
      const PreparedRun run = preparer.prepare(index);
      if (!refuses_tasks(run).empty()) {
        ++refused;
        continue;
      }
      if (size_of(run.plan) > largest) continue;
      files.push_back(fmt::format("{}.json", files.size()));
      points.push_back(fmt::format("{}, point {}", entry.path().string(), point_id(index)));
      std::ofstream out(files.back(), std::ios::binary);
      write_tasks(run, out);
    }
  }
  const OutsideVerdict verdict = replayed_outside(files);
  CHECK(verdict.exit_code == 0);
  for (std::size_t i = 0; i < files.size(); ++i) {
    CAPTURE(points[i]);
    CHECK((i < verdict.lines.size() ? verdict.lines[i] : "nothing") == files[i] + ": the same");
  }
  CHECK(files.size() > 60);
  CHECK(refused > 0);
}

TEST_CASE("tasks: so does a step that its host begins late, of one or of several, with images to wait for") {
  for (const char* strategy : {"{kind: data_parallel, sync: all_reduce}",
                               "{kind: data_parallel, sync: all_reduce, sync_every: 3, sum_in_hosts: true}",
                               "{kind: data_parallel, sync: gossip, neighbours: one_peer}"}) {
    CAPTURE(strategy);
    const WorkingFile file("late.yaml", fmt::format(R"(experiment: late
model: lenet
training: {{batch_per_device: 64, precision: fp32, optimizer: momentum, framework: tensorflow}}
cluster: {{server: dgx1-v100, nodes: 2, devices_per_node: 4}}
strategy: {}
)",
                                                    strategy));
    const auto experiment = runs::Experiment::load("late.yaml", {});
    Preparer preparer(experiment);
    PreparedRun run = preparer.prepare(0);
    for (const double interval_s : {0.0, 1e-4, 1e-2}) {
      CAPTURE(interval_s);
      InputFeed& feed = run.plan.input.emplace();
      feed.prefetch = 1;
      feed.interval_s.assign(run.machine.hosts.size(), interval_s);
      feed.limit.resize(feed.interval_s.size());
      std::ofstream out("late.json", std::ios::binary);
      write_tasks(run, out);
      out.close();
      CHECK(replayed_outside({"late.json"}).lines == std::vector<std::string>{"late.json: the same"});
    }
  }
}

TEST_CASE("tasks: one number that is changed is noticed") {
  const WorkingFile folder("name", "");
  // Nothing overlaps and all are equal: everything is on the critical path.
  const lab::Experiment experiment(
      custom_model(2, 1000), star(3, "1GB/s", "10us"),
      "{kind: data_parallel, sync: all_reduce, algorithm: ring, overlap: false, fidelity: chunk}", 4);
  std::ostringstream out;
  write_tasks(experiment.plan(), experiment.graph(), experiment.machine(), experiment.cost(),
              experiment.run(), out);
  const nlohmann::json tasks = nlohmann::json::parse(out.str());
  std::vector<std::string> files, changed;
  const nlohmann::json numbers = tasks.flatten();
  for (const auto& [path, value] : numbers.items()) {
    static const std::regex counts(
        R"(.*/(bandwidth_Bps|fraction|latency_s|overhead_s|time_s|resident_bytes/\w+)|/communications/\d+/bytes|/result/.*)");
    if (!value.is_number() || value == 0 || !std::regex_match(path, counts)) continue;
    nlohmann::json mutant = tasks;
    mutant[nlohmann::json::json_pointer(path)] =
        value.get<double>() * (path.ends_with("bandwidth_Bps") ? 0.999 : 1.001);
    files.push_back(fmt::format("{}.json", files.size()));
    changed.push_back(path);
    std::ofstream(files.back()) << mutant;
  }
  const OutsideVerdict verdict = replayed_outside(files);
  CHECK(verdict.exit_code == 1);
  REQUIRE(verdict.lines.size() == files.size());
  CHECK(files.size() > 25);
  for (std::size_t i = 0; i < files.size(); ++i) {
    CAPTURE(changed[i]);
    CHECK_MESSAGE(verdict.lines[i].find(" in the file, ") != std::string::npos, verdict.lines[i]);
  }
}
