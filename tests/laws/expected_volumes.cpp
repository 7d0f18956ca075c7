// SPDX-License-Identifier: MIT
#include "tests/laws/expected_volumes.h"

#include <algorithm>
#include <cmath>

#include "models/low_rank_shape.h"

namespace convoy::lab {
namespace {

double parameter_bytes(const TrainingGraph& graph) {
  double bytes = 0;
  for (const Layer& layer : graph.model.layers)
    bytes += element_bytes(graph.options.precision) * static_cast<double>(layer.parameter_elements());
  return bytes;
}

/// Whether no message between two devices stays in one place, where it costs nothing and does not count.
bool apart(const Machine& machine) {
  Route route;
  for (EndpointId from = 0; from < machine.devices.size(); ++from)
    for (EndpointId to = 0; to < machine.devices.size(); ++to)
      if (machine.router->route(from, to, route); from != to && route.links.empty()) return false;
  return true;
}

}  // namespace

double placed_replicas(const Trial& trial) { return trial.machine.devices.size() % 2 == 0 ? 2 : 1; }

std::optional<double> all_reduced(const Trial& trial) {
  if (!apart(trial.machine)) return std::nullopt;
  const auto n = static_cast<double>(trial.machine.devices.size());
  return 2 * (n - 1) * parameter_bytes(trial.graph);
}

std::optional<double> half_reduced(const Trial& trial) {
  const std::optional<double> bytes = all_reduced(trial);
  return bytes ? std::optional(*bytes / 2) : std::nullopt;
}

std::optional<double> hundredth_gathered(const Trial& trial) {
  if (!apart(trial.machine)) return std::nullopt;
  const auto n = static_cast<double>(trial.machine.devices.size());
  const double element = element_bytes(trial.graph.options.precision), index = 4;
  const auto gradients = static_cast<std::int64_t>(parameter_bytes(trial.graph) / element);
  return n * (n - 1) * (element + index) * static_cast<double>((gradients + 99) / 100);
}

std::optional<double> codes_gathered(const Trial& trial) {
  if (!apart(trial.machine)) return std::nullopt;
  const auto n = static_cast<double>(trial.machine.devices.size());
  const double gradients = parameter_bytes(trial.graph) / element_bytes(trial.graph.options.precision);
  return gradients == 0 ? 0 : n * (n - 1) * (std::ceil(gradients / 2) + 8);
}

std::optional<double> signs_gathered(const Trial& trial) {
  if (!apart(trial.machine)) return std::nullopt;
  const auto n = static_cast<double>(trial.machine.devices.size());
  const double gradients = parameter_bytes(trial.graph) / element_bytes(trial.graph.options.precision);
  return gradients == 0 ? 0 : n * (n - 1) * (std::ceil(gradients / 8) + 4);
}

std::optional<double> factors_reduced_of(const Trial& trial, int rank) {
  if (!apart(trial.machine)) return std::nullopt;
  const auto n = static_cast<double>(trial.machine.devices.size());
  double elements = 0;
  for (const Parameter& parameter : trial.graph.parameters) {
    const auto all = static_cast<double>(parameter.elements);
    const auto shape = low_rank_shape(trial.graph.model, parameter, all, rank);
    elements += shape ? (shape->rows + shape->columns) * shape->rank : all;
  }
  return 2 * (n - 1) * elements * element_bytes(trial.graph.options.precision);
}

std::optional<double> averaged(const Trial& trial) {
  if (!apart(trial.machine)) return std::nullopt;
  const auto n = static_cast<double>(trial.machine.devices.size());
  const double elements = parameter_bytes(trial.graph) / element_bytes(trial.graph.options.precision);
  return 2 * (n - 1) * 4 * elements / trial.plan.steps;
}

std::optional<double> sent_to_one(const Trial& trial) {
  if (!apart(trial.machine)) return std::nullopt;
  const auto n = static_cast<double>(trial.machine.devices.size());
  const double elements = parameter_bytes(trial.graph) / element_bytes(trial.graph.options.precision);
  return n > 1 ? n * 4 * elements : 0;
}

std::optional<double> exchanged_with_one(const Trial& trial) {
  const std::optional<double> there = sent_to_one(trial);
  return there ? std::optional(2 * *there) : std::nullopt;
}

std::optional<double> sent_between_hosts(const Trial& trial) {
  if (!apart(trial.machine)) return std::nullopt;
  const auto hosts = static_cast<double>(trial.machine.hosts.size());
  const double in_host = static_cast<double>(trial.machine.devices.size()) / hosts;
  const double bytes = parameter_bytes(trial.graph);
  const double elements = bytes / element_bytes(trial.graph.options.precision);
  return hosts * 2 * (in_host - 1) * bytes + (hosts > 1 ? hosts * in_host * 4 * elements : 0);
}

std::optional<double> sharded_times(const Trial& trial, int times) {
  if (!apart(trial.machine) || trial.graph.options.recompute != Recomputation::none) return std::nullopt;
  const auto n = static_cast<double>(trial.machine.devices.size());
  return times * (n - 1) * parameter_bytes(trial.graph);
}

bool dedicated(const Machine& machine) { return machine.hosts.back().device_count == 0; }

std::optional<double> pushed_and_pulled(const Trial& trial) {
  const auto n = static_cast<double>(trial.machine.devices.size());
  if (dedicated(trial.machine)) return 2 * n * parameter_bytes(trial.graph);
  if (trial.plan.service() || trial.machine.devices.size() > trial.machine.hosts.size()) return std::nullopt;
  return 2 * (n - 1) * parameter_bytes(trial.graph);
}

std::optional<double> connectivity_of_partition(const Trial& trial) {
  if (!apart(trial.machine)) return std::nullopt;
  return trial.report.partition ? trial.report.partition->connectivity_bytes : 0;
}

std::optional<double> filters_and_slices(const Trial& trial) {
  if (!apart(trial.machine)) return std::nullopt;
  const double element = element_bytes(trial.graph.options.precision);
  double bytes = 0;
  for (const Operation& op : trial.graph.operations) {
    const Layer& layer = trial.graph.model.layers[op.layer];
    if (op.phase != Phase::forward || op.work.kind != KernelKind::convolution) continue;
    const bool has_data_gradient =
        std::any_of(trial.graph.operations.begin(), trial.graph.operations.end(), [&](const Operation& o) {
          return o.layer == op.layer && o.phase == Phase::data_gradient && o.work.kind == op.work.kind;
        });
    double inputs = 0, filters = 0;
    for (const LayerIndex input : layer.inputs)
      inputs += element *
                static_cast<double>(elements(
                    input == image_input ? trial.graph.model.input
                                         : trial.graph.model.layers[static_cast<std::size_t>(input)].output));
    for (const ParameterTensor& tensor : layer.parameters)
      if (tensor.role == ParameterRole::weight) filters += element * static_cast<double>(tensor.elements);
    const double outputs = element * static_cast<double>(elements(layer.output));
    for (const Role& role : trial.plan.roles)
      for (const Task& task : role.program)
        for (const PlanOp& done : task.ops) {
          const bool is_it = done.name == op.name || done.name.starts_with(op.name + " #");
          if (!is_it || role.name == "master" || done.work.flops_per_image == 0) continue;
          const double images = done.images;
          const double share = done.work.flops_per_image / op.work.flops_per_image;
          bytes += static_cast<double>(role.members.size()) *
                   (images * inputs * (has_data_gradient ? 2 : 1) + 2 * share * (filters + images * outputs));
        }
  }
  return bytes;
}

std::optional<double> connectivity_and_sums(const Trial& trial) {
  const std::optional<double> bytes = connectivity_of_partition(trial);
  return bytes ? std::optional(*bytes + 2 * (placed_replicas(trial) - 1) * parameter_bytes(trial.graph))
               : std::nullopt;
}

std::optional<double> half_pushed_and_pulled(const Trial& trial) {
  const std::optional<double> bytes = pushed_and_pulled(trial);
  return bytes ? std::optional(*bytes * 3 / 4) : std::nullopt;
}

}  // namespace convoy::lab
