// SPDX-License-Identifier: MIT
#include "sim/run/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/layer_profile.h"
#include "models/model.h"
#include "sim/base/input_file.h"
#include "sim/base/named_file.h"
#include "sim/base/names.h"
#include "sim/costs/residuals.h"
#include "sim/lowering/gradient_sync.h"
#include "sim/lowering/input_feed.h"
#include "sim/lowering/service_rule.h"
#include "sim/numerics/data.h"
#include "sim/numerics/kernels.h"
#include "sim/plan/repetition.h"
#include "sim/replay/replay.h"
#include "sim/run/chosen_algorithms.h"
#include "sim/run/evaluate.h"
#include "sim/run/learning.h"
#include "sim/run/search/search_spec.h"
#include "sim/run/sweep_hint.h"
#include "sim/run/timeline.h"
#include "sim/run/trace.h"
#include "strategies/strategy.h"
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

/// What the experiment leaves to the framework: its precision, if all devices have TF32, and its layout.
/// @throws InputError "training.precision: device 'k80' cannot run tf32; it runs fp32"
TrainingOptions resolve_software(const Training& training, const Machine& machine) {
  TrainingOptions options = training.options;
  const bool have_tf32 = std::all_of(machine.device_types.begin(), machine.device_types.end(),
                                     [](const DeviceType& type) { return type.runs(Precision::tf32); });
  if (!training.precision_given) options.precision = default_precision(options.framework, have_tf32);
  if (!training.layout_given) options.layout = default_layout(options.framework, options.precision);
  for (const DeviceType& type : machine.device_types) {
    if (type.runs(options.precision)) continue;
    std::vector<std::string> runs;
    for (const auto& [precision, peak] : type.peak_flops) runs.emplace_back(to_string(precision));
    throw InputError(training.precision_pos,
                     fmt::format("training.precision: device '{}' cannot run {}; it runs {}", type.name,
                                 to_string(options.precision), list_of(runs)));
  }
  return options;
}

/// "training.recompute: blocks does not go with this strategy: ..."
void check_recomputation(const Training& training, const Strategy& strategy) {
  if (training.options.recompute == Recomputation::none) return;
  if (const std::string_view reason = strategy.refuses_recomputation(); !reason.empty())
    throw InputError(training.recompute_pos,
                     fmt::format("training.recompute: cannot be used with this strategy ({}); {}",
                                 strategy.label(), reason));
}

/// The kind of device in the cluster that was measured: `name`, or the only kind.
/// @param key "training.anchor"
const DeviceType& measured_device(const std::string& key, const SourcePos& pos,
                                  const std::optional<std::string>& name, const Machine& machine) {
  std::vector<std::string> names;
  for (const DeviceType& type : machine.device_types) names.push_back(type.name);
  if (!name && names.size() != 1)
    throw InputError(pos, fmt::format("{}: the cluster has several kinds of device; say which one was "
                                      "measured with 'device: NAME', one of {}",
                                      key, list_of(names)));
  const std::string wanted = name ? meant(*name, names) : names.front();
  const auto type = std::find(names.begin(), names.end(), wanted);
  if (type == names.end())
    throw InputError(pos, fmt::format("{}.device: the cluster has no device '{}'{}; it has {}", key, wanted,
                                      suggestion(wanted, names), list_of(names)));
  return machine.device_types[static_cast<std::size_t>(type - names.begin())];
}

void add_profile(const ProfileSpec& spec, const LayerProfile& profile, const TrainingGraph& graph,
                 const Machine& machine, CostModel& cost) {
  const DeviceType& device = measured_device("training.profile", spec.pos, spec.device, machine);
  std::vector<std::string> names;
  for (const Layer& layer : graph.model.layers) names.push_back(layer.name);
  for (const ProfiledLayer& row : profile.layers) {
    const auto layer = std::find(names.begin(), names.end(), row.name);
    if (layer == names.end())
      throw InputError(row.pos, fmt::format("layer: {} has no layer '{}'{}", graph.model.name, row.name,
                                            suggestion(row.name, names)));
    cost.measured(graph, static_cast<std::uint32_t>(layer - names.begin()), row.images, row.forward_s,
                  row.backward_s, device);
  }
}

/// Where the catalogue takes the bandwidth between hosts from something like it, or says a spread of it.
std::optional<Doubt> doubt_of_bandwidth(const ClusterSpec& cluster) {
  const auto doubted = [](const Sources& sources, const Fabric& fabric) -> std::optional<Doubt> {
    const Source* source = find_source(sources, "fabric.bandwidth");
    if (source == nullptr || (!is_guess(source->grade) && !source->spread)) return std::nullopt;
    Doubt doubt{Doubt::Moves::network, "cluster.fabric.bandwidth",
                fmt::format("{:.4g}Gbps", 8e-9 * fabric.nic().bandwidth_Bps), *source};
    if (!doubt.source.spread) doubt.source.spread = assumed_bandwidth_spread;
    return doubt;
  };
  if (cluster.fabric) return doubted(cluster.sources, *cluster.fabric);
  std::optional<Doubt> most;
  for (const ServerSpec& server : cluster.servers)
    if (std::optional<Doubt> doubt = server.fabric ? doubted(server.sources, *server.fabric) : std::nullopt;
        doubt && (!most || *most->source.spread < *doubt->source.spread))
      most = std::move(doubt);
  return most;
}

/// Loaders' rates are those of the hosts on which they were measured, unless the experiment says its own.
std::optional<Doubt> doubt_of_loader(const InputSpec& input) {
  if (input.synthetic || input.rate_given) return std::nullopt;
  const Source* source = find_source(input.library.sources, "core_images_per_s");
  Doubt doubt{Doubt::Moves::loader, "training.input.core_images_per_s",
              fmt::format("{:.4g} images/s of a core", input.library.core_images_per_s),
              Source{source ? source->grade : Grade::assumed, loader_spread(),
                     fmt::format("'{}', measured on another host{}", input.library.name,
                                 source ? ": " + source->text : "")}};
  doubt.library = input.library.name;
  return doubt;
}

/// The cost in software of the strategy's messages on this cluster.
Transport transport_of(const Strategy& strategy, const ClusterSpec& cluster, const Training& training,
                       Protocol protocol) {
  const DeviceKind* kind = &device_kinds.front();
  for (const ServerSpec& server : cluster.servers)
    for (const auto& [type, count] : server.devices) kind = std::max(kind, type.kind);
  return transport_over(
      strategy.library.value_or(default_library(strategy, training.options.framework, *kind)), protocol);
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
  const StrategyInput input{*graph,  machine, cost, point.training.batch,
                            meaning, planned.network.get()};
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

namespace {

/// Servers seldom take messages wholly in order, nor push asynchronous workers wholly apart: the interval of
/// workers without a common step reaches to messages that share links fairly.
void widen_to_fair_shares(const PreparedRun& run, RunResult& result) {
  const bool in_order = std::any_of(run.plan.patterns.begin(), run.plan.patterns.end(),
                                    [](const Pattern& pattern) { return pattern.in_order; });
  if (!run.plan.service() || !in_order || !result.interval) return;
  PreparedRun fair = run;
  fair.plan = shared_fairly(std::move(fair.plan));
  fair.on_ideal_network = nullptr;
  widen_interval(result, simulate(fair, false).result);
}

}  // namespace

namespace {

bool leaves_tasks_out(const PreparedRun& run) {
  if (!run.phased) return !lists_all(run.plan);
  return std::ranges::any_of(run.phased->phases,
                             [](const RunPhase& phase) { return !lists_all(phase.plan); });
}

}  // namespace

PreparedRun with_every_task(PreparedRun run) {
  if (!leaves_tasks_out(run)) return run;
  run.plan = with_all_listed(std::move(run.plan));
  if (!run.phased) return run;
  PhasedRun phased = *run.phased;
  for (RunPhase& phase : phased.phases) phase.plan = with_all_listed(std::move(phase.plan));
  run.phased = std::make_shared<const PhasedRun>(std::move(phased));
  return run;
}

ReplayResult replay_of(const PreparedRun& run) {
  return replay(run.plan, run.machine, run.cost, {true, run.network_model});
}

RunOutput output_of(const PreparedRun& run, const ReplayResult& replayed, bool with_trace) {
  std::vector<StepRange> ranges;
  for (const Doubt& doubt : run.doubts) ranges.push_back(step_range_s(run, doubt, replayed));
  RunOutput output{evaluate(run, replayed, ranges), {}};
  if (run.on_ideal_network) widen_interval(output.result, simulate(*run.on_ideal_network, false).result);
  widen_to_fair_shares(run, output.result);
  if (run.phased)
    add_timeline(run, replayed, with_trace, output);
  else if (with_trace)
    output.trace = trace_of(run.plan, run.machine, run.cost, replayed);
  keep_largest(output.trace);
  return output;
}

RunOutput simulate(const PreparedRun& run, bool with_trace) {
  if (with_trace && leaves_tasks_out(run)) return simulate(with_every_task(run), with_trace);
  return output_of(run, replay_of(run), with_trace);
}

}  // namespace convoy::runs
