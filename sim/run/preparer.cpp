// SPDX-License-Identifier: MIT
#include "sim/run/preparer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/model.h"
#include "sim/base/input_file.h"
#include "sim/base/named_file.h"
#include "sim/costs/residuals.h"
#include "sim/lowering/gradient_sync.h"
#include "sim/lowering/input_feed.h"
#include "sim/numerics/data.h"
#include "sim/numerics/kernels.h"
#include "sim/run/catalogue_doubts.h"
#include "sim/run/chosen_algorithms.h"
#include "sim/run/learning.h"
#include "sim/run/search/search_spec.h"
#include "sim/run/sweep_hint.h"
#include "sim/run/training_choices.h"
#include "topologies/first_devices.h"

namespace convoy::inline runs {

namespace {

constexpr std::size_t cached_values = 64;

/// The value of `key`, computed if it is not there yet. Small: a sweep has few different models, or few
/// points for each.
template <class Cache, class Make>
const typename Cache::mapped_type& cached(Cache& cache, const typename Cache::key_type& key, Make make) {
  const auto it = cache.find(key);
  if (it != cache.end()) return it->second;
  if (cache.size() >= cached_values) cache.clear();
  return cache.emplace(key, make()).first->second;
}

/// Adds to the plans of the phases what the hosts of their devices have to prepare.
void add_input_to_phases(std::vector<RunPhase>& phases, const TrainingGraph& graph, const Machine& machine,
                         const InputSpec& spec) {
  for (RunPhase& phase : phases)
    if (phase.devices == machine.devices.size())
      add_input(phase.plan, graph, machine, spec);
    else
      add_input(phase.plan, graph, first_devices(machine, phase.devices), spec);
}

}  // namespace

const Preparer::Read<Model>& Preparer::model_read(const SharedNode& node) {
  return cached(models_, node, [&] {
    const InputRecord record;
    Model model = read_model(node);
    return Read<Model>{std::move(model), record.digests()};
  });
}

const Preparer::Read<ClusterSpec>& Preparer::cluster_read(const SharedNode& node) {
  if (const auto it = clusters_.find(node); it != clusters_.end()) return it->second;
  const InputRecord record;
  ClusterSpec cluster = read_cluster(node);
  // Hundreds of small ones, or a few whose hosts are listed one by one.
  constexpr std::size_t most_weight = 1 << 15, least_weight = 64;
  const std::size_t weight = least_weight + cluster.groups.size();
  if (clusters_weight_ + weight > most_weight) clusters_.clear(), clusters_weight_ = 0;
  clusters_weight_ += weight;
  return clusters_.emplace(node, Read<ClusterSpec>{std::move(cluster), record.digests()}).first->second;
}

const Preparer::Read<LayerProfile>& Preparer::profile_read(const std::string& file) {
  return cached(profiles_, file, [&] {
    const InputRecord record;
    LayerProfile profile = read_layer_profile(file);
    return Read<LayerProfile>{std::move(profile), record.digests()};
  });
}

Preparer::ReadStrategy Preparer::strategy_read(const SharedNode& node) {
  return strategies_.of({node}, [](const WrittenStrategy& written) {
    const InputRecord record;
    std::shared_ptr<const Strategy> strategy = read_strategy(written.node);
    return ReadStrategy{std::move(strategy), record.digests()};
  });
}

const Model& Preparer::model(const SharedNode& node) { return model_read(node).value; }
const ClusterSpec& Preparer::cluster(const SharedNode& node) { return cluster_read(node).value; }

const Preparer::PlannedGraph& Preparer::graph(const SharedNode& node, const TrainingOptions& options) {
  const std::string key = fmt::format(
      "{} {} {} {} {} {} {} {} {}", static_cast<int>(options.precision), static_cast<int>(options.optimizer),
      static_cast<int>(options.recompute), static_cast<int>(options.framework),
      static_cast<int>(options.execution), static_cast<int>(options.layout),
      static_cast<int>(options.update_mode()), options.one_process_a_host, node.fingerprint());
  return cached(graphs_, key, [&] {
    auto graph = std::make_shared<const TrainingGraph>(build_training_graph(model(node), options));
    if (graph->operations.empty())
      throw InputError(node->pos,
                       fmt::format("model: no layer of '{}' computes anything: all are views of the "
                                   "image",
                                   graph->model.name));
    return PlannedGraph{graph, std::make_shared<const WholeNetwork>(*graph)};
  });
}

/// Those of large clusters would take more memory than time.
Machine Preparer::machine(const Point& point, std::uint32_t dedicated_hosts, const Transport& transport) {
  constexpr std::uint32_t most_kept_endpoints = 1024;
  const ClusterSpec& cluster = this->cluster(point.cluster);
  const std::uint32_t endpoints = cluster.device_count() + cluster.node_count() + dedicated_hosts;
  if (endpoints > most_kept_endpoints) return build_machine(cluster, dedicated_hosts, transport);
  return *machines_.of({point.cluster, dedicated_hosts, transport, endpoints}, [&](const MachineKey&) {
    return std::make_shared<const Machine>(build_machine(cluster, dedicated_hosts, transport));
  });
}

CostModel Preparer::cost(const Training& training, const TrainingGraph& graph, const Machine& machine) {
  CostModel cost{Software(graph.options)};
  if (const std::optional<ProfileSpec>& spec = training.profile)
    add_profile(*spec, profile_read(spec->file).value, graph, machine, cost);
  if (const std::optional<Anchor>& anchor = training.anchor)
    cost.anchor(graph, static_cast<double>(anchor->batch), anchor->images_per_s,
                measured_device("training.anchor", anchor->pos, anchor->device, machine));
  return cost;
}

namespace {

/// Opens what `file` keys name (algorithms of candidates), which are read only when a candidate is.
void open_named_files(const YamlNode& node) {
  for (const YamlNode& item : node.items) open_named_files(item);
  for (const auto& [key, value] : node.entries) {
    if (key == "file" && value.kind == YamlNode::Kind::scalar) open_input(beside(value.pos, value.scalar));
    open_named_files(value);
  }
}

}  // namespace

std::string Preparer::read_parts(const Point& point) {
  const auto inputs_of = [&](const char* part, const std::string& identity, const auto& read) {
    const auto [it, first] = inputs_of_parts_.try_emplace(part + identity);
    if (first) it->second = read();
    return it->second;
  };
  std::string inputs =
      inputs_of("model", point.model.fingerprint(), [&] { return model_read(point.model).inputs; }) +
      inputs_of("cluster", point.cluster.fingerprint(), [&] { return cluster_read(point.cluster).inputs; });
  if (const std::optional<ProfileSpec>& spec = point.training.profile)
    inputs += inputs_of("profile", spec->file, [&] { return profile_read(spec->file).inputs; });
  if (point.numerics)
    inputs += inputs_of("numerics", point.model.fingerprint() + point.numerics_identity, [&] {
      const Model& model = model_read(point.model).value;
      if (const std::string reason = refuses_numerics(model); !reason.empty())
        throw InputError(point.numerics->pos, fmt::format("numerics: {}", reason));
      const InputRecord record;
      load_data(point.numerics->data, model.input, elements(model.layers.back().output),
                point.numerics->seed);
      return record.digests();
    });
  inputs += inputs_of("strategy", point.strategy.fingerprint(), [&] {
    if (!is_search(point.strategy)) return strategy_read(point.strategy).inputs;
    const InputRecord record;
    open_named_files(point.strategy);
    return record.digests();
  });
  return inputs;
}

PreparedRun Preparer::prepare(std::size_t index, const YamlNode* instead, Detail detail) {
  return hinting_at_sweep(*experiment_, index, [&] { return prepare(point(index), instead, {}, detail); });
}

PreparedRun Preparer::prepare(const Point& point, const YamlNode* instead, const WhatIf& change,
                              Detail detail) {
  const SpokenProtocol spoken = cluster(point.cluster).protocol();
  PreparedRun run = prepare_over(spoken.protocol, point, instead, change, detail);
  if (detail == Detail::step) return run;
  add_doubts(point, instead, change, run);
  if (run.machine.hosts.size() > 1) run.bursts = burst_text(cluster(point.cluster));
  if (!spoken.assumed() || run.machine.hosts.size() < 2) return run;
  run.assumed_network = assumption_text(spoken);
  if (spoken.source.grade == Grade::unstated)
    run.on_ideal_network = std::make_shared<const PreparedRun>(
        prepare_over(Protocol::ideal, point, instead, change, Detail::step));
  return run;
}

PreparedRun Preparer::prepare_on(const Point& point, const std::vector<EndpointId>& devices) {
  WhatIf change;
  change.only = devices;
  return prepare_over(cluster(point.cluster).protocol().protocol, point, nullptr, change, Detail::step);
}

Machine Preparer::machine_of(const Point& point) {
  const std::shared_ptr<const Strategy> strategy = strategy_read(point.strategy).value;
  const ClusterSpec& spec = cluster(point.cluster);
  return machine(point, strategy->dedicated_hosts(spec.node_count()),
                 transport_of(*strategy, spec, point.training, spec.protocol().protocol));
}

void Preparer::add_doubts(const Point& point, const YamlNode* instead, const WhatIf& change,
                          PreparedRun& run) {
  if (run.machine.hosts.size() > 1)
    if (std::optional<Doubt> doubt = doubt_of_bandwidth(cluster(point.cluster)))
      run.doubts.push_back(std::move(*doubt));
  const auto prepared = [&](const Point& other) {
    return std::make_shared<const PreparedRun>(
        prepare_over(cluster(other.cluster).protocol().protocol, other, instead, change, Detail::step));
  };
  if (std::optional<Doubt> doubt = doubt_of_loader(point.training.input); doubt && run.plan.input) {
    const auto with_rate = [&](double factor) {
      InputSpec input = point.training.input;
      input.library.core_images_per_s *= factor;
      input.library.image_overhead_s /= factor;  // the same share of a core's time
      auto other = std::make_shared<PreparedRun>(run);
      other->doubts.clear();
      other->plan.input = feed_of(run.plan, *run.graph, run.machine, input);
      return other;
    };
    const double factor = std::exp(quantile_80 * *doubt->source.spread);
    doubt->less = with_rate(1 / factor);
    doubt->more = with_rate(factor);
    run.doubts.push_back(std::move(*doubt));
  }
  for (const WrittenSpread& written : point.spreads) {
    Doubt doubt{Doubt::Moves::written, written.path, written.value,
                Source{Grade::given, written.spread, "the experiment"}};
    try {
      doubt.less = prepared(*written.less);
      doubt.more = prepared(*written.more);
    } catch (const InputError& error) {
      throw InputError(written.pos,
                       fmt::format("spread.{}: the experiment cannot be run with so much less or more "
                                   "of it: {}",
                                   written.path, error.what()));
    }
    run.doubts.push_back(std::move(doubt));
  }
}

PreparedRun Preparer::prepare_over(Protocol protocol, const Point& point, const YamlNode* instead,
                                   const WhatIf& change, Detail detail) {
  const std::shared_ptr<const Strategy> strategy =
      instead ? read_strategy(*instead) : strategy_read(point.strategy).value;
  check_recomputation(point.training, *strategy);
  const ClusterSpec& cluster = this->cluster(point.cluster);
  const Transport transport = transport_of(*strategy, cluster, point.training, protocol);
  Machine machine = this->machine(point, strategy->dedicated_hosts(cluster.node_count()), transport);
  const TrainingOptions options = resolve_software(point.training, machine);
  const PlannedGraph planned = this->graph(point.model, options);
  std::shared_ptr<const TrainingGraph> graph = planned.graph;
  for (DeviceType& type : machine.device_types)
    if (type.framework_reserves) type.reserved_bytes = framework_memory(options.framework).reserved_bytes;
  CostModel cost = this->cost(point.training, *graph, machine);
  apply(change, machine);
  const NetworkModel network_model = this->network_model();
  if (network_model == NetworkModel::simgrid) machine.network_model += ", SimGrid's CM02";
  const bool meaning = meaning_ || point.numerics;
  const StrategyInput input{*graph, machine, cost, point.training.batch, meaning, planned.network.get()};
  std::vector<RunPhase> phases = strategy->phases(input);
  add_input_to_phases(phases, *graph, machine, point.training.input);
  std::shared_ptr<const PhasedRun> phased;
  if (!phases.back().report.images_by_device.empty())
    phased = std::make_shared<const PhasedRun>(PhasedRun{machine, phases});
  RunPhase last = std::move(phases.back());
  if (last.devices < machine.devices.size()) machine = first_devices(machine, last.devices);
  std::vector<std::string> algorithms;
  if (detail == Detail::all) algorithms = chosen_algorithms(*strategy, last.plan, machine);
  const bool algorithms_named = strategy->sums() && !strategy->sums()->algorithm.candidates.empty();
  PreparedRun run{std::move(graph),
                  std::move(machine),
                  std::move(cost),
                  std::move(last.plan),
                  std::move(last.report),
                  strategy->label(),
                  point.training.samples,
                  std::move(phased),
                  network_model,
                  transport.name,
                  point.training.input.label(),
                  std::move(algorithms),
                  algorithms_named,
                  point.variability};
  run.by_class = by_class_;
  if (run.variability) check_variability(*run.variability, run);
  if (point.numerics) check_numerics(*point.numerics, run);
  return run;
}

}  // namespace convoy::runs
