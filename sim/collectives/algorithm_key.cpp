// SPDX-License-Identifier: MIT
#include "sim/collectives/algorithm_key.h"

#include <fmt/format.h>

#include "sim/base/key_parts.h"
#include "sim/base/named_file.h"
#include "sim/collectives/schedule.h"

namespace convoy::inline collectives {
namespace {

struct AlgorithmDraft {
  std::string file;
  std::vector<SumAlgorithm> candidates;
};

constexpr const char* or_else = "{file: my.yaml}";

SumAlgorithm read_candidate(const YamlNode& node, const std::string& path);

ValueForm candidate_form() {
  return forms::either({forms::name(all_reduce_algorithm_names()), forms::parts("{file}")})
      .said("the name of an algorithm | {file}");
}

const Keys<AlgorithmDraft>& file_keys() {
  using D = AlgorithmDraft;
  static const Keys<D> keys{
      custom_key<D>("file", "", forms::text("a YAML file, or MSCCL's XML"),
                    "a schedule of rounds, beside the file that names it (docs/collectives.md)",
                    [](YamlMap& map, D& draft) {
                      if (map.find("file")) draft.file = named_file(map, "file");
                    })};
  return keys;
}

void read_candidates(YamlMap& map, AlgorithmDraft& draft) {
  const YamlNode* list = map.find("auto");
  if (list == nullptr) return;
  if (list->kind != YamlNode::Kind::sequence || list->items.empty())
    map.fail("auto", fmt::format("expected a list of algorithms such as [ring, {{file: my.yaml}}], found {}",
                                 describe(*list)));
  for (std::size_t i = 0; i < list->items.size(); ++i)
    draft.candidates.push_back(read_candidate(list->items[i], fmt::format("{}[{}]", map.path_of("auto"), i)));
}

Keys<AlgorithmDraft> algorithm_keys() {
  Keys<AlgorithmDraft> keys = file_keys();
  keys.push_back(list_key<AlgorithmDraft>(
      "auto", "", forms::list(candidate_form(), "a list of algorithms and {file}", 1),
      "the quickest of these by the estimate that auto goes by", &read_candidates));
  return keys;
}

SumAlgorithm of_file(const std::string& file) {
  SumAlgorithm algorithm;
  algorithm.schedule = SumSchedule::load(file);
  return algorithm;
}

SumAlgorithm of_name(const YamlNode& node, const std::string& path) {
  YamlNode around;
  around.kind = YamlNode::Kind::mapping;
  around.pos = node.pos;
  const std::size_t dot = path.rfind('.');
  const std::string key = dot == std::string::npos ? path : path.substr(dot + 1);
  around.entries.emplace_back(key, node);
  YamlMap map(around, dot == std::string::npos ? "" : path.substr(0, dot));
  return static_cast<AllReduceAlgorithm>(map.choice(key, all_reduce_algorithm_names(), or_else));
}

SumAlgorithm read_candidate(const YamlNode& node, const std::string& path) {
  if (node.kind != YamlNode::Kind::mapping) {
    const SumAlgorithm algorithm = of_name(node, path);
    if (algorithm.is_auto())
      throw InputError(node.pos, fmt::format("{}: auto chooses among others; leave it out", path));
    return algorithm;
  }
  AlgorithmDraft draft;
  YamlMap map(node, path);
  map.node("file");
  read_part(file_keys(), std::move(map), draft);
  return of_file(draft.file);
}

}  // namespace

SumAlgorithm read_algorithm(YamlMap& map, std::string_view key) {
  const YamlNode* node = map.find(key);
  if (node == nullptr) return {};
  if (node->kind != YamlNode::Kind::mapping)
    return static_cast<AllReduceAlgorithm>(map.choice(key, all_reduce_algorithm_names(), or_else));
  AlgorithmDraft draft;
  read_part(algorithm_keys(), YamlMap(*node, map.path_of(key)), draft);
  if (draft.file.empty() == draft.candidates.empty())
    map.fail(key, "write {file: my.yaml} or {auto: [ring, {file: my.yaml}]}, one of the two");
  if (!draft.file.empty()) return of_file(draft.file);
  SumAlgorithm algorithm = AllReduceAlgorithm::automatic;
  algorithm.candidates = std::move(draft.candidates);
  return algorithm;
}

KeyText algorithm_text(std::string name, std::string meaning) {
  const std::vector<std::string>& names = all_reduce_algorithm_names();
  ValueForm form = forms::either({forms::name(names), forms::parts("{file} | {auto}")});
  KeyText text = key_text(std::move(name), "ring", form, std::move(meaning));
  text.values = form.values;
  text.choices = names;
  text.parts = texts_of(algorithm_keys());
  return text;
}

}  // namespace convoy::collectives
