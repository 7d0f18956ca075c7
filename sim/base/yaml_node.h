// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/input_error.h"

namespace convoy::inline base {

/// A YAML value with the place at which it was written. It is a plain tree: anchors are expanded (within
/// limits), and duplicate keys and further documents in the file are errors. A number has one spelling,
/// however it was written (number_spelling), so that no reader of the tree can distinguish 16.0 from 16; a
/// text that looks like a number is quoted.
struct YamlNode {
  /// null: nothing is written, or `null`. scalar: a text, a number, true or false.
  enum class Kind { null, scalar, sequence, mapping };
  YamlNode();                   // in the .cpp: only there are pairs of nodes complete
  Kind kind = Kind::null;       ///< which of the members below count
  std::string scalar;           ///< its text, without quotes
  bool quoted = false;          ///< '1' in quotes is a text, 1 is a number
  std::vector<YamlNode> items;  ///< of a sequence
  std::vector<std::pair<std::string, YamlNode>> entries;  ///< of a mapping, in the order written
  SourcePos pos;                                          ///< position of the value
  SourcePos key_pos;  ///< position of this value's key, if it is the value of a mapping

  const YamlNode* find(std::string_view key) const;  ///< of a mapping; nullptr if it has no such key
};

/// What the user wrote where something else was expected: "a list", "a mapping", "'abc'", "nothing".
std::string describe(const YamlNode& node);

/// Reads one YAML document. Limits: 8 MiB of text, 500,000 values after aliases, 100 levels. Text beyond
/// these limits, text that is not YAML 1.2, and duplicate keys throw InputError with the place.
YamlNode parse_yaml(const std::string& text, const std::string& file);

/// parse_yaml for a file; InputError if it cannot be read, is a folder or is too large.
YamlNode load_yaml(const std::string& file);

/// Sets the value at a dotted path ("strategy.bucket", "cluster.nodes"); numbers index sequences. A key that
/// itself contains dots is quoted: cluster.servers."aws-p3.16xlarge".price. Mappings that do not exist are
/// created. @throws InputError (at value.pos) if the path goes through a scalar.
void set_path(YamlNode& root, std::string_view dotted_path, YamlNode value);

/// The value at a dotted path, which is read as set_path reads it; nullptr if there is none.
const YamlNode* find_path(const YamlNode& root, std::string_view dotted_path);

/// The value as one line of flow-style YAML for people: texts stand as they are, with no quotes.
std::string to_flow(const YamlNode& node);

/// The value as one line that parse_yaml reads back to the same: a text is in quotes where it needs them, or had them.
std::string to_yaml(const YamlNode& node);

}  // namespace convoy::base
