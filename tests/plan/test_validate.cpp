// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "sim/plan/validate.h"

using namespace convoy;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// Devices a and b (endpoints 0 and 1) in hosts x and y (endpoints 2 and 3). Validation asks for no routes.
Machine two_hosts() {
  Machine machine;
  machine.device_types.resize(1);
  machine.host_types.resize(1);
  machine.hosts = {{"x", 0, 0, 1}, {"y", 0, 1, 1}};
  machine.devices = {{"a", 0, 0, 1.0}, {"b", 0, 1, 1.0}};
  return machine;
}

Task task(Task::Kind kind, std::string name, int stream = 0, std::vector<TaskId> after = {}) {
  Task result;
  result.name = std::move(name);
  result.kind = kind;
  result.stream = stream;
  result.after = std::move(after);
  return result;
}

/// Two workers that compute and all-reduce, and a server on host y that adds up for 1 ms.
Plan good_plan() {
  Plan plan;
  Role worker{"worker", {0, 1}, {"compute", "communication"}, {}, {}};
  worker.program = {task(Task::Kind::compute, "forward"), task(Task::Kind::collective, "sum", 1, {0})};
  worker.program[0].ops = {{"conv.forward", {}, 8, {}, {}}};
  Role server{"server", {3}, {"cpu"}, {task(Task::Kind::compute, "add up")}, {}};
  server.program[0].seconds = 1e-3;
  plan.roles = {worker, server};
  plan.patterns = {{{{0, 1}}, {{{{0, 1}, {1, 0}}, {0.5}, 2}}}, {{{0, 3}}, {{{{0, 1}}, {1.0}, 1}}}};
  plan.communications = {{"all-reduce", 0, 1e6, Fidelity::automatic, 0},
                         {"push", 1, 1e6, Fidelity::automatic, 0}};
  return plan;
}

/// The message about the good plan with one change; "valid" where there is none.
template <class Change>
std::string error_after(Change change) {
  Plan plan = good_plan();
  change(plan);
  try {
    validate(plan, two_hosts());
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "valid";
}

Task& forward(Plan& plan) { return plan.roles[0].program[0]; }
Task& sum(Plan& plan) { return plan.roles[0].program[1]; }
Task& add_up(Plan& plan) { return plan.roles[1].program[0]; }

}  // namespace

TEST_CASE("a good plan is valid, and so are its edges") {
  CHECK(error_after([](Plan&) {}) == "valid");
  CHECK(error_after([](Plan& plan) { plan = Plan{}; }) == "valid");
  CHECK(error_after([](Plan& plan) { plan.communications[0].bytes = 0; }) == "valid");
  CHECK(error_after([](Plan& plan) { plan.patterns[0].rounds.clear(); }) == "valid");
  CHECK(error_after([](Plan& plan) { plan.patterns[0].rounds[0].fractions = {0.25, 0.75}; }) == "valid");
  CHECK(error_after([](Plan& plan) { sum(plan).stream = Task::no_stream; }) == "valid");
  CHECK(error_after([](Plan& plan) { forward(plan).ops.clear(); }) == "valid");
  CHECK(error_after([](Plan& plan) { add_up(plan).seconds = 0; }) == "valid");
  CHECK(error_after([](Plan& plan) {
          plan.roles[0].program.push_back(task(Task::Kind::send, "push", Task::no_stream, {0}));
          plan.roles[0].program.back().comm = 1;
        }) == "valid");
}

TEST_CASE("roles have members, and every endpoint one role at most") {
  CHECK(error_after([](Plan& plan) { plan.roles[1].members.clear(); }) ==
        "plan: role 'server' has no members");
  CHECK(error_after([](Plan& plan) {
          plan.roles[1].members = {3, 4};
        }) == "plan: role 'server' names endpoint 4 of 4");
  CHECK(error_after([](Plan& plan) {
          plan.roles[0].members = {0, 1, 2};
        }) == "plan: role 'worker' mixes devices and hosts");
  CHECK(error_after([](Plan& plan) {
          plan.roles[1].members = {3, 1};
        }) == "plan: role 'server' mixes devices and hosts");
  CHECK(error_after([](Plan& plan) { plan.roles[0].members = {0, 1, 0}; }) == "plan: a has two roles");
  CHECK(error_after([](Plan& plan) { plan.roles.push_back(plan.roles[1]); }) == "plan: y has two roles");
}

TEST_CASE("everyone who communicates has a role") {
  CHECK(error_after([](Plan& plan) { plan.roles[1].members = {2}; }) ==
        "plan: y communicates but has no role");
  CHECK(error_after([](Plan& plan) { plan.roles[0].members = {0}; }) ==
        "plan: b communicates but has no role");
}

TEST_CASE("tasks are on streams of their role, compute tasks on the first") {
  CHECK(error_after([](Plan& plan) { sum(plan).stream = 2; }) ==
        "plan: task 'sum' of role 'worker' is on stream 2 of 2");
  CHECK(error_after([](Plan& plan) { sum(plan).stream = -2; }) ==
        "plan: task 'sum' of role 'worker' is on stream -2 of 2");
  CHECK(error_after([](Plan& plan) { plan.roles[1].streams.clear(); }) ==
        "plan: task 'add up' of role 'server' is on stream 0 of 0");
  CHECK(error_after([](Plan& plan) { forward(plan).stream = 1; }) ==
        "plan: compute task 'forward' of role 'worker' is not on stream 0");
  CHECK(error_after([](Plan& plan) { forward(plan).stream = Task::no_stream; }) ==
        "plan: compute task 'forward' of role 'worker' is not on stream 0");
}

TEST_CASE("tasks wait for earlier ones only") {
  CHECK(error_after([](Plan& plan) { sum(plan).after = {1}; }) ==
        "plan: task 'sum' of role 'worker' waits for a later task");
  CHECK(error_after([](Plan& plan) { forward(plan).after = {1}; }) ==
        "plan: task 'forward' of role 'worker' waits for a later task");
  CHECK(error_after([](Plan& plan) {
          sum(plan).after = {0, 99};
        }) == "plan: task 'sum' of role 'worker' waits for a later task");
}

TEST_CASE("devices run operations, hosts take seconds") {
  CHECK(error_after([](Plan& plan) { forward(plan).seconds = 1; }) ==
        "plan: task 'forward' of role 'worker': devices run operations, hosts take seconds");
  CHECK(error_after([](Plan& plan) { add_up(plan).ops = forward(plan).ops; }) ==
        "plan: task 'add up' of role 'server': devices run operations, hosts take seconds");
}

TEST_CASE("times, images and bytes are finite and not negative") {
  CHECK(error_after([](Plan& plan) { add_up(plan).seconds = -1; }) == "plan: task 'add up' takes -1 s");
  CHECK(error_after([](Plan& plan) { add_up(plan).seconds = infinite; }) ==
        "plan: task 'add up' takes inf s");
  CHECK(error_after([](Plan& plan) { add_up(plan).seconds = std::nan(""); }) ==
        "plan: task 'add up' takes nan s");
  CHECK(error_after([](Plan& plan) { forward(plan).ops[0].images = -8; }) ==
        "plan: operation 'conv.forward' on -8 images");
  CHECK(error_after([](Plan& plan) { forward(plan).ops[0].images = infinite; }) ==
        "plan: operation 'conv.forward' on inf images");
  CHECK(error_after([](Plan& plan) { plan.communications[0].bytes = -1; }) ==
        "plan: 'all-reduce' has -1 bytes, 0 s overhead");
  CHECK(error_after([](Plan& plan) { plan.communications[1].bytes = infinite; }) ==
        "plan: 'push' has inf bytes, 0 s overhead");
  CHECK(error_after([](Plan& plan) { plan.communications[1].overhead_s = -0.5; }) ==
        "plan: 'push' has 1000000 bytes, -0.5 s overhead");
}

TEST_CASE("a slowdown is finite and more than nothing") {
  for (const double good : {0.5, 1.0, 3.0})
    CHECK(error_after([&](Plan& plan) { plan.roles[0].slowdown = good; }) == "valid");
  CHECK(error_after([](Plan& plan) { plan.roles[0].slowdown = 0; }) ==
        "plan: role 'worker' takes 0 times as long");
  CHECK(error_after([](Plan& plan) { plan.roles[0].slowdown = infinite; }) ==
        "plan: role 'worker' takes inf times as long");
}

TEST_CASE("memory deltas are finite and more than nothing") {
  CHECK(error_after([](Plan& plan) {
          forward(plan).ops[0].allocates = {{MemoryClass::activations, 4096}};
        }) == "valid");
  CHECK(error_after([](Plan& plan) {
          forward(plan).ops[0].allocates = {{MemoryClass::activations, 0}};
        }) == "plan: operation 'conv.forward' allocates or frees 0 bytes");
  CHECK(error_after([](Plan& plan) {
          forward(plan).ops[0].frees = {{MemoryClass::activations, -5}};
        }) == "plan: operation 'conv.forward' allocates or frees -5 bytes");
  CHECK(error_after([](Plan& plan) {
          forward(plan).ops[0].frees = {{MemoryClass::workspace, infinite}};
        }) == "plan: operation 'conv.forward' allocates or frees inf bytes");
}

TEST_CASE("tasks use communications that there are, and those patterns that there are") {
  CHECK(error_after([](Plan& plan) { sum(plan).comm = 2; }) == "plan: task 'sum' uses communication 2 of 2");
  CHECK(error_after([](Plan& plan) { plan.communications[0].pattern = 2; }) ==
        "plan: 'all-reduce' has pattern 2 of 2");
}

TEST_CASE("a member takes part in a communication once, though it may send and receive in it") {
  CHECK(error_after([](Plan& plan) {
          plan.roles[0].program.push_back(task(Task::Kind::collective, "again", 1));
        }) == "plan: task 'again' of role 'worker' uses communication 'all-reduce' a second time");
  const auto with = [](Task::Kind first, Task::Kind second) {
    return error_after([&](Plan& plan) {
      for (const Task::Kind kind : {first, second}) {
        plan.roles[0].program.push_back(task(kind, "push", Task::no_stream));
        plan.roles[0].program.back().comm = 1;
      }
    });
  };
  CHECK(with(Task::Kind::send, Task::Kind::receive) == "valid");
  CHECK(with(Task::Kind::send, Task::Kind::send) ==
        "plan: task 'push' of role 'worker' uses communication 'push' a second time");
  CHECK(with(Task::Kind::receive, Task::Kind::receive) ==
        "plan: task 'push' of role 'worker' uses communication 'push' a second time");
  CHECK(with(Task::Kind::send, Task::Kind::collective) ==
        "plan: task 'push' of role 'worker' uses communication 'push' a second time");
}

TEST_CASE("sends and receives go over patterns of one round") {
  const auto sending_over = [](auto change) {
    return error_after([&](Plan& plan) {
      plan.roles[0].program.push_back(task(Task::Kind::send, "give", Task::no_stream));
      plan.roles[0].program.back().comm = 1;
      change(plan.patterns[1]);
    });
  };
  CHECK(sending_over([](Pattern&) {}) == "valid");
  CHECK(sending_over([](Pattern& pattern) { pattern.rounds[0].repeat = 2; }) ==
        "plan: 'give' sends over a pattern of several rounds");
  CHECK(sending_over([](Pattern& pattern) { pattern.rounds.push_back(pattern.rounds[0]); }) ==
        "plan: 'give' sends over a pattern of several rounds");
  CHECK(sending_over([](Pattern& pattern) { pattern.rounds.clear(); }) ==
        "plan: 'give' sends over a pattern of several rounds");
  // The same program, in a plan whose pattern has changed since.
  Plan plan = good_plan();
  plan.roles[0].program.push_back(task(Task::Kind::send, "give", Task::no_stream));
  plan.roles[0].program.back().comm = 1;
  CHECK_NOTHROW(validate(plan, two_hosts()));
  plan.patterns[1].rounds[0].repeat = 2;
  CHECK_THROWS_WITH_AS(validate(plan, two_hosts()), "plan: 'give' sends over a pattern of several rounds",
                       std::logic_error);
}

TEST_CASE("patterns name endpoints that there are, each once") {
  CHECK(error_after([](Plan& plan) {
          plan.patterns[0].groups = {{0, 4}};
        }) == "plan: a pattern names endpoint 4 of 4");
  CHECK(error_after([](Plan& plan) {
          plan.patterns[0].groups = {{0, 1, 0}};
        }) == "plan: endpoint 0 is twice in a pattern");
  CHECK(error_after([](Plan& plan) {
          plan.patterns[0].groups = {{0, 1}, {3, 1}};
        }) == "plan: endpoint 1 is twice in a pattern");
}

TEST_CASE("pairs are two members of the group, with a fraction for all or one each") {
  CHECK(error_after([](Plan& plan) {
          plan.patterns[0].rounds[0].pairs = {{0, 2}};
        }) == "plan: pair 0 -> 2 in a group of 2");
  CHECK(error_after([](Plan& plan) {
          plan.patterns[0].rounds[0].pairs = {{1, 1}};
        }) == "plan: pair 1 -> 1 in a group of 2");
  CHECK(error_after([](Plan& plan) {
          plan.patterns[0].rounds[0].fractions = {1, 1, 1};
        }) == "plan: 3 fractions for 2 pairs");
  CHECK(error_after([](Plan& plan) { plan.patterns[0].rounds[0].fractions = {}; }) ==
        "plan: 0 fractions for 2 pairs");
  CHECK(error_after([](Plan& plan) { plan.patterns[0].rounds[0].fractions = {-0.5}; }) ==
        "plan: a pair carries the fraction -0.5");
  CHECK(error_after([](Plan& plan) { plan.patterns[0].rounds[0].fractions = {infinite}; }) ==
        "plan: a pair carries the fraction inf");
}

TEST_CASE(
    "a plan with a service: clients are devices, hosts have no program, every message has its way back") {
  const auto serve = [](Plan& plan) {
    plan.roles[0].program = {task(Task::Kind::compute, "forward"),
                             task(Task::Kind::send, "push", Task::no_stream, {0}),
                             task(Task::Kind::receive, "pull", Task::no_stream)};
    plan.roles[0].program[2].comm = 1;
    plan.roles[1].program.clear();
    plan.patterns = {{{{0, 1, 3}}, {{{{0, 2}, {1, 2}}, {1.0}, 1}}},
                     {{{0, 1, 3}}, {{{{2, 0}, {2, 1}}, {1.0}, 1}}}};
    plan.communications = {{"push", 0, 1e6, Fidelity::automatic, 0},
                           {"pull", 1, 1e6, Fidelity::automatic, 0}};
    Service& service = plan.course.emplace<Service>();
    service.clients = {{0, 8, 0, 0}, {1, 8, 0, 0}};
    service.exchanges = {{0, 1}};
  };
  CHECK(error_after(serve) == "valid");
  const auto error = [&](auto change) {
    return error_after([&](Plan& plan) {
      serve(plan);
      change(plan);
    });
  };
  CHECK(error([](Plan& plan) { plan.service()->clients.pop_back(); }) ==
        "plan: role 'worker' is neither a client of the service nor a host without program");
  CHECK(error([](Plan& plan) { plan.service()->clients[1].device = 0; }) ==
        "plan: client 0 of the service is no device, or twice there");
  CHECK(error([](Plan& plan) {
          plan.service()->clients.push_back({static_cast<EndpointId>(two_hosts().devices.size()), 8, 0, 0});
        }).ends_with("of the service is no device, or twice there"));
  CHECK(error([](Plan& plan) { plan.service()->compute_spread = 0.1; }) == "valid");
  CHECK(error([](Plan& plan) { plan.service()->compute_spread = plan.service()->step_jitter = 0.1; }) ==
        "plan: compute times of a service's clients are drawn from two distributions");
  CHECK(error([](Plan& plan) {
          plan.patterns[1].rounds[0].pairs = {{2, 1}, {2, 0}};
        }) == "plan: 'pull' is not the way back of 'push'");
  // There or back in several rounds, of which the first would do, or in none; no task says so before.
  for (const std::size_t pattern : {0, 1})
    for (const std::size_t rounds : {0, 1, 2})
      CHECK(error([&](Plan& plan) {
              plan.roles[0].program.resize(1);
              plan.patterns[pattern].rounds.resize(rounds, plan.patterns[pattern].rounds.front());
            }) == (rounds == 1 ? "valid" : "plan: 'pull' is not the way back of 'push'"));
  CHECK(error([](Plan& plan) {
          plan.service()->exchanges = {{0, 2}};
        }) == "plan: the service exchanges communications 0 and 2 of 2");
  CHECK(error([](Plan& plan) { plan.service()->quorum = 3; }) ==
        "plan: 3 pushes of 2 clients make an update");
  CHECK(error([](Plan& plan) { plan.service()->max_lead = 0; }) ==
        "plan: a service with lead 0, 8 measured steps");
}
