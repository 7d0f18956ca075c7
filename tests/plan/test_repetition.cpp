// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <stdexcept>

#include "sim/plan/ledger.h"
#include "sim/plan/repetition.h"
#include "sim/plan/validate.h"
#include "tests/support/hand.h"

using namespace convoy;

namespace {

/// Device 0 makes ready, makes five batches and sends each to device 1, and ends; of 105 batches of which 100 are
/// left out.
Plan sending_plan() {
  Plan plan;
  plan.patterns = {{{{0, 1}}, {{{{0, 1}}, {1.0}, 1}}}};
  plan.roles.resize(2);
  plan.roles[0] = hand::role("first", {0}, {hand::compute("begin", 1)});
  plan.roles[1] = hand::role("second", {1}, {hand::compute("begin", 1)});
  for (int k = 0; k < 5; ++k) {
    plan.communications.push_back({fmt::format("batch #{}, 0 to 1", k), 0, 1000});
    const auto comm = static_cast<CommId>(k);
    std::vector<Task>& from = plan.roles[0].program.edit();
    from.push_back(hand::compute(fmt::format("make #{}", k), 2));
    from.back().ops.front().allocates = {{MemoryClass::activations, 8}};
    from.back().ops.front().frees = {{MemoryClass::activations, 8}};
    from.push_back(hand::message(Task::Kind::send, fmt::format("batch #{}", k), comm,
                                 {static_cast<TaskId>(from.size() - 1)}, 1));
    plan.roles[1].program.edit().push_back(
        hand::message(Task::Kind::receive, fmt::format("batch #{}", k), comm, {}, 1));
  }
  for (Role& role : plan.roles) role.program.edit().push_back(hand::compute("layer #2.update", 3));
  plan.roles[0].repeats = RepeatedTasks{1, 2, 4, 100, 1};
  plan.roles[1].repeats = RepeatedTasks{1, 1, 4, 100, 1};
  return plan;
}

std::string validation_of(const Plan& plan) {
  try {
    validate(plan, hand::devices(2));
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("repetition: periods are listed with the numbers that they have") {
  const Plan plan = sending_plan();
  CHECK(validation_of(plan) == "");
  CHECK(left_out(plan)->left_out == 100);
  const Plan more = with_more_listed(plan, 2);
  CHECK(validation_of(more) == "");
  CHECK(more.roles[0].repeats == RepeatedTasks{1, 2, 6, 98, 1});
  CHECK(more.roles[0].program.size() == 12 + 2 * 2);
  CHECK(more.roles[1].program.size() == 7 + 2);
  CHECK(more.communications.size() == 7);
  const std::vector<Task>& first = more.roles[0].program.get();
  // Periods 0 to 3 were listed; then 4 and 5, and what was 4 is 6.
  CHECK(first[9].name == "make #4");
  CHECK(first[11].name == "make #5");
  CHECK(name_of(first[11], first[11].ops.front()) == "make #5");
  CHECK(name_of(first[13], first[13].ops.front()) == "make #6");
  CHECK(first[9].ops == first[7].ops);  // shared with the last period that was there
  CHECK(first[11].ops == first[7].ops);
  CHECK(first[13].ops != first[7].ops);  // of what follows it
  CHECK(name_of(first[15], first[15].ops.front()) == plan.roles[0].program[11].ops.front().name);
  CHECK(first[12].after == std::vector<TaskId>{11});
  CHECK(first[13].name == "make #6");
  CHECK(first[14].after == std::vector<TaskId>{13});
  CHECK(more.communications[first[14].comm].name == "batch #6, 0 to 1");
  CHECK(more.roles[1].program[7].comm == first[14].comm);
  CHECK(first[15].name == "layer #2.update");  // no number of a micro-batch
  const Plan all = with_all_listed(plan);
  CHECK(left_out(all) == nullptr);
  CHECK(all.communications.size() == 105);
  CHECK(all.roles[0].program[all.roles[0].program.size() - 2].name == "batch #104");
  CHECK(validation_of(all) == "");
}

TEST_CASE("repetition: the last listed period stands for those that are left out") {
  const Plan plan = sending_plan();
  CHECK(times_of_communications(plan) == std::vector<double>{1, 1, 1, 101, 1});
  CHECK(plan.roles[0].times(6) == 1);
  CHECK(plan.roles[0].times(7) == 101);
  CHECK(plan.roles[0].times(8) == 101);
  CHECK(plan.roles[0].times(9) == 1);
  CHECK(times_of_communications(with_all_listed(plan)) == std::vector<double>(105, 1.0));
}

TEST_CASE("repetition: a period that keeps memory is refused") {
  Plan plan = sending_plan();
  CHECK_NOTHROW(require_balanced_memory(plan.roles[0]));
  std::vector<Task>& tasks = plan.roles[0].program.edit();
  tasks[7].ops.front().allocates.front().bytes = 9;
  tasks[11].ops.front().frees = {{MemoryClass::activations, 1}};
  CHECK_THROWS_WITH_AS(require_balanced_memory(plan.roles[0]),
                       doctest::Contains("ends the step with 100 bytes more"), std::logic_error);
}

TEST_CASE("repetition: roles leave out the same, and periods are alike") {
  Plan plan = sending_plan();
  plan.roles[1].repeats->left_out = 99;
  CHECK(validation_of(plan).find("role 'second' does not leave out what other roles do") !=
        std::string::npos);
  plan = sending_plan();
  plan.roles[1].repeats.reset();
  CHECK(validation_of(plan).find("role 'second' does not leave out") != std::string::npos);
  plan = sending_plan();
  plan.roles[0].repeats->listed = 6;
  CHECK(validation_of(plan).find("role 'first'") != std::string::npos);
  plan = sending_plan();
  plan.roles[0].program.edit()[3].stream = Task::no_stream;
  CHECK(validation_of(plan) != "");
  plan = sending_plan();
  plan.roles[0].program.edit()[4].after = {2};
  CHECK(validation_of(plan).find("wait for other tasks") != std::string::npos);
  plan = sending_plan();
  plan.roles[0].program.edit()[11].after = {3};
  CHECK(validation_of(plan).find("waits for one before the last listed period") != std::string::npos);
  plan = sending_plan();
  plan.steps = 2;
  CHECK(validation_of(plan).find("programs of several steps leave tasks out") != std::string::npos);
}
