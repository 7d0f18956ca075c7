// SPDX-License-Identifier: MIT
#include "sim/numerics/optimizer.h"

#include <cmath>

namespace convoy::inline numerics {

template <class Real>
void OptimizerState<Real>::update(std::vector<Real>& parameter, const std::vector<Real>& gradient,
                                  std::size_t begin, std::size_t end, double learning_rate) {
  constexpr Real momentum{0.9}, beta1{0.9}, beta2{0.999};
  constexpr double epsilon = 1e-8;
  const auto rate = static_cast<Real>(learning_rate);
  switch (optimizer_) {
    case Optimizer::sgd:
      for (std::size_t e = begin; e < end; ++e) parameter[e] -= rate * gradient[e];
      return;
    case Optimizer::momentum:
      for (std::size_t e = begin; e < end; ++e) {
        first_[e] = momentum * first_[e] + gradient[e];
        parameter[e] -= rate * first_[e];
      }
      return;
    case Optimizer::adam: {
      const double steps = static_cast<double>(steps_);
      const double unbiased = learning_rate / (1 - std::pow(double{0.9}, steps));
      const double deviation = std::sqrt(1 - std::pow(0.999, steps));
      for (std::size_t e = begin; e < end; ++e) {
        first_[e] = beta1 * first_[e] + (1 - beta1) * gradient[e];
        second_[e] = beta2 * second_[e] + (1 - beta2) * gradient[e] * gradient[e];
        const double root = std::sqrt(double{second_[e]}) / deviation + epsilon;
        parameter[e] -= static_cast<Real>(unbiased * first_[e] / root);
      }
      return;
    }
  }
}

template <class Real>
void OptimizerState<Real>::take(const OptimizerState& from, std::size_t begin, std::size_t end) {
  steps_ = from.steps_;
  for (std::size_t e = begin; e < end; ++e) {
    if (!first_.empty()) first_[e] = from.first_[e];
    if (!second_.empty()) second_[e] = from.second_[e];
  }
}

template class OptimizerState<double>;
template class OptimizerState<float>;

}  // namespace convoy::numerics
