// SPDX-License-Identifier: MIT
#include "sim/prove/box.h"

#include <fmt/format.h>

#include <algorithm>

namespace convoy::inline prove {

bool Box::empty() const {
  return std::any_of(of.begin(), of.end(), [](const IndexSet& set) { return set.empty(); });
}

double Box::volume() const {
  double product = 1;
  for (const IndexSet& set : of) product *= static_cast<double>(count(set));
  return product;
}

Box intersection(const Box& a, const Box& b) {
  Box both;
  for (std::size_t axis = 0; axis < Box::axes; ++axis) both.of[axis] = intersection(a.of[axis], b.of[axis]);
  return both;
}

bool overlap(const Box& a, const Box& b) {
  for (std::size_t axis = 0; axis < Box::axes; ++axis)
    if (intersection(a.of[axis], b.of[axis]).empty()) return false;
  return true;
}

bool any_overlap(std::vector<Box> boxes) {
  // Along an axis on which each is one range, only those that begin before another has ended can meet.
  std::size_t along = Box::axes;
  for (std::size_t axis = 0; axis < Box::axes && along == Box::axes; ++axis)
    if (std::all_of(boxes.begin(), boxes.end(), [&](const Box& box) { return box.of[axis].size() == 1; }) &&
        std::any_of(boxes.begin(), boxes.end(),
                    [&](const Box& box) { return box.of[axis] != boxes.front().of[axis]; }))
      along = axis;
  if (along < Box::axes)
    std::sort(boxes.begin(), boxes.end(),
              [&](const Box& a, const Box& b) { return a.of[along].front() < b.of[along].front(); });
  for (std::size_t i = 0; i < boxes.size(); ++i)
    for (std::size_t j = i + 1; j < boxes.size(); ++j) {
      if (along < Box::axes && boxes[j].of[along].front().begin >= boxes[i].of[along].front().end) break;
      if (overlap(boxes[i], boxes[j])) return true;
    }
  return false;
}

std::vector<Box> difference(const Box& a, const Box& b) {
  if (!overlap(a, b)) return {a};
  std::vector<Box> parts;
  Box left = a;
  for (std::size_t axis = 0; axis < Box::axes; ++axis) {
    if (IndexSet outside = difference(left.of[axis], b.of[axis]); !outside.empty()) {
      parts.push_back(left);
      parts.back().of[axis] = std::move(outside);
    }
    left.of[axis] = intersection(left.of[axis], b.of[axis]);
  }
  return parts;
}

void subtract(std::vector<Box>& from, const Box& b) {
  std::vector<Box> left;
  for (const Box& box : from)
    for (Box& part : difference(box, b)) left.push_back(std::move(part));
  from = std::move(left);
}

Box in_region(const Region& region, Box whole) {
  const auto cut = [&](Box::Axis axis, const IndexRanges& indices) {
    if (indices) whole[axis] = intersection(whole[axis], *indices);
  };
  cut(Box::images, region.images), cut(Box::channels, region.channels), cut(Box::rows, region.rows);
  cut(Box::columns, region.columns), cut(Box::inputs, region.inputs);
  return whole;
}

std::string text_of(const Box& box, const Box& whole) {
  static constexpr std::array<const char*, Box::axes> names{"images", "channels", "rows", "columns",
                                                            "channels of the input"};
  std::string text;
  for (std::size_t axis = 0; axis < Box::axes; ++axis)
    if (box.of[axis] != whole.of[axis])
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", names[axis], text_of(box.of[axis]));
  return text;
}

}  // namespace convoy::prove
