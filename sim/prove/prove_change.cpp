// SPDX-License-Identifier: MIT
#include "sim/prove/prove_change.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "sim/plan/held_states.h"
#include "sim/prove/happens_before.h"

namespace convoy::inline prove {
namespace {

std::set<EndpointId> devices_of(const Plan& plan) {
  std::set<EndpointId> devices;
  for (const Role& role : plan.roles) devices.insert(role.members.begin(), role.members.end());
  return devices;
}

class ChangeProver {
 public:
  ChangeProver(const RunPhase& before, const RunPhase& after, const TrainingGraph& graph,
               const Machine& machine)
      : after_(after),
        machine_(machine),
        elements_(graph),
        before_held_(held_states(before.plan, graph, elements_)),
        after_held_(held_states(after.plan, graph, elements_)) {}

  void check() {
    for (std::size_t i = 0; i < after_.change.moves.size();) i = follow_round(i);
    for (EndpointId device = 0; device < after_.devices; ++device) {
      const KeptValues needed = after_held_.of(device), has = had_by(device);
      const KeptValues missing = without(needed, has);
      if (elements_.bytes(missing) > 0)
        throw Refuted(fmt::format("{} begins at step {}, and no message brings it {}", name(device),
                                  after_.at_step, text_of(missing)));
    }
  }

 private:
  using Pair = std::pair<EndpointId, EndpointId>;

  /// @param first move of a round  @return the first of the next one
  std::size_t follow_round(std::size_t first) {
    const std::vector<StateMove>& moves = after_.change.moves;
    const std::size_t round = moves[first].round;
    const std::map<Pair, double> bytes = bytes_of_round(round);
    std::vector<std::pair<EndpointId, KeptValues>> got;
    std::size_t i = first;
    for (; i < moves.size() && moves[i].round == round; ++i) {
      const StateMove& move = moves[i];
      check_message(move, bytes);
      const KeptValues lacks = without(move.values, had_by(move.from));
      if (!lacks.parameters.empty() || !lacks.states.empty())
        throw Refuted(fmt::format("{} is to send {} {}, which it does not have yet", name(move.from),
                                  name(move.to), text_of(lacks)));
      got.emplace_back(move.to, move.values);
    }
    for (const auto& [device, values] : got) {
      KeptValues& has = has_.try_emplace(device, had_by(device)).first->second;
      has.parameters = united(std::move(has.parameters), values.parameters);
      has.states = united(std::move(has.states), values.states);
    }
    return i;
  }

  void check_message(const StateMove& move, const std::map<Pair, double>& bytes) const {
    constexpr double less_than_a_value = 0.5;
    const auto sent = bytes.find({move.from, move.to});
    const double needed = elements_.bytes(move.values);
    if (sent == bytes.end())
      throw Refuted(fmt::format("{} sends {} nothing, and is to send it {}", name(move.from), name(move.to),
                                text_of(move.values)));
    if (std::abs(sent->second - needed) > less_than_a_value)
      throw Refuted(fmt::format("{} sends {} {} bytes, and {} has {}", name(move.from), name(move.to),
                                sent->second, text_of(move.values), needed));
  }

  /// Of those who take part.
  std::map<Pair, double> bytes_of_round(std::size_t round) const {
    const Plan& traffic = after_.change.traffic;
    const std::set<EndpointId> takes_part = devices_of(traffic);
    std::map<Pair, double> bytes;
    for (const Communication& comm : traffic.communications) {
      const Pattern& pattern = traffic.patterns[comm.pattern];
      if (round >= pattern.rounds.size()) continue;
      for (const std::vector<EndpointId>& group : pattern.groups)
        pattern.rounds[round].for_each_message([&](std::uint32_t from, std::uint32_t to, double fraction) {
          if (takes_part.contains(group[from]) && takes_part.contains(group[to]))
            bytes[{group[from], group[to]}] += fraction * comm.bytes;
        });
    }
    return bytes;
  }

  KeptValues had_by(EndpointId device) const {
    const auto found = has_.find(device);
    return found != has_.end() ? found->second : before_held_.of(device);
  }

  static KeptValues without(const KeptValues& a, const KeptValues& b) {
    return {difference(a.parameters, b.parameters), difference(a.states, b.states)};
  }

  std::string name(EndpointId device) const { return machine_.endpoint_name(device); }

  /// "64 parameters and the optimizer's states of 64, the first of conv1"
  std::string text_of(const KeptValues& values) const {
    const IndexSet& first = values.parameters.empty() ? values.states : values.parameters;
    return fmt::format("{} parameters and the optimizer's states of {}, the first of {}",
                       count(values.parameters), count(values.states),
                       elements_.layer_name(first.front().begin));
  }

  const RunPhase& after_;
  const Machine& machine_;
  const ParameterElements elements_;
  const HeldStates before_held_, after_held_;
  std::map<EndpointId, KeptValues> has_;  ///< of those who have got something
};

std::string check_change(const RunPhase& before, const RunPhase& after, const TrainingGraph& graph,
                         const Machine& machine) {
  if (after.change.reads_checkpoint) return "states come from a checkpoint";
  if (!before.plan.meaning || !after.plan.meaning)
    throw NotCovered("the strategy does not say yet what its tasks read and write");
  ChangeProver(before, after, graph, machine).check();
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
