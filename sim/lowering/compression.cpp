// SPDX-License-Identifier: MIT
#include "sim/lowering/compression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/key_parts.h"
#include "sim/lowering/plan_ops.h"

namespace convoy::inline lowering {
namespace {

constexpr double half_bytes = 2, index_bytes = 4;

/// The smallest whole number that is no less than `value`, up to the rounding of a product.
double rounded_up(double value) { return std::max(1.0, std::ceil(value * (1 - 1e-12))); }

const std::vector<std::string> kind_names{"none", "fp16", "top_k"};

Keys<Compression> mapping_keys() {
  return {choice_key<Compression>("kind", kind_names, "top_k: the largest gradients with their indices",
                                  &Compression::kind)
              .required(),
          custom_key<Compression>("ratio", "", forms::number(0, 1), "share of the gradients that is sent",
                                  [](YamlMap& map, Compression& compression) {
                                    compression.ratio = map.number("ratio", 0, 1);
                                    if (compression.ratio == 0) map.fail("ratio", "must be more than zero");
                                  })
              .told_required()
              .only("kind: top_k", [](const Compression& c) { return c.kind == Compression::Kind::top_k; })};
}

void read_compression(YamlMap& map, Compression& compression) {
  const YamlNode* node = map.find("compression");
  if (node == nullptr) return;
  compression.pos = node->pos;
  if (node->kind != YamlNode::Kind::mapping) {
    compression.kind = read_choice<Compression::Kind>(map, "compression", kind_names);
    if (compression.kind == Compression::Kind::top_k)
      map.fail("compression", "top_k needs its ratio; write {kind: top_k, ratio: 0.01}");
    return;
  }
  read_part(mapping_keys(), map.map("compression"), compression);
}

}  // namespace

Key<Compression> compression_key() {
  return custom_key<Compression>("compression", "",
                                 forms::either({forms::name(kind_names).said("none | fp16"),
                                                forms::parts("{kind: top_k, ratio}")}),
                                 "gradients sent in half precision, or only the largest with their indices",
                                 &read_compression)
      .with_parts(texts_of(mapping_keys()));
}

std::string label_of(const Compression& compression) {
  switch (compression.kind) {
    case Compression::Kind::none:
      break;
    case Compression::Kind::fp16:
      return ", fp16 gradients";
    case Compression::Kind::top_k:
      return fmt::format(", top {:.4g} % of gradients", 100 * compression.ratio);
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
      return 0;
  }
  return element_bytes_;
}

double Compressor::buffer_bytes(double bytes) const {
  return sent_bytes(bytes) * (compression_.kind == Compression::Kind::top_k ? senders_ : 1);
}

double Compressor::residual_bytes(double bytes) const {
  return compression_.kind == Compression::Kind::top_k ? bytes : 0;
}

std::size_t Compressor::add_compression(ComputeTasks& tasks, std::size_t index, double bytes) const {
  const double elements = bytes / element_bytes_;
  const bool top_k = compression_.kind == Compression::Kind::top_k;
  const std::string name = fmt::format("message {} compressed", index);
  // top_k: an addition, a magnitude and a comparison each.
  tasks.add_unnamed(
      top_k ? elementwise_op(name, 3 * elements, 5 * bytes + kept(bytes) * (2 * element_bytes_ + index_bytes))
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
  tasks.add(compression_.kind == Compression::Kind::top_k
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
