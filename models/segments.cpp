// SPDX-License-Identifier: MIT
#include "models/segments.h"

#include <algorithm>
#include <cmath>

namespace convoy::inline models {
namespace {

/// By operation: tensors made before it that it or a later one reads, the image aside.
std::vector<std::uint32_t> crossing_tensors(const ForwardPass& pass) {
  std::vector<std::uint32_t> count(pass.operations.size() + 1, 0);
  for (std::size_t b = 0; b < pass.buffers.size(); ++b) {
    if (pass.is_image[b]) continue;
    ++count[pass.buffers[b].born + 1];
    --count[pass.buffers[b].dies + 1];  // wraps; the running sum does not
  }
  for (std::size_t op = 1; op < count.size(); ++op) count[op] += count[op - 1];
  return count;
}

/// By operation: whether the pass can be cut before it.
std::vector<char> possible_cuts(const ForwardPass& pass, const std::vector<std::uint32_t>& crossing) {
  std::vector<char> possible(pass.operations.size(), 0);
  for (OpId op = 1; op < pass.operations.size(); ++op) possible[op] = crossing[op] <= 1;
  for (OpId op = 0; op < pass.operations.size(); ++op)
    if (const std::uint32_t buffer = pass.overwrites[op]; buffer != ForwardPass::no_buffer)
      std::fill(possible.begin() + pass.buffers[buffer].born + 1, possible.begin() + op + 1, 0);
  return possible;
}

std::vector<OpId> ends_of_blocks(const ForwardPass& pass, const std::vector<std::uint32_t>& crossing,
                                 const std::vector<char>& possible) {
  std::vector<OpId> begins;
  bool branched = false;
  for (OpId op = 1; op < pass.operations.size(); ++op) {
    branched = branched || crossing[op] > 1;
    if (!possible[op]) continue;
    if (branched || pass.operations[op - 1].work.kind == KernelKind::pooling) begins.push_back(op);
    branched = false;
  }
  return begins;
}

std::vector<OpId> equal_shares(const ForwardPass& pass, const std::vector<char>& possible) {
  const std::size_t n = pass.operations.size();
  std::vector<double> bytes(n, 0.0);
  double total = 0;
  for (std::size_t b = 0; b < pass.buffers.size(); ++b) {
    if (pass.is_image[b] || pass.buffers[b].memory_class != MemoryClass::activations) continue;
    bytes[pass.buffers[b].born] += pass.buffers[b].bytes_per_image;
    total += pass.buffers[b].bytes_per_image;
  }
  const double segments = std::round(std::sqrt(static_cast<double>(n)));
  std::vector<OpId> begins;
  double before = 0, next = 1;
  for (OpId op = 1; op < n; ++op) {
    before += bytes[op - 1];
    if (!possible[op] || before * segments < next * total || next >= segments) continue;
    begins.push_back(op);
    next = std::floor(before * segments / total) + 1;
  }
  return begins;
}

}  // namespace

std::vector<OpId> segment_begins(const ForwardPass& pass, Recomputation how) {
  if (how == Recomputation::none) return {};
  const std::vector<std::uint32_t> crossing = crossing_tensors(pass);
  const std::vector<char> possible = possible_cuts(pass, crossing);
  return how == Recomputation::blocks ? ends_of_blocks(pass, crossing, possible)
                                      : equal_shares(pass, possible);
}

}  // namespace convoy::models
