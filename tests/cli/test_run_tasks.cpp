// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

using nlohmann::json;

TEST_CASE("run: --tasks writes what was replayed of one point, and says where it cannot") {
  const Workplace place;
  place.file("one.yaml", small_experiment());
  const Finished table = place.convoy({"run", "one.yaml", "--tasks", "tasks.json"});
  CHECK(table.err.empty());
  CHECK(table.exit_code == 0);
  CHECK(table.out.ends_with("report.html, results.json, results.csv\ntasks in tasks.json\n"));
  const json tasks = json::parse(place.read("tasks.json"));
  CHECK(tasks["schema"] == "convoy.tasks/1");
  CHECK(tasks["communications"][0]["carries"]["kind"] == "sum");
  const json& does = tasks["roles"][0]["program"][0]["ops"][0]["does"];
  CHECK(tasks["graph"]["operations"][does["operation"].get<std::size_t>()]["phase"] == "forward");
  const Finished again = place.convoy({"run", "one.yaml", "--json", "--tasks", "again.json"});
  CHECK(tasks["result"]["step_time_s"] == json::parse(again.out)["runs"][0]["step_time_s"]);
  CHECK(place.read("again.json") == place.read("tasks.json"));

  const auto check_refused = [&](std::vector<std::string> arguments, const std::string& reason) {
    arguments.insert(arguments.begin(), {"run", "--json", "--tasks", "refused.json"});
    const Finished refused = place.convoy(arguments);
    CHECK(refused.exit_code == 2);
    CHECK(refused.out.empty());
    CHECK_MESSAGE(refused.err.find(reason) != std::string::npos, refused.err);
    CHECK(std::count(refused.err.begin(), refused.err.end(), '\n') == 1);
    const std::vector<std::string> files = place.files();
    CHECK(std::find(files.begin(), files.end(), "refused.json") == files.end());
  };
  place.file("many.yaml", swept_experiment());
  check_refused({"many.yaml"}, "--tasks: the tasks of one point can be written, and the experiment has 16");
  check_refused({"one.yaml", "--network-model", "simgrid"}, "SimGrid's network model has other rules");
  const auto with = [](const std::string& strategy) {
    return replaced(small_experiment(), "{kind: data_parallel, sync: all_reduce, algorithm: ring}", strategy);
  };
  place.file("async.yaml", with("{kind: data_parallel, sync: parameter_server, servers: 1, mode: async}"));
  check_refused({"async.yaml"}, "they have no common step");
  place.file("auto.yaml", with("{kind: auto}"));
  const Finished best = place.convoy({"run", "auto.yaml", "--json", "--tasks", "auto.json"});
  CHECK(json::parse(place.read("auto.json"))["result"]["step_time_s"] ==
        json::parse(best.out)["runs"][0]["step_time_s"]);
  const Finished nowhere = place.convoy({"run", "one.yaml", "--json", "--tasks", "none/tasks.json"});
  CHECK(nowhere.exit_code == 2);
  CHECK(nowhere.err == "convoy: none/tasks.json: cannot be written: No such file or directory\n");
}

TEST_CASE("run: --chakra and --goal write it for other simulators, and refuse what --tasks refuses") {
  const Workplace place;
  place.file("one.yaml", small_experiment());
  const Finished alone = place.convoy({"run", "one.yaml", "--json", "--tasks", "alone.json"});
  const Finished all =
      place.convoy({"run", "one.yaml", "--tasks", "tasks.json", "--chakra", "traces", "--goal", "step.goal"});
  CHECK(all.err.empty());
  CHECK(all.exit_code == 0);
  CHECK(
      all.out.ends_with("tasks in tasks.json\ntraces of Chakra in traces\nschedule of GOAL in step.goal\n"));
  CHECK(place.read("tasks.json") == place.read("alone.json"));
  const std::string goal = place.read("step.goal"), trace = place.read("traces/trace.0.et");
  const auto ranks = json::parse(place.read("tasks.json"))["roles"][0]["members"].size();
  CHECK(goal.starts_with(fmt::format("num_ranks {}\n", ranks)));
  CHECK(json::parse(place.read("traces/comm_groups.json"))["1"].size() == ranks);
  place.convoy({"run", "one.yaml", "--json", "--chakra", "traces", "--goal", "step.goal"});
  CHECK(place.read("traces/trace.0.et") == trace);
  CHECK(place.read("step.goal") == goal);

  place.file("many.yaml", swept_experiment());
  for (const char* option : {"--chakra", "--goal"}) {
    const Finished refused = place.convoy({"run", "many.yaml", "--json", option, "refused"});
    CHECK(refused.exit_code == 2);
    CHECK_MESSAGE(refused.err.find(fmt::format("{}: the tasks of one point can be written", option)) !=
                      std::string::npos,
                  refused.err);
  }
  const Finished lost = place.convoy({"run", "one.yaml", "--json", "--chakra", "none/traces"});
  CHECK(lost.exit_code == 2);
  CHECK(lost.out.empty());
  CHECK(lost.err.find("none is not a folder") != std::string::npos);
  place.file("other/mine.txt", "");
  const Finished other = place.convoy({"run", "one.yaml", "--json", "--chakra", "other"});
  CHECK(other.exit_code == 2);
  CHECK(other.err == "convoy: other: holds other files than traces (mine.txt); choose another folder\n");
}
