// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/input_error.h"

namespace convoy::inline topologies {

/// An element of an XML file. Text between elements, comments and name spaces are left out.
struct XmlElement {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<XmlElement> children;
  SourcePos pos;

  const std::string* find(std::string_view attribute) const;  ///< nullptr where it has none of that name
  /// @throws InputError where it has none
  const std::string& text(std::string_view attribute) const;
  std::string text_or(std::string_view attribute, std::string fallback) const;
  /// @throws InputError: no such attribute, or no number
  double number(std::string_view attribute) const;
  [[noreturn]] void fail(const std::string& message) const;
};

/// Reads a file (libxml2, without the network and without entities of its own). @throws InputError with the
/// place: it cannot be read, is larger than 64 MiB, is no XML, its elements are nested more than 64 deep
XmlElement load_xml(const std::string& file);

}  // namespace convoy::topologies
