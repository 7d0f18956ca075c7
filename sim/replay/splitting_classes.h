// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "sim/replay/colours.h"

namespace convoy::inline replays {

/// A partition of items, numbered from 0, into classes that split and never merge.
///
/// Items are shown what has changed around them, and items of one class that were shown different things are
/// separated. The largest part keeps the number of the class, so an item that gets another number is in a
/// class of at most half the size; this happens at most log2(items) times. Sources: Cardon & Crochemore,
/// Theoretical Computer Science 19, 1982; Paige & Tarjan, SIAM J. Comput. 16(6), 1987. Classes are numbered
/// from 0, in the same way for the same calls.
class SplittingClasses {
 public:
  /// @param colours by item; items of one colour begin in one class
  explicit SplittingClasses(std::span<const Colour> colours);

  std::uint32_t of(std::uint32_t thing) const { return class_of_[thing]; }
  /// Whether the class was created by the last split; before the first split, all classes are new.
  bool is_new(std::uint32_t id) const { return id >= first_new_; }
  /// Adds to what the item is shown. The order does not matter, and neither do items that are alone in their
  /// class.
  void show(std::uint32_t thing, Colour what) {
    if (alone_[thing]) return;
    if (shown_[thing] == 0) touched_.push_back(thing);
    shown_[thing] += what;
  }
  /// Splits the classes by what their items have been shown since the last split.
  /// @return items whose class is new, valid until the next split
  std::span<const std::uint32_t> split();
  /// Classes by item; the object cannot be used afterwards.
  std::vector<std::uint32_t> take() { return std::move(class_of_); }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  struct Class {
    std::uint32_t first = 0, size = 0;  ///< in members_
    std::uint32_t touched = 0;  ///< since the last split; they stand behind the others
    std::uint32_t next = 0;     ///< where the next of its parts begins
    std::uint32_t largest = 0;  ///< of its parts
  };
  /// Items of a class that have been shown the same.
  struct Part {
    std::uint32_t of_class, size, next;  ///< next: where its next thing comes, in members_
    std::uint32_t id = 0;
  };

  void find_parts();
  void place_parts();
  void move_things();
  void keep_largest(std::uint32_t id);
  void mark_if_alone(const Class& it);
  void put(std::uint32_t thing, std::uint32_t at) {
    members_[at] = thing;
    place_[thing] = at;
  }

  std::vector<std::uint32_t> class_of_;
  std::vector<std::uint32_t> members_, place_;  ///< things, class by class; where each stands
  std::vector<bool> alone_;
  std::vector<Colour> shown_;
  std::vector<Class> classes_;
  std::uint32_t first_new_ = 0;
  // for the current split
  std::vector<std::uint32_t> touched_, part_of_;  ///< part_of_: by place in touched_
  std::vector<std::uint32_t> touched_classes_, changed_;
  std::vector<Part> parts_;
};

}  // namespace convoy::replays
