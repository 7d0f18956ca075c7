// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "sim/base/keys.h"

namespace convoy::told {

/// What reading a mapping, written as YAML between braces, says: its error, or all that was read as one text.
using Reading = std::function<std::string(const std::string& entries)>;

/// How many keys a reader's error about an unknown one knows of beside those that it lists: "..., c and 8
/// more".
inline std::size_t left_out(const std::string& message) {
  const std::size_t at = message.rfind(" and ");
  return at == std::string::npos || !message.ends_with(" more") ? 0 : std::stoul(message.substr(at + 5));
}

/// The keys that a reader's error about an unknown one lists.
inline std::set<std::string> known_keys(std::string message) {
  const std::string begin = "known here: ";
  if (left_out(message) > 0) message.erase(message.rfind(" and "));
  std::set<std::string> known;
  std::size_t at = message.find(begin);
  if (at == std::string::npos) return known;
  for (at += begin.size(); at < message.size();) {
    const std::size_t end = std::min(message.find(", ", at), message.size());
    known.insert(message.substr(at, end - at));
    at = end + 2;
  }
  return known;
}

inline std::set<std::string> told_names(const std::vector<KeyText>& keys) {
  std::set<std::string> names;
  for (const KeyText& key : keys) names.insert(key.name);
  return names;
}

/// The default that a key tells, where it is one word that YAML can say; "" where there is none.
inline std::string told_default(const KeyText& key) {
  const std::size_t end = key.values.find(" | ");
  if (end == std::string::npos || key.meaning.ends_with("required")) return "";
  const std::string usual = key.values.substr(0, end);
  if (usual.find_first_of(" {['") != std::string::npos) return "";
  return usual == "none" && key.choices.empty() ? "" : usual;
}

/// A reader takes exactly the keys that the table tells of, every name that a key tells, and its default
/// written out changes nothing; null is as if an optional key were left out. @param least what the mapping
/// cannot be read without
/// @return how many defaults were written out
inline int check(const std::vector<KeyText>& keys, const std::string& least, const Reading& read) {
  const std::string comma = least.empty() ? "" : ", ";
  CAPTURE(least);
  const std::string refusal = read(least + comma + "zzzzzzzz: 1");
  const std::set<std::string> known = known_keys(refusal), told = told_names(keys);
  CHECK(std::includes(told.begin(), told.end(), known.begin(), known.end()));
  CHECK(known.size() + left_out(refusal) == told.size());
  const std::string usual = read(least);
  int defaults = 0;
  for (const KeyText& key : keys) {
    CAPTURE(key.name);
    CHECK_FALSE(key.meaning.empty());
    CHECK_FALSE(key.values.empty());
    if (("{" + least).find(" " + key.name + ":") != std::string::npos ||
        ("{" + least).find("{" + key.name + ":") != std::string::npos)
      continue;
    CHECK(read(fmt::format("{}{}{}: [[]]", least, comma, key.name)).find(key.name) != std::string::npos);
    for (const std::string& name : key.choices) {
      const std::string said = read(fmt::format("{}{}{}: {}", least, comma, key.name, name));
      CAPTURE(said);
      CHECK(said.find("unknown value") == std::string::npos);
      CHECK(said.find("expected") == std::string::npos);
    }
    const std::string none = read(fmt::format("{}{}{}: null", least, comma, key.name));
    if (key.meaning.find("required") == std::string::npos)
      CHECK((none == usual || none.find("unknown key") != std::string::npos));  // one of another variant
    else
      CHECK(none.find(key.name) != std::string::npos);
    if (const std::string written = told_default(key); !written.empty()) {
      CAPTURE(written);
      CHECK(read(fmt::format("{}{}{}: {}", least, comma, key.name, written)) == usual);
      ++defaults;
    }
  }
  return defaults;
}

/// The keys of the mapping that a key's value is.
inline const std::vector<KeyText>& parts_of(const std::vector<KeyText>& keys, const std::string& name) {
  for (const KeyText& key : keys)
    if (key.name == name) return key.parts;
  static const std::vector<KeyText> none;
  return none;
}

}  // namespace convoy::told
