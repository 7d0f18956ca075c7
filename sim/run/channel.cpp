// SPDX-License-Identifier: MIT
#include "sim/run/channel.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace convoy::inline runs {
namespace {

struct ItemOnWire {
  std::uint64_t number;
  double factor;
};

struct AnswerHeader {
  std::uint64_t kind, size;
};

}  // namespace

bool write_all(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

bool read_all(int fd, char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::read(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

bool send_item(int fd, const WorkItem& item) {
  const ItemOnWire sent{item.number, item.factor};
  return write_all(fd, reinterpret_cast<const char*>(&sent), sizeof sent);
}

std::optional<WorkItem> receive_item(int fd) {
  ItemOnWire got{};
  if (!read_all(fd, reinterpret_cast<char*>(&got), sizeof got)) return std::nullopt;
  return WorkItem(got.number, got.factor);
}

bool send_answer(int fd, const WorkerAnswer& answer) {
  const AnswerHeader header{static_cast<std::uint64_t>(answer.kind), answer.bytes.size()};
  return write_all(fd, reinterpret_cast<const char*>(&header), sizeof header) &&
         write_all(fd, answer.bytes.data(), answer.bytes.size());
}

std::optional<WorkerAnswer> receive_answer(int fd) {
  AnswerHeader header{};
  if (!read_all(fd, reinterpret_cast<char*>(&header), sizeof header)) return std::nullopt;
  WorkerAnswer answer{static_cast<WorkerAnswer::Kind>(header.kind), std::string(header.size, '\0')};
  if (!read_all(fd, answer.bytes.data(), answer.bytes.size())) return std::nullopt;
  return answer;
}

}  // namespace convoy::runs
