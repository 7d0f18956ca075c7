// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "sim/base/yaml_node.h"

namespace convoy::inline runs {

/// Exact text of a value: equal for two values if and only if readers cannot distinguish them.
std::string fingerprint(const YamlNode& node);

/// A value of YAML that never changes and that many points of a sweep share, with its fingerprint, which is made
/// once.
class SharedNode {
 public:
  SharedNode() : SharedNode(YamlNode{}) {}
  SharedNode(YamlNode node);  // not explicit: whoever has a node may give it to those who take shared ones

  operator const YamlNode&() const { return content_->node; }
  const YamlNode* operator->() const { return &content_->node; }
  const std::string& fingerprint() const { return content_->fingerprint; }
  /// Whether both are one value, as it was written in one place.
  bool is(const SharedNode& other) const { return content_ == other.content_; }

  /// Whether readers cannot distinguish them. (The places of what they hold may differ.)
  bool operator==(const SharedNode& other) const { return is(other) || fingerprint() == other.fingerprint(); }
  std::size_t hash() const { return content_->hash; }
  struct Hash {
    std::size_t operator()(const SharedNode& node) const { return node.hash(); }
  };

 private:
  struct Content {
    YamlNode node;
    std::string fingerprint;
    std::size_t hash;
  };
  std::shared_ptr<const Content> content_;
};

}  // namespace convoy::runs
