// SPDX-License-Identifier: MIT
// Proofs of plans whose replicas send factors of gradients, or average their parameters.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/prove/prove.h"
#include "tests/prove/covered.h"
#include "tests/support/recorded_texts.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

const std::string summing_hosts =
    "{name: lab, nodes: [{name: n, count: 2, server: box}], fabric: {kind: switch, bandwidth: 1GB/s, "
    "latency: "
    "1us, protocol: tcp}, servers: {box: {devices: [{device: ideal, count: 2}], interconnect: {kind: pcie, "
    "bandwidth: 10GB/s, latency: 0us}}}, devices: {ideal: {peak: {fp32: 10TFLOPS}, memory: 16GiB, "
    "memory_bandwidth: 500GB/s, efficiency: 1.0, launch_overhead: 0us}}}";

struct Way {
  std::string keys, allowed;
};
const std::vector<Way> ways{
    {"all_reduce, compression: {kind: powersgd, rank: 2}",
     "gradients of low rank, what that leaves out kept for later steps"},
    {"all_reduce, overlap: false, compression: {kind: powersgd, rank: 1}",
     "gradients of low rank, what that leaves out kept for later steps"},
    {"all_reduce, compression: sign", "signs of gradients, what they leave out kept for later steps"},
    {"all_reduce, compression: {kind: sign, combine: majority}",
     "the majority of signs in place of gradients"},
    {"all_reduce, sync_every: 3", "parameters averaged after every 3 steps"},
    {"all_reduce, sync_every: 2, slow_momentum: 0.5, micro_batches: 2",
     "parameters averaged after every 2 steps"},
    {"all_reduce, sync_every: 2, sum_in_hosts: true", "parameters averaged after every 2 steps"},
    {"gossip", "parameters averaged with neighbours alone"},
    {"gossip, neighbours: exponential, overlap: false", "parameters averaged with neighbours alone"},
    {"gossip, neighbours: one_peer, micro_batches: 2", "parameters averaged with neighbours alone"},
    {"gossip, sum_in_hosts: true", "parameters averaged with neighbours alone"},
    {"gossip, sum_in_hosts: true, neighbours: one_peer, overlap: false",
     "parameters averaged with neighbours alone"},
    {"gossip, asynchronous: true",
     "parameters averaged with one neighbour at a time, at whatever step that is"},
    {"gossip, asynchronous: true, micro_batches: 2",
     "parameters averaged with one neighbour at a time, at whatever step that is"}};

lab::Experiment summing_experiment(const std::string& keys, const std::string& model) {
  return {model, summing_hosts, "{kind: data_parallel, bucket: 2kB, sync: " + keys + "}", 4};
}

Proof summing_proof(const lab::Experiment& it, const Plan& plan) {
  return prove_plan(plan, it.report(), it.graph(), it.machine(), images_asked_for(it, plan));
}

std::string small_blocks() {
  Dice dice(3);
  return blocks(dice, 1);
}

}  // namespace

TEST_CASE("proof: factors, signs, local SGD and gossip are proved, and it is said what they are allowed") {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    Dice dice(seed);
    const std::string model = blocks(dice, 2);
    for (const Way& way : ways) {
      CAPTURE(seed);
      CAPTURE(way.keys);
      const lab::Experiment it = summing_experiment(way.keys, model);
      const Proof proof = summing_proof(it, plan_with_meaning(it));
      CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
      CHECK_MESSAGE(proof.allowed.find(way.allowed) != std::string::npos, proof.allowed);
    }
  }
}

TEST_CASE(
    "proof: hosts that gossip have nothing to average where there is one, whose devices sum all gradients") {
  std::string one_host = summing_hosts;
  one_host.replace(one_host.find("count: 2"), 8, "count: 1");
  for (const char* graph : {"ring", "exponential", "one_peer"}) {
    CAPTURE(graph);
    const lab::Experiment it(
        small_blocks(), one_host,
        fmt::format("{{kind: data_parallel, sync: gossip, neighbours: {}, sum_in_hosts: true}}", graph), 4);
    Plan plan = plan_with_meaning(it);
    const Proof proof = summing_proof(it, plan);
    CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
    // Sums of half of the devices leave something to average.
    for (Pattern& pattern : plan.patterns) {
      std::vector<std::vector<EndpointId>> halves;
      for (const std::vector<EndpointId>& group : pattern.groups) {
        const auto middle = group.begin() + static_cast<std::ptrdiff_t>(group.size() / 2);
        halves.insert(halves.end(), {{group.begin(), middle}, {middle, group.end()}});
      }
      pattern.groups = std::move(halves);
    }
    CHECK(summing_proof(it, plan).outcome != Proof::Outcome::proved);
  }
}

namespace {

/// A mistake in one role's program (or in the plan). @return false: there is no place for it
using Mistake = std::function<bool(Plan&)>;

/// Takes a wait for a message of that kind from the first task that computes an operation of that act.
Mistake without_wait(OpMeaning::Act act, Task::Kind kind = Task::Kind::collective) {
  return [act, kind](Plan& plan) {
    for (Role& role : plan.roles)
      for (Task& task : role.program)
        for (const PlanOp& op : task.ops)
          if (op.meaning != no_meaning && plan.meaning->operations[op.meaning].act == act)
            if (std::erase_if(task.after, [&](TaskId before) {
                  return role.program[before].kind == kind;
                }) > 0)
              return true;
    return false;
  };
}

Mistake without_act(OpMeaning::Act act) {
  return [act](Plan& plan) {
    for (Role& role : plan.roles)
      for (Task& task : role.program)
        for (PlanOp& op : task.ops)
          if (op.meaning != no_meaning && plan.meaning->operations[op.meaning].act == act) {
            op.meaning = no_meaning;
            return true;
          }
    return false;
  };
}

Mistake smaller(CommMeaning::Kind kind) {
  return [kind](Plan& plan) {
    for (Communication& comm : plan.communications)
      if (comm.meaning != no_meaning && plan.meaning->communications[comm.meaning].kind == kind) {
        comm.bytes -= 4;
        return true;
      }
    return false;
  };
}

/// A collective begins at once.
Mistake early(CommMeaning::Kind kind) {
  return [kind](Plan& plan) {
    for (Role& role : plan.roles)
      for (Task& task : role.program)
        if (task.kind == Task::Kind::collective && !task.after.empty())
          if (const std::uint32_t meaning = plan.communications[task.comm].meaning;
              meaning != no_meaning && plan.meaning->communications[meaning].kind == kind) {
            task.after.clear();
            return true;
          }
    return false;
  };
}

bool other_images(Plan& plan) {
  plan.meaning->own_images[0] += 1;
  return true;
}

bool lost_message(Plan& plan) {
  for (Pattern& pattern : plan.patterns)
    if (pattern.groups.size() == 1 && pattern.rounds.size() == 1 && pattern.rounds[0].pairs.size() > 1) {
      pattern.rounds[0].pairs.pop_back();
      return true;
    }
  return false;
}

/// The first device of a host passes nothing on.
bool told_by_nobody(Plan& plan) {
  for (Pattern& pattern : plan.patterns)
    if (pattern.groups.size() == 1 && pattern.rounds.size() > 1) {
      pattern.rounds.back().pairs.pop_back();
      return true;
    }
  return false;
}

bool told_twice(Plan& plan) {
  for (Pattern& pattern : plan.patterns)
    if (pattern.groups.size() == 1 && pattern.rounds.size() > 1) {
      pattern.rounds.push_back(pattern.rounds.back());
      return true;
    }
  return false;
}

/// Devices of a host that are together do not sum all of their gradients.
bool not_summed(Plan& plan) {
  for (CommMeaning& means : plan.meaning->communications)
    if (means.kind == CommMeaning::Kind::exchange) means.together = 4;
  return true;
}


/// The parameters that a device sends are those after its update.
bool asked_after_update(Plan& plan) {
  for (Role& role : plan.roles)
    for (Task& task : role.program)
      if (task.kind == Task::Kind::send) {
        std::size_t last = 0;
        for (std::size_t t = 0; t < role.program.size(); ++t)
          if (role.program[t].kind == Task::Kind::compute) last = t;
        for (PlanOp& op : role.program[last].ops) role.program[task.after.at(0)].ops.push_back(op);
        return true;
      }
  return false;
}

/// Changes the messages by which devices ask their neighbours, or those by which these answer, and no other.
Mistake of_exchange(bool of_request, const std::function<void(Round&)>& change) {
  return [of_request, change](Plan& plan) {
    const Service::Exchange& exchange = plan.service()->exchanges.front();
    const CommId comm = of_request ? exchange.push : exchange.pull;
    Round& round = plan.patterns[plan.communications[comm].pattern].rounds.front();
    if (round.pairs.size() < 2) return false;
    change(round);
    return true;
  };
}

void lose_one(Round& round) { round.pairs.pop_back(); }
void send_again(Round& round) { round.pairs.push_back(round.pairs.front()); }
void exchange_receivers(Round& round) { std::swap(round.pairs[0].second, round.pairs[1].second); }
void send_half(Round& round) { round.fractions = {0.5}; }

bool late_step(Plan& plan) {
  plan.steps += 1;
  return true;
}

}  // namespace

TEST_CASE("proof: plans of factors and averages with a mistake are refuted") {
  using Act = OpMeaning::Act;
  using Kind = CommMeaning::Kind;
  struct Case {
    std::string keys;
    Mistake mistake;
  };
  const std::string factors = "all_reduce, compression: {kind: powersgd, rank: 2}",
                    local = "all_reduce, sync_every: 3",
                    slow = "all_reduce, sync_every: 2, slow_momentum: 0.5",
                    hosts = "all_reduce, sync_every: 2, sum_in_hosts: true", gossip = "gossip",
                    after = "gossip, neighbours: exponential, overlap: false",
                    between_hosts = "gossip, sum_in_hosts: true, overlap: false",
                    paired = "gossip, asynchronous: true";
  const std::vector<Case> cases{{factors, without_wait(Act::factor)},
                                {factors, without_act(Act::factor)},
                                {factors, smaller(Kind::sum)},
                                {factors, smaller(Kind::sum_factors)},
                                {factors, early(Kind::sum_factors)},
                                {local, without_wait(Act::mean)},
                                {local, without_act(Act::mean)},
                                {local, smaller(Kind::average)},
                                {local, early(Kind::average)},
                                {local, &other_images},
                                {local, &late_step},
                                {slow, without_act(Act::slow)},
                                {hosts, &other_images},
                                {hosts, early(Kind::sum)},
                                {gossip, without_wait(Act::mean)},
                                {gossip, without_act(Act::mean)},
                                {gossip, smaller(Kind::exchange)},
                                {gossip, &lost_message},
                                {gossip, &other_images},
                                {after, without_wait(Act::mean)},
                                {after, early(Kind::exchange)},
                                {after, &lost_message},
                                {between_hosts, without_wait(Act::mean)},
                                {between_hosts, early(Kind::exchange)},
                                {between_hosts, early(Kind::sum)},
                                {between_hosts, &told_by_nobody},
                                {between_hosts, &told_twice},
                                {between_hosts, &not_summed},
                                {paired, without_wait(Act::mean, Task::Kind::receive)},
                                {paired, without_act(Act::mean)},
                                {paired, smaller(Kind::exchange)},
                                {paired, &asked_after_update},
                                {paired, of_exchange(true, &lose_one)},
                                {paired, of_exchange(true, &send_again)},
                                {paired, of_exchange(true, &exchange_receivers)},
                                {paired, of_exchange(true, &send_half)},
                                {paired, of_exchange(false, &lose_one)},
                                {paired, of_exchange(false, &exchange_receivers)},
                                {paired, &other_images}};
  const std::string model = small_blocks();
  RecordedTexts refusals(CONVOY_SOURCE, "proof-of-averages");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(i);
    CAPTURE(cases[i].keys);
    const lab::Experiment it = summing_experiment(cases[i].keys, model);
    Plan plan = plan_with_meaning(it);
    plan.meaning = std::make_shared<Meaning>(*plan.meaning);
    REQUIRE(cases[i].mistake(plan));
    const Proof proof = summing_proof(it, plan);
    CHECK_MESSAGE(proof.outcome == Proof::Outcome::refuted, proof.text);
    refusals.add(fmt::format("{}, {}", i, cases[i].keys), proof.text);
  }
  refusals.check();
}

TEST_CASE("proof: gossip on another graph than the experiment names is refuted, on any cluster") {
  const std::vector<std::string> graphs{"", ", neighbours: exponential", ", neighbours: one_peer",
                                        ", asynchronous: true"};
  /// Who sends to whom in a step, or in each.
  const auto messages = [](const Plan& plan) {
    std::set<std::vector<std::pair<EndpointId, EndpointId>>> steps;
    for (const Communication& comm : plan.communications) {
      if (plan.meaning->communications[comm.meaning].kind != CommMeaning::Kind::exchange) continue;
      const Pattern& pattern = plan.patterns[comm.pattern];
      std::vector<std::pair<EndpointId, EndpointId>> step;
      for (const Round& round : pattern.rounds)
        for (const auto& [from, to] : round.pairs)
          step.emplace_back(pattern.groups.front()[from], pattern.groups.front()[to]);
      std::sort(step.begin(), step.end());
      steps.insert(std::move(step));
    }
    return steps;
  };
  int refuted = 0;
  for (unsigned seed = 1; seed <= 12; ++seed) {
    Dice dice(seed + 50'000);
    const int hosts = dice.between(2, 9), devices = dice.one_of<int>({1, 1, 2, 3});
    const std::string cluster = fmt::format(
        "{{name: lab, nodes: [{{name: n, count: {}, server: box}}], fabric: {{kind: switch, bandwidth: "
        "1GB/s, "
        "latency: 1us}}, servers: {{box: {{devices: [{{device: ideal, count: {}}}], interconnect: {{kind: "
        "pcie, "
        "bandwidth: 10GB/s, latency: 0us}}}}}}, devices: {{ideal: {{peak: {{fp32: 10TFLOPS}}, memory: 16GiB, "
        "memory_bandwidth: 500GB/s, efficiency: 1.0, launch_overhead: 0us}}}}}}",
        hosts, devices);
    const std::string model = blocks(dice, 1);
    const std::string more = dice.one_of<std::string>({"", ", bucket: 2kB", ", micro_batches: 2"});
    std::vector<lab::Experiment> experiments;
    for (const std::string& graph : graphs)
      for (const std::string sums : {"", ", sum_in_hosts: true"})
        if (sums.empty() || graph != graphs.back())
          experiments.emplace_back(
              model, cluster, fmt::format("{{kind: data_parallel, sync: gossip{}{}{}}}", graph, sums, more),
              4);
    for (const lab::Experiment& made : experiments)
      for (const lab::Experiment& named : experiments) {
        CAPTURE(seed);
        CAPTURE(made.strategy().label());
        CAPTURE(named.strategy().label());
        const Plan plan = plan_with_meaning(made);
        const Proof proof =
            prove_plan(plan, named.report(), made.graph(), made.machine(), images_asked_for(made, plan));
        const bool is_same = messages(plan) == messages(plan_with_meaning(named));
        CHECK_MESSAGE((proof.outcome == Proof::Outcome::proved) == is_same, proof.text);
        refuted += is_same ? 0 : 1;
      }
  }
  CHECK(refuted > 200);
}
