// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/lowering/graph_schedule.h"
#include "sim/plan/meaning.h"

namespace convoy::inline lowering {

/// The images of a micro-batch that the first of `groups` groups has.
ImageRange images_of_groups(const GraphSchedule& schedule, std::size_t groups, std::int64_t micro_batch);

/// Which part of the operations and tensors of a schedule each device of a group has, for a plan that has a
/// meaning: makes Meaning::layouts, in which equal layouts occur once.
class PartLayouts {
 public:
  /// @param meaning gets the layouts  @pre the other arguments outlive this object
  PartLayouts(const TrainingGraph& graph, const std::vector<LayerSharding>& shardings,
              const GraphSchedule& schedule, Meaning& meaning);

  /// Indices into Meaning::layouts: of the parts of a step that devices compute, of the parameters of a layer
  /// that they have, and of their shares of a tensor of part `part` of the images.
  std::uint32_t of_step(std::uint32_t step);
  std::uint32_t of_parameters(std::uint32_t layer);
  std::uint32_t of_tensor(const Sharding& sharding, std::uint32_t part);

  /// What an exchange brings to which device: the shares of its tensor before and after it.
  CommMeaning of_exchange(const GraphSchedule::Exchange& exchange);

 private:
  std::uint32_t add(PartLayout layout);
  IndexRanges images_of(std::uint32_t part, const Shards& split, std::size_t device) const;
  Region tensor_region(const Sharding& sharding, std::uint32_t part, std::size_t device) const;
  Region work_region(std::size_t layer, std::uint32_t part, std::size_t device) const;
  /// For the tensor of a halo: a device's own rows and columns, together with those of other devices that it
  /// reads.
  std::uint32_t with_halo(const GraphSchedule::Exchange& exchange);

  const TrainingGraph& graph_;
  const std::vector<LayerSharding>& shardings_;
  const GraphSchedule& schedule_;
  Meaning& meaning_;
  std::size_t devices_;
  /// By part of the images: which of all images they are, in the order in which devices have them.
  std::vector<std::vector<std::int64_t>> images_;
  struct InOrder {
    bool operator()(const PartLayout& a, const PartLayout& b) const;
  };
  std::map<PartLayout, std::uint32_t, InOrder> known_;
  std::map<std::uint32_t, std::uint32_t> of_steps_;  ///< those that were asked for
};

}  // namespace convoy::lowering
