// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace convoy::inline runs {

/// What a worker is asked to do: a number that the work knows, and a factor on something in it. A plain number is
/// asked without one.
struct WorkItem {
  std::size_t number = 0;
  double factor = 1;
  WorkItem(std::size_t item_number, double by = 1) : number(item_number), factor(by) {}
  operator std::size_t() const { return number; }
};

/// The outcome of an item.
struct WorkerAnswer {
  enum class Kind { done, input_error, failed, out_of_memory, out_of_time };
  Kind kind = Kind::failed;
  std::string bytes;  ///< what the work returned, or the text of the error
};

// Complete messages over pipes; interrupted calls are continued.

/// The end of a pipe from which messages are read: several small ones at a time.
class PipeEnd {
 public:
  explicit PipeEnd(int descriptor = -1) : descriptor_(descriptor) {}
  int descriptor() const { return descriptor_; }
  /// Whether something has been read that nobody has taken.
  bool has_more() const { return next_ < end_; }
  /// Waits for so many bytes. False at the end of the pipe.
  bool take(char* data, std::size_t size);

 private:
  int descriptor_;
  std::vector<char> buffer_;
  std::size_t next_ = 0, end_ = 0;  ///< of what is in the buffer
};

/// False if the other end is gone.
bool send_items(int fd, const std::vector<WorkItem>& items);
/// Nothing at the end of the pipe.
std::optional<WorkItem> receive_item(PipeEnd& pipe);
/// False if the other end is gone.
bool send_answer(int fd, const WorkerAnswer& answer);
/// Nothing at the end of the pipe.
std::optional<WorkerAnswer> receive_answer(PipeEnd& pipe);

}  // namespace convoy::runs
