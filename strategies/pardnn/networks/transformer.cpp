// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "strategies/pardnn/networks/networks.h"

namespace convoy::inline strategies {
namespace {

using Value = OperationTape::Value;

class Transformer {
 public:
  explicit Transformer(const TransformerNetwork& shape) : shape_(shape) {}

  OperationNetwork build(Optimizer optimizer, bool clip) {
    const double length = shape_.length, tokens = length * shape_.hidden;
    Value source =
        tape_.lookup("source", tape_.variable("source.embedding", shape_.vocabulary * shape_.hidden), tokens);
    for (int l = 0; l < shape_.layers; ++l) {
      const std::string name = fmt::format("encoder{}", l);
      source = attention(name + ".self", source, source);
      source = feed_forward(name + ".ffn", source);
    }
    source = normalized("encoder", source);
    Value target =
        tape_.lookup("target", tape_.variable("target.embedding", shape_.vocabulary * shape_.hidden), tokens);
    for (int l = 0; l < shape_.layers; ++l) {
      const std::string name = fmt::format("decoder{}", l);
      target = attention(name + ".self", target, target);
      target = attention(name + ".cross", target, source);
      target = feed_forward(name + ".ffn", target);
    }
    const Value logits = dense("logits", normalized("decoder", target), shape_.hidden, shape_.vocabulary);
    tape_.loss("loss", logits);
    return std::move(tape_).differentiate(optimizer, clip);
  }

 private:
  Value dense(const std::string& name, Value x, double in, double out) {
    return tape_.product(name + ".matmul", x, tape_.variable(name + ".kernel", in * out),
                         {static_cast<double>(shape_.length), in, out});
  }

  Value normalized(const std::string& name, Value x) {
    return tape_.normalize(name + ".norm", x, tape_.variable(name + ".scale", shape_.hidden));
  }

  /// softmax(Q K^T / sqrt(d)) V in `heads` heads, around it a normalization, dropout and a residual
  /// connection.
  Value attention(const std::string& name, Value x, Value memory) {
    const double length = shape_.length, width = shape_.hidden / shape_.heads;
    const Value from = normalized(name, x);
    const Value of = x == memory ? from : memory;
    const Value query = dense(name + ".query", from, shape_.hidden, shape_.hidden);
    const Value key = dense(name + ".key", of, shape_.hidden, shape_.hidden);
    const Value value = dense(name + ".value", of, shape_.hidden, shape_.hidden);
    const Value scores = tape_.product(name + ".scores", query, key, {shape_.heads * length, width, length});
    const Value masked = tape_.shift(name + ".mask", scores);
    const Value weights = tape_.function(name + ".dropout", tape_.function(name + ".softmax", masked));
    const Value mixed = tape_.product(name + ".mix", weights, value, {shape_.heads * length, length, width});
    const Value joined = dense(name + ".join", mixed, shape_.hidden, shape_.hidden);
    return tape_.add(name + ".sum", {x, tape_.function(name + ".join.dropout", joined)});
  }

  Value feed_forward(const std::string& name, Value x) {
    const Value wide = dense(name + ".wide", normalized(name, x), shape_.hidden, shape_.feed_forward);
    const Value kept = tape_.function(name + ".dropout", tape_.function(name + ".relu", wide));
    const Value narrow = dense(name + ".narrow", kept, shape_.feed_forward, shape_.hidden);
    return tape_.add(name + ".sum", {x, tape_.function(name + ".narrow.dropout", narrow)});
  }

  TransformerNetwork shape_;
  OperationTape tape_;
};

}  // namespace

OperationNetwork transformer_network(const TransformerNetwork& shape, Optimizer optimizer, bool clip) {
  return Transformer(shape).build(optimizer, clip);
}

}  // namespace convoy::strategies
