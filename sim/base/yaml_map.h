// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/base/yaml_node.h"

namespace convoy::inline base {

/// A mapping that is read strictly: read the keys you know, then call finish(). A key that nobody asked for
/// is an error with a suggestion; so are wrong types, missing units and values out of range. Every error is
/// an InputError that names the place, the path of the key, and what is allowed.
///
/// Getters without a default require the key. A key whose value is null counts as absent: an optional key has
/// its default, and a required key is an error. The YamlNode must outlive the map.
class YamlMap {
 public:
  /// @param path the path to the mapping, for messages: "strategy", "cluster.devices.ideal"; "" for the whole
  /// file.
  /// @throws InputError if `node` is not a mapping.
  YamlMap(const YamlNode& node, std::string path);

  bool has(std::string_view key) const;  ///< does not count as reading the key
  /// @param allowed what its value may be, for the error if the key is missing
  const YamlNode& node(std::string_view key, const std::vector<std::string>& allowed = {});
  const YamlNode* find(std::string_view key);  ///< nullptr if absent

  YamlMap map(std::string_view key);                ///< a mapping
  std::vector<YamlMap> maps(std::string_view key);  ///< a list of mappings

  std::string text(std::string_view key);  ///< any scalar
  /// As text(); `fallback` without the key.
  std::string text_or(std::string_view key, std::string fallback);
  /// The index of the value in `allowed`; any other value is an error that lists them.
  /// @param or_else what else the key may be, which the caller has already handled: the error names it too
  std::size_t choice(std::string_view key, const std::vector<std::string>& allowed,
                     std::string_view or_else = {});
  /// As choice(); `fallback` without the key.
  std::size_t choice_or(std::string_view key, const std::vector<std::string>& allowed, std::size_t fallback);
  bool flag_or(std::string_view key, bool fallback);  ///< true or false

  /// A whole number in [min, max]. `1e6` and `1000000` are whole; `2.5`, `010` and `"3"` are not.
  std::int64_t integer(std::string_view key, std::int64_t min, std::int64_t max = max_integer);
  /// As integer(); `fallback` without the key.
  std::int64_t integer_or(std::string_view key, std::int64_t fallback, std::int64_t min,
                          std::int64_t max = max_integer);
  /// A finite number in [min, max] without a unit.
  double number(std::string_view key, double min, double max = std::numeric_limits<double>::max());
  /// As number(); `fallback` without the key.
  double number_or(std::string_view key, double fallback, double min,
                   double max = std::numeric_limits<double>::max());
  /// A number with its unit, in SI base units, never negative. `positive`: zero is an error too.
  double quantity(std::string_view key, Dimension dimension, bool positive = false);
  /// As quantity(); `fallback` without the key.
  double quantity_or(std::string_view key, Dimension dimension, double fallback, bool positive = false);

  /// Every key that has not been read is unknown: InputError with the nearest known key.
  void finish() const;

  /// Reads every key of the mapping, in order (for mappings whose keys are names chosen by the user).
  std::vector<std::string> keys();

  std::string path_of(std::string_view key) const;     ///< "strategy.bucket", for messages
  const std::string& path() const { return path_; }    ///< of the mapping, for messages
  const SourcePos& pos() const { return node_->pos; }  ///< of the mapping
  const SourcePos& pos(std::string_view key) const;    ///< of the key's value, or of the mapping if absent

  /// Reports an error at the key's value (or at the mapping if the key is absent).
  [[noreturn]] void fail(std::string_view key, const std::string& message) const;
  /// Reports an error about the mapping as a whole.
  [[noreturn]] void fail(const std::string& message) const;

  static constexpr std::int64_t max_integer = std::int64_t{1} << 53;  ///< whole in a double

 private:
  const YamlNode* node_;
  std::string path_;
  std::set<std::string, std::less<>> known_;
};

/// Reads one value as whole number / number / quantity, with the rules and messages of the getters. `path` is
/// for messages.
std::int64_t read_integer(const YamlNode& node, const std::string& path, std::int64_t min,
                          std::int64_t max = YamlMap::max_integer);
double read_number(const YamlNode& node, const std::string& path, double min, double max);
double read_quantity(const YamlNode& node, const std::string& path, Dimension dimension,
                     bool positive = false);
std::string read_text(const YamlNode& node, const std::string& path);

}  // namespace convoy::base
