// SPDX-License-Identifier: MIT
#include "sim/results/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <istream>

namespace convoy::inline results {
namespace {

constexpr std::size_t deepest = 100;
constexpr std::size_t most_names = 10'000;  ///< ordered_json compares a name with all before it

/// nlohmann's message contains the place and much else.
std::string parse_message(const std::string& what) {
  if (what.find("unexpected end of input") != std::string::npos)
    return "ends too early: it is no whole JSON document";
  unsigned line = 0, column = 0;
  const std::size_t at = what.find("at line ");
  if (at == std::string::npos || std::sscanf(what.c_str() + at, "at line %u, column %u", &line, &column) != 2)
    return "not JSON";
  return fmt::format("not JSON: line {}, column {}", line, column);
}

/// Receives the parser's events and builds the document, except for the items of the list. (Json::parse with
/// a callback goes through the whole list at the end of each item.)
class Builder {
 public:
  Builder(std::string_view list, const std::function<void(const std::string&, const Json&)>& member,
          const JsonItem& item)
      : list_(list), member_(member), item_(item) {}

  Json root;

  bool null() { return add(Json(nullptr)); }
  bool boolean(bool truth) { return add(Json(truth)); }
  bool number_integer(Json::number_integer_t number) { return add(Json(number)); }
  bool number_unsigned(Json::number_unsigned_t number) { return add(Json(number)); }
  bool number_float(Json::number_float_t number, const std::string&) { return add(Json(number)); }
  bool string(std::string& text) { return add(Json(std::move(text))); }
  bool binary(Json::binary_t& bytes) { return add(Json(std::move(bytes))); }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    Open& object = open_.back();
    if (object.value.size() >= most_names)
      throw JsonError(fmt::format("an object with more than {} names", most_names));
    if (object.value.contains(name))
      throw JsonError(fmt::format("the name '{}' is there twice in an object", name));
    object.key = std::move(name);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) {
    constexpr int number_overflow = 406;
    throw JsonError(error.id == number_overflow ? "not JSON: a number is too large"
                                                : parse_message(error.what()));
  }

 private:
  struct Open {
    Json value;
    std::string key;  ///< of an object: the last name
  };

  bool open(Json value) {
    if (open_.size() >= deepest) throw JsonError(fmt::format("nested deeper than {} levels", deepest));
    open_.push_back({std::move(value), {}});
    return true;
  }
  bool close() {
    Json value = std::move(open_.back().value);
    open_.pop_back();
    return add(std::move(value));
  }
  bool add(Json value) {
    if (open_.empty()) {
      root = std::move(value);
      return true;
    }
    Open& parent = open_.back();
    const bool outermost = open_.front().value.is_object();
    if (open_.size() == 2 && outermost && open_.front().key == list_ && parent.value.is_array()) {
      item_(items_++, value);
      return true;
    }
    if (open_.size() == 1 && outermost && parent.key != list_) member_(parent.key, value);
    if (parent.value.is_array())
      parent.value.push_back(std::move(value));
    else
      parent.value.emplace(parent.key, std::move(value));
    return true;
  }

  std::string_view list_;
  const std::function<void(const std::string&, const Json&)>& member_;
  const JsonItem& item_;
  std::vector<Open> open_;
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
  Builder builder(list, member, item);
  Json::sax_parse(in, &builder);
  return std::move(builder.root);
}

}  // namespace convoy::results
