// SPDX-License-Identifier: MIT
#include "sim/run/channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace convoy::inline runs {
namespace {

struct ItemOnWire {
  std::uint64_t number;
  double factor;
};

struct AnswerHeader {
  std::uint64_t kind, size;
};

/// Bytes that are there, at most `size`; 0 if the other end is gone.
std::size_t read_some(int fd, char* data, std::size_t size) {
  for (;;) {
    const ssize_t n = ::read(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    return n > 0 ? static_cast<std::size_t>(n) : 0;
  }
}

/// False if the other end is gone.
bool write_all(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::send(fd, data, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

std::optional<std::array<int, 2>> open_channel() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) return std::nullopt;
  return ends;
}

bool ChannelEnd::take(char* data, std::size_t size) {
  constexpr std::size_t buffered = 1 << 16;  // many small messages
  while (size > 0) {
    if (!has_more() && size >= buffered) {  // what is large stays where it is
      const std::size_t n = read_some(descriptor_, data, size);
      if (n == 0) return false;
      data += n, size -= n;
      continue;
    }
    if (!has_more()) {
      buffer_.resize(buffered);
      next_ = 0, end_ = read_some(descriptor_, buffer_.data(), buffered);
      if (end_ == 0) return false;
    }
    const std::size_t n = std::min(size, end_ - next_);
    std::memcpy(data, buffer_.data() + next_, n);
    next_ += n, data += n, size -= n;
  }
  return true;
}

bool send_items(const ChannelEnd& end, const std::vector<WorkItem>& items) {
  std::vector<ItemOnWire> sent;
  for (const WorkItem& item : items) sent.push_back({item.number, item.factor});
  return write_all(end.descriptor(), reinterpret_cast<const char*>(sent.data()),
                   sent.size() * sizeof sent[0]);
}

std::optional<WorkItem> receive_item(ChannelEnd& end) {
  ItemOnWire got{};
  if (!end.take(reinterpret_cast<char*>(&got), sizeof got)) return std::nullopt;
  return WorkItem(got.number, got.factor);
}

bool send_answer(const ChannelEnd& end, const WorkerAnswer& answer) {
  constexpr std::size_t copied_bytes = 1 << 14;  // costs less than a second call
  const AnswerHeader header{static_cast<std::uint64_t>(answer.kind), answer.bytes.size()};
  const bool together = answer.bytes.size() <= copied_bytes;
  std::string sent(reinterpret_cast<const char*>(&header), sizeof header);
  if (together) sent += answer.bytes;
  return write_all(end.descriptor(), sent.data(), sent.size()) &&
         (together || write_all(end.descriptor(), answer.bytes.data(), answer.bytes.size()));
}

std::optional<WorkerAnswer> receive_answer(ChannelEnd& end) {
  AnswerHeader header{};
  if (!end.take(reinterpret_cast<char*>(&header), sizeof header)) return std::nullopt;
  WorkerAnswer answer{static_cast<WorkerAnswer::Kind>(header.kind), std::string(header.size, '\0')};
  if (!end.take(answer.bytes.data(), answer.bytes.size())) return std::nullopt;
  return answer;
}

}  // namespace convoy::runs
