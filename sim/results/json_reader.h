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

/// Where a value stands in a document: "runs[3].per_device[0].busy_s". A chain of what is being read, put
/// into words only where something is wrong.
struct JsonPlace {
  const JsonPlace* in = nullptr;
  std::string_view name = {};  ///< of a member; empty: the item `index` of a list
  std::size_t index = 0;
  std::string text() const;
};

/// What is wrong with a document, without the name of its file. Caught where that is known.
class JsonError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  JsonError(const JsonPlace& place, const std::string& message);
};

/// "a number", "text", ...: what stands where something else was expected.
std::string_view kind_of(const Json& value);

/// Takes an object's members one by one; finish() complains about what is left. All its functions throw
/// JsonError.
class JsonObject {
 public:
  JsonObject(const Json& value, const JsonPlace& place);
  const Json* find(std::string_view name);
  const Json& get(std::string_view name);  ///< it has to be there
  void finish() const;
  const JsonPlace& place() const { return place_; }

 private:
  const Json& value_;
  const JsonPlace& place_;
  std::vector<std::string_view> taken_;
};

/// Called with the name of a list in the outermost object and with each of its items.
using JsonItem = std::function<void(std::size_t index, const Json& item)>;

/// Parses a document whose outermost object has one long list: its items are handed over one by one and do
/// not stay in memory. `member` sees every other value that is directly in the outermost object, in its turn.
/// Returns the rest, where that list is empty.
/// @throws JsonError with line and column: not JSON, cut short; a name twice in an object
Json parse_json(std::istream& in, std::string_view list,
                const std::function<void(const std::string& name, const Json& value)>& member,
                const JsonItem& item);

}  // namespace convoy::results
