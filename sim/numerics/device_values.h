// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/numerics/batches.h"
#include "sim/numerics/gradient_parts.h"
#include "sim/numerics/missing_value.h"
#include "sim/numerics/network.h"
#include "sim/plan/plan.h"

namespace convoy::inline numerics {

/// What all devices of a run have in common.
struct Lesson {
  const TrainingGraph& graph;
  const LearningData& data;
  const NetworkIndex& index;
  std::uint64_t seed = 1;
  BatchOrder& order;
};

/// What a device has of the network's results in a step, by micro-batch: outputs, and gradients as far as
/// they have been added up. Operations of the training graph read and write it; what comes by messages is put
/// into it.
template <class Real>
class DeviceValues {
 public:
  DeviceValues(const Lesson& lesson, std::string name);

  /// Begins a step whose first image is at this position of the order. @param loss_scale what the gradient of
  /// each image's loss is multiplied by
  void begin_step(std::int64_t step, std::int64_t position, double loss_scale);

  /// Nothing reads or sends what there is of a micro-batch any more.
  void forget(std::int64_t micro_batch);

  /// Runs an operation of the training graph that is no update. @param first image of the batch
  /// @param began of the events of the step (`now` elsewhere), the one at which the operation's task began: what
  /// has come since is not waited for
  /// @param gradients get those of parameters added to them
  void run(const OpMeaning& means, std::int64_t first, std::uint64_t began,
           const ParameterValues<Real>& parameters, ParameterValues<Real>& gradients);

  /// What a message carries: the output of a layer, or its gradient as far as `operation` has added it up.
  struct Carried {
    TensorPtr<Real> value;
    GradientParts parts;  ///< of a gradient
  };
  /// @param first image of the batch that it belongs to
  Carried send(const CommMeaning::Result& result, const CommMeaning& means, std::int64_t first,
               std::uint64_t now);
  void receive(const CommMeaning::Result& result, const CommMeaning& means, Carried carried,
               std::int64_t first, std::uint64_t now);

  const std::vector<RunningStatistics<Real>>& running() const { return running_; }
  void set_running(const std::vector<RunningStatistics<Real>>& running) { running_ = running; }
  double loss() const { return loss_; }  ///< sum over the images since the step began

 private:
  using Parts = GradientParts;
  struct Output {
    TensorPtr<Real> value;
    std::int64_t first = 0;             ///< image
    std::optional<std::uint32_t> pass;  ///< the only one in which it can be read
    std::uint64_t since = 0;            ///< of what came by a message: the event
  };
  struct Gradient {
    TensorPtr<Real> value;
    OpId operation;
    std::int64_t first = 0;
    std::uint64_t since = 0;
  };
  /// Of one micro-batch.
  struct MicroBatch {
    std::map<std::uint32_t, Output> outputs;                       ///< by layer
    std::map<std::uint32_t, std::map<Parts, Gradient>> gradients;  ///< by layer whose output it belongs to
    /// Losses that are added up, and normalizations whose running statistics have moved on: what a stage
    /// recomputes does neither again.
    std::set<OpId> counted;
  };
  /// The operation under way.
  struct Reader {
    MicroBatch& of;
    const OpMeaning* means;  ///< nullptr: a message
    std::int64_t first, count;
    std::uint64_t began;
  };

  [[noreturn]] void miss(const std::string& what) const;
  bool is_view(std::uint32_t layer) const { return !contents_.has.forward[layer]; }
  TensorPtr<Real> output(const Reader& reader, LayerIndex layer);
  KernelCall<Real> call(const Reader& reader, std::uint32_t layer, std::vector<TensorPtr<Real>>& inputs,
                        const ParameterValues<Real>* parameters);
  TensorPtr<Real> gradient(const Reader& reader, std::uint32_t layer);
  std::optional<Gradient> find(const Reader& reader, std::uint32_t layer, const Parts& parts);
  void list(const Reader& reader, std::uint32_t layer, ListedGradients& all);
  std::optional<Gradient> through(const Reader& reader, const GradientContents::Slot& view,
                                  const Parts& parts);
  void add_up(const Reader& reader, std::uint32_t layer);
  void forward(const Reader& reader, const ParameterValues<Real>& parameters);
  const LabelledImages<Real>& images(std::int64_t first, std::int64_t count);

  const Lesson& lesson_;
  std::string name_;
  GradientContents contents_;
  std::map<std::int64_t, MicroBatch> micro_batches_;
  std::map<std::pair<std::int64_t, std::int64_t>, LabelledImages<Real>> images_;  ///< by first and count
  std::vector<RunningStatistics<Real>> running_;                                  ///< by layer
  std::int64_t step_ = 0, position_ = 0;
  double scale_ = 1, loss_ = 0;
};

}  // namespace convoy::numerics
