// SPDX-License-Identifier: MIT
#include "sim/numerics/batches.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/numerics/draw.h"

namespace convoy::inline numerics {

std::int64_t BatchOrder::image(std::int64_t position) {
  return epoch(position / images_)[static_cast<std::size_t>(position % images_)];
}

/// Fisher and Yates.
const std::vector<std::int64_t>& BatchOrder::epoch(std::int64_t number) {
  constexpr std::size_t kept = 16;
  const auto [it, fresh] = epochs_.try_emplace(number);
  std::vector<std::int64_t>& order = it->second;
  if (!fresh) return order;
  order.resize(static_cast<std::size_t>(images_));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const std::uint64_t stream = drawn_stream(DrawnFor::order, static_cast<std::uint64_t>(number));
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[drawn_bits(seed_, stream, i) % i]);
  if (epochs_.size() > kept) epochs_.erase(epochs_.begin() == it ? std::next(it) : epochs_.begin());
  return order;
}

template <class Real>
LabelledImages<Real> images_of(const LearningData::Part& part, const Shape& shape,
                               const std::vector<std::int64_t>& numbers) {
  LabelledImages<Real> result{{shape, static_cast<std::int64_t>(numbers.size())}, {}};
  const std::int64_t size = elements(shape);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const float* from = part.values.data() + numbers[i] * size;
    std::copy(from, from + size, result.images.image(static_cast<std::int64_t>(i)));
    result.labels.push_back(part.labels[static_cast<std::size_t>(numbers[i])]);
  }
  return result;
}

template LabelledImages<double> images_of(const LearningData::Part&, const Shape&,
                                          const std::vector<std::int64_t>&);
template LabelledImages<float> images_of(const LearningData::Part&, const Shape&,
                                         const std::vector<std::int64_t>&);

}  // namespace convoy::numerics
