// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/partition/dag.h"

namespace convoy::inline partition {

/// Reads a text character by character and lets others see how far the parser has come.
class CountedText {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountedText(const char* at, std::size_t* read) : at_(at), read_(read) {}
  reference operator*() const { return *at_; }
  CountedText& operator++() {
    ++at_;
    ++*read_;
    return *this;
  }
  CountedText operator++(int) {
    CountedText old = *this;
    ++*this;
    return old;
  }
  bool operator==(const CountedText& other) const { return at_ == other.at_; }
  bool operator!=(const CountedText& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  std::size_t* read_;
};

/// A node as the file has it, and where it begins.
struct DagFileNode {
  std::int64_t id = 0;
  std::string name;
  Dag::Node figures;
  std::optional<std::int64_t> colocate_with;
  std::size_t offset = 0;
};
/// Ids of an edge's ends, and where it begins.
struct DagFileEdge {
  std::int64_t ends[2];
  std::size_t offset;
};

/// Takes the parser's events; what stands where is checked here, so the document never is in memory.
class DagEvents {
 public:
  using Json = nlohmann::json;
  DagEvents(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  std::vector<DagFileNode> nodes;
  std::vector<DagFileEdge> edges;
  std::string name;
  std::size_t read = 0;  ///< characters that the parser has taken

  [[noreturn]] void fail(std::size_t offset, const std::string& message) const;

  bool null() { return in_notes() || reject("null"); }
  bool boolean(bool) { return in_notes() || reject("a truth value"); }
  bool number_integer(Json::number_integer_t value) { return whole(value); }
  bool number_unsigned(Json::number_unsigned_t value);
  bool number_float(Json::number_float_t value, const std::string&) { return number(value, std::nullopt); }
  bool string(std::string& value);
  bool binary(Json::binary_t&) { return reject("binary data"); }

  bool start_object(std::size_t);
  bool key(std::string& value);
  bool end_object();
  bool start_array(std::size_t);
  bool end_array();
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error);

 private:
  enum class State {
    start,
    file,
    file_text,
    notes,
    nodes_value,
    nodes,
    node,
    node_value,
    edges_value,
    edges,
    edge
  };
  static constexpr std::int64_t largest_whole = std::int64_t{1} << 53;
  static inline const std::vector<std::string> file_keys{"nodes", "edges", "name", "source", "notes"};
  static inline const std::vector<std::string> node_keys{"id",           "name",         "time_us",
                                                         "output_bytes", "memory_bytes", "colocate_with"};

  // `notes` may be anything: what is in it is passed over.

  /// Whether a value stands in `notes`; where it is all of it, the file goes on.
  bool in_notes();
  bool enter_notes();
  bool leave_notes();

  static bool has(const std::vector<std::string>& keys, std::string_view key);

  /// Where the number that the parser has just read begins; it may have read one character further.
  std::size_t number_token() const;
  /// Where the text, bracket or word that the parser has just read begins.
  std::size_t token() const;

  std::string expected() const;
  bool reject(std::string_view found) const;
  bool reject_number(std::string_view found) const;

  bool whole(std::int64_t value) { return number(static_cast<double>(value), value); }
  bool number(double value, std::optional<std::int64_t> exact);

  const std::string& text_;
  const std::string& file_;
  State state_ = State::start;
  std::string key_;
  std::vector<std::string> file_seen_, node_seen_;  ///< keys of the objects being read
  int ends_ = 0;                                    ///< of the edge being read
  int depth_ = 0;                                   ///< of lists and objects within `notes`
};

}  // namespace convoy::partition
