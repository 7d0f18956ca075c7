// SPDX-License-Identifier: MIT
// Traces of Chakra and schedules of GOAL say what tasks.json says: a reader in plain Python, which knows the
// schema and the grammar and nothing of the program, goes through all three.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <tuple>

#include "sim/run/export/chakra_trace.h"
#include "sim/run/export/goal_schedule.h"
#include "sim/run/export/rank_programs.h"
#include "sim/run/output_folder.h"
#include "sim/run/search/search_spec.h"
#include "sim/run/sweep.h"
#include "sim/run/tasks_file.h"
#include "tests/laws/changed_plans.h"
#include "tests/laws/pipelines.h"
#include "tests/run/outside.h"
#include "tests/support/working_file.h"

using namespace convoy;
using namespace convoy::lab;
namespace fs = std::filesystem;

namespace {

/// What tests/run/check_exports.py says of folders in the working folder, a line each.
std::vector<std::string> export_verdicts(const std::vector<std::string>& folders) {
  return judged_outside("tests/run/check_exports.py", folders).lines;
}

/// A folder with what is written of a plan in all three ways.
void export_to(const std::string& folder, const Plan& plan, const TrainingGraph& graph,
               const Machine& machine, const CostModel& cost) {
  fs::create_directory(folder);
  {
    std::ofstream out(folder + "/tasks.json", std::ios::binary);
    ReplayResult none;
    write_tasks(plan, graph, machine, cost, none, out);
  }
  write_chakra_traces(plan, machine, cost, folder + "/chakra");
  std::ofstream out(folder + "/goal", std::ios::binary);
  write_goal_schedule(plan, machine, cost, out);
}

std::string text_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// What the script says of a folder that is as it should be.
std::string same_as(const Plan& plan) {
  std::size_t whole = 0;
  for (const Communication& comm : plan.communications) whole += collective_type(plan, comm).has_value();
  double flops = 0;
  for (const Role& role : plan.roles)
    for (const Task& task : role.program)
      for (const PlanOp& op : task.ops)
        flops += std::round(op.work.flops_per_image * op.images + op.work.flops_fixed) *
                 static_cast<double>(role.members.size());
  return fmt::format(": the same, {} whole, {:.0f} FLOPs", whole, flops);
}

/// Steps of all ranks, of which a reader in plain Python takes some hundred thousand in a second.
std::size_t steps_of(const Plan& plan, const Machine& machine, const CostModel& cost) {
  std::size_t steps = 0;
  const RankPrograms ranks(plan, machine, cost, RankPrograms::Collectives::none);
  for (const RankProgram& program : ranks.programs()) steps += program.steps.size() * program.members.size();
  return steps;
}

}  // namespace

TEST_CASE("exports: of random experiments of every strategy they end every operation at the same moment") {
  const WorkingFile folder("name", "");
  std::vector<std::string> folders, strategies, wanted;
  for_random_plans(2, [&](const lab::Experiment& experiment, Dice&) {
    const Plan& plan = experiment.plan();
    if (plan.service()) return;
    folders.push_back(std::to_string(folders.size()));
    strategies.push_back(experiment.strategy().label());
    const Plan with_meaning =
        experiment.strategy()
            .plan({experiment.graph(), experiment.machine(), experiment.cost(), experiment.batch(), true})
            .plan;
    const Plan& written = folders.size() % 2 == 0 ? plan : with_meaning;
    export_to(folders.back(), written, experiment.graph(), experiment.machine(), experiment.cost());
    wanted.push_back(folders.back() + same_as(written));
  });
  const std::vector<std::string> verdicts = export_verdicts(folders);
  REQUIRE(verdicts.size() == folders.size());
  for (std::size_t i = 0; i < folders.size(); ++i) {
    CAPTURE(strategies[i]);
    CHECK(verdicts[i] == wanted[i]);
  }
  CHECK(folders.size() > 40);
}

TEST_CASE("exports: so they do of the experiments in configs/") {
  constexpr std::size_t largest = 3000;
  const WorkingFile folder("name", "");
  std::vector<std::string> folders, points, wanted;
  for (const auto& entry : fs::recursive_directory_iterator(std::string(CONVOY_SOURCE) + "/configs")) {
    const std::string among = entry.path().parent_path().filename();
    if (entry.path().extension() != ".yaml" || among == "networks" || among == "collectives") continue;
    const auto experiment = runs::Experiment::load(entry.path().string(), {});
    if (experiment.plan() || experiment.study()) continue;
    Preparer preparer(experiment);
    preparer.ask_for_meaning();
    const std::size_t index = experiment.size() / 2;
    if (is_search(experiment.point(index).strategy)) continue;
    const PreparedRun run = preparer.prepare(index);
    if (!refuses_tasks(run).empty() || steps_of(run.plan, run.machine, run.cost) > largest) continue;
    folders.push_back(std::to_string(folders.size()));
    points.push_back(fmt::format("{}, point {}", entry.path().string(), point_id(index)));
    export_to(folders.back(), run.plan, *run.graph, run.machine, run.cost);
    wanted.push_back(folders.back() + same_as(run.plan));
  }
  const std::vector<std::string> verdicts = export_verdicts(folders);
  REQUIRE(verdicts.size() == folders.size());
  std::size_t whole = 0;
  for (std::size_t i = 0; i < folders.size(); ++i) {
    CAPTURE(points[i]);
    CHECK(verdicts[i] == wanted[i]);
    whole += verdicts[i].find(" 0 whole") == std::string::npos;
  }
  CHECK(folders.size() > 15);
  CHECK(whole > 3);
}

TEST_CASE("exports: one thing that is changed is noticed") {
  const WorkingFile folder("name", "");
  // All are equal and nothing overlaps: everything is on the critical path.
  const lab::Experiment experiment(
      custom_model(2, 1000), star(3, "1GB/s", "10us"),
      "{kind: data_parallel, sync: all_reduce, algorithm: ring, overlap: false, fidelity: chunk}", 4);
  export_to("as-written", experiment.plan(), experiment.graph(), experiment.machine(), experiment.cost());
  const std::string trace = text_of("as-written/chakra/trace.1.et"), goal = text_of("as-written/goal");
  std::vector<std::string> folders;
  const auto changed = [&](const std::string& file, const std::string& text) {
    folders.push_back(std::to_string(folders.size()));
    fs::copy("as-written", folders.back(), fs::copy_options::recursive);
    std::ofstream(folders.back() + "/" + file, std::ios::binary) << text;
  };
  // Of the trace each message is left out, and each name is changed.
  for (std::size_t begin = 0, end = 0; begin < trace.size(); begin = end) {
    std::size_t size = 0, at = begin, shift = 0;
    do size |= (static_cast<unsigned char>(trace[at]) & 0x7fu) << shift, shift += 7;
    while (static_cast<unsigned char>(trace[at++]) & 0x80u);
    end = at + size;
    changed("chakra/trace.1.et", trace.substr(0, begin) + trace.substr(end));
    for (const char* name : {"n1", "body", "bucket"})
      if (const std::size_t place = trace.find(name, at); place < end) {
        std::string text = trace;
        text[place] = 'x';
        changed("chakra/trace.1.et", text);
        break;
      }
  }
  const std::size_t of_trace = folders.size();
  // Of the schedule each line that is no wait is left out, and each number changed; of steps all that they wait
  // for is left out. (The first messages begin when both ends are there, which come at one time.)
  const std::regex number(R"([0-9]{4,}|(num_ranks|rank|to|from|tag) [0-9]+)");
  std::string waits;
  for (std::size_t begin = 0, end = 0; (end = goal.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = goal.substr(begin, end - begin), label = line.substr(0, line.find(' '));
    const std::size_t wait = line.find(" requires ");
    if (wait != std::string::npos) {
      if (label == waits) continue;
      waits = label;
      std::size_t last = end;
      while (goal.compare(last + 1, label.size() + 10, label + " requires ") == 0)
        last = goal.find('\n', last + 1);
      const bool computes = goal.find("\n" + label + ": calc") != std::string::npos;
      if (computes || goal.find("\n" + line.substr(wait + 10) + ": calc") == std::string::npos)
        changed("goal", goal.substr(0, begin) + goal.substr(last + 1));
      continue;
    }
    waits.clear();
    if (line.size() > 1) changed("goal", goal.substr(0, begin) + goal.substr(end + 1));
    for (auto it = std::sregex_iterator(line.begin(), line.end(), number); it != std::sregex_iterator();
         ++it) {
      const std::string value = it->str();
      const std::size_t digits = value.find_first_of("0123456789");
      const std::uint64_t more = std::stoull(value.substr(digits)) * 1001 / 1000 + 1;
      std::string text = goal;
      text.replace(begin + static_cast<std::size_t>(it->position()) + digits, value.size() - digits,
                   std::to_string(more));
      changed("goal", text);
    }
  }
  const std::vector<std::string> verdicts = export_verdicts(folders);
  REQUIRE(verdicts.size() == folders.size());
  CHECK(export_verdicts({"as-written"}) ==
        std::vector<std::string>{"as-written" + same_as(experiment.plan())});
  CHECK(of_trace >= 20);
  CHECK(folders.size() > of_trace + 100);
  for (std::size_t i = 0; i < folders.size(); ++i)
    CHECK_MESSAGE(verdicts[i].find(": the same") == std::string::npos, fmt::format("{} of {}", i, of_trace));
}

TEST_CASE("exports: a folder of traces holds those of the last run, and nothing that is not a trace") {
  const WorkingFile folder("name", "");
  const auto write = [](int devices) {
    const lab::Experiment experiment(custom_model(2, 1000), star(devices, "1GB/s", "10us"),
                                     "{kind: data_parallel, sync: all_reduce}", 4);
    write_chakra_traces(experiment.plan(), experiment.machine(), experiment.cost(), "traces");
  };
  write(4);
  CHECK(fs::exists("traces/trace.3.et"));
  CHECK(text_of("traces/comm_groups.json") == "{\n  \"1\": [0, 1, 2, 3]\n}\n");
  // Ranks of one role differ in the names of their endpoints only.
  CHECK(std::regex_replace(text_of("traces/trace.3.et"), std::regex("n3"), "n0") ==
        text_of("traces/trace.0.et"));
  const std::string former = text_of("traces/trace.0.et");
  write(2);
  CHECK(!fs::exists("traces/trace.2.et"));
  write(4);
  CHECK(text_of("traces/trace.0.et") == former);
  std::ofstream("traces/trace.x.et") << "mine";
  CHECK_THROWS_WITH_AS(write(2), "traces: holds other files than traces (trace.x.et); choose another folder",
                       OutputError);
  CHECK(fs::exists("traces/trace.3.et"));
  CHECK_THROWS_AS(check_chakra_folder("name"), OutputError);
  CHECK_THROWS_AS(check_chakra_folder("none/traces"), OutputError);
}

TEST_CASE("exports: whole times add up to their sum") {
  Dice dice(1);
  WholeTimes micros(1e6);
  std::array<double, 2> sum_s{};
  std::array<std::uint64_t, 2> sum{};
  for (int i = 0; i < 1000; ++i) {
    const auto queue = static_cast<std::uint32_t>(dice.between(0, 1));
    const double seconds = dice.between(0, 3000) * 1e-9;
    sum_s[queue] += seconds;
    sum[queue] += micros.next(queue, seconds);
    CHECK(std::abs(static_cast<double>(sum[queue]) * 1e-6 - sum_s[queue]) <= 0.5000001e-6);
  }
}
