// SPDX-License-Identifier: MIT
#include "sim/run/sweep_hint.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/run/experiment.h"

namespace convoy::inline runs {
namespace {

/// The dotted path (set_path) from `node` to the list at `pos`; "" if it is not there.
std::string path_to_list(const YamlNode& node, const SourcePos& pos) {
  const auto below = [&](const std::string& step, const YamlNode& value) -> std::string {
    if (value.kind == YamlNode::Kind::sequence && value.pos == pos) return step;
    const std::string rest = path_to_list(value, pos);
    return rest.empty() ? "" : step + '.' + rest;
  };
  for (std::size_t i = 0; i < node.items.size(); ++i)
    if (std::string path = below(std::to_string(i), node.items[i]); !path.empty()) return path;
  for (const auto& [key, value] : node.entries) {
    const std::string step = key.find('.') == std::string::npos ? key : fmt::format("\"{}\"", key);
    if (std::string path = below(step, value); !path.empty()) return path;
  }
  return "";
}

}  // namespace

std::string sweep_hint(const Experiment& experiment, std::size_t index, const SourcePos& list) {
  const std::string path = path_to_list(experiment.resolved(index), list);
  const std::string part = path.substr(0, path.find('.'));
  if (std::ranges::find(sweepable_parts(), part) == sweepable_parts().end()) return "";
  return fmt::format("; a sweep tries several values: sweep: {{{}: [...]}}", path);
}

}  // namespace convoy::runs
