// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/tensor_bytes.h"
#include "sim/lowering/graph_index.h"
#include "sim/lowering/graph_schedule.h"

namespace convoy::inline lowering {

/// Makes a schedule (schedule_graph), layer by layer: the forward pass in schedule_forward.cpp, the
/// backward pass in schedule_backward.cpp.
class GraphScheduler {
 public:
  GraphScheduler(const TrainingGraph& graph, const std::vector<LayerSharding>& shardings,
                 const Shards& images, const std::vector<std::uint32_t>& stages);

  GraphSchedule run(const std::optional<TailParts>& tail, bool recomputes);

 private:
  using Over = Sharding::Over;
  using Kind = GraphSchedule::Exchange::Kind;
  static constexpr std::uint32_t none = GraphSchedule::none;

  /// A tensor as it lies on the devices.
  struct PlacedTensor {
    Sharding sharding;
    std::vector<std::uint32_t> copies;  ///< empty: a gradient that no device has to compute
    std::vector<std::uint32_t> ready;   ///< exchanges that bring it
    std::uint32_t made = 0;             ///< the step that makes it, before any exchange
    OpId came_from = GraphSchedule::no_op;  ///< the operation that made it, if that is on another stage
  };

  struct Gradient {
    PlacedTensor held;
    bool own;            ///< its memory may be overwritten by a sum
    std::size_t reader;  ///< the layer whose backward pass made it
  };

  /// An input as a layer reads it.
  struct ReadInput {
    PlacedTensor held;
    std::uint32_t halo = none;  ///< the copy that holds the rows of other devices
  };

  /// Makes the pass of the layer's stage the one under way.
  void enter(std::size_t layer, bool backward);
  const Model& model() const { return graph_.model; }
  const ImagePart& part() const { return schedule_.parts[part_]; }
  static std::size_t at(LayerIndex layer) { return static_cast<std::size_t>(layer); }
  double tensor_bytes(LayerIndex layer) const { return tensor_bytes_(layer); }
  std::string in_part(std::string name) const;
  void run_parts(const TailParts& tail, const std::vector<std::size_t>& head,
                 const std::vector<std::size_t>& behind);
  /// Adds the gradient of another part's images to `all`.
  static void append(std::optional<Gradient>& all, Gradient more);

  // Steps, copies and exchanges.

  std::uint32_t add_step(OpId op, std::optional<Sharding> sharding = std::nullopt);
  std::uint32_t add_copy(double bytes_per_image, double bytes_fixed, const Sharding& sharding,
                         MemoryClass memory_class = MemoryClass::activations);
  std::uint32_t add_copy(std::uint32_t buffer, const Sharding& sharding) {
    const Buffer& b = graph_.buffers[buffer];
    return add_copy(b.bytes_per_image, static_cast<double>(b.bytes_fixed), sharding, b.memory_class);
  }
  void live(std::uint32_t copy, std::uint32_t position) { schedule_.copies[copy].life.use(position); }
  /// The step reads or writes the tensor.
  void use(const PlacedTensor& held, std::uint32_t step) {
    for (const std::uint32_t copy : held.copies) live(copy, 2 * step);
    for (const std::uint32_t exchange : held.ready) await(exchange, step, true);
  }
  void await(std::uint32_t id, std::uint32_t step, bool directly);
  /// @param of the layer whose output, or gradient of the output, is exchanged
  /// @param layer the layer whose input it becomes
  std::uint32_t add_exchange(Kind kind, const std::string& tensor, std::size_t of, std::size_t layer,
                             const PlacedTensor& source);
  /// The tensor, converted to another sharding.
  PlacedTensor convert(const PlacedTensor& from, const Sharding& to, const std::string& tensor,
                       std::size_t of, std::size_t layer);
  /// The same sharding for the images of the part under way.
  Sharding of_part(const Sharding& sharding) const {
    if (sharding.over != Over::batch || sharding.shards->size == part().images.size) return sharding;
    return {Over::batch, std::make_shared<Shards>(part().images)};
  }

  // Forward.

  /// A layer's input as the layer needs it.
  PlacedTensor request(LayerIndex input, const Sharding& needed, std::size_t reader);
  /// An output of another stage, received by the stage under way. Partial sums are added up before they are
  /// sent.
  const PlacedTensor& arrive(LayerIndex input, const Sharding& needed, std::size_t reader);
  /// A tensor of stage `home`, as `home` sends it to the stage under way at the end of its pass.
  PlacedTensor send(const PlacedTensor& held, std::uint32_t home, LayerIndex output);
  /// The operation that has made a tensor.
  OpId maker_of(const PlacedTensor& held) const {
    return held.came_from == GraphSchedule::no_op ? schedule_.steps[held.made].op : held.came_from;
  }
  void await_at_end(std::uint32_t id, std::uint32_t home);
  ReadInput read_input(std::size_t layer, std::size_t k);
  void read_inputs(std::size_t layer);
  std::uint32_t add_halo(Kind kind, const std::string& tensor, std::size_t layer, std::size_t k,
                         const PlacedTensor& source);
  void forward(std::size_t i) { forward(i, index_.forward(i), false); }
  /// @param op nothing for views  @param again recomputed in the backward pass of its stage
  void forward(std::size_t i, std::optional<OpId> op, bool again);
  /// Runs the forward pass of a segment again, with its exchanges, since what they brought has been freed.
  void recompute(const GraphIndex::Segment& segment);
  /// Runs the forward pass of every stage that has a backward pass again.
  void recompute_stages();
  /// The forward buffer that holds a layer's input, in its latest version; nothing if no operation reads the
  /// image.
  std::optional<std::uint32_t> storage_of(LayerIndex input) const {
    return input == image_input ? index_.image_buffer() : storage_[at(input)];
  }
  /// Marks the copies of the graph's forward buffers that an operation of layer i uses. Buffers that the
  /// operation itself makes get the sharding `own`.
  void use_forward_buffers(OpId op, std::size_t i, std::uint32_t step, const Sharding& own);

  // Losses. If outputs are split by images or channels, each device computes the loss of its own images.

  Sharding loss_sharding(const Sharding& output) const;
  /// @return by layer: the output in the sharding in which its loss reads it
  std::vector<PlacedTensor> losses(const std::vector<std::size_t>& layers);
  /// Computes the gradients of the outputs, with which the backward pass begins.
  void seed(const std::vector<std::size_t>& layers, const std::vector<PlacedTensor>& read);
  void seed(std::size_t i, const PlacedTensor& output);

  // Backward.

  /// The gradient, in the sharding that its layer's backward pass needs.
  Gradient at_output(std::size_t i, Gradient gradient);
  void backward(std::size_t i);
  /// At the beginning of a stage's backward pass, adds up the gradients of its outputs that later stages send
  /// back. Each of those stages has already summed its own part.
  void gather_gradients(std::uint32_t stage);
  void gather_gradient(std::size_t i);  ///< of one layer's output
  void data_gradient(std::size_t i, OpId op, const PlacedTensor& gradient);
  void contribute(LayerIndex to, Gradient more, bool sum_is_free);
  /// @param is_sent by copy: whether it is sent to another stage
  void drop_what_nobody_needs(const std::vector<bool>& is_sent) {
    for (std::size_t c = 0; c < schedule_.copies.size(); ++c)
      if (Lifetime& life = schedule_.copies[c].life;
          life.first % 2 == 1 && life.last == life.first && !is_sent[c])
        life = {};
  }

  const TrainingGraph& graph_;
  TensorBytes tensor_bytes_;
  const std::vector<LayerSharding>& shardings_;
  GraphIndex index_;
  std::size_t devices_;
  std::vector<std::uint32_t> stage_of_;  ///< by layer
  std::uint32_t stages_;
  GraphSchedule schedule_;
  std::uint32_t part_ = 0;
  std::uint32_t stage_ = 0;                                ///< under way
  bool backward_ = false;                                  ///< its backward pass is
  std::vector<std::vector<std::uint32_t>> begins_, ends_;  ///< by pass and stage: its first and last step
  struct AtEnd {
    std::uint32_t copy, stage;
    bool backward;
  };
  std::vector<AtEnd> at_ends_;      ///< copies that stay until the end of a stage's pass
  bool again_ = false;              ///< stages run their forward pass a second time
  std::uint32_t not_before_ = 0;    ///< exchanges of the part under way begin after this step
  std::vector<PlacedTensor> made_;  ///< by layer: its output as it is made
  std::vector<std::optional<std::uint32_t>>
      storage_;  ///< by layer: the forward buffer that its output lies in
  std::vector<std::vector<std::optional<PlacedTensor>>>
      arrived_;  ///< by stage and layer of another one: its output
  std::vector<std::vector<std::vector<PlacedTensor>>>
      converted_;                                 ///< by stage and layer: outputs under other shardings
  std::vector<std::vector<PlacedTensor>> image_;  ///< by stage: the image, as it is read
  std::vector<std::vector<ReadInput>> read_;      ///< by layer and input
  std::vector<std::vector<std::optional<Gradient>>> gradient_;  ///< by stage and layer: of its output, so far
  std::vector<int> sums_done_;                                  ///< by layer
  std::vector<std::uint32_t> own_copy_;                         ///< by forward buffer
};

}  // namespace convoy::lowering
