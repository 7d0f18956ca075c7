// SPDX-License-Identifier: MIT
#include "sim/numerics/gradient_code.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "sim/numerics/draw.h"

namespace convoy::inline numerics {
namespace {

using Coding = BucketMeaning::Coding;

template <class Real>
using Rows = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class Real>
Real rounded_to_half(Real value) {
  return static_cast<Real>(static_cast<float>(Eigen::half(static_cast<float>(value))));
}

template <class Real>
Eigen::Map<const Rows<Real>> as_matrix(const Real* first, std::size_t rows, std::size_t columns) {
  return {first, static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(columns)};
}

/// Makes the columns orthonormal by Gram and Schmidt, one after the other. A column without length stays 0.
template <class Real>
void make_orthogonal(Rows<Real>& matrix) {
  for (Eigen::Index c = 0; c < matrix.cols(); ++c) {
    matrix.col(c) /= matrix.col(c).norm() + static_cast<Real>(1e-8);  // as powerSGD_hook.py
    for (Eigen::Index k = c + 1; k < matrix.cols(); ++k)
      matrix.col(k) -= matrix.col(c).dot(matrix.col(k)) * matrix.col(c);
  }
}

}  // namespace

template <class Real>
GradientCode<Real>::GradientCode(const TrainingGraph& graph, const BucketMeaning& bucket, std::uint64_t seed,
                                 std::uint64_t sender)
    : coding_(bucket.coding),
      detail_(bucket.detail),
      kept_share_(bucket.kept_share),
      seed_(drawn_bits(seed, drawn_stream(DrawnFor::rounding, sender), bucket.parameters.front())) {
  std::size_t first = 0;
  for (const std::size_t p : bucket.parameters) {
    const Parameter& parameter = graph.parameters[p];
    Tensor tensor;
    tensor.first = first;
    tensor.elements = static_cast<std::size_t>(parameter.elements);
    first += tensor.elements;
    if (coding_ == Coding::low_rank)
      if (const std::optional<LowRankShape> shape = low_rank_shape(
              graph.model, parameter, static_cast<double>(parameter.elements), bucket.detail)) {
        tensor.rows = static_cast<std::size_t>(shape->rows);
        tensor.columns = static_cast<std::size_t>(shape->columns);
        tensor.rank = static_cast<std::size_t>(shape->rank);
        const std::uint64_t stream = drawn_stream(DrawnFor::factors, p);
        for (std::size_t i = 0; i < tensor.columns * tensor.rank; ++i)
          tensor.right.push_back(static_cast<Real>(drawn_normal(seed, stream, i)));
      }
    tensors_.push_back(std::move(tensor));
  }
  residual_.assign(first, Real{0});
}

template <class Real>
std::vector<Real> GradientCode<Real>::sent(std::vector<Real> gradients) {
  const bool keeps = coding_ == Coding::largest || coding_ == Coding::signs || coding_ == Coding::low_rank ||
                     (coding_ == Coding::levels && detail_ == 1);
  if (keeps) {
    for (std::size_t e = 0; e < gradients.size(); ++e) residual_[e] += gradients[e];
    gradients = residual_;
  }
  switch (coding_) {
    case Coding::none:
      break;
    case Coding::half:
      for (Real& value : gradients) value = rounded_to_half(value);
      break;
    case Coding::largest:
      keep_largest(gradients);
      break;
    case Coding::levels:
      detail_ == 1 ? round_to_means(gradients) : round_to_levels(gradients);
      break;
    case Coding::signs:
      round_to_signs(gradients);
      break;
    case Coding::votes:
      for (Real& value : gradients) value = value < 0 ? Real{-1} : Real{1};
      break;
    case Coding::low_rank:
      return first_factors();
  }
  if (keeps)
    for (std::size_t e = 0; e < gradients.size(); ++e) residual_[e] -= gradients[e];
  return gradients;
}

template <class Real>
void GradientCode<Real>::keep_largest(std::vector<Real>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto kept =
      std::min(order.size(),
               static_cast<std::size_t>(std::ceil(kept_share_ * static_cast<double>(order.size()) - 1e-9)));
  std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                   [&](std::size_t a, std::size_t b) {
                     const Real x = std::abs(values[a]), y = std::abs(values[b]);
                     return x != y ? x > y : a < b;
                   });
  for (std::size_t i = kept; i < order.size(); ++i) values[order[i]] = 0;
}

template <class Real>
void GradientCode<Real>::round_to_levels(std::vector<Real>& values) {
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  const double from = *least, steps = std::exp2(static_cast<double>(detail_)) - 1;
  const double step = (*greatest - from) / steps;
  if (step == 0) return;
  for (Real& value : values) {
    const double level = std::floor((value - from) / step + drawn_uniform(seed_, 0, draws_++));
    value = static_cast<Real>(from + std::min(level, steps) * step);
  }
}

template <class Real>
void GradientCode<Real>::round_to_means(std::vector<Real>& values) {
  double sums[2] = {0, 0}, counts[2] = {0, 0};
  for (const Real value : values) sums[value < 0] += value, ++counts[value < 0];
  for (Real& value : values) value = static_cast<Real>(sums[value < 0] / counts[value < 0]);
}

template <class Real>
void GradientCode<Real>::round_to_signs(std::vector<Real>& values) {
  double sum = 0;
  for (const Real value : values) sum += std::abs(value);
  const Real mean = static_cast<Real>(sum / static_cast<double>(values.size()));
  for (Real& value : values) value = value < 0 ? -mean : mean;
}

/// Of each matrix P = M Q, of the others all; M is in the residual.
template <class Real>
std::vector<Real> GradientCode<Real>::first_factors() {
  std::vector<Real> message;
  for (const Tensor& tensor : tensors_) {
    Real* const own = residual_.data() + tensor.first;
    if (tensor.rank == 0) {
      message.insert(message.end(), own, own + tensor.elements);
      std::fill(own, own + tensor.elements, Real{0});
      continue;
    }
    const Rows<Real> product = as_matrix<Real>(own, tensor.rows, tensor.columns) *
                               as_matrix<Real>(tensor.right.data(), tensor.columns, tensor.rank);
    message.insert(message.end(), product.data(), product.data() + product.size());
  }
  return message;
}

template <class Real>
std::vector<Real> GradientCode<Real>::second_factors(const std::vector<Real>& sum) {
  std::vector<Real> message;
  std::size_t place = 0;
  for (Tensor& tensor : tensors_) {
    const std::size_t size = tensor.rank == 0 ? tensor.elements : tensor.rows * tensor.rank;
    if (tensor.rank > 0) {
      Rows<Real> left = as_matrix<Real>(sum.data() + place, tensor.rows, tensor.rank);
      make_orthogonal(left);
      tensor.left.assign(left.data(), left.data() + left.size());
      const Rows<Real> right =
          as_matrix<Real>(residual_.data() + tensor.first, tensor.rows, tensor.columns).transpose() * left;
      message.insert(message.end(), right.data(), right.data() + right.size());
    }
    place += size;
  }
  return message;
}

template <class Real>
std::vector<Real> GradientCode<Real>::decoded(std::vector<Real> sum, const std::vector<Real>& factors,
                                              double members) {
  if (coding_ == Coding::half)
    for (Real& value : sum) value = rounded_to_half(value);
  if (coding_ == Coding::votes)
    for (Real& value : sum) value = static_cast<Real>((value > 0) - (value < 0));
  if (coding_ != Coding::low_rank) return sum;
  std::vector<Real> gradients(residual_.size(), Real{0});
  std::size_t place = 0, of_factors = 0;
  for (Tensor& tensor : tensors_) {
    Real* const own = gradients.data() + tensor.first;
    if (tensor.rank == 0) {
      std::copy_n(sum.begin() + static_cast<std::ptrdiff_t>(place), tensor.elements, own);
      place += tensor.elements;
      continue;
    }
    place += tensor.rows * tensor.rank;
    const auto begin = factors.begin() + static_cast<std::ptrdiff_t>(of_factors);
    tensor.right.assign(begin, begin + static_cast<std::ptrdiff_t>(tensor.columns * tensor.rank));
    of_factors += tensor.right.size();
    const Rows<Real> product = as_matrix<Real>(tensor.left.data(), tensor.rows, tensor.rank) *
                               as_matrix<Real>(tensor.right.data(), tensor.columns, tensor.rank).transpose();
    std::copy_n(product.data(), tensor.elements, own);
    for (std::size_t e = 0; e < tensor.elements; ++e)
      residual_[tensor.first + e] -= own[e] / static_cast<Real>(members);
  }
  return gradients;
}

template class GradientCode<double>;
template class GradientCode<float>;

}  // namespace convoy::numerics
