// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/memo.h"
#include "sim/run/experiment.h"

namespace convoy::inline runs {

/// Reads the points of one experiment. The points of a sweep have few values of each part (`training`, `strategy`),
/// in all combinations: each value of a part is read once, and the points that have it share its nodes.
class PointReader {
 public:
  /// @param experiment is to outlive the reader
  explicit PointReader(const Experiment& experiment) : experiment_(&experiment) {}

  /// Valid until the next call of a member. @throws InputError
  const Point& point(std::size_t index) { return read(index).point; }

  /// Exact text of what the point's parts say, by which stores tell points apart: a line `part:fingerprint` for each
  /// but the name of the experiment and its queue of jobs. @throws InputError
  std::string content(std::size_t index);

 private:
  /// One value of a part.
  struct Value {
    std::shared_ptr<const Point> point;  ///< one that has it
    std::string line;                    ///< of content()
  };
  /// Which of its values a part has at a point (Experiment::place_of).
  struct Place {
    std::size_t place;
    bool operator==(const Place&) const = default;
    std::size_t hash() const { return place; }
  };
  struct Part {
    static constexpr std::size_t most_values = 1024;
    std::string name;
    Memo<Place, std::shared_ptr<const Value>> values{most_values};
  };
  /// The point that was read last.
  struct Last {
    std::size_t index;
    Point point;
    std::vector<std::shared_ptr<const Value>> values;  ///< of its parts
  };

  const Last& read(std::size_t index);

  const Experiment* experiment_;
  std::vector<Part> parts_;  ///< in the order of the file; none: nothing has been read
  bool apart_ = true;        ///< no part is made of others
  std::optional<Last> last_;
};

}  // namespace convoy::runs
