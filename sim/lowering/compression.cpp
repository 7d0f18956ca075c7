// SPDX-License-Identifier: MIT
#include "sim/lowering/compression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/key_parts.h"
#include "sim/lowering/plan_ops.h"

namespace convoy::inline lowering {
namespace {

constexpr double half_bytes = 2, index_bytes = 4, scale_bytes = 8;
const std::vector<std::int64_t> code_bits{1, 2, 4, 8};

/// The smallest whole number that is no less than `value`, up to the rounding of a product.
double rounded_up(double value) { return std::max(1.0, std::ceil(value * (1 - 1e-12))); }

const std::vector<std::string> kind_names{"none", "fp16", "top_k", "quantised"};

Keys<Compression> mapping_keys() {
  return {choice_key<Compression>(
              "kind", kind_names,
              "top_k: the largest gradients with their indices; quantised: all of them in a few bits",
              &Compression::kind)
              .required(),
          custom_key<Compression>("ratio", "", forms::number(0, 1), "share of the gradients that is sent",
                                  [](YamlMap& map, Compression& compression) {
                                    compression.ratio = map.number("ratio", 0, 1);
                                    if (compression.ratio == 0) map.fail("ratio", "must be more than zero");
                                  })
              .told_required()
              .only("kind: top_k", [](const Compression& c) { return c.kind == Compression::Kind::top_k; }),
          custom_key<Compression>(
              "bits", "", forms::whole(1, 8).said("1 | 2 | 4 | 8"),
              "bits of a gradient as it is sent; with 1, what rounding leaves out is added "
              "to the next step's gradients",
              [](YamlMap& map, Compression& compression) {
                compression.bits = map.integer("bits", 1, 8);
                if (std::find(code_bits.begin(), code_bits.end(), compression.bits) == code_bits.end())
                  map.fail("bits", "expected 1, 2, 4 or 8");
              })
              .told_required()
              .only("kind: quantised",
                    [](const Compression& c) { return c.kind == Compression::Kind::quantised; })};
}

void read_compression(YamlMap& map, Compression& compression) {
  const YamlNode* node = map.find("compression");
  if (node == nullptr) return;
  compression.pos = node->pos;
  if (node->kind != YamlNode::Kind::mapping) {
    compression.kind = read_choice<Compression::Kind>(map, "compression", kind_names);
    if (compression.kind == Compression::Kind::top_k)
      map.fail("compression", "top_k needs its ratio; write {kind: top_k, ratio: 0.01}");
    if (compression.kind == Compression::Kind::quantised)
      map.fail("compression", "quantised needs its bits; write {kind: quantised, bits: 8}");
    return;
  }
  read_part(mapping_keys(), map.map("compression"), compression);
}

}  // namespace

Key<Compression> compression_key() {
  return custom_key<Compression>(
             "compression", "",
             forms::either({forms::name(kind_names).said("none | fp16"),
                            forms::parts("{kind: top_k, ratio} | {kind: quantised, bits}")}),
             "gradients sent in half precision, only the largest with their indices, or in a few "
             "bits each",
             &read_compression)
      .with_parts(texts_of(mapping_keys()));
}

bool is_gathered(const Compression& compression) {
  return compression.kind == Compression::Kind::top_k || compression.kind == Compression::Kind::quantised;
}

const std::string& kind_of(const Compression& compression) {
  return kind_names[static_cast<std::size_t>(compression.kind)];
}

std::string label_of(const Compression& compression) {
  switch (compression.kind) {
    case Compression::Kind::none:
      break;
    case Compression::Kind::fp16:
      return ", fp16 gradients";
    case Compression::Kind::top_k:
      return fmt::format(", top {:.4g} % of gradients", 100 * compression.ratio);
    case Compression::Kind::quantised:
      return fmt::format(", {}-bit gradients", compression.bits);
  }
  return "";
}

Compressor::Compressor(const Compression& compression, const TrainingGraph& graph, std::size_t senders)
    : compression_(compression),
      element_bytes_(element_bytes(graph.options.precision)),
      senders_(static_cast<double>(senders)) {
  if (compression.kind == Compression::Kind::fp16 && element_bytes_ <= half_bytes)
    throw InputError(compression.pos,
                     fmt::format("strategy.compression: with precision {} gradients are sent in 2 bytes "
                                 "already; leave fp16 out, or use top_k",
                                 to_string(graph.options.precision)));
}

double Compressor::kept(double bytes) const {
  return rounded_up(compression_.ratio * (bytes / element_bytes_));
}

double Compressor::sent_bytes(double bytes) const {
  switch (compression_.kind) {
    case Compression::Kind::none:
      break;
    case Compression::Kind::fp16:
      return bytes / element_bytes_ * half_bytes;
    case Compression::Kind::top_k:
      return kept(bytes) * (element_bytes_ + index_bytes);
    case Compression::Kind::quantised:
      return std::ceil(bytes / element_bytes_ * static_cast<double>(compression_.bits) / 8) + scale_bytes;
  }
  return bytes;
}

double Compressor::sent_element_bytes() const {
  switch (compression_.kind) {
    case Compression::Kind::none:
      break;
    case Compression::Kind::fp16:
      return half_bytes;
    case Compression::Kind::top_k:
    case Compression::Kind::quantised:
      return 0;
  }
  return element_bytes_;
}

double Compressor::kept_share() const {
  if (compression_.kind == Compression::Kind::top_k) return compression_.ratio;
  return compression_.kind == Compression::Kind::quantised ? 0 : 1;
}

double Compressor::buffer_bytes(double bytes) const {
  return sent_bytes(bytes) * (is_gathered(compression_) ? senders_ : 1);
}

double Compressor::residual_bytes(double bytes) const { return has_residual() ? bytes : 0; }

std::size_t Compressor::add_compression(ComputeTasks& tasks, std::size_t index, double bytes) const {
  const double elements = bytes / element_bytes_;
  const bool top_k = compression_.kind == Compression::Kind::top_k;
  const bool quantised = compression_.kind == Compression::Kind::quantised;
  const std::string name = fmt::format("message {} compressed", index);
  // top_k: an addition, a magnitude and a comparison each; quantised: a maximum, a product and a rounding, and
  // an addition and a difference for the residual.
  tasks.add_unnamed(quantised ? elementwise_op(name, (has_residual() ? 5 : 3) * elements,
                                               (has_residual() ? 6 : 2) * bytes + sent_bytes(bytes))
                    : top_k   ? elementwise_op(name, 3 * elements,
                                               5 * bytes + kept(bytes) * (2 * element_bytes_ + index_bytes))
                              : elementwise_op(name, elements, bytes + sent_bytes(bytes)));
  const std::size_t buffer = tasks.hold({MemoryClass::workspace, buffer_bytes(bytes)});
  tasks.use(buffer);
  return buffer;
}

TaskId Compressor::add_decompression(ComputeTasks& tasks, std::size_t buffer, std::size_t index, double bytes,
                                     TaskId arrived) const {
  const double elements = bytes / element_bytes_, pairs = senders_ * kept(bytes);
  const std::string name = fmt::format("message {} decompressed", index);
  tasks.wait_for(arrived);
  tasks.add(compression_.kind == Compression::Kind::quantised
                ? elementwise_op(name, senders_ * elements, bytes + buffer_bytes(bytes))
            : compression_.kind == Compression::Kind::top_k
                ? elementwise_op(name, pairs, bytes + pairs * (3 * element_bytes_ + index_bytes))
                : elementwise_op(name, elements, bytes + sent_bytes(bytes)));
  tasks.use(buffer);
  return tasks.close(name);
}

void Compressor::add_release(ComputeTasks& tasks, std::size_t buffer, std::size_t index, TaskId sent) {
  const std::string name = fmt::format("free buffer {}", index);
  tasks.wait_for(sent);
  tasks.add_unnamed(memory_op(name, {}, {}));
  tasks.use(buffer);
  tasks.close(name);
}

}  // namespace convoy::lowering
