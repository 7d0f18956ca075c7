// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/plan/index_set.h"

namespace convoy::inline prove {

/// Elements of a tensor, or terms of the sums of an operation: all whose index on each axis is in its set.
struct Box {
  enum Axis : std::size_t { images, channels, rows, columns, inputs };
  static constexpr std::size_t axes = 5;
  std::array<IndexSet, axes> of;

  const IndexSet& operator[](Axis axis) const { return of[axis]; }
  IndexSet& operator[](Axis axis) { return of[axis]; }
  bool empty() const;
  double volume() const;
  auto operator<=>(const Box&) const = default;
};

Box intersection(const Box& a, const Box& b);
bool overlap(const Box& a, const Box& b);
/// Whether two of them have an element in common.
bool any_overlap(std::vector<Box> boxes);
/// Boxes without elements in common that `a` consists of where it is not in `b`.
std::vector<Box> difference(const Box& a, const Box& b);
/// Takes `b` out of all of them.
void subtract(std::vector<Box>& from, const Box& b);
/// What of `whole` is in a region.
Box in_region(const Region& region, Box whole);
/// "images 0 to 31, channels 0 to 7": of the axes on which it has less than `whole`; "": it is all
std::string text_of(const Box& box, const Box& whole);

}  // namespace convoy::prove
