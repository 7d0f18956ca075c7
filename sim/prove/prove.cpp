// SPDX-License-Identifier: MIT
#include "sim/prove/prove.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <variant>

#include "sim/plan/validate.h"
#include "sim/prove/happens_before.h"
#include "sim/prove/prove_gradients.h"
#include "sim/prove/prove_memory.h"
#include "sim/prove/prove_parts.h"
#include "sim/prove/prove_results.h"
#include "sim/prove/prove_rounds.h"
#include "sim/prove/prove_servers.h"

namespace convoy::inline prove {
namespace {

/// What no engine would begin: sizes and times that are no numbers, messages from a device to itself.
void check_form(const Plan& plan, const Machine& machine) {
  try {
    validate(plan, machine);
  } catch (const std::logic_error& malformed) {
    throw Refuted(malformed.what());
  }
}

void check_all(const Plan& plan, const StrategyReport& report, const TrainingGraph& graph,
               const Machine& machine, double images) {
  if (!plan.meaning) throw NotCovered("the strategy does not say yet what its tasks read and write");
  if (const double own = images_of_workers(plan); std::abs(own - images) > 1e-9 * images)
    throw Refuted(fmt::format("a step has {} images, and the global batch has {}", own, images));
  const HappensBefore order(plan);
  if (!plan.meaning->positions.empty()) {
    prove_parts(plan, report, graph, machine, order);
    return;
  }
  RoundRules rounds(plan, machine);
  prove_results(plan, graph, machine, order, rounds);
  if (has_servers(plan))
    prove_servers(plan, graph, machine, order, rounds);
  else
    prove_gradients(plan, report, graph, machine, order, rounds);
  prove_memory(plan, graph, machine, order);
}

/// What batch normalizations of the plan take mean and variance of.
struct Normalized {
  double images = 0;      ///< the fewest; 0: the whole batch, or there is none
  bool of_parts = false;  ///< of rows and columns of images, at times
};
Normalized normalized(const Plan& plan, const TrainingGraph& graph) {
  double least = plan.images;
  Normalized result;
  const auto count = [](const IndexRanges& ranges) {
    double sum = 0;
    for (const IndexRange& range : *ranges) sum += static_cast<double>(range.end - range.begin);
    return sum;
  };
  for (const OpMeaning& means : plan.meaning->operations) {
    if (means.operation == no_meaning || means.images.count == 0) continue;
    const auto* norm =
        std::get_if<Normalization>(&graph.model.layers[graph.operations[means.operation].layer].kind);
    if (!norm || norm->over != Normalization::Over::batch) continue;
    least = std::min(least, means.images.count);
    if (means.layout == no_meaning) continue;
    for (const Region& region : plan.meaning->layouts[means.layout]) {
      if (region.images && count(region.images) > 0) least = std::min(least, count(region.images));
      result.of_parts = result.of_parts || region.rows || region.columns;
    }
  }
  result.images = least < plan.images ? least : 0;
  return result;
}

/// How gradients are made smaller, each way once.
template <class Add>
void add_codings(const Plan& plan, Add add) {
  using Coding = BucketMeaning::Coding;
  std::vector<Coding> codings;
  for (const BucketMeaning& bucket : plan.meaning->buckets) codings.push_back(bucket.coding);
  const auto has = [&](Coding coding) { return std::count(codings.begin(), codings.end(), coding) > 0; };
  if (has(Coding::largest)) add("all but the largest gradients kept for later steps");
  if (has(Coding::half) || has(Coding::levels)) add("gradients rounded on the way");
  if (has(Coding::signs)) add("signs of gradients, what they leave out kept for later steps");
  if (has(Coding::votes)) add("the majority of signs in place of gradients");
  if (has(Coding::low_rank)) add("gradients of low rank, what that leaves out kept for later steps");
}

/// What rules let pass because it is the strategy's purpose.
std::string allowed_by(const Plan& plan, const StrategyReport& report, const TrainingGraph& graph) {
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  if (const std::string service = allowed_by_service(plan); !service.empty()) add(service);
  std::uint32_t versions = 1;
  for (const PipelineStage& stage : report.stages) versions = std::max(versions, stage.weight_versions);
  if (plan.endless() && versions > 1)
    add(fmt::format("gradients up to {} update{} old", versions - 1, versions == 2 ? "" : "s"));
  const Normalized norm = normalized(plan, graph);
  if (const double images = norm.images; images > 0)
    add(fmt::format("batch normalization over {} image{} at a time", images, images == 1 ? "" : "s"));
  if (norm.of_parts) add("batch normalization over each device's rows and columns");
  if (std::any_of(plan.meaning->communications.begin(), plan.meaning->communications.end(),
                  [](const CommMeaning& of) { return of.kind == CommMeaning::Kind::exchange; }))
    add(has_peers(plan) ? "parameters averaged with one neighbour at a time, at whatever step that is"
                        : "parameters averaged with neighbours alone");
  else if (!plan.meaning->own_images.empty() && plan.steps > 1)
    add(fmt::format("parameters averaged after every {} steps", plan.steps));
  add_codings(plan, add);
  return text;
}

}  // namespace

Proof prove_plan(const Plan& plan, const StrategyReport& report, const TrainingGraph& graph,
                 const Machine& machine, double images) {
  Proof proof;
  for (const Role& role : plan.roles) proof.tasks += role.program.size();
  try {
    check_form(plan, machine);
    check_all(plan, report, graph, machine, images);
    proof.allowed = allowed_by(plan, report, graph);
    proof.is_averaged = std::any_of(
        plan.meaning->communications.begin(), plan.meaning->communications.end(), [](const CommMeaning& of) {
          return of.kind == CommMeaning::Kind::average || of.kind == CommMeaning::Kind::exchange;
        });
  } catch (const Refuted& refuted) {
    proof.outcome = Proof::Outcome::refuted;
    proof.text = refuted.what();
  } catch (const NotCovered& not_covered) {
    proof.outcome = Proof::Outcome::not_covered;
    proof.text = not_covered.what();
  }
  return proof;
}

std::size_t devices_used(const Plan& plan, const Machine& machine) {
  // Those that share the work of layers, some of which may get none.
  if (plan.meaning && is_placed(*plan.meaning)) return plan.meaning->has_images.size();
  std::size_t devices = 0;
  for (const Role& role : plan.roles)
    if (role.members.front() < machine.devices.size()) devices += role.members.size();
  return devices;
}

}  // namespace convoy::prove
