// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::inline results {

/// Keeps the order of names.
using Json = nlohmann::ordered_json;

/// The place of a value in a document: "runs[3].per_device[0].busy_s". A chain of what is being read, which
/// is turned into text only if something is wrong.
struct JsonPlace {
  const JsonPlace* in = nullptr;
  std::string_view name = {};  ///< of a member; if empty, this is item `index` of a list
  std::size_t index = 0;
  std::string text() const;
};

/// What is wrong with a document, without the name of its file. Caught where the name is known.
class JsonError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  JsonError(const JsonPlace& place, const std::string& message);
};

/// "a number", "text", ...: what was found where something else was expected.
std::string_view kind_of(const Json& value);

/// Takes the members of an object one by one; finish() reports those that are left. All its functions throw
/// JsonError.
class JsonObject {
 public:
  JsonObject(const Json& value, const JsonPlace& place);
  const Json* find(std::string_view name);
  const Json& get(std::string_view name);  ///< it must be present
  bool has(std::string_view name) const { return value_.contains(name); }
  void finish() const;
  const JsonPlace& place() const { return place_; }

 private:
  const Json& value_;
  const JsonPlace& place_;
  std::vector<std::string_view> taken_;
};

/// Called with the name of a list in the outermost object, and with each of its items.
using JsonItem = std::function<void(std::size_t index, const Json& item)>;

/// Parses a document whose outermost object has one long list: its items are passed on one by one and do not
/// stay in memory. `member` is called for every other value that is directly in the outermost object, in
/// order. Returns the document, in which that list is empty.
/// @throws JsonError with line and column: not JSON, cut short, or a name twice in an object
Json parse_json(std::istream& in, std::string_view list,
                const std::function<void(const std::string& name, const Json& value)>& member,
                const JsonItem& item);

}  // namespace convoy::results
