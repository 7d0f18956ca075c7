// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/data_path.h"
#include "sim/base/input_error.h"
#include "strategies/framework_habits.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

std::string habit_said(const std::string& entries) {
  try {
    return read_strategy(parse_yaml("{kind: " + entries + "}", "s.yaml"))->label();
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("what a framework does is what its keys say, and every one of them has a source") {
  CHECK(habit_names().size() >= 11);
  for (const std::string& name : habit_names()) {
    CAPTURE(name);
    const std::string sync =
        std::ranges::binary_search(habits_with("all_reduce"), name) ? "all_reduce" : "parameter_server";
    const YamlNode& file = data_yaml("topologies/catalog/synchronization/" + sync, name);
    const YamlNode& keys = *file.find("strategy");
    CHECK(keys.find("sync")->scalar == sync);
    const YamlNode& sources = *file.find("sources");
    std::string spelled;
    for (const auto& [key, value] : keys.entries) {
      spelled += fmt::format(", {}: {}", key, to_flow(value));
      if (key != "sync") CHECK(sources.find(key) != nullptr);
    }
    const std::string short_form =
        fmt::format("data_parallel, sync: {}, like: {}", keys.find("sync")->scalar, name);
    CHECK(habit_said(short_form) == habit_said("data_parallel" + spelled));
    // The two plan the same, to the last byte and second.
    const auto run = [](const std::string& entries) {
      return lab::Experiment(lab::custom_model(3, 200'000), lab::star(2, "1GB/s", "20us"),
                             "{kind: " + entries + "}", 2)
          .run();
    };
    const ReplayResult a = run(short_form), b = run("data_parallel" + spelled);
    CHECK(a.step_time_s == b.step_time_s);
    CHECK(a.comm_bytes == b.comm_bytes);
  }
}

TEST_CASE("what is shown of a framework is its file, and an unknown one is told") {
  for (const std::string& name : habit_names()) {
    CAPTURE(name);
    const FrameworkHabit habit = load_habit(name, {"show", 1, 1});
    CHECK(!habit.title.empty());
    CHECK(habit.keys.size() == habit.sources.size() + 1);  // all but `sync`, which says where the others go
    for (const auto& [key, source] : habit.sources) CHECK(source.grade != Grade::given);
  }
  try {
    load_habit("byte-ps", {"show", 1, 1});
    FAIL("a framework that there is not");
  } catch (const InputError& error) {
    CHECK(std::string(error.what())
              .starts_with("show:1:1: unknown framework 'byte-ps' (did you mean 'byteps'?); "));
  }
}

TEST_CASE("a key that is written counts, whatever the framework does") {
  CHECK(habit_said("data_parallel, sync: all_reduce, like: horovod") == "ring all-reduce, in cycles of 1 ms");
  CHECK(habit_said("data_parallel, sync: all_reduce, like: horovod, cycle: 3ms, algorithm: tree") ==
        "tree all-reduce, in cycles of 3 ms");
  CHECK(habit_said("data_parallel, sync: all_reduce, like: none") == "ring all-reduce");
  CHECK(habit_said("data_parallel, sync: all_reduce, like: deepspeed, zero: 1") ==
        "ring all-reduce, ZeRO-1, no overlap");
  CHECK(habit_said("elastic, inner: {kind: data_parallel, sync: all_reduce, like: horovod}, schedule: "
                   "[{at_step: 0, devices: 2}]") == "elastic 2, overlapped, uniform");
  const YamlNode strategy =
      parse_yaml("{kind: elastic, inner: {sync: all_reduce, like: horovod_0.20}}", "s.yaml");
  CHECK(to_flow(*with_habits(strategy).find("inner")->find("cycle")) == "5ms");
}

TEST_CASE("an unknown framework, and one that does something else, are told at their place") {
  CHECK(habit_said("data_parallel, sync: all_reduce, like: horovodd")
            .starts_with("s.yaml:1:47: strategy.like: unknown value 'horovodd' (did you mean 'horovod'?); "
                         "allowed: none, ddp, "));
  CHECK(habit_said("data_parallel, sync: all_reduce, like: kvstore_device") ==
        "s.yaml:1:47: strategy.like: 'kvstore_device' has sync: parameter_server, and here is sync: "
        "all_reduce; change "
        "one of the two");
  CHECK(habit_said("data_parallel, sync: gossip, like: horovod")
            .starts_with("s.yaml:1:37: strategy.like: unknown key"));
  CHECK(habit_said("data_parallel, like: kvstore_device")
            .ends_with(
                "strategy: key 'sync' is missing; like: kvstore_device goes with sync: parameter_server"));
  CHECK(habit_said("data_parallel, like: horovodd").find("key 'sync' is missing; allowed: ") !=
        std::string::npos);
  CHECK(habit_said("data_parallel, sync: all_reduce, like: [ddp]") ==
        "s.yaml:1:47: strategy.like: expected a text, found a list");
  // What the framework brings along and what is written do not go together.
  CHECK(habit_said("data_parallel, sync: all_reduce, like: horovod, zero: 2")
            .starts_with("s.yaml:1:47: strategy.cycle: goes with zero: 0"));
}
