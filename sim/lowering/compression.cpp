// SPDX-License-Identifier: MIT
#include "sim/lowering/compression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/key_parts.h"
#include "sim/lowering/plan_ops.h"

namespace convoy::inline lowering {
namespace {

constexpr double half_bytes = 2, index_bytes = 4, scale_bytes = 4;
const std::vector<std::int64_t> code_bits{1, 2, 4, 8};
constexpr std::int64_t largest_rank = 1024;

/// The smallest whole number that is no less than `value`, up to the rounding of a product.
double rounded_up(double value) { return std::max(1.0, std::ceil(value * (1 - 1e-12))); }

const std::vector<std::string> kind_names{"none", "fp16", "top_k", "quantised", "sign", "powersgd"};

Keys<Compression> mapping_keys() {
  return {choice_key<Compression>(
              "kind", kind_names,
              "top_k: the largest gradients with their indices; quantised: all of them in a few bits; "
              "sign: their signs; powersgd: each matrix of them as two factors of a few columns",
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
                    [](const Compression& c) { return c.kind == Compression::Kind::quantised; }),
          choice_key<Compression>("combine", {"mean", "majority"},
                                  "what all devices' signs become: their mean, each device's times the mean "
                                  "magnitude of its gradients, with what that leaves out added to the next "
                                  "step's gradients; or the sign that most of them have",
                                  &Compression::combine)
              .only("kind: sign", [](const Compression& c) { return c.kind == Compression::Kind::sign; }),
          custom_key<Compression>(
              "rank", "", forms::whole(1, largest_rank), "columns of each factor, at most",
              [](YamlMap& map, Compression& c) { c.rank = map.integer("rank", 1, largest_rank); })
              .told_required()
              .only("kind: powersgd",
                    [](const Compression& c) { return c.kind == Compression::Kind::powersgd; })};
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
    if (compression.kind == Compression::Kind::powersgd)
      map.fail("compression", "powersgd needs its rank; write {kind: powersgd, rank: 4}");
    return;
  }
  read_part(mapping_keys(), map.map("compression"), compression);
}

}  // namespace

Key<Compression> compression_key() {
  return custom_key<Compression>(
             "compression", "",
             forms::either({forms::name(kind_names).said("none | fp16 | sign"),
                            forms::parts("{kind: top_k, ratio} | {kind: quantised, bits} | {kind: sign, "
                                         "combine} | {kind: powersgd, rank}")}),
             "gradients sent in half precision, only the largest with their indices, in a few "
             "bits each, as signs, or as factors of low rank",
             &read_compression)
      .with_parts(texts_of(mapping_keys()));
}

bool is_gathered(const Compression& compression) {
  return compression.kind == Compression::Kind::top_k || compression.kind == Compression::Kind::quantised ||
         compression.kind == Compression::Kind::sign;
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
    case Compression::Kind::sign:
      return compression.combine == Compression::Combine::mean ? ", signs of gradients"
                                                               : ", majority of signs";
    case Compression::Kind::powersgd:
      return fmt::format(", PowerSGD of rank {}", compression.rank);
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
      return std::ceil(bytes / element_bytes_ * static_cast<double>(compression_.bits) / 8) + 2 * scale_bytes;
    case Compression::Kind::sign:
      return std::ceil(bytes / element_bytes_ / 8) + (has_residual() ? scale_bytes : 0);
    case Compression::Kind::powersgd:  // LowRankBucket's
      break;
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
    case Compression::Kind::sign:
    case Compression::Kind::powersgd:
      return 0;
  }
  return element_bytes_;
}

bool Compressor::has_residual() const {
  switch (compression_.kind) {
    case Compression::Kind::none:
    case Compression::Kind::fp16:
      return false;
    case Compression::Kind::top_k:
    case Compression::Kind::powersgd:
      return true;
    case Compression::Kind::quantised:
      return compression_.bits == 1;
    case Compression::Kind::sign:
      return compression_.combine == Compression::Combine::mean;
  }
  return false;
}

BucketMeaning::Coding Compressor::coding() const {
  using Coding = BucketMeaning::Coding;
  switch (compression_.kind) {
    case Compression::Kind::none:
      break;
    case Compression::Kind::fp16:
      return Coding::half;
    case Compression::Kind::top_k:
      return Coding::largest;
    case Compression::Kind::quantised:
      return Coding::levels;
    case Compression::Kind::sign:
      return has_residual() ? Coding::signs : Coding::votes;
    case Compression::Kind::powersgd:
      return Coding::low_rank;
  }
  return Coding::none;
}

std::int64_t Compressor::coding_detail() const {
  if (compression_.kind == Compression::Kind::quantised) return compression_.bits;
  return compression_.kind == Compression::Kind::powersgd ? compression_.rank : 0;
}

double Compressor::kept_share() const {
  if (compression_.kind == Compression::Kind::top_k) return compression_.ratio;
  return sent_element_bytes() > 0 ? 1 : 0;
}

double Compressor::buffer_bytes(double bytes) const {
  return sent_bytes(bytes) * (is_gathered(compression_) ? senders_ : 1);
}

double Compressor::residual_bytes(double bytes) const { return has_residual() ? bytes : 0; }

namespace {

PlanOp compressing_op(const Compression& compression, const std::string& name, double elements, double bytes,
                      double sent_bytes, bool has_residual, double pairs_bytes) {
  switch (compression.kind) {
    case Compression::Kind::top_k:  // an addition, a magnitude and a comparison each
      return elementwise_op(name, 3 * elements, 5 * bytes + pairs_bytes);
    case Compression::Kind::quantised:  // a maximum, a product and a rounding; for the residual an addition
                                        // and a difference
      return elementwise_op(name, (has_residual ? 5 : 3) * elements,
                            (has_residual ? 6 : 2) * bytes + sent_bytes);
    case Compression::Kind::sign:  // a comparison; with a residual two additions, a magnitude, a difference
      return elementwise_op(name, (has_residual ? 5 : 1) * elements,
                            (has_residual ? 7 : 1) * bytes + sent_bytes);
    case Compression::Kind::none:
    case Compression::Kind::fp16:
    case Compression::Kind::powersgd:
      break;
  }
  return elementwise_op(name, elements, bytes + sent_bytes);
}

}  // namespace

std::size_t Compressor::add_compression(ComputeTasks& tasks, std::size_t index, double bytes) const {
  const std::string name = fmt::format("message {} compressed", index);
  const double pairs_bytes =
      compression_.kind == Compression::Kind::top_k ? kept(bytes) * (2 * element_bytes_ + index_bytes) : 0;
  tasks.add_unnamed(compressing_op(compression_, name, bytes / element_bytes_, bytes, sent_bytes(bytes),
                                   has_residual(), pairs_bytes));
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
            : is_gathered(compression_)
                ? elementwise_op(name, senders_ * elements, bytes + buffer_bytes(bytes))
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
