// SPDX-License-Identifier: MIT
#include <stdexcept>
#include <utility>

#include "sim/lowering/annotation.h"
#include "sim/lowering/server_plan.h"

namespace convoy::inline lowering {
namespace {

/// One for each kind of work and of exchange.
struct Lowering {
  const TrainingGraph& graph;
  const Machine& machine;
  const CostModel& cost;

  ReportedPlan operator()(WholeLayers& work, const GradientSync& sync) const {
    const WholeNetwork own(graph);
    if (work.stages) return plan_stages(graph, machine, cost, *work.stages, std::move(work.passes), sync);
    // Of replicas there is no stage to tell of.
    return {plan_stages(graph, machine, cost, (work.network ? *work.network : own).stages(),
                        std::move(work.passes), sync, work.network)
                .plan};
  }

  ReportedPlan operator()(WholeLayers& work, const ServerExchange& exchange) const {
    if (work.stages) throw std::logic_error("servers are for replicas of the whole network");
    const WholeNetwork own(graph);
    return {plan_servers(graph, machine, cost, (work.network ? *work.network : own).stage(), work.passes,
                         exchange)};
  }

  ReportedPlan operator()(SplitLayers& work, const GradientSync& sync) const {
    return plan_groups(graph, machine, cost, work.stages, *work.shardings, work.schedule, {sync, work.pos},
                       work.meaning);
  }

  ReportedPlan operator()(PlacedWork& work, const GradientSync& sync) const {
    return {plan_placed(std::move(work), graph, machine, cost, sync)};
  }

  template <class Work>
  ReportedPlan operator()(Work&, const ServerExchange&) const {
    throw std::logic_error("servers are for replicas of the whole network");
  }
};

}  // namespace

ReportedPlan lower(const TrainingGraph& graph, const Machine& machine, const CostModel& cost,
                   Annotation annotation) {
  ReportedPlan planned = std::visit(Lowering{graph, machine, cost}, annotation.work, annotation.exchange);
  StrategyReport& report = annotation.report;
  if (!planned.report.stages.empty()) report.stages = std::move(planned.report.stages);
  if (!planned.report.layouts.empty()) report.layouts = std::move(planned.report.layouts);
  if (planned.report.staleness) report.staleness = planned.report.staleness;
  planned.report = std::move(report);
  return planned;
}

}  // namespace convoy::lowering
