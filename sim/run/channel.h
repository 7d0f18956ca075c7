// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>

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

/// False if the other end is gone.
bool write_all(int fd, const char* data, std::size_t size);
/// False at the end of the pipe.
bool read_all(int fd, char* data, std::size_t size);

bool send_item(int fd, const WorkItem& item);
std::optional<WorkItem> receive_item(int fd);
bool send_answer(int fd, const WorkerAnswer& answer);
std::optional<WorkerAnswer> receive_answer(int fd);

}  // namespace convoy::runs
