// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include "sim/base/yaml_node.h"

namespace convoy::inline base {

/// A list where a key takes one value. Whoever knows the document can say where lists of values belong.
class ListGiven : public InputError {
 public:
  ListGiven(SourcePos list_pos, std::string text);  ///< what() names the place before the text
  const SourcePos& pos() const { return pos_; }     ///< of the list
  const std::string& message() const { return message_; }

 private:
  SourcePos pos_;
  std::string message_;
};

/// Reports that `node` is not what its key takes: "PATH: expected EXPECTED, found 'abc'".
/// @param path of the key; "" for the whole file
/// @throws ListGiven if it is a list, otherwise InputError
[[noreturn]] void fail_unexpected(const YamlNode& node, const std::string& path, std::string_view expected);

}  // namespace convoy::base
