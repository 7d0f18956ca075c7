// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

/// An element of a page or drawing.
struct XmlElement {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::string text;  ///< directly within it
  std::vector<XmlElement> children;

  std::string attribute(const std::string& key) const;  ///< fails the test where there is none
  double number(const std::string& key) const;
  /// All elements below of that name ("": any) whose class has the word `style` ("": any), in document order.
  std::vector<const XmlElement*> all(const std::string& name, const std::string& style = {}) const;
  std::string all_text() const;  ///< with that of the elements below
};

/// Parses with Boost's XML parser, which is strict about tags, and fails the test on an '&' that begins no
/// entity, an attribute that stands twice and a character that XML does not have. The result's child is the
/// root.
XmlElement parse_xml(const std::string& text);
