// SPDX-License-Identifier: MIT
#include "sim/lowering/gradient_sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "sim/base/data_path.h"
#include "sim/base/yaml_map.h"
#include "sim/collectives/algorithm_key.h"
#include "sim/lowering/plan_ops.h"

namespace convoy::inline lowering {
namespace {

std::string_view name_of(GroupSync::Kind kind) {
  switch (kind) {
    case GroupSync::Kind::reduce_scatter:
      return "reduce-scatter";
    case GroupSync::Kind::all_gather:
      return "all-gather";
    case GroupSync::Kind::agreement:
      return "agreement on";
    case GroupSync::Kind::all_reduce:
    case GroupSync::Kind::all_reduce_factors:
      break;
  }
  return "all-reduce";
}

bool is_half(GroupSync::Kind kind) {
  return kind == GroupSync::Kind::reduce_scatter || kind == GroupSync::Kind::all_gather;
}

/// Whether DistributedDataParallel chooses the buckets.
bool is_ddp(const GradientSync& sync, Framework framework) {
  return (framework == Framework::pytorch || framework == Framework::pytorch1) && sync.overlap &&
         sync.zero < 2 && !sync.bucket_given && sync.cycle_s == 0;
}

/// When the first bucket closes; 0: as the others.
double first_bucket_bytes(const GradientSync& sync, Framework framework) {
  static const double of_ddp = [] {
    const YamlNode& ddp = data_yaml("topologies/catalog/synchronization/all_reduce", "ddp");
    return YamlMap(*ddp.find("strategy"), "strategy").quantity("first_bucket", Dimension::bytes, true);
  }();
  return sync.first_bucket_bytes.value_or(is_ddp(sync, framework) ? of_ddp : 0);
}

/// Of a message in which each member says by a bit a tensor which gradients it has, with three more: 64-bit
/// words (CacheCoordinator::sync in horovod/common/response_cache.cc).
double agreement_bytes(const TrainingGraph& graph) {
  constexpr double status_bits = 3, word_bits = 64, word_bytes = 8;
  return word_bytes * std::ceil((static_cast<double>(graph.parameters.size()) + status_bits) / word_bits);
}

}  // namespace

Replicated replicated(const TrainingGraph& graph, const Stage& stage, std::vector<EndpointId> devices) {
  Replicated parameters{{std::move(devices)}, std::vector<double>(graph.parameters.size(), 0.0)};
  for (const std::size_t p : stage.parameters)
    parameters.elements[p] = static_cast<double>(graph.parameters[p].elements);
  return parameters;
}

std::vector<Bucket> buckets_of(const GradientSync& sync, const TrainingGraph& graph,
                               const Replicated& parameters) {
  if (parameters.groups.front().size() == 1) return {};
  const std::vector<double>& filling = parameters.filling.empty() ? parameters.elements : parameters.filling;
  std::vector<Bucket> buckets =
      fill_buckets_of(graph, sync.bucket_bytes, filling, sync.zero >= 2,
                      first_bucket_bytes(sync, graph.options.framework), {sync.cycle_s, parameters.made_s});
  for (Bucket& bucket : buckets) {
    bucket.bytes = 0;
    for (const std::size_t p : bucket.parameters)
      bucket.bytes += parameters.elements[p] * element_bytes(graph.options.precision);
  }
  std::erase_if(buckets, [](const Bucket& bucket) { return bucket.bytes == 0; });
  return buckets;
}

double usual_bucket_bytes(bool overlap) {
  return overlap ? default_bucket_bytes : std::numeric_limits<double>::infinity();
}

GradientSync summed_after_backward() {
  GradientSync sync;
  sync.overlap = false;
  sync.bucket_bytes = usual_bucket_bytes(sync.overlap);
  return sync;
}

const Keys<GradientSync>& gradient_sync_keys() {
  using Sync = GradientSync;
  static const Keys<Sync> keys = [] {
    Keys<Sync> table{
        algorithm_key<Sync>("algorithm", "how gradients are summed", &Sync::algorithm)
            .at(&Sync::algorithm_pos),
        choice_key<Sync>("rings", ring_order_names,
                         "rings along NVLink cables, several where there are (NCCL 2), or one in the "
                         "devices' order (NCCL 1)",
                         &Sync::rings),
        flag_key<Sync>("overlap", "send gradients while backward goes on; false: all of them after it",
                       &Sync::overlap),
        integer_key<Sync>("zero", 0, 3,
                          "states sharded over the devices (ZeRO): 1 the optimizer's, 2 gradients too, 3 "
                          "parameters too",
                          &Sync::zero),
        quantity_key<Sync>(
            "bucket", "25MiB", Dimension::bytes,
            "gradients sent as one message; without overlap all of them, unless given or "
            "with zero: 2 or 3",
            &Sync::bucket_bytes,
            [](const Sync& sync) { return usual_bucket_bytes(sync.overlap || sync.zero >= 2); })
            .given(&Sync::bucket_given),
        optional_quantity_key<Sync>(
            "first_bucket", "1MiB with PyTorch's own buckets, else as bucket", Dimension::bytes, true,
            "the same of the first message, whose gradients are complete first", &Sync::first_bucket_bytes),
        choice_key<Sync>("fidelity", fidelity_names, "every message, or one flow an edge; auto chooses",
                         &Sync::fidelity)};
    table.push_back(keys_of_part<Sync>(Keys<Compression>{compression_key()}, &Sync::compression).front());
    return table;
  }();
  return keys;
}

GradientSync read_gradient_sync(YamlMap& map) {
  GradientSync sync;
  sync.path = map.path();
  read_keys(gradient_sync_keys(), map, sync);
  check_gradient_sync(map, sync);
  return sync;
}

void check_gradient_sync(const YamlMap& map, const GradientSync& sync) {
  if (sync.first_bucket_bytes.value_or(0) > sync.bucket_bytes)
    map.fail("first_bucket", fmt::format("is more than bucket ({}); at most that, or leave it out",
                                         format_bytes(sync.bucket_bytes)));
  if (sync.zero > 0 && sync.compression.kind != Compression::Kind::none)
    map.fail("compression",
             "goes with zero: 0, whose gradients are summed whole on every device; leave out one of the two");
}

namespace {

std::string_view launches_text(CollectiveLaunches launches) {
  return collective_launches_names[static_cast<std::size_t>(launches)];
}

}  // namespace

CollectiveLaunches GroupSync::launches() const {
  if (sync_.launches != CollectiveLaunches::by_framework) return sync_.launches;
  if (sync_.cycle_s > 0) return CollectiveLaunches::per_process;
  if (machine_.hosts.size() > 1) return CollectiveLaunches::per_process;
  if (graph_.options.framework == Framework::tensorflow1) return CollectiveLaunches::together;
  return graph_.options.framework == Framework::tensorflow ? CollectiveLaunches::apart
                                                           : CollectiveLaunches::per_process;
}

void check_all_reduce(const GradientSync& sync, const std::vector<EndpointId>& ranks, const Machine& machine) {
  if (const std::string reason = why_no_all_reduce(sync.algorithm, ranks, machine); !reason.empty())
    throw InputError(sync.algorithm_pos, fmt::format("{}.algorithm: {}", sync.path, reason));
}

std::string label_of(const GradientSync& sync) {
  return fmt::format("{} all-reduce{}{}{}{}", sync.algorithm.name(),
                     sync.zero > 0 ? fmt::format(", ZeRO-{}", sync.zero) : "", label_of(sync.compression),
                     sync.overlap ? "" : ", no overlap",
                     sync.cycle_s > 0 ? fmt::format(", in cycles of {:.4g} ms", 1e3 * sync.cycle_s) : "");
}

GroupSync::GroupSync(const GradientSync& sync, const TrainingGraph& graph, const Machine& machine,
                     Replicated parameters, std::string of, Plan& plan)
    : sync_(sync),
      graph_(graph),
      machine_(machine),
      parameters_(std::move(parameters)),
      of_(std::move(of)),
      plan_(plan),
      buckets_(buckets_of(sync, graph, parameters_)),
      compressor_(sync.compression, graph, parameters_.groups.front().size()) {
  if (!buckets_.empty() && machine.transport.channels > 0) plan.launches = launches_text(launches());
  if (sync.compression.kind == Compression::Kind::powersgd)
    for (const Bucket& bucket : buckets_)
      low_rank_.emplace_back(graph, bucket, parameters_.elements, sync.compression.rank);
  // Everyone needs everyone's choice of gradients: they are gathered, not summed on the way.
  const bool gathers = is_gathered(sync.compression);
  if (buckets_.empty()) return;
  if (sync.zero == 0 && !gathers)
    check_all_reduce(sync, parameters_.groups.front(), machine);
  else if (const std::string reason = why_no_scatter(sync.algorithm, parameters_.groups.front(), machine);
      !reason.empty())
    throw InputError(
        sync.algorithm_pos,
        fmt::format("{}.algorithm: with {}, {}", sync.path,
                    gathers ? fmt::format("compression: {}", kind_of(sync.compression)) : fmt::format("zero: {}", sync.zero), reason));
}

bool GroupSync::is_copied(const Bucket& bucket) const {
  const auto tensors =
      std::count_if(bucket.parameters.begin(), bucket.parameters.end(),
                    [&](std::size_t parameter) { return parameters_.elements[parameter] > 0; });
  return sync_.zero == 0 && !machine_.transport.ideal() && tensors > 1;
}

StateBytes GroupSync::resident_bytes() const {
  const double elements = std::accumulate(parameters_.elements.begin(), parameters_.elements.end(), 0.0);
  StateBytes bytes = sharded_resident_bytes(elements, graph_.options, zero(), members());
  for (const LowRankBucket& bucket : low_rank_)
    bytes[static_cast<std::size_t>(MemoryClass::gradients)] += bucket.kept_bytes();
  return bytes;
}

void GroupSync::send(Kind kind, std::size_t bucket, const std::string& what, double bytes) {
  const std::uint32_t of_pattern = pattern(kind, bytes);
  const bool agrees = kind == Kind::agreement;
  sent_.push_back({static_cast<CommId>(plan_.communications.size()), bucket, kind, what, bytes});
  plan_.communications.push_back({fmt::format("{} bucket {}{}{}", name_of(kind), bucket, what, of_),
                                  of_pattern, bytes, sync_.fidelity,
                                  agrees ? buckets_[bucket].wait_s : machine_.collective_overhead_s,
                                  agrees          ? CommPurpose::other
                                  : is_half(kind) ? CommPurpose::half
                                                  : CommPurpose::all_reduce,
                                  plan_.meaning ? meaning_of(kind, bucket) : no_meaning});
}

TaskId GroupSync::add_agreement(Role& role, int stream, std::size_t bucket, const std::string& what,
                                TaskId after) {
  return add(role, stream, Kind::agreement, bucket, what, agreement_bytes(graph_), {after});
}

void GroupSync::send_again(const std::vector<Sent>& sent) {
  for (const Sent& message : sent) send(message.kind, message.bucket, message.what, message.bytes);
}

TaskId GroupSync::add(Role& role, int stream, Kind kind, std::size_t bucket, const std::string& what,
                      double bytes, std::vector<TaskId> after) {
  if (next_ == sent_.size()) send(kind, bucket, what, bytes);
  const CommId comm = sent_[next_++].comm;
  const TaskId task =
      add_message(role, Task::Kind::collective, plan_.communications[comm].name, comm, std::move(after));
  role.program[task].stream = stream;
  return task;
}

std::uint32_t GroupSync::meaning_of(std::size_t bucket) {
  std::vector<BucketMeaning>& all = plan_.meaning->buckets;
  if (meanings_.empty())
    for (const Bucket& of : buckets_) {
      meanings_.push_back(static_cast<std::uint32_t>(all.size()));
      all.push_back({of.parameters, zero(), compressor_.sent_element_bytes(), compressor_.kept_share(),
                     compressor_.coding(), compressor_.coding_detail()});
    }
  return meanings_[bucket];
}

std::uint32_t GroupSync::meaning_of(Kind kind, std::size_t bucket) {
  CommMeaning meaning;
  switch (kind) {
    case Kind::all_reduce:
      meaning.kind = CommMeaning::Kind::sum;
      break;
    case Kind::all_reduce_factors:
      meaning.kind = CommMeaning::Kind::sum_factors;
      break;
    case Kind::reduce_scatter:
      meaning.kind = CommMeaning::Kind::scatter;
      break;
    case Kind::agreement:
      meaning.kind = CommMeaning::Kind::agree;
      break;
    case Kind::all_gather:
      meaning.kind = zero() > 0 ? CommMeaning::Kind::gather_parameters : CommMeaning::Kind::gather_gradients;
      break;
  }
  meaning.bucket = meaning_of(bucket);
  plan_.meaning->communications.push_back(std::move(meaning));
  return static_cast<std::uint32_t>(plan_.meaning->communications.size() - 1);
}

std::uint32_t GroupSync::pattern(Kind kind, double bytes) {
  // A few bytes: up a tree and down again, whatever sums the gradients.
  const SumAlgorithm algorithm = kind == Kind::agreement ? AllReduceAlgorithm::tree : sync_.algorithm;
  if (kind == Kind::all_reduce_factors) kind = Kind::all_reduce;
  const Kind rounds = algorithm.same_half() && kind == Kind::all_gather ? Kind::reduce_scatter : kind;
  const std::pair of{rounds, algorithm.by_bytes() ? bytes : 0};
  if (const auto known = patterns_.find(of); known != patterns_.end()) return known->second;
  const auto make = kind == Kind::all_reduce || kind == Kind::agreement ? &all_reduce_pattern
                    : kind == Kind::reduce_scatter                      ? &reduce_scatter_pattern
                                                                        : &all_gather_pattern;
  const std::vector<EndpointId>& ranks =
      slowest_group(algorithm, parameters_.groups, machine_, bytes, sync_.rings);
  Pattern made = make(algorithm, ranks, machine_, bytes, sync_.rings);
  made.groups = parameters_.groups;
  // Buckets of about one size have the same rounds, as have all that are large: a tree has no more than so many chunks.
  for (const auto& [other, pattern] : patterns_)
    if (other.first == rounds && plan_.patterns[pattern] == made) return patterns_[of] = pattern;
  plan_.patterns.push_back(std::move(made));
  return patterns_[of] = static_cast<std::uint32_t>(plan_.patterns.size() - 1);
}

std::vector<std::uint32_t> GroupSync::patterns() const {
  std::set<std::uint32_t> result;
  for (const auto& [key, pattern] : patterns_) result.insert(pattern);
  return {result.begin(), result.end()};
}

StateBytes sharded_resident_bytes(double elements, const TrainingOptions& options, int stage,
                                  double devices) {
  StateBytes bytes = resident_bytes(elements, options);
  if (stage == 0) return bytes;
  double& weights = bytes[static_cast<std::size_t>(MemoryClass::weights)];
  // The rest are fp32 copies, which the optimizer uses.
  const double computed_with = elements * element_bytes(options.precision);
  weights = stage == 3 ? weights / devices : computed_with + (weights - computed_with) / devices;
  if (stage >= 2) bytes[static_cast<std::size_t>(MemoryClass::gradients)] /= devices;
  bytes[static_cast<std::size_t>(MemoryClass::optimizer)] /= devices;
  return bytes;
}

}  // namespace convoy::lowering
