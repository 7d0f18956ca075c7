// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "models/layer_operations.h"
#include "models/tensor_bytes.h"
#include "sim/prove/gradient_ways.h"
#include "sim/prove/layer_maps.h"
#include "sim/prove/parameter_parts.h"
#include "sim/prove/prove_memory.h"
#include "sim/prove/prove_parts.h"
#include "sim/prove/prove_rounds.h"

namespace convoy::inline prove {
/// Of prove_parts() alone.
namespace parts {

using Act = OpMeaning::Act;
using Kind = CommMeaning::Kind;

/// A part of an operation of the graph: the terms that it adds to a sum.
struct Term {
  OpId operation;
  Box work;
  Way way = 0;
  auto operator<=>(const Term&) const = default;
};
using Terms = std::vector<Term>;  ///< ascending, each once

/// Elements of a tensor on a device. Each is the sum of those terms that make something for it; of an output,
/// no terms: it is complete.
struct Value {
  OpId maker;
  Box box;
  Terms terms;
  TaskId task;
  std::int64_t micro_batch = 0;
  std::size_t number = 0;               ///< the later ones on the device have larger ones
  std::optional<std::uint32_t> pass{};  ///< the only one in which it can be read
  /// It came whole into a buffer of its own, and not beside what the device has of the tensor.
  bool is_copy = false;
};

/// What is on a device.
struct Device {
  std::uint32_t role = 0;
  EndpointId endpoint = 0;
  using Outputs = std::map<std::pair<std::int64_t, std::uint32_t>, std::vector<Value>>;
  Outputs outputs, gradients;  ///< by micro-batch and layer of whose output's shape they are
  Outputs parts;               ///< of gradients that have come and are not added up
  /// Of gradients, at any time.
  std::map<std::pair<std::int64_t, std::uint32_t>, std::vector<Box>> sent_parts;
  std::map<std::uint32_t, std::vector<Value>> parameter_gradients, parameters;  ///< by layer
  /// Gradients of parameters that have come and are not added to those of other micro-batches; by micro-batch,
  /// layer.
  Outputs come_gradients;
  std::vector<Value> images;
  Outputs views;                                            ///< of the image, that have come
  std::map<std::uint32_t, std::pair<TaskId, Box>> updates;  ///< by layer
  std::set<std::uint32_t> updated;                          ///< layers, by what has been visited
  /// By micro-batch and operation: what has been done of it, and is not to be done again.
  std::map<std::pair<std::int64_t, OpId>, std::vector<Box>> done;
};

/// Follows every task of a plan whose devices work on parts of layers. What the graph says, and the visits, are in
/// prove_parts.cpp; what devices read, in parts_read.cpp; what they make, in parts_made.cpp; what they send each
/// other, in parts_sent.cpp; what collectives bring, in parts_exchanged.cpp; replicas, in parts_replicas.cpp.
class PartsProver : public ParameterParts {
 public:
  PartsProver(const Plan& plan, const TrainingGraph& graph, const Machine& machine,
              const HappensBefore& order, RoundRules& rounds);
  /// @throws Refuted, NotCovered
  void prove();

  // Of replicas, when all has been visited.

  double elements(std::size_t parameter, EndpointId e) const override;
  void check_sum(const std::vector<std::size_t>& parameters, const std::vector<EndpointId>& group) override;

 private:
  using Slot = GradientWays::Slot;

  // What the graph says.

  /// All micro-batches have equally many.
  std::int64_t images_of_micro_batch();
  void read_graph();
  /// The terms that the gradient of some elements of a layer's output is the sum of. Kept: where many layers
  /// read many, each asks for those of the others again.
  const std::map<Maker, Box>& terms_of(std::uint32_t layer, const Box& elements) const;

  // Text.

  std::string at(const Device& device, TaskId t) const;
  std::string of_layer(std::uint32_t layer, const Box& box) const;

  // Replicas.

  void find_lanes();
  /// Whether all groups of devices that have the same programs send each other the same, each for itself.
  bool groups_are_alike() const;
  bool is_followed(EndpointId e) const { return followed_as_[e] == e; }
  const std::vector<const std::vector<EndpointId>*>& followed_groups(std::uint32_t pattern) const;
  /// The layers that use a layer's parameters.
  std::vector<std::uint32_t> uses_of(std::uint32_t layer) const;
  /// Of a group whose members sum gradients: the devices that are followed for those of each replica, every
  /// set of them once.
  std::set<std::vector<EndpointId>> followed_sets(const std::vector<EndpointId>& group) const;

  // Order.

  bool is_before(const Device& device, TaskId made, TaskId t) const;

  // What is there.

  /// Takes away of `wanted` what is there and complete of a layer's output.
  void find_output(const Device& device, TaskId t, const OpMeaning& reader, OpId maker, std::uint32_t layer,
                   std::vector<Box>& wanted) const;
  /// Whether a pass that drops what it makes has not ended yet.
  bool is_kept(const Device& device, TaskId t, const OpMeaning& reader, const Value& value) const;
  /// @throws Refuted unless what `maker` makes of these elements of a tensor is there; the tensor may be a
  /// view of it
  /// @return whether the tensor is of `maker`
  bool read_output(const Device& device, TaskId t, const OpMeaning& reader, OpId maker, LayerIndex tensor,
                   std::vector<Box> wanted) const;
  bool is_view_of(std::uint32_t layer, std::uint32_t of) const;
  void read_images(const Device& device, TaskId t, const OpMeaning& reader, std::vector<Box> wanted) const;
  /// Gradients of a layer's output, also those that a layer which reads it hands on.
  /// @param complete what is handed on is only what is added up already
  void find_gradients(const Device& device, const Device::Outputs& among, TaskId t, std::int64_t micro_batch,
                      std::uint32_t layer, std::vector<Value>& found, bool complete = false) const;
  void find_handed_on(const Device& device, const Device::Outputs& among, TaskId t, std::int64_t micro_batch,
                      std::uint32_t layer, std::vector<Value>& found, bool complete) const;
  /// What has all terms that the graph has for it, each element once, without what the device sends to another
  /// one that adds it up.
  std::vector<Value> complete_gradients(const Device& device, std::int64_t micro_batch, std::uint32_t layer,
                                        const std::vector<Value>& values) const;
  /// Of a part of an operation's work, what terms do not have once.
  static std::vector<Box> not_once(const Terms& terms, const Maker& maker, const Box& wanted);
  bool is_sum(OpId op) const;
  static void keep_only(OpId op, std::vector<Value>& values);
  /// Those of `wanted` of which most is added up, in parts without elements in common.
  /// @param only of terms of this operation, if any is given; a sum: of all, and what is handed on is complete
  std::vector<Value> best_gradients(const Device& device, TaskId t, std::int64_t micro_batch,
                                    std::uint32_t layer, std::vector<Box> wanted,
                                    OpId only = no_meaning) const;
  /// Whether the parts of an operation cover a part of its work, each element once. What lies outside of it
  /// makes nothing for the elements in question.
  static std::optional<std::string> cover_error(const Terms& terms, const Maker& maker, const Box& wanted);
  void read_gradient(const Device& device, TaskId t, const OpMeaning& reader, std::uint32_t layer,
                     const Box& wanted) const;

  // Visits.

  Box in_layout(std::uint32_t layout, EndpointId e, const Box& whole) const;
  void visit(std::uint32_t r, TaskId t);
  void find_update(std::uint32_t r, TaskId t, const PlanOp& op);
  void compute(Device& device, TaskId t, const PlanOp& op);
  /// The part of the graph's operation that it says.
  void check_work(const Device& device, TaskId t, const PlanOp& op, const Operation& operation,
                  double share) const;
  /// The same of devices with replicas: an update may be of the share that ZeRO leaves a device.
  void check_share(const Device& device, TaskId t, const PlanOp& op, const Operation& operation,
                   double share) const;
  void read_all(const Device& device, TaskId t, const OpMeaning& means, const Operation& operation,
                const Box& work) const;
  /// Whether it has all the images that are wanted before task t.
  bool has_images(const Device& device, TaskId t, std::int64_t micro_batch, std::vector<Box> wanted) const;
  /// Images, or a view of them.
  bool reads_images(LayerIndex input) const;
  /// Of which devices have parts (Meaning::image_views), or a view of such a view.
  bool is_image_view(std::uint32_t layer) const;
  bool has_view(const Device& device, TaskId t, std::int64_t micro_batch, std::uint32_t layer,
                std::vector<Box> wanted) const;
  /// @throws Refuted unless these elements of such a view are there  @return whether it is one
  bool read_view(const Device& device, TaskId t, const OpMeaning& reader, LayerIndex input,
                 const Box& wanted) const;
  Box images_read(std::uint32_t layer, std::size_t k, const Box& work) const;
  void read_parameters(const Device& device, TaskId t, const OpMeaning& means, std::uint32_t layer,
                       const Box& work) const;
  /// All work that has the same parameters.
  Box parameter_part(std::uint32_t layer, const Box& box) const;
  void write(Device& device, TaskId t, const OpMeaning& means, const Operation& operation, const Box& work);
  void keep(std::vector<Value>& among, Value value);
  /// A custom layer adds what it makes to the gradient of its input that it reads.
  void add_to_read(const Device& device, TaskId t, const Operation& operation, std::uint32_t input,
                   Value& value) const;
  void check_once(Device& device, TaskId t, const PlanOp& op, const OpMeaning& means, const Box& work);
  Box whole_input(std::uint32_t layer, std::size_t k) const;
  static std::optional<Terms> joined(const Terms& a, const Terms& b);
  /// Of these elements, all for which one of its terms makes anything.
  bool has_all(const Value& value, std::uint32_t layer, const Box& box) const;
  /// An addition of two parts of a gradient, those that give most.
  void sum(Device& device, TaskId t, const OpMeaning& means, const Operation& operation, const Box& box);
  /// All parts that have come of these elements, and all that was made of them here, each term once, whatever
  /// elements it is for.
  void add_all(Device& device, TaskId t, const OpMeaning& means);
  /// All parts of an operation that have come of these elements, and what is there of them, each term once.
  void add_parts(Device& device, TaskId t, const OpMeaning& means);
  /// Of a layer's output, those for whose gradient a term makes anything.
  Box elements_of(const Term& term, std::uint32_t layer) const;

  // Parameters.

  bool is_of_parameters(OpId op) const {
    return op != no_meaning && graph_.operations[op].phase == Phase::weight_gradient;
  }
  /// Adds the gradients that have come of a micro-batch to those of others.
  void take_in_gradients(Device& device, TaskId t, const OpMeaning& means);
  void check_gradient(const Device& device, std::uint32_t layer, TaskId t, const Box& box) const;
  /// Of placed work: gradients are complete before the device sends them to those of other replicas, whether it
  /// has made them or others have.
  void check_bucket_is_complete(std::uint32_t r, TaskId t, std::uint32_t bucket) const;
  void check_bucket_is_complete(const Device& device, TaskId t, std::uint32_t bucket) const;
  /// Every parameter has one device that updates it; of placed work, in each replica.
  void check_updates() const;
  void check_updates_of(const std::vector<const Device*>& devices) const;

  // Memory, when all has been visited.

  /// Elements of a view of a tensor, in its own shape.
  struct OfView {
    std::uint32_t layer;
    Box box;
  };
  /// Elements of a tensor that an operation uses, and of which view it reads them, if it does not read the tensor itself.
  struct UsedElements {
    Box box;
    std::optional<OfView> of_view{};
  };
  /// An operation that has a buffer in memory, on a device.
  struct BufferUse {
    std::size_t position;  ///< in the program
    std::uint32_t pass;
    bool is_dropped;  ///< it is done again, in a later pass or operation
    bool makes;       ///< what is in the buffer
    Box box;
    std::optional<OfView> of_view;
  };
  /// By buffer and micro-batch.
  using BufferUses = std::map<std::pair<std::uint32_t, std::int64_t>, std::vector<BufferUse>>;
  /// Where a device's operations are, in the order of its program.
  struct Positions {
    std::vector<std::uint32_t> begins;  ///< of the operation's task
    /// By task, operation, micro-batch, and Value::pass of what it makes: a task may run an operation again.
    std::map<std::tuple<TaskId, OpId, std::int64_t, std::optional<std::uint32_t>>, std::size_t> of;
    std::map<TaskId, std::size_t> last;  ///< of the task
  };
  void check_memory() const;
  std::vector<NeededBytes> needed_bytes(const Device& device) const;
  /// What is in a buffer of a tensor, or, of an output that another layer writes over, in copies that have come of
  /// what that one makes; as it was made or came.
  std::vector<const Value*> values_in(const Device& device, const Buffer& buffer,
                                      std::int64_t micro_batch) const;
  /// Of an output each copy, whole, until its last reader: an operation reads the copy that has just what it reads, or the
  /// only one that has all of it, or else the one that takes least beside what is held in any case; of several that have
  /// it together, the first ones.
  void add_outputs(const Device& device, const Positions& positions, std::int64_t micro_batch,
                   const Buffer& buffer, const std::vector<const Value*>& values,
                   const std::vector<BufferUse>& uses, std::vector<NeededBytes>& needed) const;
  /// The copy that an operation reads, if what it reads came as a view of the tensor (flattened, for example).
  const Value* come_as_view(const Device& device, const Positions& positions, std::int64_t micro_batch,
                            const Buffer& buffer, const BufferUse& use) const;
  /// Of a layer's gradients in a micro-batch each element once, until its last reader.
  void add_gradients(const Device& device, const Positions& positions,
                     const std::pair<std::int64_t, std::uint32_t>& of, const Buffer& buffer,
                     const std::vector<const Value*>& values, const std::vector<BufferUse>& uses,
                     std::vector<NeededBytes>& needed) const;
  static void add_until_last_use(std::vector<Box> boxes, std::size_t from, const std::vector<BufferUse>& uses,
                                 MemoryClass memory_class, double value_bytes,
                                 std::vector<NeededBytes>& needed);
  double bytes_of_value(const Buffer& buffer) const;
  /// Of a buffer of an operation (a mask, indices) as much as the device does of its work, part by part, once it is not
  /// dropped.
  void add_other(const Buffer& buffer, const std::vector<BufferUse>& uses,
                 std::vector<NeededBytes>& needed) const;
  /// Those that its part of the layer reads.
  void add_images(const Buffer& buffer, std::uint32_t layer, const std::vector<BufferUse>& uses,
                  std::vector<NeededBytes>& needed) const;
  BufferUses buffer_uses(const Device& device, Positions& positions) const;
  /// What the operation has in memory of the buffer: an output that it makes or reads, the gradient of its output; of images,
  /// the work that reads them.
  std::vector<UsedElements> elements_used(const Buffer& buffer, const Operation& operation,
                                          const Box& work) const;
  /// What a layer reads of another one by its inputs, straight or through views.
  /// @param of_view what is read of the first view on the way
  void add_read(std::uint32_t layer, const Box& work, std::uint32_t of, const std::optional<OfView>& of_view,
                std::vector<UsedElements>& used) const;
  /// Of a layer's gradient that `from`, or a layer that reads it, hands on: the elements of that of `from`.
  void add_handed_on(std::uint32_t layer, const Box& elements, std::uint32_t from,
                     std::vector<UsedElements>& used) const;
  /// By a message; else it was made here.
  bool has_come(const Device& device, const Value& value) const;
  /// The first operation that a value can be there for.
  std::size_t there_from(const Device& device, const Positions& positions, const Value& value) const;
  /// From when on a value is in memory: what has come is taken in with the first of these operations that uses it.
  std::optional<std::size_t> position_of(const Device& device, const Positions& positions, const Value& value,
                                         const std::vector<BufferUse>& uses) const;

  // Messages.

  struct Carried {
    std::map<std::pair<EndpointId, EndpointId>, std::vector<std::vector<Value>>> of;  ///< by pair, result
  };
  template <class Visit>
  void for_each_pair(CommId comm, Visit visit) const;
  Phase phase_of(const CommMeaning::Result& result) const;
  bool of_parameters(const CommMeaning::Result& result) const;
  Box whole(const CommMeaning::Result& result) const;
  Box sent(const CommMeaning::Result& result, EndpointId from, EndpointId to) const;
  void find_sent_parts(const Role& role, CommId comm);
  double bytes_of(const CommMeaning& carries, EndpointId from, EndpointId to) const;
  /// Every pair has its bytes, and a task at both ends.
  void check_message(CommId comm, const CommMeaning& carries);
  void send(const Device& device, TaskId t, CommId comm, const CommMeaning& carries);
  std::vector<Value> taken(const Device& device, TaskId t, const CommMeaning& carries,
                           const CommMeaning::Result& result, const Box& box) const;
  std::vector<Value> sent_parameter_gradients(const Device& device, TaskId t,
                                              const CommMeaning::Result& result, const Box& box,
                                              std::int64_t m) const;
  std::vector<Value> sent_gradients(const Device& device, TaskId t, const CommMeaning& carries,
                                    const CommMeaning::Result& result, const Box& box) const;
  void receive(Device& device, TaskId t, CommId comm, const CommMeaning& carries);
  void put(Device& device, const CommMeaning& carries, const CommMeaning::Result& result, Value value);

  // Collectives.

  using Brought = std::map<EndpointId, std::vector<std::pair<std::size_t, Value>>>;  ///< by member: result
  void exchange(std::uint32_t r, TaskId t, const CommMeaning& carries);
  Brought brought_by(CommId comm, const CommMeaning& carries);
  /// All devices of all roles that take part do so once, and are in one group.
  void check_members(CommId comm) const;
  /// The rounds bring what members have to those who are to have it.
  void check_rounds(CommId comm, const CommMeaning::Result& result, Kind kind,
                    const std::vector<EndpointId>& group) const;
  /// @return what is wrong with one round of messages that go straight to those who need them; "": nothing
  std::string direct_error(const Communication& of, const std::vector<Box>& from, const std::vector<Box>& to,
                           double value_bytes, const std::vector<EndpointId>& group) const;
  /// What a member has of the elements, newest first, each element once.
  std::vector<Value> held(const Device& device, TaskId t, const CommMeaning& carries,
                          const CommMeaning::Result& result, const Box& box) const;
  /// Whether what an exchange brings is rows and columns around those that each member has.
  bool is_halo(const CommMeaning::Result& result, const std::vector<EndpointId>& group) const;
  static std::vector<Value> newest(std::vector<Value> values, const Box& box);
  std::optional<std::uint32_t> pass_of(const Device& device, TaskId t, const OpMeaning& reader) const;
  /// What a member has of these elements when the members' values have come, or have been added up.
  std::vector<Value> merged(const Device& device, TaskId t, const CommMeaning& carries,
                            const CommMeaning::Result& result, const std::vector<Value>& values,
                            const Box& box) const;
  /// Of the tensor that a result is, those for which a term makes anything.
  Box elements_of(const Term& term, const CommMeaning::Result& result) const;

  const Plan& plan_;
  const Meaning& meaning_;
  const TrainingGraph& graph_;
  const TensorBytes tensor_bytes_;
  const Machine& machine_;
  const HappensBefore& order_;
  const bool is_hybrid_;   ///< not placed: parts are added up by collectives
  bool adds_all_ = false;  ///< whoever has elements of a tensor adds up all parts of their gradient at once
  std::int64_t micro_batches_ = 1;
  std::uint32_t lane_count_ = 1;  ///< replicas of the groups
  LayerMaps maps_;
  mutable std::map<std::pair<std::uint32_t, Box>, std::map<Maker, Box>> terms_;  ///< by layer and elements
  mutable GradientWays ways_;
  std::vector<double> made_bytes_;                                              ///< by operation
  std::vector<std::vector<Slot>> readers_;                                      ///< by layer
  std::vector<std::optional<OpId>> data_gradient_, loss_gradient_, weight_gradient_;  ///< by layer
  std::vector<bool> is_in_place_;  ///< by layer: whether it writes over its input
  std::vector<bool> runs_again_;   ///< by layer: whether the graph has its forward pass twice
  LayerOperations has_;
  std::vector<bool> reads_images_;                      ///< by operation
  std::vector<std::vector<std::uint32_t>> buffers_of_;  ///< by operation: activations that it has in memory
  std::vector<Device> devices_;                                                       ///< by endpoint
  std::vector<std::vector<std::pair<std::uint32_t, Task::Kind>>> users_;  ///< by communication: roles
  std::vector<std::optional<Carried>> carried_;                           ///< by communication
  RoundRules& rounds_;
  std::size_t made_ = 0;  ///< values so far
  // Replicas and groups.
  std::vector<EndpointId> followed_as_;            ///< by endpoint: the one that stands for it
  std::vector<std::vector<EndpointId>> followed_;  ///< by role: members
  mutable std::map<std::uint32_t, std::vector<const std::vector<EndpointId>*>> groups_;  ///< by pattern
  mutable std::map<std::tuple<std::uint32_t, TaskId, TaskId>, bool> precedes_;  ///< by role: messages
  std::map<std::pair<std::uint32_t, CommId>, TaskId> task_of_;                  ///< collectives, by role
  std::vector<std::map<std::uint32_t, std::uint32_t>> pass_ends_;  ///< by role and pass: the place after it
  std::vector<std::optional<Brought>> brought_;                    ///< by communication
  std::set<std::pair<std::uint32_t, std::vector<EndpointId>>> known_sums_;  ///< by layer and followed devices
  mutable std::map<std::pair<Term, std::uint32_t>, Box> elements_;          ///< by layer
};

}  // namespace parts
}  // namespace convoy::prove
