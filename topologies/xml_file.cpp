// SPDX-License-Identifier: MIT
#include "topologies/xml_file.h"

#include <fmt/format.h>
#include <libxml/parser.h>
#include <libxml/tree.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <sstream>

#include "sim/base/input_file.h"
#include "sim/base/quantity.h"

namespace convoy::inline topologies {
namespace {

constexpr std::size_t max_xml_bytes = 64u << 20;
constexpr int max_xml_depth = 64;

std::string text_of(const xmlChar* text) { return text ? reinterpret_cast<const char*>(text) : ""; }

XmlElement converted(const xmlNode* node, const std::string& file, int depth) {
  XmlElement element;
  element.name = text_of(node->name);
  element.pos = {file, static_cast<int>(xmlGetLineNo(node)), 1};
  if (depth > max_xml_depth)
    element.fail(fmt::format("more than {} elements inside each other", max_xml_depth));
  for (const xmlAttr* attribute = node->properties; attribute; attribute = attribute->next) {
    xmlChar* value = xmlNodeListGetString(node->doc, attribute->children, 1);
    element.attributes.emplace_back(text_of(attribute->name), text_of(value));
    xmlFree(value);
  }
  for (const xmlNode* child = node->children; child; child = child->next)
    if (child->type == XML_ELEMENT_NODE) element.children.push_back(converted(child, file, depth + 1));
  return element;
}

}  // namespace

const std::string* XmlElement::find(std::string_view attribute) const {
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [&](const auto& entry) { return entry.first == attribute; });
  return found == attributes.end() ? nullptr : &found->second;
}

const std::string& XmlElement::text(std::string_view attribute) const {
  const std::string* value = find(attribute);
  if (!value) fail(fmt::format("attribute '{}' is missing", attribute));
  return *value;
}

std::string XmlElement::text_or(std::string_view attribute, std::string fallback) const {
  const std::string* value = find(attribute);
  return value ? *value : std::move(fallback);
}

double XmlElement::number(std::string_view attribute) const {
  const std::optional<double> value = parse_number(text(attribute));
  if (!value) fail(fmt::format("{}: expected a number, found '{}'", attribute, text(attribute)));
  return *value;
}

void XmlElement::fail(const std::string& message) const {
  throw InputError(pos, fmt::format("<{}>: {}", name, message));
}

XmlElement load_xml(const std::string& file) {
  std::ifstream stream = open_input(file, std::ios::binary | std::ios::ate);
  if (!stream) throw InputError({file, 0, 0}, "cannot be read");
  const std::streamoff size = stream.tellg();
  if (size < 0 || static_cast<std::size_t>(size) > max_xml_bytes)
    throw InputError({file, 0, 0}, "is no file, or larger than 64 MiB");
  std::string text(static_cast<std::size_t>(size), '\0');
  stream.seekg(0);
  stream.read(text.data(), size);

  const auto context =
      std::unique_ptr<xmlParserCtxt, decltype(&xmlFreeParserCtxt)>(xmlNewParserCtxt(), xmlFreeParserCtxt);
  const auto document = std::unique_ptr<xmlDoc, decltype(&xmlFreeDoc)>(
      xmlCtxtReadMemory(context.get(), text.data(), static_cast<int>(text.size()), file.c_str(), nullptr,
                        XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_BIG_LINES),
      xmlFreeDoc);
  if (const xmlError* error = xmlCtxtGetLastError(context.get()); !document || !context->wellFormed) {
    std::string reason = error && error->message ? error->message : "is no XML";
    while (!reason.empty() && reason.back() == '\n') reason.pop_back();
    throw InputError({file, error ? error->line : 1, error && error->int2 > 0 ? error->int2 : 1},
                     fmt::format("is no XML: {}", reason));
  }
  return converted(xmlDocGetRootElement(document.get()), file, 0);
}

}  // namespace convoy::topologies
