// SPDX-License-Identifier: MIT
#include "sim/run/search/search_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/names.h"
#include "sim/base/yaml_map.h"
#include "strategies/strategy.h"

namespace convoy::inline search {
namespace {

/// The name of the kind that is meant; "" where there is none.
std::string kind_of(const YamlNode& mapping) {
  static const std::vector<std::string> kinds = [] {
    std::vector<std::string> names;
    for (const StrategyEntry& entry : strategy_registry()) names.emplace_back(entry.kind);
    return names;
  }();
  const YamlNode* kind = mapping.find("kind");
  return kind && kind->kind == YamlNode::Kind::scalar ? meant(kind->scalar, kinds) : std::string{};
}

/// The keys of a kind of strategy; none if there is no such kind.
const std::vector<KeyText>& keys_of(const std::string& kind) {
  static const std::vector<KeyText> none;
  for (const StrategyEntry& entry : strategy_registry())
    if (entry.kind == kind) return entry.keys;
  return none;
}

/// Whether the value of a strategy's key is a list.
bool takes_list(const std::string& kind, const std::string& key) {
  const KeyText* known = find_key(keys_of(kind), key);
  return known && known->takes_list;
}

/// @param keys of the mapping, unless it states its `kind`
void order_keys(YamlNode& node, const std::vector<KeyText>& keys) {
  for (YamlNode& item : node.items) order_keys(item, keys);
  if (node.kind != YamlNode::Kind::mapping) return;
  const std::vector<KeyText>& of_kind = keys_of(kind_of(node));
  const std::vector<KeyText>& known = of_kind.empty() ? keys : of_kind;
  const auto place = [&](const std::string& name) {
    if (name == "kind") return std::pair{std::ptrdiff_t{-1}, name};
    const KeyText* key = find_key(known, name);
    return std::pair{key ? key - known.data() : static_cast<std::ptrdiff_t>(known.size()), name};
  };
  std::sort(node.entries.begin(), node.entries.end(),
            [&](const auto& a, const auto& b) { return place(a.first) < place(b.first); });
  for (auto& [name, value] : node.entries) {
    const KeyText* key = find_key(known, name);
    order_keys(value, key ? key->parts : std::vector<KeyText>{});
  }
}

bool is_sequence(const YamlNode& node) { return node.kind == YamlNode::Kind::sequence; }

/// The values for which a key's value stands.
std::vector<YamlNode> values_of(const YamlNode& value, bool takes_list) {
  if (value.kind == YamlNode::Kind::mapping) return multiplied_out(value);
  if (!is_sequence(value) || value.items.empty()) return {value};
  if (takes_list && !std::all_of(value.items.begin(), value.items.end(), is_sequence)) return {value};
  std::vector<YamlNode> values;
  for (YamlNode item : value.items) {
    item.key_pos = value.key_pos;
    if (item.kind == YamlNode::Kind::mapping)
      for (YamlNode& each : multiplied_out(item)) values.push_back(std::move(each));
    else
      values.push_back(std::move(item));
  }
  return values;
}

void require_few(std::size_t count, const SourcePos& pos) {
  if (count > SearchSpec::max_candidates)
    throw InputError(pos,
                     fmt::format("strategy.candidates: more than {} candidates", SearchSpec::max_candidates));
}

/// Every mapping with each value of its key `index`.
std::vector<YamlNode> with_each(const std::vector<YamlNode>& mappings, std::size_t index, bool takes_list) {
  std::vector<YamlNode> result;
  for (const YamlNode& mapping : mappings)
    for (YamlNode& value : values_of(mapping.entries[index].second, takes_list)) {
      require_few(result.size() + 1, mapping.pos);
      result.push_back(mapping);
      result.back().entries[index].second = std::move(value);
    }
  return result;
}

/// Adds the candidates of a mapping, those first from which a strategy can be read. @throws InputError: there
/// is none
void add_readable(const YamlNode& mapping, SearchSpec& spec) {
  std::optional<InputError> first;
  const std::size_t before = spec.candidates.size();
  std::vector<SearchCandidate> unreadable;  // values that cannot be combined
  for (YamlNode& candidate : multiplied_out(in_table_order(mapping))) {
    try {
      std::shared_ptr<const Strategy> strategy = read_strategy(candidate);
      spec.candidates.push_back({std::move(candidate), std::move(strategy), {}});
    } catch (const InputError& error) {
      if (!first) first = error;
      unreadable.push_back({std::move(candidate), nullptr, error.what()});
    }
  }
  if (spec.candidates.size() == before) throw *first;
  for (SearchCandidate& candidate : unreadable) spec.candidates.push_back(std::move(candidate));
  require_few(spec.candidates.size(), mapping.pos);
}

void replace_all(std::string& text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
}

/// The number of rows of the most even grid of this many devices: the largest divisor up to the square root.
std::int64_t rows_of_grid(std::int64_t devices) {
  auto rows = static_cast<std::int64_t>(std::sqrt(static_cast<double>(devices)));
  while (rows > 1 && devices % rows != 0) --rows;
  return std::max<std::int64_t>(1, rows);
}

/// A grid of one row cuts only columns, as strips do.
bool has_one_row(const YamlNode& mapping) {
  const YamlNode* conv = mapping.find("conv");
  const YamlNode* height = conv ? conv->find("height") : nullptr;
  return height && height->scalar == "1";
}

/// The registry's candidates of all kinds; lists of values are not yet multiplied out.
std::vector<YamlNode> usual_mappings(const ClusterSpec& cluster) {
  std::vector<YamlNode> mappings;
  const auto devices = static_cast<std::int64_t>(cluster.device_count());
  const std::int64_t rows = rows_of_grid(devices);
  for (const StrategyEntry& entry : strategy_registry()) {
    if (entry.candidates.empty()) continue;
    std::string text(entry.candidates);
    replace_all(text, "$nodes", std::to_string(cluster.node_count()));
    replace_all(text, "$devices", std::to_string(devices));
    replace_all(text, "$rows", std::to_string(rows));
    replace_all(text, "$columns", std::to_string(devices / rows));
    for (YamlNode& mapping : parse_yaml(text, fmt::format("auto's {}", entry.kind)).items) {
      if (has_one_row(mapping)) continue;
      mapping.entries.insert(mapping.entries.begin(), {"kind", parse_yaml(std::string(entry.kind), "kind")});
      mappings.push_back(std::move(mapping));
    }
  }
  return mappings;
}

}  // namespace

bool is_search(const YamlNode& strategy) {
  return strategy.kind == YamlNode::Kind::mapping && kind_of(strategy) == "auto";
}

YamlNode in_table_order(YamlNode strategy) {
  order_keys(strategy, {});
  return strategy;
}

std::vector<YamlNode> multiplied_out(const YamlNode& mapping) {
  std::vector<YamlNode> result{mapping};
  // The kind comes first: it determines which keys take lists.
  for (const bool of_kind : {true, false})
    for (std::size_t i = 0; i < mapping.entries.size(); ++i) {
      const std::string& key = mapping.entries[i].first;
      if ((key == "kind") != of_kind) continue;
      if (of_kind) {
        result = with_each(result, i, false);
        continue;
      }
      std::vector<YamlNode> next;
      for (const YamlNode& each : result)
        for (YamlNode& candidate : with_each({each}, i, takes_list(kind_of(each), key))) {
          require_few(next.size() + 1, mapping.pos);
          next.push_back(std::move(candidate));
        }
      result = std::move(next);
    }
  return result;
}

std::vector<YamlNode> usual_candidates(const ClusterSpec& cluster) {
  SearchSpec spec;
  for (const YamlNode& mapping : usual_mappings(cluster)) add_readable(mapping, spec);
  std::vector<YamlNode> mappings;
  for (SearchCandidate& candidate : spec.candidates) mappings.push_back(std::move(candidate.mapping));
  return mappings;
}

SearchSpec read_search(const YamlNode& strategy, const ClusterSpec& cluster) {
  YamlMap map(strategy, "strategy");
  map.find("kind");
  AutoOptions options;
  read_keys(auto_keys(), map, options);
  map.finish();
  SearchSpec spec;
  spec.objective = options.objective;
  spec.objective_pos = options.objective_pos;
  spec.pos = options.candidates_pos;
  spec.budget = options.budget;
  for (const YamlNode& mapping : options.candidates ? options.candidates->items : usual_mappings(cluster)) {
    YamlMap(mapping, "strategy.candidates");
    add_readable(mapping, spec);
  }
  return spec;
}

std::vector<std::string> telling_names(const std::vector<std::string>& labels,
                                       const std::vector<const YamlNode*>& candidates) {
  std::map<std::string, std::vector<std::size_t>> of_label;
  for (std::size_t i = 0; i < labels.size(); ++i) of_label[labels[i]].push_back(i);
  const auto text_of = [&](std::size_t i, const std::string& key) {
    const YamlNode* value = candidates[i]->find(key);
    return value ? to_flow(*value) : std::string{};
  };
  std::vector<std::string> names = labels;
  for (const auto& [label, same] : of_label) {
    std::vector<std::string> keys;  // of all of them, each once
    for (const std::size_t i : same)
      for (const auto& [key, value] : candidates[i]->entries)
        if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    std::erase_if(keys, [&](const std::string& key) {
      return std::all_of(same.begin(), same.end(),
                         [&](std::size_t i) { return text_of(i, key) == text_of(same.front(), key); });
    });
    for (const std::size_t i : same) {
      std::string differs;
      for (const std::string& key : keys)
        if (candidates[i]->find(key))
          differs += fmt::format("{}{}: {}", differs.empty() ? "" : ", ", key, text_of(i, key));
      if (!differs.empty()) names[i] += fmt::format(" ({})", differs);
    }
  }
  return names;
}

}  // namespace convoy::search
