// SPDX-License-Identifier: MIT
#include <algorithm>
#include <utility>

#include "sim/numerics/draw.h"
#include "sim/numerics/layer_kernels.h"

namespace convoy::inline numerics {
// Named, since what lambdas of the kernels capture must have linkage where files are compiled together.
namespace moving_detail {

/// Calls `visit(place of the output, place of the input)` for the values of an image that a layer takes over
/// from its input of that number, where inputs of size 1 along an axis stand for all of it.
template <class Real, class Visit>
class MovedValues {
 public:
  MovedValues(const KernelCall<Real>& call, std::size_t input, Visit visit)
      : layer_(*call.layer), in_(call.inputs[input]->shape), visit_(visit) {
    for (std::size_t i = 0; i < input; ++i) before_.push_back(call.inputs[i]->shape);
  }

  void operator()(const Concat& concat) const {
    const auto axis = static_cast<std::size_t>(concat.axis);
    std::int64_t first = 0;
    for (const Shape& other : before_) first += other[axis];
    for_each(in_, [&](Shape& at, std::int64_t from) {
      at[axis] += first;
      visit_(place(at, layer_.output), from);
      at[axis] -= first;
    });
  }
  void operator()(const Slice& slice) const {
    const auto axis = static_cast<std::size_t>(slice.axis);
    for_each(layer_.output, [&](Shape& at, std::int64_t to) {
      const std::int64_t kept = at[axis];
      at[axis] = slice.first + kept * slice.step;
      visit_(to, place(at, in_));
      at[axis] = kept;
    });
  }
  void operator()(const ChannelShuffle& shuffle) const {
    const std::int64_t of_group = in_[0] / shuffle.groups;
    for_each(in_, [&](Shape& at, std::int64_t from) {
      const std::int64_t channel = at[0];
      at[0] = channel % of_group * shuffle.groups + channel / of_group;
      visit_(place(at, layer_.output), from);
      at[0] = channel;
    });
  }
  void operator()(const Pad& pad) const {
    for_each(in_, [&](Shape& at, std::int64_t from) {
      at[1] += pad.top, at[2] += pad.left;
      visit_(place(at, layer_.output), from);
      at[1] -= pad.top, at[2] -= pad.left;
    });
  }
  void operator()(const Transpose& transpose) const {
    Shape from(in_.size());
    for_each(layer_.output, [&](Shape& at, std::int64_t to) {
      for (std::size_t i = 0; i < at.size(); ++i) from[static_cast<std::size_t>(transpose.axes[i])] = at[i];
      visit_(to, place(from, in_));
    });
  }
  /// Sums and products with smaller tensors, and what leaves values where they are.
  template <class Kind>
  void operator()(const Kind&) const {
    if (in_.size() != layer_.output.size() || elements(in_) == elements(layer_.output)) {
      for (std::int64_t e = 0; e < elements(layer_.output); ++e) visit_(e, e);
      return;
    }
    for_each(layer_.output, [&](Shape& at, std::int64_t to) { visit_(to, place(at, in_)); });
  }

 private:
  static std::int64_t place(const Shape& at, const Shape& shape) {
    std::int64_t index = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) index = index * shape[i] + (shape[i] == 1 ? 0 : at[i]);
    return index;
  }
  template <class Each>
  static void for_each(const Shape& shape, Each each) {
    Shape at(shape.size(), 0);
    for (std::int64_t index = 0; index < elements(shape); ++index) {
      each(at, index);
      for (std::size_t i = shape.size(); i-- > 0;)
        if (++at[i] == shape[i])
          at[i] = 0;
        else
          break;
    }
  }

  const Layer& layer_;
  const Shape& in_;
  std::vector<Shape> before_;
  Visit visit_;
};

template <class Real, class Visit>
void for_each_moved(const KernelCall<Real>& call, std::size_t input, Visit visit) {
  std::visit(MovedValues<Real, Visit>(call, input, visit), call.layer->kind);
}

/// Channels that a scale layer has a factor for, of its own or of another layer.
std::int64_t scale_factors(const Layer& layer) {
  return layer.shares() ? layer.shared_elements : layer.parameters[0].elements;
}

/// What dropout multiplies a value by.
template <class Real>
class DropoutMask {
 public:
  explicit DropoutMask(const KernelCall<Real>& call)
      : dropout_(std::get_if<Dropout>(&call.layer->kind)),
        first_image_(call.first_image),
        seed_(drawn_bits(call.seed, drawn_stream(DrawnFor::dropout, call.index),
                         static_cast<std::uint64_t>(call.step))) {
    if (!call.training) dropout_ = nullptr;
  }
  Real factor(std::int64_t image, std::int64_t place) const {
    if (!dropout_) return 1;
    const double draw = drawn_uniform(seed_, static_cast<std::uint64_t>(first_image_ + image),
                                      static_cast<std::uint64_t>(place));
    return draw < dropout_->rate ? Real{0} : static_cast<Real>(1 / (1 - dropout_->rate));
  }

 private:
  const Dropout* dropout_;
  std::int64_t first_image_;
  std::uint64_t seed_;
};

/// What each value of an input counts in the output: the mask, the layer's scale, the other factors.
template <class Real>
class MovedFactors {
 public:
  explicit MovedFactors(const KernelCall<Real>& call)
      : call_(call),
        mask_(call),
        scales_(std::holds_alternative<Scale>(call.layer->kind)),
        multiplies_(std::holds_alternative<Multiply>(call.layer->kind)),
        of_channel_(scales_ ? elements(call.layer->output) / scale_factors(*call.layer) : 1) {
    if (!multiplies_) return;
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      std::vector<std::int64_t>& places = places_.emplace_back(elements(call.layer->output));
      for_each_moved(
          call, i, [&](std::int64_t to, std::int64_t from) { places[static_cast<std::size_t>(to)] = from; });
    }
  }
  Real of(std::size_t input, std::int64_t image, std::int64_t to) const {
    if (scales_) return (*call_.parameters[0])[static_cast<std::size_t>(to / of_channel_)];
    if (!multiplies_) return mask_.factor(image, to);
    Real product = 1;
    for (std::size_t i = 0; i < call_.inputs.size(); ++i)
      if (i != input) product *= call_.inputs[i]->image(image)[places_[i][static_cast<std::size_t>(to)]];
    return product;
  }

 private:
  const KernelCall<Real>& call_;
  DropoutMask<Real> mask_;
  bool scales_, multiplies_;
  std::int64_t of_channel_;
  std::vector<std::vector<std::int64_t>> places_;  ///< by input, of what multiplies
};

}  // namespace moving_detail
using namespace moving_detail;

template <class Real>
Tensor<Real> MovingKernels<Real>::forward(const KernelCall<Real>& call) {
  const std::int64_t images = call.inputs[0]->images;
  const bool multiplies = std::holds_alternative<Multiply>(call.layer->kind);
  const MovedFactors<Real> factors(call);
  Tensor<Real> output(call.layer->output, images);
  for (std::size_t n = 0; n < (multiplies ? 1 : call.inputs.size()); ++n)
    for_each_moved(call, n, [&](std::int64_t to, std::int64_t from) {
      for (std::int64_t i = 0; i < images; ++i)
        output.image(i)[to] += call.inputs[n]->image(i)[from] * factors.of(n, i, to);
    });
  return output;
}

template <class Real>
std::vector<Tensor<Real>> MovingKernels<Real>::data_gradient(const KernelCall<Real>& call,
                                                             const Tensor<Real>& gradient) {
  const MovedFactors<Real> factors(call);
  std::vector<Tensor<Real>> results;
  for (std::size_t n = 0; n < call.inputs.size(); ++n) {
    Tensor<Real>& result = results.emplace_back(call.inputs[n]->shape, gradient.images);
    for_each_moved(call, n, [&](std::int64_t to, std::int64_t from) {
      for (std::int64_t i = 0; i < gradient.images; ++i)
        result.image(i)[from] += gradient.image(i)[to] * factors.of(n, i, to);
    });
  }
  return results;
}

template <class Real>
std::vector<std::vector<Real>> MovingKernels<Real>::weight_gradient(const KernelCall<Real>& call,
                                                                    const Tensor<Real>& gradient) {
  std::vector<Real> scale(static_cast<std::size_t>(scale_factors(*call.layer)), Real{0});
  const std::int64_t of_channel = gradient.size() / scale_factors(*call.layer);
  for (std::int64_t i = 0; i < gradient.images; ++i)
    for (std::int64_t e = 0; e < gradient.size(); ++e)
      scale[static_cast<std::size_t>(e / of_channel)] += gradient.image(i)[e] * call.inputs[0]->image(i)[e];
  return {std::move(scale)};
}

template struct MovingKernels<double>;
template struct MovingKernels<float>;

}  // namespace convoy::numerics
