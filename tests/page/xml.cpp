// SPDX-License-Identifier: MIT
#include "tests/page/xml.h"

#include <doctest/doctest.h>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <regex>
#include <set>
#include <sstream>

namespace {

using boost::property_tree::ptree;

XmlElement element_of(const std::string& name, const ptree& tree) {
  XmlElement element{name, {}, {}, {}};
  element.text = tree.data();
  for (const auto& [key, child] : tree) {
    if (key == "<xmlattr>") {
      std::set<std::string> seen;
      for (const auto& [attribute, value] : child) {
        CHECK_MESSAGE(seen.insert(attribute).second, name << " has " << attribute << " twice");
        element.attributes.emplace_back(attribute, value.data());
      }
    } else if (key == "<xmltext>") {
      element.text += child.data();
    } else {
      element.children.push_back(element_of(key, child));
    }
  }
  return element;
}

bool has_word(const std::string& words, const std::string& word) {
  std::istringstream in(words);
  for (std::string one; in >> one;)
    if (one == word) return true;
  return false;
}

void collect(const XmlElement& in, const std::string& name, const std::string& style,
             std::vector<const XmlElement*>& found) {
  for (const XmlElement& child : in.children) {
    std::string words;
    for (const auto& [key, value] : child.attributes)
      if (key == "class") words = value;
    if ((name.empty() || child.name == name) && (style.empty() || has_word(words, style)))
      found.push_back(&child);
    collect(child, name, style, found);
  }
}

/// The text without its CDATA sections, in which '&' is a character like others.
std::string without_data(std::string text) {
  for (std::size_t at = text.find("<![CDATA["); at != std::string::npos; at = text.find("<![CDATA[", at)) {
    const std::size_t end = text.find("]]>", at);
    REQUIRE(end != std::string::npos);
    text.erase(at, end + 3 - at);
  }
  return text;
}

}  // namespace

std::string XmlElement::attribute(const std::string& key) const {
  for (const auto& [k, value] : attributes)
    if (k == key) return value;
  FAIL(name << " has no " << key);
  return {};
}

double XmlElement::number(const std::string& key) const { return std::stod(attribute(key)); }

std::vector<const XmlElement*> XmlElement::all(const std::string& wanted, const std::string& style) const {
  std::vector<const XmlElement*> found;
  collect(*this, wanted, style, found);
  return found;
}

std::string XmlElement::all_text() const {
  std::string all = text;
  for (const XmlElement& child : children) all += child.all_text();
  return all;
}

XmlElement parse_xml(const std::string& text) {
  static const std::regex entity("^&(amp|lt|gt|quot|#39);");
  const std::string marked = without_data(text);
  for (std::size_t at = marked.find('&'); at != std::string::npos; at = marked.find('&', at + 1))
    CHECK_MESSAGE(std::regex_search(marked.substr(at, 8), entity), marked.substr(at, 40));
  for (const char c : text) {
    const bool allowed = static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t' || c == '\r';
    if (!allowed) FAIL("a control character");
  }
  std::istringstream in(text);
  ptree tree;
  try {
    boost::property_tree::read_xml(in, tree, boost::property_tree::xml_parser::no_concat_text);
  } catch (const boost::property_tree::xml_parser_error& error) {
    FAIL(error.what());
  }
  return element_of({}, tree);
}
