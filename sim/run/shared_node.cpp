// SPDX-License-Identifier: MIT
#include "sim/run/shared_node.h"

#include <functional>
#include <utility>

namespace convoy::inline runs {
namespace {

void append_counted(const std::string& part, std::string& text) {
  text += std::to_string(part.size());
  text += ':';
  text += part;
}

void append_fingerprint(const YamlNode& node, std::string& text) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      text += '~';
      return;
    case YamlNode::Kind::scalar:
      text += node.quoted ? 'q' : 's';
      append_counted(node.scalar, text);
      return;
    case YamlNode::Kind::sequence:
      text += '[';
      for (const YamlNode& item : node.items) append_fingerprint(item, text);
      text += ']';
      return;
    case YamlNode::Kind::mapping:
      text += '{';
      for (const auto& [key, value] : node.entries) {
        append_counted(key, text);
        append_fingerprint(value, text);
      }
      text += '}';
      return;
  }
}

}  // namespace

std::string fingerprint(const YamlNode& node) {
  std::string text;
  append_fingerprint(node, text);
  return text;
}

SharedNode::SharedNode(YamlNode node) {
  std::string text = runs::fingerprint(node);
  const std::size_t hash = std::hash<std::string>{}(text);
  content_ = std::make_shared<const Content>(Content{std::move(node), std::move(text), hash});
}

}  // namespace convoy::runs
