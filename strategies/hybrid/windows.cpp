// SPDX-License-Identifier: MIT
#include "strategies/hybrid/windows.h"

#include <algorithm>
#include <set>

namespace convoy {
namespace {

std::int64_t along(const Size2& size, ImageAxis axis) { return axis == ImageAxis::height ? size.h : size.w; }

struct Window {
  std::int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
};

std::vector<std::int64_t> rows_of(const Window& w, std::int64_t input_size, std::int64_t out) {
  std::vector<std::int64_t> rows;
  for (std::int64_t t = 0; t < w.kernel; ++t) {
    const std::int64_t row = out * w.stride - w.padding + t * w.dilation;
    if (row >= 0 && row < input_size) rows.push_back(row);
  }
  return rows;
}

/// Row `in` of a transposed convolution's input adds to rows in stride - padding + t dilation of its output.
std::vector<std::int64_t> rows_of_transposed(const Window& w, std::int64_t input_size, std::int64_t out) {
  std::vector<std::int64_t> rows;
  for (std::int64_t t = w.kernel - 1; t >= 0; --t) {
    const std::int64_t scaled = out + w.padding - t * w.dilation;
    if (scaled >= 0 && scaled % w.stride == 0 && scaled / w.stride < input_size)
      rows.push_back(scaled / w.stride);
  }
  return rows;
}

template <class Kernel>
Window window(const Kernel& kind, ImageAxis axis) {
  return {along(kind.kernel, axis), along(kind.stride, axis), along(kind.padding, axis),
          along(kind.dilation, axis)};
}

}  // namespace

std::vector<std::int64_t> rows_read(const Layer& layer, ImageAxis axis, std::int64_t input_size,
                                    std::int64_t out) {
  if (const auto* conv = std::get_if<Conv2d>(&layer.kind))
    return rows_of(window(*conv, axis), input_size, out);
  if (const auto* conv = std::get_if<ConvTranspose2d>(&layer.kind))
    return rows_of_transposed(window(*conv, axis), input_size, out);
  if (const auto* pool = std::get_if<Pool>(&layer.kind))
    return rows_of({along(pool->kernel, axis), along(pool->stride, axis), along(pool->padding, axis), 1},
                   input_size, out);
  std::int64_t row = out;
  if (std::holds_alternative<Upsample>(layer.kind))
    row = out * input_size / layer.output[static_cast<std::size_t>(axis)];
  if (const auto* pad = std::get_if<Pad>(&layer.kind))
    row = out - (axis == ImageAxis::height ? pad->top : pad->left);
  if (const auto* slice = std::get_if<Slice>(&layer.kind);
      slice && slice->axis == static_cast<std::int64_t>(axis))
    row = slice->first + out * slice->step;
  if (row < 0 || row >= input_size) return {};
  return {row};
}

bool Halo::empty() const {
  return std::all_of(counts.begin(), counts.end(), [](std::int64_t count) { return count == 0; });
}

Halo halo(const Layer& layer, ImageAxis axis, const Shards& input, const Shards& output) {
  const std::size_t n = input.counts.size();
  std::vector<std::set<std::int64_t>> needed(n);
  for (std::int64_t out = 0; out < output.size; ++out) {
    const std::uint32_t reader = output.owner[static_cast<std::size_t>(out)];
    for (const std::int64_t row : rows_read(layer, axis, input.size, out))
      if (input.owner[static_cast<std::size_t>(row)] != reader) needed[reader].insert(row);
  }
  Halo result{Traffic(n, std::vector<double>(n, 0.0)), std::vector<std::int64_t>(n, 0)};
  for (std::size_t reader = 0; reader < n; ++reader) {
    for (const std::int64_t row : needed[reader])
      ++result.rows[input.owner[static_cast<std::size_t>(row)]][reader];
    result.counts[reader] = static_cast<std::int64_t>(needed[reader].size());
  }
  return result;
}

}  // namespace convoy
