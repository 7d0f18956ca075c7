// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/work.h"
#include "sim/costs/software.h"
#include "strategies/partition/dag.h"
#include "topologies/device.h"

namespace convoy::inline strategies {

/// A step of training as a framework's graph has it: operations, and the variables that they read, in an
/// order in which they can be executed.
struct OperationNetwork {
  struct Node {
    std::string name;
    Work work;                        ///< of one sample (Work's "image"); of a variable: none
    double elements_per_sample = 0;   ///< of its output
    double elements_fixed = 0;        ///< of its output, whatever the batch
    std::vector<NodeId> inputs = {};  ///< each once
    bool is_variable = false;
  };
  std::vector<Node> nodes;
  Optimizer optimizer = Optimizer::adam;
  double parameters() const;
};

/// Records the forward pass of a network, all values fp32, and appends the backward pass as tf.gradients
/// does: an operation a gradient, gradients of a value with several readers added up by one operation when
/// all are there, likewise those of a variable that many steps share.
class OperationTape {
 public:
  using Value = NodeId;
  /// [rows, in] by [in, out], for each sample.
  struct ProductShape {
    double rows, in, out;
  };

  Value samples(std::string name, double elements);
  Value variable(std::string name, double elements);
  /// Rows of a table, `elements` of a sample.
  Value lookup(std::string name, Value table, double elements);
  /// @param weights a variable, or a value of every sample (attention)
  Value product(std::string name, Value x, Value weights, const ProductShape& shape);
  /// From `in` channels to `out` channels at `height` times `width` places.
  struct ConvolutionShape {
    double height, width, in, out;
    int kernel_h, kernel_w, stride;
  };
  Value convolution(std::string name, Value x, Value weights, const ConvolutionShape& shape);
  Value add_bias(std::string name, Value x, Value bias);
  Value add(std::string name, const std::vector<Value>& values);
  Value multiply(std::string name, Value a, Value b);
  /// Element by element, or softmax: the gradient follows from the result.
  Value function(std::string name, Value x);
  /// A constant added: the gradient passes.
  Value shift(std::string name, Value x);
  Value normalize(std::string name, Value x, Value scale);
  Value max_pool(std::string name, Value x, double elements);
  /// The gradient does not read the value.
  Value average_pool(std::string name, Value x, double elements);
  Value concat(std::string name, const std::vector<Value>& values);
  /// One operation with `pieces` results, as TensorFlow's split: every reader takes one of them, each of
  /// which has one reader.
  Value split(std::string name, Value x, int pieces);
  /// Softmax and cross entropy with labels.
  void loss(std::string name, Value logits);

  /// @param clip gradients are scaled by their common norm (tf.clip_by_global_norm), which waits for all of
  /// them
  OperationNetwork differentiate(Optimizer optimizer, bool clip) &&;

 private:
  enum class Rule : std::uint8_t {
    source,
    variable,
    lookup,
    product,
    bias,
    pass,
    multiply,
    function,
    normalize,
    pool,
    average,
    concat,
    split,
    loss
  };
  /// How a value of the forward pass is differentiated.
  struct Recorded {
    Rule rule;
    bool differentiable;                 ///< some variable is upstream
    int pieces = 1;                      ///< a reader takes one of so many
    std::vector<NodeId> gradients = {};  ///< one a reader
  };

  Value record(Rule rule, OperationNetwork::Node node);
  Value record_elementwise(Rule rule, std::string name, const std::vector<Value>& inputs, double elements,
                           KernelKind kind = KernelKind::elementwise);
  double taken(Value value) const;  ///< elements of a sample that one reader takes
  NodeId emit(OperationNetwork::Node node);
  /// An operation of the backward pass whose result is as large as what a reader takes of `like`.
  NodeId emit_gradient(Value like, std::string name, Work work, std::vector<NodeId> inputs);
  /// All readers' contributions as one.
  NodeId gradient_of(Value value);
  void contribute(Value to, NodeId gradient);
  void backward(Value value);
  void backward_product(Value value, NodeId gradient);
  void backward_elementwise(Value value, NodeId gradient);
  void backward_of_sum(Value value, NodeId gradient);
  void update_variables(bool clip);

  OperationNetwork network_;
  std::vector<Recorded> recorded_;  ///< by value
};

/// @param batch samples of the step
/// Times are the cost model's: a launch and work that saturates the device with the batch, in fp32. The
/// memory of a variable is it and its optimizer's state; gradients are outputs of operations.
Dag operation_network_dag(const OperationNetwork& network, double batch, const Software& software,
                          const DeviceType& device);

}  // namespace convoy::strategies
