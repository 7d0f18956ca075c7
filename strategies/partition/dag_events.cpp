// SPDX-License-Identifier: MIT
#include "strategies/partition/dag_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/input_error.h"

namespace convoy::inline partition {

void DagEvents::fail(std::size_t offset, const std::string& message) const {
  const std::string_view before(text_.data(), std::min(offset, text_.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  throw InputError({file_, static_cast<int>(line), static_cast<int>(before.size() - line_start) + 1},
                   message);
}

bool DagEvents::number_unsigned(Json::number_unsigned_t value) {
  if (value > static_cast<Json::number_unsigned_t>(largest_whole))
    return number(static_cast<double>(value), std::nullopt);
  return whole(static_cast<std::int64_t>(value));
}

bool DagEvents::string(std::string& value) {
  if (in_notes()) return true;
  if (state_ == State::file_text) {
    if (key_ == "name") name = value;
    state_ = State::file;
    return true;
  }
  if (state_ == State::node_value && key_ == "name") {
    nodes.back().name = value;
    state_ = State::node;
    return true;
  }
  return reject("text");
}

bool DagEvents::start_object(std::size_t) {
  if (enter_notes()) return true;
  if (state_ == State::start) {
    state_ = State::file;
    return true;
  }
  if (state_ != State::nodes) return reject("an object");
  nodes.emplace_back().offset = token();
  node_seen_.clear();
  state_ = State::node;
  return true;
}

bool DagEvents::key(std::string& value) {
  if (state_ == State::notes) return true;
  const bool in_node = state_ == State::node;
  std::vector<std::string>& seen = in_node ? node_seen_ : file_seen_;
  if (has(seen, value)) fail(token(), fmt::format("key '{}' is there twice", value));
  const auto& allowed = in_node ? node_keys : file_keys;
  if (!has(allowed, value))
    fail(token(), fmt::format("unknown key '{}'; known: {}", value, fmt::join(allowed, ", ")));
  seen.push_back(value);
  key_ = value;
  state_ = in_node            ? State::node_value
           : value == "nodes" ? State::nodes_value
           : value == "edges" ? State::edges_value
           : value == "notes" ? State::notes
                              : State::file_text;
  return true;
}

bool DagEvents::end_object() {
  if (leave_notes()) return true;
  if (state_ == State::node) {
    for (const std::string_view required : {"id", "time_us"})
      if (!has(node_seen_, required)) fail(nodes.back().offset, fmt::format("node without '{}'", required));
    state_ = State::nodes;
    return true;
  }
  for (const std::string_view required : {"nodes", "edges"})
    if (!has(file_seen_, required)) fail(0, fmt::format("the graph has no '{}'", required));
  if (nodes.empty()) fail(0, "the graph has no nodes");
  return true;
}

bool DagEvents::start_array(std::size_t) {
  if (enter_notes()) return true;
  if (state_ == State::nodes_value) {
    state_ = State::nodes;
  } else if (state_ == State::edges_value) {
    state_ = State::edges;
  } else if (state_ == State::edges) {
    edges.push_back({{0, 0}, token()});
    ends_ = 0;
    state_ = State::edge;
  } else {
    return reject("a list");
  }
  return true;
}

bool DagEvents::end_array() {
  if (leave_notes()) return true;
  if (state_ == State::edge) {
    if (ends_ != 2) fail(edges.back().offset, "an edge is two ids: [from, to]");
    state_ = State::edges;
  } else {
    state_ = State::file;
  }
  return true;
}

bool DagEvents::parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) {
  const std::size_t at = read > 0 ? read - 1 : 0;
  if (read >= text_.size() && error.id == 101)
    fail(text_.size(), "the file ends too early: it is no whole JSON document");
  if (error.id == 406) fail(number_token(), "number too large");
  fail(at, "not JSON");
}

bool DagEvents::in_notes() {
  if (state_ != State::notes) return false;
  if (depth_ == 0) state_ = State::file;
  return true;
}

bool DagEvents::enter_notes() {
  if (state_ == State::notes) ++depth_;
  return state_ == State::notes;
}

bool DagEvents::leave_notes() {
  if (state_ != State::notes) return false;
  if (--depth_ == 0) state_ = State::file;
  return true;
}

bool DagEvents::has(const std::vector<std::string>& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

std::size_t DagEvents::number_token() const {
  const auto in_number = [&](std::size_t i) {
    return std::string_view("0123456789+-.eE").find(text_[i]) != std::string_view::npos;
  };
  std::size_t begin = std::min(read, text_.size()) - 1;
  if (!in_number(begin)) --begin;
  while (begin > 0 && in_number(begin - 1)) --begin;
  return begin;
}

std::size_t DagEvents::token() const {
  std::size_t begin = std::min(read, text_.size()) - 1;
  if (text_[begin] == '"') {
    const auto escaped = [&](std::size_t quote) {
      std::size_t slashes = 0;
      while (slashes < quote && text_[quote - 1 - slashes] == '\\') ++slashes;
      return slashes % 2 == 1;
    };
    do --begin;
    while (text_[begin] != '"' || escaped(begin));
  }
  const auto in_word = [&](std::size_t i) { return text_[i] >= 'a' && text_[i] <= 'z'; };
  while (in_word(begin) && begin > 0 && in_word(begin - 1)) --begin;
  return begin;
}

std::string DagEvents::expected() const {
  switch (state_) {
    case State::start:
      return "expected an object with 'nodes' and 'edges'";
    case State::file_text:
      return fmt::format("'{}' must be text", key_);
    case State::nodes_value:
    case State::edges_value:
      return fmt::format("'{}' must be a list", key_);
    case State::nodes:
      return "a node must be an object";
    case State::edges:
      return "an edge is two ids: [from, to]";
    case State::edge:
      return "an edge's ends must be ids, which are whole numbers";
    default:
      return key_ == "name"                            ? "'name' must be text"
             : key_ == "id" || key_ == "colocate_with" ? fmt::format("'{}' must be a whole number", key_)
                                                       : fmt::format("'{}' must be a number", key_);
  }
}

bool DagEvents::reject(std::string_view found) const {
  fail(token(), fmt::format("{}, not {}", expected(), found));
}

bool DagEvents::reject_number(std::string_view found) const {
  fail(number_token(), fmt::format("{}, not {}", expected(), found));
}

bool DagEvents::number(double value, std::optional<std::int64_t> exact) {
  if (in_notes()) return true;
  if (state_ == State::edge) {
    if (!exact) return reject_number("a number such as this");
    if (ends_ == 2) fail(edges.back().offset, "an edge is two ids: [from, to]");
    edges.back().ends[ends_++] = *exact;
    return true;
  }
  if (state_ != State::node_value || key_ == "name") return reject_number("a number");
  DagFileNode& node = nodes.back();
  if (key_ == "id" || key_ == "colocate_with") {
    if (!exact) return reject_number("a number such as this");
    if (key_ == "id")
      node.id = *exact;
    else
      node.colocate_with = *exact;
  } else {
    if (!std::isfinite(value)) fail(number_token(), "number too large");
    if (value < 0) fail(number_token(), fmt::format("'{}' must not be negative", key_));
    (key_ == "time_us"        ? node.figures.time_us
     : key_ == "output_bytes" ? node.figures.output_bytes
                              : node.figures.memory_bytes) = value;
  }
  state_ = State::node;
  return true;
}

}  // namespace convoy::partition
