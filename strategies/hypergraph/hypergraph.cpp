// SPDX-License-Identifier: MIT
#include "strategies/hypergraph/hypergraph.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "sim/base/quantity.h"
#include "strategies/hypergraph/node_chain.h"
#include "strategies/hypergraph/node_program.h"
#include "strategies/partition/zoltan/zoltan_partition.h"
#include "strategies/placed_replicas.h"
#include "strategies/replicas.h"

namespace convoy::inline strategies {
namespace {

/// Time and memory of the refinement grow with vertices times parts: 512 parts of ResNet-50 take seconds.
constexpr std::uint32_t max_parts = 1024;

enum class Method : std::uint8_t { hypergraph, layerwise, even, random };
const std::vector<std::string> method_names{"hypergraph", "layerwise", "even", "random"};

struct HypergraphOptions {
  std::optional<std::uint32_t> parts;
  double epsilon = 0.1;
  PlacedReplicas placed;
  Granularity granularity;
  Method method = Method::hypergraph;
  bool zoltan = false, probed = true, from_layers = true;
  std::uint64_t seed = 1;
  SourcePos parts_pos, granularity_pos;
};

/// Of the first `parts` devices: how often each computes forward and backward pass of the whole network in
/// the time that the fastest takes for it once.
Speeds probed_speeds(const StrategyInput& input, std::uint32_t parts, double images) {
  Speeds speeds;
  for (std::uint32_t p = 0; p < parts; ++p) {
    const Device& device = input.machine.devices[p];
    IssueQueue queue;
    for (const Operation& operation : input.graph.operations)
      if (operation.phase != Phase::update)
        queue.run(input.cost.queued_time(operation.work, images, input.machine, device));
    speeds.push_back(queue.end_s() > 0 ? 1 / queue.end_s() : device.speed);
  }
  const double fastest = *std::max_element(speeds.begin(), speeds.end());
  for (double& speed : speeds) speed /= fastest;
  return speeds;
}

Parts partition(const LayeredHypergraph& graph, const Speeds& speeds, const HypergraphOptions& options) {
  switch (options.method) {
    case Method::layerwise:
      return partition_by_layers(graph, speeds);
    case Method::even:
      return partition_evenly(graph, speeds);
    case Method::random:
      return partition_at_random(graph, speeds, options.seed);
    case Method::hypergraph:
      break;
  }
  if (options.zoltan) {
    const auto parts = static_cast<Part>(speeds.size());
    return refine(graph, partition_by_zoltan(graph, parts, options.epsilon), speeds, options.epsilon);
  }
  return partition_hypergraph(graph, speeds, options.epsilon, options.from_layers);
}

class HypergraphStrategy : public Annotator {
 public:
  explicit HypergraphStrategy(HypergraphOptions options) : options_(std::move(options)) {}

  std::string label() const override {
    static const std::vector<std::string> labels{"hypergraph", "layer-wise", "even filter split", "random"};
    std::string text = labels[static_cast<std::size_t>(options_.method)];
    if (options_.zoltan) text += " by Zoltan";
    if (options_.method == Method::random) text += fmt::format(" (seed {})", options_.seed);
    if (options_.parts) text += fmt::format(", {} parts", *options_.parts);
    return text + options_.placed.label();
  }

  std::optional<StepFloor> floor(const BatchSpec& batch, CostTable& table) const override {
    return options_.placed.floor(
        batch, table, options_.parts, "layers",
        [&](double images, std::int64_t parts) { return node_chain_s(table, images, parts); });
  }

  std::string_view refuses_shared_parameters() const override {
    return "a hypergraph places each layer with parameters of its own";
  }

  const GradientSync* sums() const override { return options_.placed.sums(); }

  Annotation annotate(const StrategyInput& input) const override {
    const auto devices = static_cast<std::uint32_t>(input.machine.devices.size());
    const PlacedReplicas& placed = options_.placed;
    const std::uint32_t parts = placed.devices_a_replica(devices, options_.parts, options_.parts_pos);
    if (parts > max_parts)
      throw InputError(options_.parts_pos,
                       fmt::format("strategy.parts: the cluster has {} devices, and a network is cut into at "
                                   "most {} parts; write parts: {}, or less",
                                   devices, max_parts, max_parts));
    const std::int64_t batch = input.batch.over(std::int64_t{parts} * placed.replicas);
    const auto images = static_cast<double>(placed.images(input.batch, parts));
    check_plan_size(input, placed.micro_batches);
    const NodeHypergraph nodes = hypergraph_of(input.graph, parts);
    const Speeds speeds = options_.probed ? probed_speeds(input, parts, images) : equal_speeds(parts);
    const Parts assignment = partition(nodes.graph, speeds, options_);
    Annotation annotation;
    if (parts == 1) {
      annotation = annotate_undivided(input, placed);
    } else {
      PlacedWork work = slice_graph(NodeShares(input.graph, nodes, assignment, parts, images),
                                    placed.micro_batches, input.meaning);
      work.replicas = placed.replicas;
      annotation = {std::move(work), placed.sync};
    }
    annotation.report.partition = {method_names[static_cast<std::size_t>(options_.method)],
                                   connectivity(nodes.graph, assignment) * static_cast<double>(batch),
                                   cut(nodes.graph, assignment) * static_cast<double>(batch),
                                   imbalance(nodes.graph.weight, assignment, speeds)};
    return annotation;
  }

 private:
  NodeHypergraph hypergraph_of(const TrainingGraph& graph, std::uint32_t parts) const {
    try {
      return make_hypergraph(graph, options_.granularity, parts, options_.epsilon);
    } catch (const std::length_error&) {
      throw InputError(
          options_.granularity_pos,
          fmt::format("strategy.granularity: the hypergraph of '{}' would have more than 20 million "
                      "pins; take auto, or more channels a vertex",
                      graph.model.name));
    }
  }

  HypergraphOptions options_;
};

void read_granularity(YamlMap& map, HypergraphOptions& options) {
  const YamlNode* node = map.find("granularity");
  options.granularity_pos = map.pos("granularity");
  if (!node) return;
  Granularity& granularity = options.granularity;
  if (node->kind == YamlNode::Kind::scalar && parse_number(node->scalar))
    granularity = {Granularity::Kind::channels, map.integer("granularity", 1, 1'000'000)};
  else
    granularity.kind = read_choice<Granularity::Kind>(map, "granularity", {"auto", "channel", "layer"});
  if (options.method == Method::even && granularity.kind == Granularity::Kind::layer)
    map.fail("granularity",
             "layer leaves one vertex a layer, and method: even shares out the vertices of each layer: the "
             "first part would get everything; use auto, channel or a number, or method: layerwise");
}

const Keys<HypergraphOptions>& hypergraph_keys() {
  using Options = HypergraphOptions;
  static const Keys<Options> own{
      optional_integer_key<Options>("parts", "devices / replicas", 1, max_parts, "parts, one a device",
                                    &Options::parts)
          .at(&Options::parts_pos),
      number_key<Options>("epsilon", 0, 1000, "how far a part's work may exceed the mean", &Options::epsilon),
      choice_key<Options>("method", method_names, "how nodes get their parts", &Options::method),
      custom_key<Options>(
          "granularity", "",
          forms::either({forms::name({"auto", "channel", "layer"}), forms::whole(1, 1'000'000)}),
          "channels a vertex; auto: as fine as epsilon needs", &read_granularity),
      choice_key<Options>("partitioner", {"own", "zoltan"},
                          "convoy's own, or Zoltan's, refined by convoy's; where it was built with it",
                          &Options::zoltan)
          .only("method: hypergraph", [](const Options& o) { return o.method == Method::hypergraph; }),
      flag_key<Options>(
          "from_layers",
          "whole layers are among the partitions from which it starts, so that it finds none worse",
          &Options::from_layers)
          .only("method: hypergraph", [](const Options& o) { return o.method == Method::hypergraph; }),
      choice_key<Options>("shares", {"equal", "probed"},
                          "a part's work after the speed of its device, or the same for all",
                          &Options::probed),
      integer_key<Options>("seed", 0, YamlMap::max_integer, "of its random numbers", &Options::seed)
          .only("method: random", [](const Options& o) { return o.method == Method::random; })};
  static const Keys<Options> keys = [] {
    Keys<Options> table = own;
    append_keys(table, keys_of_part<Options>(placed_replica_keys(), &Options::placed));
    return table;
  }();
  return keys;
}

std::unique_ptr<Strategy> read_hypergraph(YamlMap& map) {
  HypergraphOptions options;
  read_keys(hypergraph_keys(), map, options);
  if (options.zoltan && !have_zoltan())
    map.fail("partitioner", "this convoy was built without Zoltan; 'own' is there (docs/model_parallel.md)");
  return std::make_unique<HypergraphStrategy>(std::move(options));
}

}  // namespace

StrategyEntry hypergraph_entry() {
  return {"hypergraph", "model parallelism by layer nodes: channels and neurons partitioned as a hypergraph",
          texts_of(hypergraph_keys()), &read_hypergraph, "[{micro_batches: [1, 4]}]"};
}

}  // namespace convoy::strategies
