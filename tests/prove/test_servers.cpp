// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "sim/prove/prove.h"
#include "tests/prove/covered.h"
#include "tests/prove/plan_mutants.h"
#include "tests/support/recorded_texts.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

/// Replicas that exchange through parameter servers, in all ways that there are.
struct ServerExperiment {
  std::string model, cluster, strategy;
  int batch;
  explicit ServerExperiment(Dice& dice) {
    RandomCluster of;
    of.fabric = dice.one_of(fabrics()) + dice.one_of<std::string>({"", ", protocol: tcp"});
    of.bandwidth_Bps = 1e9;
    of.latency_s = 1e-6;
    of.devices = dice.one_of<int>({1, 2, 4});
    const int hosts = dice.between(1, 4);
    of.nodes = fmt::format("[{{name: n, count: {}, server: box}}]", hosts);
    cluster = of.text();
    batch = 4 * dice.between(1, 3);
    model = blocks(dice, 1);
    const bool dedicated = dice.coin();
    const bool in_step = dice.between(0, 2) > 0;
    const std::string more =
        in_step ? fmt::format(", pull: {}, local_aggregation: {}",
                              dice.one_of<std::string>({"as_ready", "after_all", "at_first_use"}),
                              dice.one_of<std::string>({"false", "host", "owner", "ring"}))
                : fmt::format(", {}", dice.one_of<std::string>(
                                          {"mode: async", "mode: ssp, staleness: 3", "backup_workers: 1"}));
    const bool late = more.find("backup") != std::string::npos && hosts * of.devices == 1;
    const bool plain = more.find("owner") == std::string::npos && more.find("ring") == std::string::npos;
    const bool largest = more.find("host") == std::string::npos;
    strategy = fmt::format(
        "{{kind: data_parallel, sync: parameter_server, servers: {}, placement: {}, sharding: {}, overlap: "
        "{}, "
        "micro_batches: {}{}{}}}",
        dice.between(1, dedicated ? 3 : hosts), dedicated ? "dedicated" : "colocated",
        dice.one_of<std::string>({"tensor", "even, bucket: 2kB", "even, bucket: 300kB"}), dice.coin(),
        dice.one_of<int>({1, 2, 4}), late ? "" : more,
        !plain || dice.coin()    ? ""
        : largest && dice.coin() ? ", compression: {kind: top_k, ratio: 0.01}"
                                 : ", compression: fp16");
  }
};

/// The rounds of messages between workers, hosts and servers.
std::vector<Round*> rounds_of_messages(Plan& plan) {
  std::vector<Round*> rounds;
  for (const Communication& comm : plan.communications) {
    const CommMeaning::Kind kind = plan.meaning->communications[comm.meaning].kind;
    if (kind != CommMeaning::Kind::scatter && kind != CommMeaning::Kind::gather_parameters)
      rounds.push_back(&plan.patterns[comm.pattern].rounds[0]);
  }
  return rounds;
}

/// A server's task, or that of a host that collects gradients.
std::vector<Task*> host_tasks(Plan& plan) {
  std::vector<Task*> tasks;
  for (Role& role : plan.roles)
    for (Task& task : role.program)
      if (task.meaning != no_meaning) tasks.push_back(&task);
  return tasks;
}

enum class ServerMutant : std::uint8_t {
  act_lost,        ///< a server does not update, or a host does not add up
  act_twice,       ///< it does it a second time
  act_of_another,  ///< with the gradients of another bucket
  message_twice,
  message_lost,
  share_moved,         ///< a server gets less, another one more
  end_moved,           ///< a message goes to another server, or comes from another worker
  answered_otherwise,  ///< a service's push, with the parameters of another bucket
  client_images,       ///< those of a service's client, one too many
  kind_changed,        ///< gradients come back in place of parameters, or go to a server that only collects
};
constexpr int server_mutants = 10;

std::string change_act(Plan& plan, ServerMutant mutant, Dice& dice) {
  std::vector<Task*> tasks = host_tasks(plan);
  if (tasks.empty()) return "";
  Task& task = *dice.one_of(tasks);
  std::vector<OpMeaning>& operations = plan.meaning->operations;
  if (mutant == ServerMutant::act_lost) {
    task.meaning = no_meaning;
  } else if (mutant == ServerMutant::act_of_another) {
    if (plan.meaning->buckets.size() < 2) return "";
    std::uint32_t& bucket = operations[task.meaning].bucket;
    bucket = (bucket + 1) % static_cast<std::uint32_t>(plan.meaning->buckets.size());
  } else {
    for (Role& role : plan.roles)
      if (!role.program.empty() && &task >= &role.program.front() && &task <= &role.program.back()) {
        role.program.push_back(task);
        return "again";
      }
  }
  return task.name;
}

std::string change_messages(Plan& plan, ServerMutant mutant, Dice& dice) {
  std::vector<Round*> rounds = rounds_of_messages(plan);
  if (rounds.empty()) return "";
  Round& round = *dice.one_of(rounds);
  if (round.all_to_all) {
    std::vector<AllToAll::Part>& parts =
        dice.coin() ? round.all_to_all->senders : round.all_to_all->receivers;
    if (mutant == ServerMutant::message_lost) {
      parts.erase(parts.begin() + dice.between(0, static_cast<int>(parts.size()) - 1));
      return "of one member of an all-to-all";
    }
    if (mutant != ServerMutant::share_moved || parts.size() < 2) return "";
    parts[0].share *= 1.5, parts[1].share *= 0.5;
    return "of an all-to-all";
  }
  if (round.pairs.empty()) return "";
  round.fractions.resize(round.pairs.size(), round.fractions.front());
  const auto pair = static_cast<std::size_t>(dice.between(0, static_cast<int>(round.pairs.size()) - 1));
  switch (mutant) {
    case ServerMutant::message_lost:
      round.pairs.erase(round.pairs.begin() + static_cast<std::ptrdiff_t>(pair));
      round.fractions.pop_back();
      break;
    case ServerMutant::message_twice:
      round.pairs.push_back(round.pairs[pair]);
      round.fractions.push_back(round.fractions[pair]);
      break;
    case ServerMutant::share_moved:
      if (round.pairs.size() < 2) return "";
      round.fractions[pair] *= 0.5, round.fractions[(pair + 1) % round.pairs.size()] *= 1.5;
      break;
    default: {  // end_moved
      const std::size_t other = (pair + 1) % round.pairs.size();
      if (dice.coin()) {
        if (round.pairs[pair].first == round.pairs[other].first ||
            round.pairs[other].first == round.pairs[pair].second)
          return "";
        round.pairs[pair].first = round.pairs[other].first;
      } else {
        if (round.pairs[pair].second == round.pairs[other].second ||
            round.pairs[other].second == round.pairs[pair].first)
          return "";
        round.pairs[pair].second = round.pairs[other].second;
      }
    }
  }
  return fmt::format("message {} of {}", pair, round.pairs.size());
}

std::string change_service(Plan& plan, ServerMutant mutant, Dice& dice) {
  Service* service = plan.service();
  if (!service || service->exchanges.empty()) return "";
  if (mutant == ServerMutant::client_images) {
    ++service
          ->clients[static_cast<std::size_t>(dice.between(0, static_cast<int>(service->clients.size()) - 1))]
          .images;
    return "of a client";
  }
  if (service->exchanges.size() < 2) return "";
  std::swap(service->exchanges[0].pull, service->exchanges[1].pull);
  return "first and second";
}

std::string change_kind(Plan& plan, Dice& dice) {
  CommMeaning& means = dice.one_of(std::vector<CommMeaning*>{&plan.meaning->communications.front(),
                                                             &plan.meaning->communications.back()})[0];
  using enum CommMeaning::Kind;
  means.kind = means.kind == push      ? collect
               : means.kind == collect ? push
               : means.kind == pull    ? hand_out
                                       : pull;
  return "of a message";
}

std::string change_servers(Plan& plan, ServerMutant mutant, Dice& dice) {
  if (plan.meaning->communications.empty()) return "";
  plan.meaning = std::make_shared<Meaning>(*plan.meaning);
  switch (mutant) {
    case ServerMutant::act_lost:
    case ServerMutant::act_twice:
    case ServerMutant::act_of_another:
      return change_act(plan, mutant, dice);
    case ServerMutant::answered_otherwise:
    case ServerMutant::client_images:
      return change_service(plan, mutant, dice);
    case ServerMutant::kind_changed:
      return change_kind(plan, dice);
    default:
      return change_messages(plan, mutant, dice);
  }
}

}  // namespace

TEST_CASE("proof: of 200 plans of parameter servers with a mistake, at least 95 of 100 are refused") {
  constexpr int wanted = 200, kinds_of_mutants = plan_mutants + server_mutants;
  int made = 0, refused = 0;
  std::map<int, int> made_of, refused_of;
  std::string let_through;
  RecordedTexts refusals(CONVOY_SOURCE, "proof-of-servers");
  for (unsigned seed = 1; made < wanted; ++seed) {
    Dice dice(seed + 70'000);
    const ServerExperiment of(dice);
    const lab::Experiment it(of.model, of.cluster, of.strategy, of.batch);
    Plan plan = plan_with_meaning(it);
    const double images = images_asked_for(it, plan);
    std::vector<int> kinds(kinds_of_mutants);
    std::iota(kinds.begin(), kinds.end(), 0);
    std::stable_sort(kinds.begin(), kinds.end(), [&](int a, int b) { return made_of[a] < made_of[b]; });
    std::string what;
    int kind = 0;
    for (std::size_t i = 0; i < kinds.size() && what.empty(); ++i) {
      kind = kinds[i];
      what = kind < plan_mutants ? change(plan, it.graph(), static_cast<PlanMutant>(kind), dice)
                                 : change_servers(plan, static_cast<ServerMutant>(kind - plan_mutants), dice);
    }
    if (what.empty()) continue;
    ++made, ++made_of[kind];
    const Proof proof = prove_plan(plan, it.report(), it.graph(), it.machine(), images);
    CAPTURE(seed);
    CAPTURE(what);
    if (proof.outcome != Proof::Outcome::proved) {
      refusals.add(fmt::format("{}, {}", seed, what), proof.text);
      ++refused, ++refused_of[kind];
      continue;
    }
    let_through += fmt::format("seed {}, kind {}, {}: {}\n", seed, kind, what, of.strategy);
  }
  MESSAGE(refused << " of " << made << " mutants refused; let through:\n" << let_through);
  CHECK_MESSAGE(100 * refused >= 95 * made, let_through);
  refusals.check();
  for (int kind = 0; kind < server_mutants; ++kind) CHECK_MESSAGE(refused_of[plan_mutants + kind] > 0, kind);
}

TEST_CASE("proof: random parameter servers, in step or not, with sums in nodes and compression") {
  for (unsigned seed = 1; seed <= 120; ++seed) {
    Dice dice(seed + 60'000);
    const ServerExperiment of(dice);
    CAPTURE(seed);
    CAPTURE(of.model);
    CAPTURE(of.cluster);
    CAPTURE(of.strategy);
    const lab::Experiment it(of.model, of.cluster, of.strategy, of.batch);
    const Proof proof = proof_of(it, plan_with_meaning(it));
    CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
  }
}

TEST_CASE("proof: 1,024 workers with 32 servers") {
  for (const std::string more : {"sharding: even", "sharding: tensor, mode: async"}) {
    const lab::Experiment it(
        "{name: net, input: [3, 8, 8], layers: [{name: conv, kind: conv2d, out_channels: 8, kernel: 3}, "
        "{name: "
        "flat, kind: flatten}, {name: fc, kind: linear, out_features: 10}]}",
        star(1024, "10GB/s", "1us"),
        "{kind: data_parallel, sync: parameter_server, servers: 32, " + more + "}", 4);
    const Proof proof = proof_of(it, plan_with_meaning(it));
    CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
  }
}
