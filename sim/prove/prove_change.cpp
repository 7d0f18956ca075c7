// SPDX-License-Identifier: MIT
#include "sim/prove/prove_change.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "sim/prove/happens_before.h"

namespace convoy::inline prove {
namespace {

std::set<EndpointId> devices_of(const Plan& plan) {
  std::set<EndpointId> devices;
  for (const Role& role : plan.roles) devices.insert(role.members.begin(), role.members.end());
  return devices;
}

/// Whether each device updates every layer that has parameters, whole.
bool has_whole_states(const Plan& plan, const TrainingGraph& graph) {
  if (!plan.meaning || !plan.meaning->positions.empty()) return false;
  for (const BucketMeaning& bucket : plan.meaning->buckets)
    if (bucket.zero > 0) return false;
  std::set<std::uint32_t> layers;
  for (const Parameter& parameter : graph.parameters) layers.insert(parameter.layer);
  for (const Role& role : plan.roles) {
    std::set<std::uint32_t> updated;
    for (const Task& task : role.program)
      for (const PlanOp& op : task.ops)
        if (const OpMeaning* means = meaning_in_graph(*plan.meaning, op))
          if (const Operation& operation = graph.operations[means->operation];
              operation.phase == Phase::update)
            updated.insert(operation.layer);
    if (updated != layers) return false;
  }
  return true;
}

/// After the messages of a communication: who has got what `has` had, whole.
void spread(const Plan& traffic, const Communication& comm, const Machine& machine,
            std::set<EndpointId>& has) {
  const Pattern& pattern = traffic.patterns[comm.pattern];
  for (const std::vector<EndpointId>& group : pattern.groups)
    for (const Round& round : pattern.rounds) {
      std::set<EndpointId> got = has;
      round.for_each_message([&](std::uint32_t from, std::uint32_t to, double fraction) {
        if (!has.contains(group[from]))
          throw Refuted(fmt::format("{} sends {} states that it does not have yet",
                                    machine.endpoint_name(group[from]), machine.endpoint_name(group[to])));
        if (fraction > 1 - 1e-9) got.insert(group[to]);
      });
      has = std::move(got);
    }
}

std::string check_change(const RunPhase& before, const RunPhase& after, const TrainingGraph& graph,
                         const Machine& machine) {
  const std::set<EndpointId> old = devices_of(before.plan), now = devices_of(after.plan);
  std::set<EndpointId> has = old;
  const Plan& traffic = after.change.traffic;
  if (old == now) return "";
  if (traffic.roles.empty()) return "states come from a checkpoint";
  if (!has_whole_states(before.plan, graph) || !has_whole_states(after.plan, graph))
    throw NotCovered("devices keep parts of the network, and which part comes from whom is not said");
  const StateBytes resident = graph.resident_bytes();
  const double state_bytes = resident[static_cast<std::size_t>(MemoryClass::weights)] +
                             resident[static_cast<std::size_t>(MemoryClass::optimizer)];
  const std::set<EndpointId> takes_part = devices_of(traffic);
  for (const Communication& comm : traffic.communications)
    if (comm.bytes >= state_bytes * (1 - 1e-9)) spread(traffic, comm, machine, has);
  for (const EndpointId e : now)
    if (!has.contains(e) || (!old.contains(e) && !takes_part.contains(e)))
      throw Refuted(
          fmt::format("{} begins at step {}, and no message brings it the {} bytes of parameters "
                      "and optimizer's state",
                      machine.endpoint_name(e), after.at_step, state_bytes));
  return "";
}

}  // namespace

Proof prove_change(const RunPhase& before, const RunPhase& after, const TrainingGraph& graph,
                   const Machine& machine) {
  Proof proof;
  for (const Role& role : after.change.traffic.roles) proof.tasks += role.program.size();
  try {
    proof.allowed = check_change(before, after, graph, machine);
  } catch (const Refuted& refuted) {
    proof.outcome = Proof::Outcome::refuted;
    proof.text = refuted.what();
  } catch (const NotCovered& not_covered) {
    proof.outcome = Proof::Outcome::not_covered;
    proof.text = not_covered.what();
  }
  return proof;
}

}  // namespace convoy::prove
