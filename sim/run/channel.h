// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace convoy::inline runs {

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

bool send_item(int fd, std::size_t item);
std::optional<std::size_t> receive_item(int fd);
bool send_answer(int fd, const WorkerAnswer& answer);
std::optional<WorkerAnswer> receive_answer(int fd);

}  // namespace convoy::runs
