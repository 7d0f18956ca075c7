// SPDX-License-Identifier: MIT

#include "sim/collectives/table.h"
#include "sim/lowering/jitter.h"
#include "strategies/data_parallel/data_parallel.h"
#include "strategies/elastic/elastic.h"
#include "strategies/filter_parallel/filter_parallel.h"
#include "strategies/hybrid/hybrid.h"
#include "strategies/hypergraph/hypergraph.h"
#include "strategies/pardnn/pardnn.h"
#include "strategies/pipeline/pipeline.h"
#include "strategies/single.h"
#include "strategies/strategy.h"

namespace convoy {
namespace {

/// What simulates (sim/app/search) looks for `kind: auto` before it reads a strategy.
[[noreturn]] std::unique_ptr<Strategy> read_auto(YamlMap& map) {
  map.fail("kind",
           "auto simulates other strategies to find the best; it cannot be a part of one, or a candidate");
}

/// The registry without the keys that all kinds have.
std::vector<StrategyEntry> rows() {
  std::vector<StrategyEntry> table{
      {"single",
       "one device does everything",
       {{"micro_batches", "1 | a number",
         "parts of the batch whose gradients are accumulated before the update"}},
       &read_single,
       "[{micro_batches: [1, 2, 4, 8, 16]}]"},
      {"data_parallel",
       "synchronous replicas that sum their gradients by all-reduce or on parameter servers",
       {{"sync", "all_reduce | parameter_server", "how gradients are summed; required"},
        {"shares", "equal | speed", "images a device: the same for all, or in proportion to its speed"},
        {"overlap", "true | false", "send gradients while backward goes on; false: all of them after it"},
        {"bucket", "25MiB | a size",
         "gradients sent as one message; without overlap all of them, unless given or with zero: 2 | 3 "
         "(not with sharding: tensor)"},
        {"algorithm", all_reduce_algorithm_choices(), "all_reduce: the algorithm"},
        {"rings", "mesh | in_order",
         "all_reduce: rings along NVLink cables, several where there are (NCCL 2), or "
         "one in the devices' order (NCCL 1)"},
        {"fidelity", "auto | chunk | fluid", "all_reduce: every message, or one flow an edge; auto chooses"},
        {"micro_batches", "1 | a number",
         "all_reduce: parts of a device's share, accumulated before sending"},
        {"zero", "0 | 1 | 2 | 3",
         "all_reduce: states sharded over the devices (ZeRO): the optimizer's, + gradients, + parameters"},
        {"compression", "none | fp16 | {kind: top_k, ratio}",
         "gradients sent in half precision, or only the largest with their indices"},
        {"servers", "1 | a number", "parameter_server: how many"},
        {"placement", "dedicated | colocated", "parameter_server: on hosts of their own, or on the nodes"},
        {"sharding", "tensor | even", "parameter_server: whole tensors a server, or every bucket cut evenly"},
        {"local_aggregation", "false | host | owner | ring",
         "parameter_server: each node sums its devices' gradients first, in the host's memory (true means "
         "that "
         "too), on the device that owns the tensor, or round a ring of its devices"},
        {"pull", "as_ready | after_all | at_first_use",
         "parameter_server: parameters go back as they are updated, when all of a server's are, or when the "
         "next step's forward pass first uses them"},
        {"mode", "sync | async | ssp",
         "parameter_server: the server answers when all have pushed, each at once, or those "
         "that are not too far ahead"},
        {"staleness", "a number",
         "mode ssp: steps that a worker may be ahead of the slowest; required there"},
        {"backup_workers", "0 | a number",
         "mode sync: workers that an update does not wait for; what comes late is dropped"}},
       &read_data_parallel,
       "[{sync: all_reduce, algorithm: [ring, tree, halving_doubling, hierarchical], bucket: [5MiB, 25MiB, "
       "100MiB]}, "
       "{sync: all_reduce, micro_batches: [2, 4, 8, 16]}, {sync: all_reduce, zero: [1, 2, 3]}, "
       "{sync: parameter_server, servers: $nodes, placement: colocated, sharding: [tensor, even], "
       "local_aggregation: [false, true]}]"},
      {"elastic",
       "another strategy on devices whose number changes during the run, with a fixed global batch",
       {{"inner", "{kind: data_parallel | pipeline | hybrid, ...}",
         "what runs on the devices there are; required. Data parallelism is dealt its batch here, the others "
         "share it out themselves"},
        {"schedule", "a list of {at_step, devices}",
         "devices from which step on, the first at step 0; required"},
        {"reconfigure", "overlapped | restart",
         "newcomers start while the others train on, or all stop and go on from a checkpoint"},
        {"balance", "uniform | coarse",
         "inner data_parallel: images a device: equal give or take one, or whole micro-batches dealt out"},
        {"micro_batch", "what memory allows | a number",
         "inner data_parallel: images at once; coarse: at most an equal share of the first devices, unless "
         "given"},
        {"times", "{process_start, framework_init, ...}", "lengths of a restart's parts"}},
       &read_elastic},
      {"filter_parallel",
       "convolutions shared out by filters among all devices; a master does everything else",
       {{"shares", "probed | equal", "filters a device: by its speed on the layer, or the same for all"},
        {"master", "0 | a device's index", "the device that holds the parameters and does the rest"},
        {"overlap", "false | true", "the master computes its own filters while its messages are under way"}},
       &read_filter_parallel,
       "[{shares: [probed, equal], overlap: [true, false]}]"},
      {"hybrid",
       "each layer split by images, channels, rows or not at all; tensors exchanged where the split changes",
       {{"conv", "batch | filter | channel | pairs | height | width | replicated", "layout of convolutions"},
        {"fc", "batch | filter | channel | pairs | replicated", "layout of linear layers"},
        {"groups", "a list of {layers, kind, layout}",
         "layouts by name, pattern, [first, last] or kind; the last that names a layer counts"},
        {"replicas", "1 | a number", "groups of devices that share the batch; the layouts are inside each"},
        {"micro_batches", "1 | a number",
         "parts of the batch whose gradients are accumulated before the update"},
        {"scheme", "a | b | c",
         "layers behind those split by images: all images at once, a device's at a time, or a part of each "
         "device's at a time"},
        {"algorithm", all_reduce_algorithm_choices(), "all-reduces"},
        {"rings", "mesh | in_order", "rings along NVLink cables, or one in the devices' order"},
        {"bucket", "25MiB | a size",
         "gradients sent as one message; without overlap all of them, unless given"},
        {"overlap", "true | false", "send gradients while backward goes on; false: all of them after it"},
        {"fidelity", "auto | chunk | fluid", "every message, or one flow an edge; auto chooses"}},
       &read_hybrid,
       "[{conv: batch, fc: [filter, pairs]}, {conv: [height, pairs], fc: [replicated, pairs]}]"},
      {"hypergraph",
       "model parallelism by layer nodes: channels and neurons partitioned as a hypergraph",
       {{"parts", "all devices | a number", "parts, one a device"},
        {"epsilon", "0.10 | 0 to 1000", "how far a part's work may exceed the mean"},
        {"micro_batches", "1 | a number", "parts of the batch that are under way at a time"},
        {"granularity", "auto | channel | layer | a number",
         "channels a vertex; auto: as fine as epsilon needs"},
        {"method", "hypergraph | layerwise | even | random", "how nodes get their parts"},
        {"shares", "probed | equal", "a part's work after the speed of its device, or the same for all"},
        {"partitioner", "own | zoltan",
         "method hypergraph: convoy's own, or Zoltan's, refined by convoy's; where it was built with it"},
        {"seed", "1 | a number", "method random: of its random numbers"}},
       &read_hypergraph,
       "[{micro_batches: [1, 4]}]"},
      {"pardnn",
       "operations placed one by one by the ParDNN partitioner",
       {{"parts", "all devices | a number", "devices that take part"},
        {"refine", "true | false", "with the partitioner's refinement phase"},
        {"memory", "the device's | a size", "of a device, which the partitioner keeps within"}},
       &read_pardnn,
       "[{}]"},
      {"pipeline",
       "the network cut into consecutive stages on devices of their own, fed with micro-batches",
       {{"stages", "devices / replicas | a number | auto",
         "parts of the network; auto: as many as give the shortest estimated step that fits in memory"},
        {"replicas", "auto | a number | a list",
         "pipelines side by side, that sum their gradients stage by stage; a list: replicas of each stage; "
         "auto: one pipeline, whose stages have several where devices are left over and partition is "
         "optimal"},
        {"micro_batches", "1 | a number",
         "parts of a pipeline's share of the batch, accumulated before the update"},
        {"weights", "flush | stash | double_buffered",
         "1f1b: the pipeline runs empty before an update; or never does, and keeps a version of its weights "
         "for each update while a micro-batch is under way (PipeDream), or two (PipeDream-2BW)"},
        {"schedule", "1f1b | gpipe | naive",
         "order on a device: forward and backward in turn, all forward first, or one micro-batch after the "
         "other"},
        {"partition", "optimal | balanced | even",
         "the smallest estimated step that fits in memory (stages may take several devices), the smallest "
         "slowest "
         "stage, or as many layers each"},
        {"begins", "a list of layers", "instead of partition: the first layer of each stage but the first"},
        {"recompute", "never | always | except_last",
         "keep only what stages get from each other, and run forward again before backward; except_last "
         "(gpipe): "
         "not for the last micro-batch, which goes back at once"},
        {"neighbours", "auto | stages | replicas",
         "who is on neighbouring devices: a pipeline's stages, or a stage's replicas"},
        {"inner", "{kind: data_parallel, sync: all_reduce, ...} | {kind: hybrid, ...}",
         "what the devices of a stage do with each micro-batch, as many as there are devices a stage: "
         "replicas "
         "that share it, with buckets, overlap, compression and ZeRO; or groups that split its layers"},
        {"algorithm", all_reduce_algorithm_choices(), "without inner: all-reduce over replicas"},
        {"fidelity", "auto | chunk | fluid",
         "without inner: every message of all-reduces, or one flow an edge; auto chooses"}},
       &read_pipeline,
       "[{schedule: [1f1b, gpipe], micro_batches: [4, 8, 16, 32], replicas: [1, 2, 4]}, "
       "{micro_batches: [8, 32], stages: [2, 4]}, "
       "{schedule: [1f1b, gpipe], micro_batches: [8, 32], recompute: always}]"},
      {"auto",
       "the best of many candidates of the strategies above, found by simulation",
       {{"objective", "step_time | throughput | cost | energy | memory",
         "what is best: time (of equally many images), images/s, USD an epoch, J (of equally many images), "
         "or "
         "memory of the fullest device"},
        {"candidates", "those of every kind | a list of strategies",
         "what is tried; a list of values for a key stands for each of them"},
        {"budget", "all | a number", "simulations at most; the others stay unknown"}},
       &read_auto}};
  return table;
}

/// Whether a strategy's devices talk to each other, so that read_strategy takes `transport` of it.
bool has_transport(const StrategyEntry& entry) { return entry.kind != "single" && entry.kind != "auto"; }

std::vector<StrategyEntry> with_transport(std::vector<StrategyEntry> table) {
  for (StrategyEntry& entry : table)
    if (has_transport(entry))
      entry.keys.push_back({"transport", "by strategy and framework | nccl | gloo | mpi | grpc | zmq",
                            "library that moves the bytes, over what the fabric speaks (docs/clusters.md)"});
  return table;
}

}  // namespace

const std::vector<StrategyEntry>& strategy_registry() {
  static const std::vector<StrategyEntry> table = with_transport(rows());
  return table;
}

Plan Strategy::plan(const StrategyInput& input) const {
  Plan plan = steady_plan(input);
  wait_for_the_last(plan, input.machine, input.cost);
  return plan;
}

std::unique_ptr<Strategy> read_strategy(const YamlNode& node) {
  YamlMap map(node, "strategy");
  std::vector<std::string> kinds;
  for (const StrategyEntry& entry : strategy_registry()) kinds.emplace_back(entry.kind);
  const std::size_t row = map.choice("kind", kinds);
  std::optional<Library> library;
  const StrategyEntry& entry = strategy_registry()[row];
  if (has_transport(entry) && map.find("transport"))
    library = static_cast<Library>(map.choice("transport", library_names));
  std::unique_ptr<Strategy> strategy = entry.read(map);
  strategy->library = library;
  map.finish();
  return strategy;
}

Library default_library(const Strategy& strategy, Framework framework, bool cpu_devices) {
  const bool tensorflow = framework == Framework::tensorflow || framework == Framework::tensorflow1;
  if (strategy.uses_servers()) return tensorflow ? Library::grpc : Library::zmq;
  return cpu_devices ? Library::gloo : Library::nccl;
}

}  // namespace convoy
