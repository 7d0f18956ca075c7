// SPDX-License-Identifier: MIT
#include "sim/replay/splitting_classes.h"

#include <utility>

namespace convoy::inline replays {

SplittingClasses::SplittingClasses(std::span<const Colour> colours) : alone_(colours.size()) {
  class_of_.reserve(colours.size());
  {
    ColourTable known;
    for (const Colour colour : colours) class_of_.push_back(known.number(colour));
    classes_.resize(known.size());
  }
  members_.resize(colours.size());
  place_.resize(colours.size());
  shown_.resize(colours.size(), 0);
  for (const std::uint32_t id : class_of_) ++classes_[id].size;
  std::uint32_t first = 0;
  for (Class& it : classes_) {
    it.first = it.next = first;
    first += it.size;
  }
  for (std::uint32_t thing = 0; thing < class_of_.size(); ++thing) {
    Class& own = classes_[class_of_[thing]];
    put(thing, own.next++);
    alone_[thing] = own.size == 1;
  }
}

std::span<const std::uint32_t> SplittingClasses::split() {
  changed_.clear();
  first_new_ = static_cast<std::uint32_t>(classes_.size());
  find_parts();
  place_parts();
  move_things();
  for (const std::uint32_t id : touched_classes_) keep_largest(id);
  touched_.clear();
  touched_classes_.clear();
  return changed_;
}

/// Also moves touched items behind the others of their class.
void SplittingClasses::find_parts() {
  ColourTable known;
  parts_.clear();
  part_of_.clear();
  const auto colour_of = [&](std::uint32_t thing) { return mix(shown_[thing], class_of_[thing]); };
  constexpr std::size_t ahead = 16;
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    if (i + ahead < touched_.size()) known.fetch(colour_of(touched_[i + ahead]));
    const std::uint32_t thing = touched_[i];
    const Colour colour = colour_of(thing);
    const Colour shown = std::exchange(shown_[thing], 0);
    if (shown == 0) {  // a sum that was 0 in between, so that the item is listed twice
      part_of_.push_back(none);
      continue;
    }
    const std::uint32_t id = class_of_[thing];
    const std::uint32_t part = known.number(colour);
    if (part == parts_.size()) parts_.push_back({id, 0, 0});
    ++parts_[part].size;
    part_of_.push_back(part);
    Class& own = classes_[id];
    if (own.touched++ == 0) touched_classes_.push_back(id);
    const std::uint32_t behind = own.first + own.size - own.touched, from = place_[thing];
    put(members_[behind], from);
    put(thing, behind);
  }
}

/// Parts are placed behind the items of their class that were shown nothing.
void SplittingClasses::place_parts() {
  for (const std::uint32_t id : touched_classes_) {
    Class& own = classes_[id];
    own.next = own.first + own.size - own.touched;
    own.largest = none;
  }
  for (std::uint32_t p = 0; p < parts_.size(); ++p) {
    Class& own = classes_[parts_[p].of_class];
    parts_[p].next = own.next;
    own.next += parts_[p].size;
    if (own.largest == none || parts_[p].size > parts_[own.largest].size) own.largest = p;
  }
  for (std::uint32_t p = 0; p < parts_.size(); ++p) {
    Part& part = parts_[p];
    const Class& own = classes_[part.of_class];
    part.id = part.of_class;
    if (own.largest == p && part.size > own.size - own.touched) continue;
    part.id = static_cast<std::uint32_t>(classes_.size());
    classes_.push_back({part.next, part.size});
  }
}

void SplittingClasses::move_things() {
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    if (part_of_[i] >= parts_.size()) continue;
    const std::uint32_t thing = touched_[i];
    Part& part = parts_[part_of_[i]];
    put(thing, part.next++);
    if (class_of_[thing] == part.id) continue;
    class_of_[thing] = part.id;
    alone_[thing] = part.size == 1;
    changed_.push_back(thing);
  }
}

/// For a touched class: if its largest part keeps the number, the items that were shown nothing get another
/// one.
void SplittingClasses::keep_largest(std::uint32_t id) {
  const Class own = classes_[id];
  const Class untouched{own.first, own.size - own.touched};
  const Part& largest = parts_[own.largest];
  classes_[id] = largest.id == id ? Class{largest.next - largest.size, largest.size} : untouched;
  mark_if_alone(classes_[id]);
  if (largest.id != id || untouched.size == 0) return;
  const auto other = static_cast<std::uint32_t>(classes_.size());
  classes_.push_back(untouched);
  mark_if_alone(untouched);
  for (std::uint32_t at = untouched.first; at < untouched.first + untouched.size; ++at) {
    class_of_[members_[at]] = other;
    changed_.push_back(members_[at]);
  }
}

void SplittingClasses::mark_if_alone(const Class& it) {
  if (it.size == 1) alone_[members_[it.first]] = true;
}

}  // namespace convoy::replays
