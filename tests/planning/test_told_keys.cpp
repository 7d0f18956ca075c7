// SPDX-License-Identifier: MIT
// The keys that `convoy show keys` tells of plans are those that their readers take.
#include <doctest/doctest.h>

#include "tests/planning/plan_text.h"
#include "tests/support/told_keys.h"

using namespace convoy;

namespace {

std::string plan_said(const std::string& goal, const std::string& keys) {
  try {
    const PlanSpec spec = plans::spec_of("{" + goal + "}", "{" + keys + "}");
    std::string text =
        fmt::format("{} {} {} {} {} {} {} {} {} {} {}", to_string(spec.objective), spec.servers.size(),
                    spec.all_servers, spec.mixtures, static_cast<int>(spec.interruptions), spec.failures,
                    spec.repair_s, spec.strategies.size(), spec.constraints.deadline_s.value_or(-1),
                    spec.constraints.memory, spec.goal.beside_s(40));
    for (const auto n : spec.nodes) text += fmt::format(" {}", n);
    for (const auto b : spec.batches) text += fmt::format(" {}", b);
    for (const auto p : spec.precisions) text += fmt::format(" {}", to_string(p));
    for (const auto m : spec.markets) text += fmt::format(" {}", to_string(m));
    for (const auto r : spec.reactions) text += fmt::format(" {}", to_string(r));
    return text + fmt::format(" {} {}", spec.goal.epochs(512)->epochs, spec.goal.samples());
  } catch (const InputError& error) {
    return error.what();
  }
}

const KeySection& section(const std::string& name) {
  static const std::vector<KeySection> sections = plan_keys();
  for (const KeySection& each : sections)
    if (each.name == name) return each;
  FAIL("no section " << name);
  return sections.front();
}

}  // namespace

TEST_CASE("told keys: a plan takes those that its table tells, and their defaults change nothing") {
  const auto read = [](const std::string& entries) { return plan_said("epochs: 9", entries); };
  const std::vector<KeyText>& keys = section("plan").keys;
  CHECK(told::check(keys, "", read) >= 6);
  CHECK(told::check(told::parts_of(keys, "constraints"), "",
                    [&](const std::string& entries) { return read("constraints: {" + entries + "}"); }) == 1);
}

TEST_CASE("told keys: a goal takes those that its table tells, and their defaults change nothing") {
  const auto read = [](const std::string& entries) { return plan_said(entries, ""); };
  const std::vector<KeyText> keys = goal_keys().keys;
  CHECK(told::check(keys, "target: resnet50-imagenet-75.9", read) == 2);
  for (const char* pause : {"evaluation", "checkpoint"})
    CHECK(told::check(told::parts_of(keys, pause), "time: 3s", [&](const std::string& entries) {
            return read(fmt::format("epochs: 9, {}: {{{}}}", pause, entries));
          }) == 1);
}

TEST_CASE("told keys: a plan's file takes those that its table tells") {
  try {
    plans::spec_of("{epochs: 9}\nzzzzzzzz: 1", "{}");
    FAIL("an unknown key was taken");
  } catch (const InputError& error) {
    CHECK(told::known_keys(error.what()) == told::told_names(section("plan-file").keys));
  }
}
