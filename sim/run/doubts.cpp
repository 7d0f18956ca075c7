// SPDX-License-Identifier: MIT
#include "sim/run/doubts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/base/data_path.h"
#include "sim/base/names.h"
#include "sim/base/yaml_map.h"
#include "sim/collectives/table.h"
#include "sim/costs/residuals.h"
#include "sim/costs/software_evidence.h"
#include "sim/page/text.h"
#include "sim/plan/images_met.h"
#include "sim/replay/input_queue.h"
#include "sim/replay/replay.h"
#include "sim/run/compute_spreads.h"
#include "sim/run/prepared_run.h"
#include "sim/run/what_if.h"
#include "topologies/typical_efficiency.h"

namespace convoy::inline runs {
namespace {

/// A path's step: quoted where it has dots.
std::string step_of_path(const std::string& name) {
  return name.find('.') == std::string::npos ? name : fmt::format("\"{}\"", name);
}

const HostType& first_host(const PreparedRun& run) {
  return run.machine.host_types[run.machine.hosts.front().type];
}

/// The server of the first host that issues operations and does not say how fast.
const HostType& first_untold_host(const PreparedRun& run) {
  for (const Host& host : run.machine.hosts)
    if (const HostType& type = run.machine.host_types[host.type];
        host.device_count > 0 && type.issue_factor <= 0)
      return type;
  return first_host(run);
}

/// "fitted to 586 published rows of v100-sxm2-16gb", the least known of a cluster's kinds.
Source source_of_kernels(const PreparedRun& run, double spread) {
  if (run.cost.is_anchored())
    return {
        Grade::given, spread,
        "training.anchor: by as much measurements of one set-up differ, and the more the less alike their "
        "batches are"};
  const Computing of = computing_of(run);
  const std::vector<DeviceType>& types = of.types;
  const std::size_t kind = step_kind(of, images_of_device(run));
  const DeviceType& type =
      *std::max_element(types.begin(), types.end(), [&](const DeviceType& a, const DeviceType& b) {
        return parameter_spread(of, a, kind) < parameter_spread(of, b, kind);
      });
  const TrainingOptions& options = run.graph->options;
  std::string text = !device_is_seen(type) ? unseen_device_text(type)
                     : type.evidence_left_out_error > 0
                         ? fmt::format("calibrated to {} rows of {}", type.evidence_rows, type.name)
                         : fmt::format("fitted to {} published rows of {}", type.evidence_rows, type.name);
  const bool unseen = unseen_spread(of, type) > 0, typical = spread_of_software(of) > 0;
  const bool other_networks = device_is_seen(type) && !networks_are_seen(type, network_kind(kind));
  const bool other_layers = has_unmeasured_layers(of, type);
  const bool other_convolutions = spread_of_convolutions(of, type, kind) > 0;
  if (other_layers) text += fmt::format("; none of layers of kind {}", kind_name(unmeasured_layer(of)->kind));
  if (other_networks) text += "; none of networks like this one in this precision";
  if (other_convolutions)
    text += fmt::format("; no grouped convolutions with {} on any GPU", to_string(options.framework));
  if (unseen)
    text += fmt::format("; none in {} of {}", to_string(options.precision), to_string(options.framework));
  if (typical)
    text += fmt::format("; none of {}, {}", to_string(options.framework), to_string(options.execution));
  const bool other_framework = spread_of_generation(of, images_of_device(run)) > 0;
  if (other_framework)
    text += fmt::format("; none with {} on a GPU of its generation", to_string(options.framework));
  const bool known = device_is_seen(type) && !unseen && !typical && !other_networks && !other_layers &&
                     !other_convolutions && !other_framework;
  const Grade grade = known ? Grade::fitted : states_no_efficiency(type) ? Grade::unstated : Grade::assumed;
  return {grade, spread, std::move(text)};
}

/// Images/s of the first device alone.
std::string value_of_kernels(const PreparedRun& run) {
  const double images = images_of_device(run);
  const double step_s = step_time_s(*run.graph, images, run.cost, run.machine, run.machine.devices.front());
  return fmt::format("{} images/s of one device", number_text(step_s > 0 ? images / step_s : 0));
}

void add_computing(const PreparedRun& run, std::vector<Doubt>& doubts) {
  const ComputeSpreads spreads = compute_spreads(run, images_of_device(run));
  const double of_kernels = std::hypot(spreads.parameters, spreads.software, spreads.steps);
  if (of_kernels > 0)
    doubts.push_back({Doubt::Moves::computing, "training.anchor", value_of_kernels(run),
                      source_of_kernels(run, of_kernels)});
  if (spreads.hosts > 0)
    doubts.push_back(
        {Doubt::Moves::issuing,
         fmt::format("cluster.servers.{}.host.issue_factor", step_of_path(first_untold_host(run).server)),
         "1",
         Source{Grade::unstated, unknown_spread(Unknown::hosts),
                "nobody says how fast its host issues operations: as the typical host"}});
}

void add_messages(const PreparedRun& run, std::vector<Doubt>& doubts) {
  const std::optional<CommKind> kind = comm_kind(run.machine);
  if (!kind) return;
  const std::string of_host =
      fmt::format("cluster.servers.{}.interconnect", step_of_path(first_host(run).server));
  doubts.push_back(
      {Doubt::Moves::messages, run.machine.hosts.size() > 1 ? "cluster.fabric" : of_host, run.transport,
       Source{Grade::fitted, comm_spread(*kind),
              fmt::format("published rows of communication by {}, each source left out of the fit in turn",
                          comm_kind_name(*kind))}});
  doubts.push_back({Doubt::Moves::several_devices, "cluster",
                    fmt::format("{} devices", run.machine.devices.size()),
                    Source{Grade::fitted, devices_spread(),
                           "what published steps of several devices are off by beyond their parts"}});
  if (run.on_ideal_network)
    doubts.push_back({Doubt::Moves::protocol, "cluster.fabric.protocol",
                      protocol_names[static_cast<std::size_t>(run.machine.transport.protocol)],
                      Source{Grade::unstated, std::nullopt, "the fabric says no protocol"}});
}

/// The step of a run on another machine, with what its strategy decided on its own.
double step_on_s(const PreparedRun& run, const WhatIf& change) {
  Machine machine = run.machine;
  apply(change, machine);
  if (change.messages == 1) return replay(run.plan, machine, run.cost, {true, run.network_model}).step_time_s;
  Plan plan = run.plan;
  for (Communication& communication : plan.communications) communication.overhead_s *= change.messages;
  for (Pattern& pattern : plan.patterns)
    for (Round& round : pattern.rounds)
      if (round.latency_s) *round.latency_s *= change.messages;
  return replay(plan, machine, run.cost, {true, run.network_model}).step_time_s;
}

/// Where `algorithm: auto` chose and did not weigh all that it weighs among fewer devices.
std::string text_of_unweighed_algorithms(const PreparedRun& run) {
  if (run.algorithms.empty() || run.algorithms_named) return {};
  std::size_t ranks = 0;
  for (const Pattern& pattern : run.plan.patterns)
    for (const std::vector<EndpointId>& group : pattern.groups) ranks = std::max(ranks, group.size());
  for (const CollectiveAlgorithm& row : collective_table())
    if (row.auto_ranks > 0 && ranks > row.auto_ranks)
      return fmt::format(
          "algorithm: auto leaves {} out among more than {} devices: algorithm: nccl or {} may be faster",
          row.name, row.auto_ranks, row.name);
  return {};
}

/// Where the device is measured, and an anchor says a multiple of what is known of it.
std::string text_of_anchor(const PreparedRun& run, const DeviceType& type) {
  constexpr double plausible = 5;
  const double scale = run.cost.scale(type);
  if (!device_is_seen(type) || (scale < plausible && scale > 1 / plausible)) return {};
  return fmt::format(
      "training.anchor is {} times what is predicted for {}: is it of one device, in images a second?",
      number_text(1 / scale), type.name);
}

/// A loader's rate `deviation` spreads from where it is, of which both ends of its interval are prepared.
struct MovedLoader {
  const PreparedRun *less = nullptr, *more = nullptr;
  double deviation = 0;
};

void put_between(const MovedLoader& loader, PreparedRun& run) {
  const double power = loader.deviation / quantile_80;
  const std::vector<double>& end = (power < 0 ? loader.less : loader.more)->plan.input->interval_s;
  std::vector<double>& interval_s = run.plan.input->interval_s;
  for (std::size_t i = 0; i < interval_s.size(); ++i)
    if (interval_s[i] > 0) interval_s[i] *= std::pow(end[i] / interval_s[i], std::abs(power));
}

double step_as_is_s(const PreparedRun& run) {
  return replay(run.plan, run.machine, run.cost, {true, run.network_model}).step_time_s;
}

}  // namespace

double loader_spread() {
  static const double spread = [] {
    const YamlNode file = load_yaml(data_path("topologies/catalog/software") + "/loaders.yaml");
    YamlMap map(file, "");
    const double hosts = map.number("hosts", 0, 10);
    map.finish();
    return hosts;
  }();
  return spread;
}

double images_of_device(const PreparedRun& run) {
  const auto devices = static_cast<std::uint32_t>(run.machine.devices.size());
  const std::vector<double> met = images_met(run.plan, devices);
  const double most = met.empty() ? 0 : *std::max_element(met.begin(), met.end());
  return most > 0 ? most : run.plan.images / std::max(1U, devices);
}

StepSpreads step_spreads(const PreparedRun& run, double of_device) {
  StepSpreads spreads{compute_spreads(run, of_device).all(), 0, 0};
  if (const std::optional<CommKind> kind = comm_kind(run.machine))
    spreads.comm = comm_spread(*kind), spreads.devices = devices_spread();
  return spreads;
}

std::vector<Doubt> doubts_of(const PreparedRun& run) {
  std::vector<Doubt> doubts;
  add_computing(run, doubts);
  add_messages(run, doubts);
  doubts.insert(doubts.end(), run.doubts.begin(), run.doubts.end());
  return doubts;
}

StepRange step_range_s(const PreparedRun& run, const Doubt& doubt) {
  const auto ends = [&](auto change_for) {
    const double factor = std::exp(quantile_80 * doubt.source.spread.value_or(0));
    return StepRange{step_on_s(run, change_for(1 / factor)), step_on_s(run, change_for(factor))};
  };
  switch (doubt.moves) {
    case Doubt::Moves::computing:  // the fit's errors are of steps, with what hosts issue
      return ends([](double factor) { return WhatIf{.compute = 1 / factor, .issue = 1 / factor}; });
    case Doubt::Moves::issuing:
      return ends([](double factor) { return WhatIf{.issue = 1 / factor}; });
    case Doubt::Moves::messages:
      return ends([](double factor) { return WhatIf{.messages = factor}; });
    case Doubt::Moves::network:
      return ends([](double factor) { return WhatIf{.network = factor}; });
    case Doubt::Moves::several_devices: {
      const double factor = std::exp(quantile_80 * doubt.source.spread.value_or(0)),
                   step_s = step_as_is_s(run);
      return {step_s / factor, step_s * factor};
    }
    case Doubt::Moves::protocol:
      return {step_as_is_s(*run.on_ideal_network), step_as_is_s(run)};
    case Doubt::Moves::loader:
    case Doubt::Moves::written:
      return {step_as_is_s(*doubt.less), step_as_is_s(*doubt.more)};
  }
  throw std::logic_error("a doubt that moves nothing");
}

StepRange step_range_s(const PreparedRun& run, const Doubt& doubt, const ReplayResult& replayed) {
  // A service draws its images one by one; else they are waited for before a step, which is the same with any.
  if (doubt.moves != Doubt::Moves::loader || run.plan.service()) return step_range_s(run, doubt);
  const double steps = run.plan.steps, own_s = (replayed.step_time_s - replayed.input_wait_s) * steps;
  return {step_with_input_s(*doubt.less->plan.input, steps, own_s) / steps,
          step_with_input_s(*doubt.more->plan.input, steps, own_s) / steps};
}

double drawn_step_s(const PreparedRun& run, const std::vector<Doubt>& doubts,
                    const std::vector<StepRange>& written, const std::vector<double>& deviations) {
  WhatIf change;
  double times = 1;  // the step
  const PreparedRun* on_network = &run;
  MovedLoader loader;
  for (std::size_t i = 0; i < doubts.size(); ++i) {
    const Doubt& doubt = doubts[i];
    const double factor = std::exp(deviations[i] * doubt.source.spread.value_or(0));
    switch (doubt.moves) {
      case Doubt::Moves::computing:
        change.compute /= factor, change.issue /= factor;
        break;
      case Doubt::Moves::issuing:
        change.issue /= factor;
        break;
      case Doubt::Moves::messages:
        change.messages *= factor;
        break;
      case Doubt::Moves::network:
        change.network *= factor;
        break;
      case Doubt::Moves::several_devices:
        times *= factor;
        break;
      case Doubt::Moves::protocol:
        if (deviations[i] <= 0) on_network = run.on_ideal_network.get();
        break;
      case Doubt::Moves::loader:
        loader = {doubt.less.get(), doubt.more.get(), deviations[i]};
        break;
      case Doubt::Moves::written:
        times *= std::pow(written[i][1] / written[i][0], deviations[i] / (2 * quantile_80));
        break;
    }
  }
  if (!loader.less) return times * step_on_s(*on_network, change);
  PreparedRun fed = *on_network;
  put_between(loader, fed);
  return times * step_on_s(fed, change);
}

std::vector<std::string> evidence_warnings(const PreparedRun& run) {
  std::vector<std::string> warnings;
  if (!run.assumed_network.empty())
    warnings.push_back(run.assumed_network + (run.on_ideal_network
                                                  ? "; the interval reaches to a protocol that costs nothing"
                                                  : ""));
  if (!run.bursts.empty()) warnings.push_back(run.bursts);
  if (std::string text = text_of_unweighed_algorithms(run); !text.empty())
    warnings.push_back(std::move(text));
  if (run.cost.is_anchored()) {
    for (const DeviceType& type : run.machine.device_types)
      if (std::string text = text_of_anchor(run, type); !text.empty()) warnings.push_back(std::move(text));
    return warnings;
  }
  const Computing of = computing_of(run);
  for (const DeviceType& type : of.types) {
    const bool unseen = unseen_spread(of, type) > 0;
    if (unseen && !type.kind->in_process)
      warnings.push_back(
          fmt::format("no published figure in half precision of a GPU without tensor cores was fitted: {}'s "
                      "kernels have single precision's shares of the peak",
                      type.name));
    if (unseen && type.kind->in_process)
      warnings.push_back(
          fmt::format("no published figure of a CPU under {} was fitted: {} has typical shares of its peak",
                      to_string(run.graph->options.framework), type.name));
    else if (std::string text = unseen_device_text(type); !text.empty())
      warnings.push_back(std::move(text));
  }
  const TrainingOptions& options = run.graph->options;
  if (spread_of_software(of) > 0)
    warnings.push_back(fmt::format(
        "no published figure of {}, {} was fitted: its kernels and its host have typical factors and times",
        to_string(options.framework), to_string(options.execution)));
  return warnings;
}

}  // namespace convoy::runs
