// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/numerics/device_values.h"
#include "sim/numerics/gradient_parts.h"
#include "sim/numerics/part.h"
#include "sim/numerics/part_lesson.h"
#include "sim/plan/plan.h"

namespace convoy::inline numerics {

/// What a device has of the network's results where devices have parts of layers between them: outputs, parts
/// of sums that are to become outputs, and gradients as far as they have been added up, each of some elements
/// of a tensor. An operation computes its part, of exactly those elements that are there for it.
template <class Real>
class PartValues {
 public:
  PartValues(const PartLesson& parts, std::string name, EndpointId id);
  const PartLesson& lesson() const { return parts_; }

  /// As DeviceValues.
  void begin_step(std::int64_t step, std::int64_t position, double loss_scale);
  /// The device keeps these parameters of a layer. Others it has when they have come.
  void keep_parameters(std::uint32_t layer, Box part) { kept_[layer] = std::move(part); }
  void take_parameters(std::uint32_t layer, Box part, std::uint64_t now) {
    come_parameters_[layer].push_back({std::move(part), now});
  }
  /// As DeviceValues. @param first of the images that the device's group has of the micro-batch
  void run(const OpMeaning& means, std::int64_t first, std::uint64_t began,
           const ParameterValues<Real>& parameters, ParameterValues<Real>& gradients);

  /// What a device has of a result when it is sent.
  struct Carried {
    Part<Real> part;
    GradientParts parts{};                ///< of a gradient: what has been added up in it
    std::optional<std::uint32_t> pass{};  ///< of an output that goes when this pass is over
  };
  Carried send(const CommMeaning::Result& result, const CommMeaning& means, std::int64_t first,
               std::uint64_t now);
  /// The parts of a layer's gradient that have come are added to the device's own: of what `means.operation`
  /// makes, or of all.
  void add(const OpMeaning& means, std::uint64_t began);
  /// What others have sent: whose elements it is to have it gets, or where `means` are parts, their sum, with
  /// what the device itself has sent.
  /// @param in_group they have sent it to each other, so that it goes when the pass is over in which it was made
  void receive(const CommMeaning::Result& result, const CommMeaning& means,
               const std::vector<const Carried*>& sent, bool in_group, std::uint64_t now);

  /// Of the channels that the device has.
  const std::vector<RunningStatistics<Real>>& running() const { return running_; }
  void set_running(const std::vector<RunningStatistics<Real>>& running) { running_ = running; }
  double loss() const { return loss_; }  ///< of images of which no device before it in the group has the loss

 private:
  struct Piece {
    Part<Real> part;
    OpId operation = no_meaning;          ///< that has made it, or added it up
    std::uint64_t since = 0;              ///< the event at which it has come by a message
    std::optional<std::uint32_t> pass{};  ///< the only one in which it can be read
  };
  using Pieces = std::vector<Piece>;  ///< the later, the newer
  /// What has come by a message.
  struct Come {
    Box box;
    std::uint64_t since;
  };
  struct MicroBatch {
    std::map<std::uint32_t, Pieces> outputs, sums;  ///< by layer; sums: parts of them
    /// By layer whose output has a loss: what the loss has read, of which its probabilities follow.
    std::map<std::uint32_t, Pieces> losses;
    std::map<std::uint32_t, std::map<GradientParts, Pieces>> gradients;
    std::map<std::uint32_t, std::map<GradientParts, Pieces>> come;  ///< parts of gradients, to be added
    std::vector<Come> images;
    std::map<std::uint32_t, std::vector<Come>> views;  ///< of the image, by layer
    std::set<std::pair<OpId, Box>> counted;  ///< as DeviceValues
  };
  struct Reader {
    MicroBatch& of;
    const OpMeaning* means;  ///< nullptr: a message
    std::int64_t first;
    std::uint64_t began;
  };

  [[noreturn]] void miss(const std::string& what) const;
  const Model& model() const { return parts_.lesson.graph.model; }
  const std::string& name_of(std::uint32_t layer) const { return model().layers[layer].name; }
  bool is_visible(const Reader& reader, const Piece& piece) const;
  /// Copies what is there of the missing elements, and takes them away.
  void fill(const Reader& reader, const Pieces& from, Part<Real>& to, std::vector<Box>& missing) const;
  LabelledImages<Real> labelled(const Reader& reader, const IndexSet& of);
  void need_images(const Reader& reader, const Box& wanted) const;
  void need_view(const Reader& reader, std::uint32_t layer, std::vector<Box> wanted) const;
  void need_parameters(const Reader& reader, std::uint32_t layer, const Box& work) const;
  /// The image, or a layer's view of it.
  Tensor<Real> image_as(const Reader& reader, LayerIndex index, const IndexSet& images);
  /// Takes away what has come in time.
  static void take_away(const std::vector<Come>& come, std::uint64_t began, std::vector<Box>& missing);
  /// @return a part of `frame`, zero but for the wanted elements
  Part<Real> output(const Reader& reader, LayerIndex layer, const Box& wanted, const Box& frame);
  void see_through(const Reader& reader, std::uint32_t view, const Box& wanted, Part<Real>& to);
  /// What of a gradient may be missing, and is zero then, beside what no operation makes.
  enum class Missing : std::uint8_t {
    nothing,
    made_by_others,  ///< what no operation of this device makes
    anything,
  };
  Part<Real> gradient(const Reader& reader, std::uint32_t layer, const GradientParts& parts,
                      const Box& wanted, const Box& frame, Missing may_be = Missing::nothing);
  void hand_on(const Reader& reader, std::uint32_t layer, const GradientParts& parts, Part<Real>& to,
               std::vector<Box>& missing);
  Part<Real> handed_on(const GradientContents::Slot& view, Part<Real> gradient) const;
  /// Whether any of the operations makes something of these elements of the gradient of a layer's output.
  /// @param here on this device
  bool is_made(std::uint32_t layer, const GradientParts& parts, const Box& box, bool here) const;
  /// Gradients of which something is there. @param only what this operation has made, if any is given
  void list(const Reader& reader, std::uint32_t layer, const Box& box, ListedGradients& all,
            OpId only = no_meaning) const;
  /// Whether the operation under way reads what another one makes, as the graph says.
  bool is_summand(const Reader& reader, OpId made) const;
  void add_up(const Reader& reader, std::uint32_t layer, const Box& box);
  // Of plans in nodes: all that the device makes of a gradient, and what it is with the parts of others.
  Part<Real> own_terms(const Reader& reader, std::uint32_t layer, const Box& box);
  Part<Real> complete(const Reader& reader, std::uint32_t layer, const Box& box);
  void add_all(const Reader& reader, const OpMeaning& means);

  /// What a kernel works on: of all channels and places that which is there for it, or where values of several
  /// places are normalized together, those places alone.
  struct Frame {
    Layer layer;
    std::vector<Box> inputs;
    Box output;
  };
  Frame frame_of(std::uint32_t layer, const Box& work) const;
  /// Of an input: as it is there, or not a number where the operation reads none of its values.
  Tensor<Real> input_of(const Reader& reader, const Frame& frame, std::uint32_t layer, std::size_t k,
                        const Box& work);
  void loss(const Reader& reader, const Operation& operation, const Box& work);
  /// What the loss of a layer's output has read.
  Part<Real> loss_input(const Reader& reader, std::uint32_t layer, const Box& wanted) const;
  void compute(const Reader& reader, const Operation& operation, const Box& work,
               const ParameterValues<Real>& parameters, ParameterValues<Real>& gradients);

  const PartLesson& parts_;
  std::string name_;
  EndpointId id_;
  std::map<std::int64_t, MicroBatch> micro_batches_;
  std::map<std::uint32_t, Box> kept_;                           ///< of parameters, by layer
  std::map<std::uint32_t, std::vector<Come>> come_parameters_;  ///< in this step, by layer
  std::vector<RunningStatistics<Real>> running_;
  std::int64_t step_ = 0, position_ = 0;
  double scale_ = 1, loss_ = 0;
};

}  // namespace convoy::numerics
