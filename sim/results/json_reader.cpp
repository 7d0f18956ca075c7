// SPDX-License-Identifier: MIT
#include "sim/results/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <istream>

namespace convoy {
namespace {

constexpr int deepest = 100;
constexpr std::size_t most_names = 10'000;  ///< ordered_json compares a name with all before it

/// nlohmann's message names the place and much else.
std::string parse_message(const std::string& what) {
  if (what.find("unexpected end of input") != std::string::npos)
    return "ends too early: it is no whole JSON document";
  unsigned line = 0, column = 0;
  const std::size_t at = what.find("at line ");
  if (at == std::string::npos || std::sscanf(what.c_str() + at, "at line %u, column %u", &line, &column) != 2)
    return "not JSON";
  return fmt::format("not JSON: line {}, column {}", line, column);
}

/// Follows the parser through the document.
class Watcher {
 public:
  Watcher(std::string_view list, const std::function<void(const std::string&, const Json&)>& member,
          const JsonItem& item)
      : list_(list), member_(member), item_(item) {}

  /// False where the value is not to be kept.
  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (depth > deepest) throw JsonError(fmt::format("nested deeper than {} levels", deepest));
    if (event == Event::object_start) names_.push_back(0);
    if (event == Event::key) {
      if (depth == 1) name_ = parsed.get<std::string>();
      if (++names_.back() > most_names)
        throw JsonError(fmt::format("an object with more than {} names", most_names));
    }
    if (event == Event::object_end) {
      if (names_.back() != parsed.size())
        throw JsonError(fmt::format("a name is there twice in an object of '{}'", name_));
      names_.pop_back();
    }
    const bool whole = event == Event::value || event == Event::object_end || event == Event::array_end;
    if (whole && depth == 2 && name_ == list_) {
      item_(items_++, parsed);
      return false;
    }
    if (whole && depth == 1 && name_ != list_) member_(name_, parsed);
    return true;
  }

 private:
  std::string_view list_;
  const std::function<void(const std::string&, const Json&)>& member_;
  const JsonItem& item_;
  std::string name_;                ///< the last one in the outermost object
  std::vector<std::size_t> names_;  ///< of each object that is open
  std::size_t items_ = 0;
};

}  // namespace

std::string JsonPlace::text() const {
  const std::string before = in ? in->text() : std::string{};
  if (name.empty() && !in) return {};
  if (name.empty()) return fmt::format("{}[{}]", before, index);
  return before.empty() ? std::string(name) : fmt::format("{}.{}", before, name);
}

JsonError::JsonError(const JsonPlace& place, const std::string& message)
    : runtime_error(place.text().empty() ? message : fmt::format("{}: {}", place.text(), message)) {}

std::string_view kind_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::boolean:
      return "a truth value";
    case Json::value_t::string:
      return "text";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "a list";
    default:
      return "a number";
  }
}

JsonObject::JsonObject(const Json& value, const JsonPlace& place) : value_(value), place_(place) {
  if (!value.is_object()) throw JsonError(place, fmt::format("expected an object, not {}", kind_of(value)));
}

const Json* JsonObject::find(std::string_view name) {
  const auto it = value_.find(name);
  if (it == value_.end()) return nullptr;
  taken_.push_back(name);
  return &*it;
}

const Json& JsonObject::get(std::string_view name) {
  if (const Json* value = find(name)) return *value;
  throw JsonError(place_, fmt::format("'{}' is missing", name));
}

void JsonObject::finish() const {
  if (taken_.size() == value_.size()) return;
  for (const auto& [name, value] : value_.items())
    if (std::find(taken_.begin(), taken_.end(), name) == taken_.end())
      throw JsonError(place_, fmt::format("unknown name '{}'", name));
}

Json parse_json(std::istream& in, std::string_view list,
                const std::function<void(const std::string& name, const Json& value)>& member,
                const JsonItem& item) {
  Watcher watcher(list, member, item);
  try {
    return Json::parse(in, [&](int depth, Json::parse_event_t event, Json& parsed) {
      return watcher(depth, event, parsed);
    });
  } catch (const Json::parse_error& error) {
    throw JsonError(parse_message(error.what()));
  } catch (const Json::out_of_range&) {
    throw JsonError("not JSON: a number is too large");
  }
}

}  // namespace convoy
