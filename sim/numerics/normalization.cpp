// SPDX-License-Identifier: MIT
// Ioffe & Szegedy, ICML 2015; Ba, Kiros & Hinton, arXiv:1607.06450; Wu & He, ECCV 2018.
#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/numerics/layer_kernels.h"

namespace convoy::inline numerics {
// Named, since what lambdas of the kernels capture must have linkage where files are compiled together.
namespace normalization_detail {

constexpr double normalization_epsilon = 1e-5, running_momentum = 0.1;

/// Which values are normalized together, and which channel's scale and shift they have.
template <class Real>
class NormalizedGroups {
 public:
  explicit NormalizedGroups(const KernelCall<Real>& call)
      : norm_(std::get<Normalization>(call.layer->kind)),
        input_(*call.inputs[0]),
        channels_(norm_.last_axis ? input_.shape.back() : input_.shape.front()),
        places_(input_.size() / channels_) {}

  std::int64_t channels() const { return channels_; }
  std::int64_t count() const {
    switch (norm_.over) {
      case Normalization::Over::batch:
        return channels_;
      case Normalization::Over::layer:
        return input_.images * places_;
      case Normalization::Over::group:
        return input_.images * norm_.groups;
    }
    return 0;
  }
  double size() const {
    return static_cast<double>(input_.images * input_.size()) / static_cast<double>(count());
  }
  /// Calls `visit(value, group, channel)` for the index of each value.
  template <class Visit>
  void for_each(Visit visit) const {
    std::size_t value = 0;
    for (std::int64_t i = 0; i < input_.images; ++i)
      for (std::int64_t e = 0; e < input_.size(); ++e, ++value) {
        const std::int64_t channel = norm_.last_axis ? e % channels_ : e / places_;
        const std::int64_t place = norm_.last_axis ? e / channels_ : e % places_;
        std::int64_t group = channel;
        if (norm_.over == Normalization::Over::layer) group = i * places_ + place;
        if (norm_.over == Normalization::Over::group)
          group = i * norm_.groups + channel / (channels_ / norm_.groups);
        visit(value, static_cast<std::size_t>(group), static_cast<std::size_t>(channel));
      }
  }

 private:
  const Normalization& norm_;
  const Tensor<Real>& input_;
  std::int64_t channels_, places_;
};

/// Mean and variance (over the number of values) by group.
template <class Real>
struct Moments {
  std::vector<double> mean, variance;
};

template <class Real>
Moments<Real> moments_of(const KernelCall<Real>& call, const NormalizedGroups<Real>& groups) {
  Moments<Real> of;
  if (call.running) {
    of.mean.assign(call.running->mean.begin(), call.running->mean.end());
    of.variance.assign(call.running->variance.begin(), call.running->variance.end());
    return of;
  }
  const auto count = static_cast<std::size_t>(groups.count());
  of.mean.assign(count, 0), of.variance.assign(count, 0);
  const std::vector<Real>& values = call.inputs[0]->values;
  groups.for_each([&](std::size_t v, std::size_t g, std::size_t) { of.mean[g] += values[v]; });
  for (double& mean : of.mean) mean /= groups.size();
  groups.for_each([&](std::size_t v, std::size_t g, std::size_t) {
    of.variance[g] += (values[v] - of.mean[g]) * (values[v] - of.mean[g]);
  });
  for (double& variance : of.variance) variance /= groups.size();
  return of;
}

template <class Real>
std::vector<double> inverse_deviations(const Moments<Real>& moments) {
  std::vector<double> inverse;
  for (const double variance : moments.variance)
    inverse.push_back(1 / std::sqrt(variance + normalization_epsilon));
  return inverse;
}

}  // namespace normalization_detail
using namespace normalization_detail;

template <class Real>
Tensor<Real> NormalizationKernels<Real>::forward(const KernelCall<Real>& call) {
  const Tensor<Real>& input = *call.inputs[0];
  const NormalizedGroups<Real> groups(call);
  const Moments<Real> moments = moments_of(call, groups);
  const std::vector<double> inverse = inverse_deviations(moments);
  Tensor<Real> output(input.shape, input.images);
  groups.for_each([&](std::size_t v, std::size_t g, std::size_t c) {
    double value = (input.values[v] - moments.mean[g]) * inverse[g];
    if (!call.parameters.empty()) value = value * (*call.parameters[0])[c] + (*call.parameters[1])[c];
    output.values[v] = static_cast<Real>(value);
  });
  return output;
}

/// d = y's gradient times the scale: (d - mean(d) - x' mean(d x')) / deviation, means over the group.
template <class Real>
Tensor<Real> NormalizationKernels<Real>::data_gradient(const KernelCall<Real>& call,
                                                       const Tensor<Real>& gradient) {
  const Tensor<Real>& input = *call.inputs[0];
  const NormalizedGroups<Real> groups(call);
  const Moments<Real> moments = moments_of(call, groups);
  const std::vector<double> inverse = inverse_deviations(moments);
  const auto scaled = [&](std::size_t v, std::size_t c) {
    return call.parameters.empty() ? double{gradient.values[v]}
                                   : double{gradient.values[v]} * (*call.parameters[0])[c];
  };
  const auto normalized = [&](std::size_t v, std::size_t g) {
    return (input.values[v] - moments.mean[g]) * inverse[g];
  };
  std::vector<double> sums(inverse.size(), 0), products(inverse.size(), 0);
  groups.for_each([&](std::size_t v, std::size_t g, std::size_t c) {
    sums[g] += scaled(v, c), products[g] += scaled(v, c) * normalized(v, g);
  });
  Tensor<Real> result(input.shape, input.images);
  groups.for_each([&](std::size_t v, std::size_t g, std::size_t c) {
    const double centred = scaled(v, c) - (sums[g] + normalized(v, g) * products[g]) / groups.size();
    result.values[v] = static_cast<Real>(centred * inverse[g]);
  });
  return result;
}

template <class Real>
std::vector<std::vector<Real>> NormalizationKernels<Real>::weight_gradient(const KernelCall<Real>& call,
                                                                           const Tensor<Real>& gradient) {
  const NormalizedGroups<Real> groups(call);
  const Moments<Real> moments = moments_of(call, groups);
  const std::vector<double> inverse = inverse_deviations(moments);
  std::vector<double> scale(static_cast<std::size_t>(groups.channels()), 0), shift = scale;
  groups.for_each([&](std::size_t v, std::size_t g, std::size_t c) {
    scale[c] += gradient.values[v] * (call.inputs[0]->values[v] - moments.mean[g]) * inverse[g];
    shift[c] += gradient.values[v];
  });
  return {std::vector<Real>(scale.begin(), scale.end()), std::vector<Real>(shift.begin(), shift.end())};
}

template <class Real>
void NormalizationKernels<Real>::update_running(const KernelCall<Real>& call,
                                                RunningStatistics<Real>& running) {
  const NormalizedGroups<Real> groups(call);
  const Moments<Real> moments = moments_of(call, groups);
  const double unbiased = groups.size() > 1 ? groups.size() / (groups.size() - 1) : 1;
  if (running.mean.empty()) {
    running.mean.assign(moments.mean.size(), Real{0});
    running.variance.assign(moments.mean.size(), Real{1});
  }
  for (std::size_t c = 0; c < moments.mean.size(); ++c) {
    running.mean[c] += static_cast<Real>(running_momentum * (moments.mean[c] - double{running.mean[c]}));
    running.variance[c] +=
        static_cast<Real>(running_momentum * (unbiased * moments.variance[c] - double{running.variance[c]}));
  }
}

template struct NormalizationKernels<double>;
template struct NormalizationKernels<float>;

}  // namespace convoy::numerics
