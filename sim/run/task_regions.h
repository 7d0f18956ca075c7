// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/results/json_writer.h"
#include "sim/run/tensor_parts.h"

namespace convoy::inline runs {

/// What the operations and messages of a plan read, write and carry, in terms of the training graph, as docs/tasks.md
/// describes it (Regions).
class TaskRegions {
 public:
  /// @pre plan.meaning; both outlive it
  TaskRegions(const Plan& plan, const TrainingGraph& graph);

  /// Keys of an endpoint: its images and its position among those that share work.
  void write_endpoint(JsonWriter& json, EndpointId endpoint) const;
  /// The graph, as an object.
  void write_graph(JsonWriter& json) const;
  /// Fields of an operation of a program, or of a host's compute task: what it does, reads and writes. Operations of a
  /// role come in the order of its program, and roles one after the other.
  void write_operation(JsonWriter& json, std::uint32_t role, const OpMeaning& means);
  /// The same where it reads and writes nothing of the graph.
  static void write_nothing(JsonWriter& json);
  /// What a communication carries, as an object.
  void write_carried(JsonWriter& json, const Communication& comm) const;

 private:
  prove::Box in_layout(std::uint32_t layout, std::uint32_t position, const prove::Box& whole) const;

  std::vector<std::uint32_t> positions_of(const std::vector<EndpointId>& endpoints) const;
  void write_box(JsonWriter& json, const prove::Box& box, const prove::Box& whole) const;
  /// A field with a box, or with one for each of several positions where these differ.
  template <class BoxOf>
  void write_boxes(JsonWriter& json, std::string_view name, const std::vector<std::uint32_t>& positions,
                   const prove::Box& whole, BoxOf box_of) const;
  /// A list of what some positions read, or write, or what is sent. @param parts_of of a position
  /// @param version of parameters and of their gradients  @param adds terms to sums
  template <class PartsOf>
  void write_parts(JsonWriter& json, std::string_view name, const std::vector<std::uint32_t>& positions,
                   PartsOf parts_of, std::optional<std::uint64_t> version, bool adds) const;
  /// A list with a tensor of all parameters of a bucket.
  void write_of_bucket(JsonWriter& json, std::string_view name, std::string_view tensor,
                       std::uint32_t bucket) const;
  void write_images(JsonWriter& json, std::int64_t micro_batch, const ImageRange& images) const;
  void write_tensor(JsonWriter& json, const TensorParts::Part& part) const;
  std::optional<std::uint64_t> version_of(std::uint32_t role, const OpMeaning& means);

  const Plan& plan_;
  const Meaning& meaning_;
  const TrainingGraph& graph_;
  const TensorParts tensors_;
  // Versions of parameters.
  std::vector<std::map<std::int64_t, std::size_t>> doubled_;  ///< by role and micro-batch
  std::optional<std::uint32_t> role_;                         ///< whose operations are being written
  std::map<std::uint32_t, std::uint64_t> updates_;            ///< so far, by layer
  std::map<std::int64_t, std::map<std::uint32_t, std::uint64_t>>
      at_first_pass_;  ///< `updates_`, by micro-batch
};

}  // namespace convoy::runs
