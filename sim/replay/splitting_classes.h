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

/// A partition of things, numbered from 0, into classes that split and never merge.
///
/// Things are shown what has changed around them, and those of one class that were shown different things
/// part. The largest part keeps the class's number, so that a thing that gets another number is in a class of
/// at most half the size: it does so at most log2(things) times. Sources: Cardon & Crochemore, Theoretical
/// Computer Science 19, 1982; Paige & Tarjan, SIAM J. Comput. 16(6), 1987. Classes are numbered from 0, in
/// the same way by the same calls.
class SplittingClasses {
 public:
  /// @param colours by thing; those of one colour begin in one class
  explicit SplittingClasses(std::span<const Colour> colours);

  std::uint32_t of(std::uint32_t thing) const { return class_of_[thing]; }
  /// Whether the class has been made by the last split; before the first, all have.
  bool is_new(std::uint32_t id) const { return id >= first_new_; }
  /// Adds to what the thing is shown: the order does not matter, nor does it for things alone in their class.
  void show(std::uint32_t thing, Colour what) {
    if (alone_[thing]) return;
    if (shown_[thing] == 0) touched_.push_back(thing);
    shown_[thing] += what;
  }
  /// Parts the classes by what their things have been shown since the last split.
  /// @return things whose class is new, until the next split
  std::span<const std::uint32_t> split();
  /// By thing; nothing can be asked afterwards.
  std::vector<std::uint32_t> take() { return std::move(class_of_); }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  struct Class {
    std::uint32_t first, size;  ///< in members_
    std::uint32_t touched = 0;  ///< since the last split; they stand behind the others
    std::uint32_t next = 0;     ///< where the next of its parts begins
    std::uint32_t largest = 0;  ///< of its parts
  };
  /// Things of a class that have been shown the same.
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
  // of one split
  std::vector<std::uint32_t> touched_, part_of_;  ///< part_of_: by place in touched_
  std::vector<std::uint32_t> touched_classes_, changed_;
  std::vector<Part> parts_;
};

}  // namespace convoy::replays
