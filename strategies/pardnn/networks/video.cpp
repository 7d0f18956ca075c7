// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "strategies/pardnn/networks/networks.h"

namespace convoy::inline strategies {
namespace {

using Value = OperationTape::Value;

/// A layer's variables and state. The kernels see the input, the hidden state, the memory that goes through all
/// layers, and for the output gate the new cell and memory.
struct EideticLayer {
  std::string name;
  double inputs;  ///< channels
  Value of_input, of_hidden, of_memory, gate_of_cell, gate_of_memory, merge;
  Value input_norm, hidden_norm, memory_norm, recall_norm;
  Value hidden, cell, history;
  double remembered = 0;  ///< cells in the history
};

class EideticVideo {
 public:
  explicit EideticVideo(const VideoNetwork& shape)
      : shape_(shape),
        side_(shape.side / shape.patch),
        channels_(shape.patch * shape.patch * shape.colors),
        places_(window * side_ * side_) {}

  OperationNetwork build(Optimizer optimizer, bool clip) {
    for (int l = 0; l < shape_.layers; ++l) layers_.push_back(layer(l));
    memory_ = tape_.samples("memory0", places_ * shape_.hidden);
    const double frame = side_ * side_ * channels_;
    const Value to_frame = variable("frame", window, shape_.hidden, channels_);
    Value seen = tape_.samples("before", frame), next = 0;
    std::vector<Value> made;
    for (int step = 0; step + 1 < shape_.frames; ++step) {
      const bool is_given = step < shape_.given;
      const Value now = is_given ? tape_.samples(fmt::format("image.{}", step), frame) : next;
      Value x = tape_.concat(fmt::format("window.{}", step), {seen, now});
      for (EideticLayer& of : layers_) x = cell(of, x, step);
      next = tape_.convolution(fmt::format("frame.{}", step), x, to_frame,
                               {side_, side_, shape_.hidden, channels_, static_cast<int>(window), 1, 1});
      made.push_back(next);
      seen = now;
    }
    tape_.loss("loss", tape_.concat("made", made));
    return std::move(tape_).differentiate(optimizer, clip);
  }

 private:
  /// Of a convolution: its kernel and bias.
  Value variable(const std::string& name, double taps, double in, double out) {
    return tape_.variable(name + ".kernel", taps * in * out + out);
  }

  EideticLayer layer(int l) {
    const double h = shape_.hidden, inputs = l == 0 ? channels_ : h;
    const double taps = static_cast<double>(shape_.kernel_depth) * shape_.kernel * shape_.kernel;
    EideticLayer made{};
    made.name = fmt::format("layer{}", l);
    made.inputs = inputs;
    made.of_input = variable(made.name + ".input", taps, inputs, input_gates * h);
    made.of_hidden = variable(made.name + ".hidden", taps, h, hidden_gates * h);
    made.of_memory = variable(made.name + ".memory", taps, h, memory_gates * h);
    made.gate_of_cell = variable(made.name + ".gate_of_cell", taps, h, h);
    made.gate_of_memory = variable(made.name + ".gate_of_memory", taps, h, h);
    made.merge = variable(made.name + ".merge", 1, 2 * h, h);
    made.input_norm = tape_.variable(made.name + ".input.scale", 2 * input_gates * h);
    made.hidden_norm = tape_.variable(made.name + ".hidden.scale", 2 * hidden_gates * h);
    made.memory_norm = tape_.variable(made.name + ".memory.scale", 2 * memory_gates * h);
    made.recall_norm = tape_.variable(made.name + ".recall.scale", 2 * h);
    made.hidden = tape_.samples(made.name + ".hidden0", places_ * h);
    made.cell = tape_.samples(made.name + ".cell0", places_ * h);
    made.history = made.cell;
    made.remembered = 1;
    return made;
  }

  /// Over a window of frames, with the side kept.
  Value convolved(const std::string& name, Value x, Value kernel, double in, double out, int depth,
                  int side) {
    return tape_.convolution(name, x, kernel, {window * side_, side_, in, out, depth * side, side, 1});
  }

  /// Pieces of a normalized convolution: each gate takes one.
  Value gates_of(const std::string& name, Value x, Value kernel, Value scale, double in, int gates) {
    const Value seen = convolved(name + ".convolution", x, kernel, in, gates * shape_.hidden,
                                 shape_.kernel_depth, shape_.kernel);
    return tape_.split(name + ".split", tape_.normalize(name + ".norm", seen, scale), gates);
  }

  /// One step of a layer: Wang et al., Eidetic 3D LSTM, ICLR 2019, section 3.2. @returns the hidden state
  Value cell(EideticLayer& of, Value x, int step) {
    const auto named = [&](const char* what) { return fmt::format("{}.{}.{}", of.name, step, what); };
    const auto gate = [&](const char* what, Value a, Value b) {
      return tape_.function(named(what), tape_.add(fmt::format("{}.{}.{}_sum", of.name, step, what), {a, b}));
    };
    const double h = shape_.hidden;
    const Value from_x = gates_of(named("input"), x, of.of_input, of.input_norm, of.inputs, input_gates);
    const Value from_h = gates_of(named("hidden"), of.hidden, of.of_hidden, of.hidden_norm, h, hidden_gates);
    const Value from_m = gates_of(named("memory"), memory_, of.of_memory, of.memory_norm, h, memory_gates);
    // The cells of all steps before are read again, as attention by the recall gate.
    if (step > 0) {
      of.history = tape_.concat(named("history"), {of.history, of.cell});
      ++of.remembered;
    }
    const double keys = of.remembered * places_;
    const Value recall = gate("recall_gate", from_x, from_h);
    const Value scores = tape_.product(named("scores"), recall, of.history, {places_, h, keys});
    const Value recalled = tape_.product(named("recalled"), tape_.function(named("softmax"), scores),
                                         of.history, {places_, keys, h});
    const Value fresh =
        tape_.multiply(named("fresh"), gate("input_gate", from_x, from_h), gate("candidate", from_x, from_h));
    of.cell = tape_.add(
        named("cell"),
        {tape_.normalize(named("kept"), tape_.add(named("recall"), {of.cell, recalled}), of.recall_norm),
         fresh});
    const Value memory_fresh = tape_.multiply(named("memory_fresh"), gate("memory_input", from_x, from_m),
                                              gate("memory_candidate", from_x, from_m));
    const Value memory_kept =
        tape_.multiply(named("memory_kept"), memory_, gate("memory_forget", from_x, from_m));
    memory_ = tape_.add(named("memory_new"), {memory_kept, memory_fresh});
    const Value of_cell =
        convolved(named("gate_of_cell"), of.cell, of.gate_of_cell, h, h, shape_.kernel_depth, shape_.kernel);
    const Value of_memory = convolved(named("gate_of_memory"), memory_, of.gate_of_memory, h, h,
                                      shape_.kernel_depth, shape_.kernel);
    const Value output =
        tape_.function(named("output"), tape_.add(named("output_sum"), {of_cell, of_memory, from_x, from_h}));
    const Value both = tape_.concat(named("both"), {of.cell, memory_});
    const Value merged =
        tape_.function(named("merged"), convolved(named("merge"), both, of.merge, 2 * h, h, 1, 1));
    of.hidden = tape_.multiply(named("hidden_new"), output, merged);
    return of.hidden;
  }

  static constexpr double window = 2;  ///< frames that a cell sees
  /// Of the cell: recall, input, candidate and output; of the memory: input, candidate, forget.
  static constexpr int hidden_gates = 4, memory_gates = 3, input_gates = hidden_gates + memory_gates;

  VideoNetwork shape_;
  double side_, channels_, places_;
  OperationTape tape_;
  std::vector<EideticLayer> layers_;
  Value memory_ = 0;
};

}  // namespace

OperationNetwork video_network(const VideoNetwork& shape, Optimizer optimizer, bool clip) {
  return EideticVideo(shape).build(optimizer, clip);
}

}  // namespace convoy::strategies
