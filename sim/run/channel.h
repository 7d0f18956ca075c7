// SPDX-License-Identifier: MIT
#pragma once

#include <array>
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

// Complete messages between two processes; interrupted calls are continued.

/// Two descriptors, each the other's far end. Nothing: the machine refuses them. Writing where the far end is gone fails
/// and raises no SIGPIPE, whatever the program does with that signal.
std::optional<std::array<int, 2>> open_channel();

/// A process's end of a channel, from which messages are read several small ones at a time.
class ChannelEnd {
 public:
  explicit ChannelEnd(int descriptor) : descriptor_(descriptor) {}
  int descriptor() const { return descriptor_; }
  /// Whether something has been read that nobody has taken.
  bool has_more() const { return next_ < end_; }
  /// Waits for so many bytes. False if the other end is gone.
  bool take(char* data, std::size_t size);

 private:
  int descriptor_;
  std::vector<char> buffer_;
  std::size_t next_ = 0, end_ = 0;  ///< of what is in the buffer
};

// False, or nothing: the other end is gone.
bool send_items(const ChannelEnd& end, const std::vector<WorkItem>& items);
std::optional<WorkItem> receive_item(ChannelEnd& end);
bool send_answer(const ChannelEnd& end, const WorkerAnswer& answer);
std::optional<WorkerAnswer> receive_answer(ChannelEnd& end);

}  // namespace convoy::runs
