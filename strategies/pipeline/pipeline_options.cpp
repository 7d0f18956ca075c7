// SPDX-License-Identifier: MIT
#include "strategies/pipeline/pipeline_options.h"

#include <fmt/format.h>

#include <cctype>
#include <limits>

#include "sim/collectives/algorithm_key.h"

namespace convoy::inline strategies {
namespace {

constexpr std::int64_t many = 1'000'000;

bool is_scalar(const YamlNode& node) { return node.kind == YamlNode::Kind::scalar; }

/// `stages`: how many, or auto.
void read_stages(YamlMap& map, PipelineOptions& options) {
  options.stages_pos = map.pos("stages");
  const YamlNode* stages = map.find("stages");
  if (!stages) return;
  options.auto_stages = is_scalar(*stages) && stages->scalar == "auto";
  if (options.auto_stages) return;
  if (is_scalar(*stages) && !stages->scalar.empty() &&
      std::isalpha(static_cast<unsigned char>(stages->scalar.front())))
    map.fail("stages", "expected a whole number or auto, found '" + stages->scalar.substr(0, 40) + "'");
  options.stages = map.integer("stages", 1, many);
}

/// `replicas`: a number of pipelines, a list with a number for each stage, or auto.
void read_replicas(YamlMap& map, PipelineOptions& options) {
  options.replicas_pos = map.pos("replicas");
  const YamlNode* node = map.find("replicas");
  if (!node || (is_scalar(*node) && node->scalar == "auto")) return;
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

/// `begins`: the first layer of each stage but the first.
void read_begins(YamlMap& map, PipelineOptions& options) {
  const YamlNode* begins = map.find("begins");
  if (!begins) return;
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
  if (options.recompute == Recompute::except_last)
    map.fail("recompute", "except_last goes over inner data_parallel only; use always or never");
  options.hybrid = read_hybrid_options(inner);
}

/// `inner`: what the devices of a stage do with each micro-batch.
void read_inner(YamlMap& map, PipelineOptions& options) {
  options.nested = map.find("inner") != nullptr;
  if (!options.nested) return;
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

bool has_no_inner(const PipelineOptions& options) { return !options.nested; }

/// How the work is divided: read before what a stage does.
Keys<PipelineOptions> division_keys() {
  using Options = PipelineOptions;
  return {
      custom_key<Options>(
          "stages", "devices / replicas", forms::either({forms::whole(1, many), forms::exact_name({"auto"})}),
          "parts of the network; auto: as many as give the shortest estimated step that fits in memory",
          &read_stages),
      custom_key<Options>(
          "replicas", "",
          forms::either({forms::exact_name({"auto"}), forms::whole(1, many),
                         forms::list(forms::whole(1, many), "a list", 1)}),
          "pipelines side by side, that sum their gradients stage by stage; a list: replicas of each stage; "
          "auto: one pipeline, whose stages have several where devices are left over and partition is "
          "optimal",
          &read_replicas),
      integer_key<Options>("micro_batches", 1, many,
                           "parts of a pipeline's share of the batch, accumulated before the update",
                           &Options::micro_batches),
      choice_key<Options>(
          "schedule", schedule_names,
          "order on a device: forward and backward in turn (1f1b), all forward first (gpipe), "
          "or one micro-batch after the other",
          &Options::schedule),
      choice_key<Options>(
          "weights", weights_names,
          "1f1b: the pipeline runs empty before an update; or never does, and keeps a version of its weights "
          "for each update while a micro-batch is under way (PipeDream), or two (PipeDream-2BW)",
          &Options::weights)
          .at(&Options::weights_pos),
      choice_key<Options>("partition", partition_method_names,
                          "optimal: the smallest estimated step that fits in memory (stages may take several "
                          "devices); balanced: the smallest slowest stage; even: as many layers each",
                          &Options::partition),
      list_key<Options>("begins", "", forms::list(forms::text("a layer"), "a list of layers"),
                        "instead of partition: the first layer of each stage but the first", &read_begins)};
}

/// What a stage does.
Keys<PipelineOptions> stage_keys() {
  using Options = PipelineOptions;
  return {
      choice_key<Options>(
          "recompute", {"never", "always", "except_last"},
          "keep only what stages get from each other, and run forward again before backward; except_last "
          "(gpipe): not for the last micro-batch, which goes back at once",
          &Options::recompute),
      choice_key<Options>("neighbours", {"auto", "stages", "replicas"},
                          "who is on neighbouring devices: a pipeline's stages, or a stage's replicas",
                          &Options::neighbours),
      custom_key<Options>(
          "inner", "",
          forms::section("strategy", "{kind: data_parallel, sync: all_reduce, ...} | {kind: hybrid, ...}"),
          "what the devices of a stage do with each micro-batch, as many as there are devices a stage: "
          "replicas that share it, with buckets, overlap, compression and ZeRO; or groups that split its "
          "layers",
          &read_inner),
      algorithm_key<Options>("algorithm", "all-reduce over replicas",
                             [](Options& o) -> SumAlgorithm& { return o.sync.algorithm; })
          .at([](Options& o) -> SourcePos& { return o.sync.algorithm_pos; })
          .only("no inner", &has_no_inner),
      choice_key<Options>("fidelity", fidelity_names,
                          "every message of all-reduces, or one flow an edge; auto chooses",
                          [](Options& o) -> Fidelity& { return o.sync.fidelity; })
          .only("no inner", &has_no_inner)};
}

void check_combination(const YamlMap& map, const PipelineOptions& options) {
  if (options.weights != Weights::flush && options.schedule != PipelineSchedule::one_f_one_b)
    map.fail("weights",
             fmt::format("{} needs schedule: 1f1b; the others run the pipeline empty for each update",
                         weights_names[static_cast<std::size_t>(options.weights)]));
  if (options.recompute == Recompute::except_last && options.schedule != PipelineSchedule::gpipe)
    map.fail(
        "recompute",
        "except_last needs schedule: gpipe, where the last micro-batch goes back as soon as it has come; use "
        "always or never");
  if (options.auto_stages && (!options.begins.empty() || !options.stage_replicas.empty()))
    map.fail("stages", "auto chooses how many there are, and begins or a list of replicas says so");
}

}  // namespace

const Keys<PipelineOptions>& pipeline_keys() {
  static const Keys<PipelineOptions> keys = [] {
    Keys<PipelineOptions> table = division_keys();
    append_keys(table, stage_keys());
    return table;
  }();
  return keys;
}

PipelineOptions read_pipeline_options(YamlMap& map) {
  PipelineOptions options;
  options.path = options.sync.path = map.path();
  read_keys(pipeline_keys(), map, options);
  check_combination(map, options);
  return options;
}

}  // namespace convoy::strategies
