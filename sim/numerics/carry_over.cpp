// SPDX-License-Identifier: MIT
#include "sim/numerics/carry_over.h"

#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "sim/numerics/missing_value.h"
#include "sim/plan/held_states.h"

namespace convoy::inline numerics {
namespace {

/// What a device has between two phases, and which values of it are there.
template <class Real>
struct Kept {
  KeptValues has;
  ParameterValues<Real> parameters;
  std::vector<OptimizerState<Real>> states;
};

template <class Real>
class CarryOver {
 public:
  explicit CarryOver(const TrainingGraph& graph) : graph_(graph), elements_(graph) {
    for (const Parameter& parameter : graph.parameters)
      first_.push_back(
          elements_.of_tensor(parameter.layer, parameter.tensor, std::nullopt, {}).front().begin);
  }

  void leave(const Plan& before, Classroom<Real>& from) {
    const HeldStates held = held_states(before, graph_, elements_);
    for (const EndpointId device : from.devices()) {
      const Member<Real>& member = from.at(device);
      copy({held.of(device), member.all_parameters(), member.states()}, held.of(device), kept(device));
    }
  }

  /// Those of a round are sent before any of them arrives.
  void send(const std::vector<StateMove>& moves) {
    for (std::size_t i = 0; i < moves.size();) {
      std::map<EndpointId, Kept<Real>> before = kept_;
      for (const std::size_t round = moves[i].round; i < moves.size() && moves[i].round == round; ++i)
        if (const auto from = before.find(moves[i].from); from != before.end())
          copy(from->second, moves[i].values, kept(moves[i].to));
    }
  }

  void read_checkpoint(const std::vector<EndpointId>& devices) {
    Kept<Real> written = nothing();
    for (const auto& [device, has] : kept_) copy(has, without(has.has, written.has), written);
    kept_.clear();
    for (const EndpointId device : devices) kept_.emplace(device, written);
  }

  void arrive(const Plan& after, const std::vector<RunningStatistics<Real>>& running, Classroom<Real>& to) {
    const HeldStates held = held_states(after, graph_, elements_);
    for (const EndpointId device : to.devices()) {
      Kept<Real>& has = kept(device);
      const KeptValues lacks = without(held.of(device), has.has);
      const IndexSet& first = lacks.parameters.empty() ? lacks.states : lacks.parameters;
      if (elements_.bytes(lacks) > 0)  // states of optimizers that keep none are nothing
        throw MissingValue(fmt::format("{}: begins a phase without values of {}", to.at(device).name(),
                                       elements_.layer_name(first.front().begin)));
      Kept<Real> begins = nothing();
      copy(has, held.of(device), begins);
      to.at(device).go_on_with(std::move(begins.parameters), std::move(begins.states), running);
    }
  }

 private:
  /// Values that are not there are zero: kernels go over whole tensors, and multiply them with zeros.
  Kept<Real> nothing() const {
    Kept<Real> none;
    for (const Parameter& parameter : graph_.parameters) {
      const auto size = static_cast<std::size_t>(parameter.elements);
      none.parameters.emplace_back(size, Real{0});
      none.states.emplace_back(graph_.options.optimizer, size);
    }
    return none;
  }

  Kept<Real>& kept(EndpointId device) { return kept_.try_emplace(device, nothing()).first->second; }

  static KeptValues without(const KeptValues& a, const KeptValues& b) {
    return {difference(a.parameters, b.parameters), difference(a.states, b.states)};
  }

  /// Copies those of the values that are there.
  void copy(const Kept<Real>& from, const KeptValues& values, Kept<Real>& to) const {
    const KeptValues found{intersection(values.parameters, from.has.parameters),
                           intersection(values.states, from.has.states)};
    for (std::size_t p = 0; p < first_.size(); ++p) {
      const IndexSet tensor{{first_[p], first_[p] + graph_.parameters[p].elements}};
      for (const IndexRange& range : intersection(found.parameters, tensor))
        for (auto e = static_cast<std::size_t>(range.begin - first_[p]);
             e < static_cast<std::size_t>(range.end - first_[p]); ++e)
          to.parameters[p][e] = from.parameters[p][e];
      for (const IndexRange& range : intersection(found.states, tensor))
        to.states[p].take(from.states[p], static_cast<std::size_t>(range.begin - first_[p]),
                          static_cast<std::size_t>(range.end - first_[p]));
    }
    to.has.parameters = united(std::move(to.has.parameters), found.parameters);
    to.has.states = united(std::move(to.has.states), found.states);
  }

  const TrainingGraph& graph_;
  const ParameterElements elements_;
  std::vector<std::int64_t> first_;  ///< by parameter: its first value
  std::map<EndpointId, Kept<Real>> kept_;
};

}  // namespace

template <class Real>
void carry_over(const TrainingGraph& graph, const Plan& before, Classroom<Real>& from, const Plan& after,
                const Reconfiguration& change, Classroom<Real>& to) {
  CarryOver<Real> values(graph);
  values.leave(before, from);
  if (change.reads_checkpoint)
    values.read_checkpoint(to.devices());
  else
    values.send(change.moves);
  values.arrive(after, from.running(), to);
}

template void carry_over(const TrainingGraph&, const Plan&, Classroom<double>&, const Plan&,
                         const Reconfiguration&, Classroom<double>&);
template void carry_over(const TrainingGraph&, const Plan&, Classroom<float>&, const Plan&,
                         const Reconfiguration&, Classroom<float>&);

}  // namespace convoy::numerics
