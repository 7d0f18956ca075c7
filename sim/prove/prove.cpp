// SPDX-License-Identifier: MIT
#include "sim/prove/prove.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <variant>

#include "sim/prove/happens_before.h"
#include "sim/prove/prove_gradients.h"
#include "sim/prove/prove_memory.h"
#include "sim/prove/prove_parts.h"
#include "sim/prove/prove_results.h"
#include "sim/prove/prove_rounds.h"
#include "sim/prove/prove_servers.h"

namespace convoy::inline prove {
namespace {

void check_all(const Plan& plan, const StrategyReport& report, const TrainingGraph& graph,
               const Machine& machine, double images) {
  if (!plan.meaning) throw NotCovered("the strategy does not say yet what its tasks read and write");
  if (const double own = images_of_workers(plan); std::abs(own - images) > 1e-9 * images)
    throw Refuted(fmt::format("a step has {} images, and the global batch has {}", own, images));
  const HappensBefore order(plan);
  if (!plan.meaning->positions.empty()) {
    prove_parts(plan, graph, machine, order);
    return;
  }
  RoundRules rounds(plan, machine);
  prove_results(plan, graph, machine, order, rounds);
  if (has_servers(plan))
    prove_servers(plan, graph, machine, order, rounds);
  else
    prove_gradients(plan, report, graph, machine, order, rounds);
  prove_memory(plan, graph, machine);
}

/// Of how many images a batch normalization of the plan takes mean and variance; 0: of the whole batch, or
/// there is none.
double normalized_images(const Plan& plan, const TrainingGraph& graph) {
  double least = plan.images;
  for (const OpMeaning& means : plan.meaning->operations) {
    if (means.operation == no_meaning || means.images.count == 0) continue;
    const auto* norm =
        std::get_if<Normalization>(&graph.model.layers[graph.operations[means.operation].layer].kind);
    if (norm && norm->over == Normalization::Over::batch) least = std::min(least, means.images.count);
  }
  return least < plan.images ? least : 0;
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
  if (const double images = normalized_images(plan, graph); images > 0)
    add(fmt::format("batch normalization over {} image{} at a time", images, images == 1 ? "" : "s"));
  const auto sent_as = [&](auto is) {
    return std::any_of(plan.meaning->buckets.begin(), plan.meaning->buckets.end(),
                       [&](const BucketMeaning& bucket) { return is(bucket); });
  };
  const double whole = element_bytes(graph.options.precision);
  if (sent_as([](const BucketMeaning& of) { return of.element_bytes == 0 && of.kept_share > 0; }))
    add("all but the largest gradients kept for later steps");
  if (sent_as([&](const BucketMeaning& of) {
        return of.element_bytes == 0 ? of.kept_share == 0 : of.element_bytes < whole;
      }))
    add("gradients rounded on the way");
  return text;
}

}  // namespace

Proof prove_plan(const Plan& plan, const StrategyReport& report, const TrainingGraph& graph,
                 const Machine& machine, double images) {
  Proof proof;
  for (const Role& role : plan.roles) proof.tasks += role.program.size();
  try {
    check_all(plan, report, graph, machine, images);
    proof.allowed = allowed_by(plan, report, graph);
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
  if (plan.meaning && !plan.meaning->positions.empty()) return plan.meaning->has_images.size();
  std::size_t devices = 0;
  for (const Role& role : plan.roles)
    if (role.members.front() < machine.devices.size()) devices += role.members.size();
  return devices;
}

}  // namespace convoy::prove
