// SPDX-License-Identifier: MIT
#include "strategies/pipeline/pipeline_options.h"

#include <fmt/format.h>

#include <cctype>
#include <limits>

namespace convoy {
namespace {

constexpr std::int64_t many = 1'000'000;
const std::vector<std::string> recompute_names{"never", "always", "except_last"};
const std::vector<std::string> neighbour_names{"auto", "stages", "replicas"};

/// `replicas`: a number of pipelines, a list with a number for each stage, or auto.
void read_replicas(YamlMap& map, PipelineOptions& options) {
  const YamlNode* node = map.find("replicas");
  if (!node || (node->kind == YamlNode::Kind::scalar && node->scalar == "auto")) return;
  if (node->kind != YamlNode::Kind::sequence) {
    options.replicas = map.integer("replicas", 1, many);
    return;
  }
  for (const YamlNode& item : node->items)
    options.stage_replicas.push_back(
        static_cast<std::uint32_t>(read_integer(item, map.path_of("replicas"), 1, many)));
  const auto count = static_cast<std::int64_t>(options.stage_replicas.size());
  if (count == 0 || (options.stages && *options.stages != count))
    map.fail("replicas", count == 0 ? std::string("expected a number for each stage, found an empty list")
                                    : fmt::format("gives replicas of {} stages, and there are {}", count,
                                                  *options.stages));
  options.stages = count;
}

/// `inner: {kind: hybrid}`
void read_hybrid_stages(const YamlMap& map, YamlMap& inner, PipelineOptions& options) {
  for (const char* key : {"micro_batches", "scheme"})
    if (inner.has(key))
      inner.fail(key, key == std::string_view("scheme")
                          ? "cuts a batch whose layers are all on the same devices; leave it out"
                          : "the pipeline has them: write strategy.micro_batches");
  if (map.has("replicas"))
    map.fail("replicas", "belongs into inner: groups of a stage's devices that share each micro-batch");
  if (options.weights != Weights::flush)
    map.fail("weights", "goes without flush over inner data_parallel only; leave it out");
  if (options.recompute != Recompute::never)
    map.fail("recompute", "goes over inner data_parallel only; leave it out");
  options.hybrid = read_hybrid_options(inner);
}

/// `inner`, or without it one all-reduce of a stage's gradients after its last backward pass.
void read_sync(YamlMap& map, PipelineOptions& options) {
  options.nested = map.has("inner");
  if (!options.nested) {
    options.sync.algorithm =
        static_cast<AllReduceAlgorithm>(map.choice_or("algorithm", all_reduce_algorithm_names(), 0));
    options.sync.algorithm_pos = map.pos("algorithm");
    options.sync.fidelity = static_cast<Fidelity>(map.choice_or("fidelity", {"auto", "chunk", "fluid"}, 0));
    options.sync.overlap = false;
    options.sync.bucket_bytes = std::numeric_limits<double>::infinity();
    return;
  }
  for (const char* key : {"algorithm", "fidelity"})
    if (map.has(key))
      map.fail(key, "belongs into inner, which says how a stage's replicas sum their gradients");
  YamlMap inner = map.map("inner");
  if (inner.choice("kind", {"data_parallel", "hybrid"}) == 1) {
    read_hybrid_stages(map, inner, options);
    inner.finish();
    return;
  }
  inner.choice("sync", {"all_reduce"});
  if (inner.has("micro_batches"))
    inner.fail("micro_batches", "the pipeline has them: write strategy.micro_batches");
  if (inner.has("shares"))
    inner.fail("shares", "a stage's replicas get equal shares of a micro-batch; leave it out");
  options.sync = read_gradient_sync(inner);
  inner.finish();
  if (!options.stage_replicas.empty())
    map.fail("replicas", "with inner a stage has equally many devices; give their number, or leave it out");
  if (options.weights != Weights::flush && options.sync.zero >= 2)
    map.fail("inner",
             fmt::format("zero: {} frees gradients and parameters after each use, and weights: {} keeps "
                         "versions of them; use zero: 0 or 1, or weights: flush",
                         options.sync.zero, weights_names[static_cast<std::size_t>(options.weights)]));
}

}  // namespace

PipelineOptions read_pipeline_options(YamlMap& map) {
  PipelineOptions options{};
  options.stages_pos = map.pos("stages");
  const YamlNode* stages = map.find("stages");
  options.auto_stages = stages && stages->kind == YamlNode::Kind::scalar && stages->scalar == "auto";
  if (stages && stages->kind == YamlNode::Kind::scalar && !options.auto_stages && !stages->scalar.empty() &&
      std::isalpha(static_cast<unsigned char>(stages->scalar.front())))
    map.fail("stages", "expected a whole number or auto, found '" + stages->scalar.substr(0, 40) + "'");
  if (stages && !options.auto_stages) options.stages = map.integer("stages", 1, many);
  options.replicas_pos = map.pos("replicas");
  read_replicas(map, options);
  options.micro_batches = map.integer_or("micro_batches", 1, 1, many);
  options.schedule = static_cast<PipelineSchedule>(
      map.choice_or("schedule", schedule_names, static_cast<std::size_t>(PipelineSchedule::one_f_one_b)));
  options.weights_pos = map.pos("weights");
  options.weights = static_cast<Weights>(map.choice_or("weights", weights_names, 0));
  if (options.weights != Weights::flush && options.schedule != PipelineSchedule::one_f_one_b)
    map.fail("weights",
             fmt::format("{} needs schedule: 1f1b; the others run the pipeline empty for each update",
                         weights_names[static_cast<std::size_t>(options.weights)]));
  options.partition = static_cast<StageCut>(
      map.choice_or("partition", partition_method_names, static_cast<std::size_t>(StageCut::optimal)));
  if (const YamlNode* begins = map.find("begins")) {
    if (map.has("partition"))
      map.fail("begins", "says where stages begin, and so does partition: give one of them");
    if (begins->kind != YamlNode::Kind::sequence) map.fail("begins", "expected a list of layer names");
    for (const YamlNode& name : begins->items)
      options.begins.emplace_back(read_text(name, map.path_of("begins")), name.pos);
    if (options.stages && *options.stages != static_cast<std::int64_t>(options.begins.size()) + 1)
      map.fail("begins", fmt::format("{} stages begin at {} layers beside the model's first", *options.stages,
                                     *options.stages - 1));
    options.stages = static_cast<std::int64_t>(options.begins.size()) + 1;
    if (!map.has("stages")) options.stages_pos = begins->pos;
  }
  options.recompute = static_cast<Recompute>(map.choice_or("recompute", recompute_names, 0));
  if (options.recompute == Recompute::except_last && options.schedule != PipelineSchedule::gpipe)
    map.fail(
        "recompute",
        "except_last needs schedule: gpipe, where the last micro-batch goes back as soon as it has come; use "
        "always or never");
  options.neighbours = static_cast<Neighbours>(map.choice_or("neighbours", neighbour_names, 0));
  read_sync(map, options);
  if (options.auto_stages && (!options.begins.empty() || !options.stage_replicas.empty()))
    map.fail("stages", "auto chooses how many there are, and begins or a list of replicas says so");
  return options;
}

}  // namespace convoy
