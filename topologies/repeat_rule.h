// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/keys.h"
#include "sim/base/yaml_map.h"

namespace convoy::inline models {
class Formula;
}

namespace convoy::inline topologies {

/// What names in rules stand for.
using RuleNames = std::map<std::string, std::int64_t, std::less<>>;

/// Arithmetic on whole numbers (models/formula.h) with its place in a file.
class RuleFormula {
 public:
  /// @param path of the key, for errors
  /// @throws InputError: no formula
  RuleFormula(std::string text, const SourcePos& pos, std::string path);
  /// @throws InputError: unknown names, divisions that leave a remainder, ...
  std::int64_t value(const RuleNames& names) const;

 private:
  [[noreturn]] void fail(const std::string& message) const;
  std::string text_, path_;
  SourcePos pos_;
  std::shared_ptr<const Formula> formula_;
};

/// A name with formulas in it: "leaf$(i // 8)".
class NameRule {
 public:
  /// @throws InputError: "$(" without a formula and ")"
  NameRule(std::string_view text, const SourcePos& pos, const std::string& path);
  std::string text(const RuleNames& names) const;

 private:
  std::vector<std::pair<std::string, std::vector<RuleFormula>>> parts_;  ///< text, then the formula behind it
};

/// For which values an entry of a list is written out: `for: {i: 4, j: hosts // 2}` and `when: i < j`.
class RepeatRule {
 public:
  /// Reads both keys; absent: once. @throws InputError
  static RepeatRule read(YamlMap& map);
  /// Calls `write` with `names` and each combination of the loops' values, from 0 up; the loop whose name comes
  /// first in the alphabet is the outermost. @throws InputError: more than a million
  void for_each(RuleNames names, const std::function<void(const RuleNames&)>& write) const;
  bool is_once() const { return loops_.empty() && when_.empty(); }

 private:
  /// Steps of all loops, so that loops around one that has none come to an end too.
  struct Counted {
    std::int64_t steps = 0, written = 0;
  };
  void repeat(std::size_t loop, Counted& counted, RuleNames& names,
              const std::function<void(const RuleNames&)>& write) const;
  std::vector<std::pair<std::string, RuleFormula>> loops_;
  std::vector<RuleFormula> when_;  ///< one or none
  std::string path_;
  SourcePos pos_;
};

/// The rows `for` and `when` of an entry's table of keys.
template <class Entry>
Keys<Entry> repeat_keys(RepeatRule Entry::*field);

/// Texts of these keys, which templates cannot hold.
KeyText repeat_for_text();
KeyText repeat_when_text();

template <class Entry>
Keys<Entry> repeat_keys(RepeatRule Entry::*field) {
  return {{repeat_for_text(), [field](YamlMap& map, Entry& entry) { entry.*field = RepeatRule::read(map); }},
          {repeat_when_text(), [](YamlMap&, Entry&) {}}};
}

}  // namespace convoy::topologies
