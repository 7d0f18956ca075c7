// SPDX-License-Identifier: MIT
#include "sim/lowering/compression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/lowering/plan_ops.h"

namespace convoy {
namespace {

constexpr double half_bytes = 2, index_bytes = 4;

/// The smallest whole number that is no less than `value`, up to the rounding of a product.
double rounded_up(double value) { return std::max(1.0, std::ceil(value * (1 - 1e-12))); }

const std::vector<std::string> kind_names{"none", "fp16", "top_k"};

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
  YamlMap inner = map.map("compression");
  compression.kind = read_choice<Compression::Kind>(inner, "kind", kind_names);
  if (compression.kind == Compression::Kind::top_k) {
    compression.ratio = inner.number("ratio", 0, 1);
    if (compression.ratio == 0) inner.fail("ratio", "must be more than zero");
  }
  inner.finish();
}

}  // namespace

Key<Compression> compression_key() {
  return custom_key<Compression>("compression", "none | fp16 | {kind: top_k, ratio}",
                                 "gradients sent in half precision, or only the largest with their indices",
                                 &read_compression);
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

double Compressor::buffer_bytes(double bytes) const {
  return sent_bytes(bytes) * (compression_.kind == Compression::Kind::top_k ? senders_ : 1);
}

void Compressor::add_compression(Role& role, TaskId ready, std::size_t index, double bytes) const {
  if (!active()) return;
  const double elements = bytes / element_bytes_;
  const bool top_k = compression_.kind == Compression::Kind::top_k;
  // top_k: an addition, a magnitude and a comparison each.
  PlanOp op = top_k ? elementwise_op(fmt::format("message {} compressed", index), 3 * elements,
                                     5 * bytes + kept(bytes) * (2 * element_bytes_ + index_bytes))
                    : elementwise_op(fmt::format("message {} compressed", index), elements,
                                     bytes + sent_bytes(bytes));
  op.allocates.push_back({MemoryClass::workspace, buffer_bytes(bytes)});
  role.program[ready].ops.push_back(std::move(op));
  if (top_k) role.resident_bytes[static_cast<std::size_t>(MemoryClass::gradients)] += bytes;
}

TaskId Compressor::add_decompression(Role& role, std::size_t index, double bytes, TaskId arrived) const {
  const double elements = bytes / element_bytes_, pairs = senders_ * kept(bytes);
  PlanOp op = compression_.kind == Compression::Kind::top_k
                  ? elementwise_op(fmt::format("message {} decompressed", index), pairs,
                                   bytes + pairs * (3 * element_bytes_ + index_bytes))
                  : elementwise_op(fmt::format("message {} decompressed", index), elements,
                                   bytes + sent_bytes(bytes));
  op.frees.push_back({MemoryClass::workspace, buffer_bytes(bytes)});
  return add_compute(role, fmt::format("message {} decompressed", index), {std::move(op)}, {arrived});
}

void Compressor::add_release(Role& role, std::size_t index, double bytes, TaskId sent) const {
  if (!active()) return;
  const std::string name = fmt::format("free buffer {}", index);
  add_compute(role, name, {memory_op(name, {}, {{MemoryClass::workspace, buffer_bytes(bytes)}})}, {sent});
}

}  // namespace convoy
