// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "models/layer_registry.h"
#include "sim/base/data_path.h"
#include "tests/models/model_text.h"
#include "tests/support/told_keys.h"

using namespace convoy;

namespace {

/// What stands between backquotes.
std::set<std::string> quoted_words(const std::string& text) {
  std::set<std::string> words;
  for (std::size_t at = 0; (at = text.find('`', at)) != std::string::npos;) {
    const std::size_t end = text.find('`', at + 1);
    words.insert(text.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return words;
}

}  // namespace

TEST_CASE("every registered layer kind and every zoo model is described in docs/models.md") {
  std::ifstream file(data_path("docs") + "/models.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string docs = text.str();
  for (const LayerEntry& entry : layer_registry()) {
    CAPTURE(entry.kind);
    const std::string begin = "\n| `" + std::string(entry.kind) + "` |";
    const std::size_t at = docs.find(begin);
    REQUIRE(at != std::string::npos);
    const std::size_t first = at + begin.size();
    CHECK(quoted_words(docs.substr(first, docs.find(" | ", first) - first)) == told::told_names(entry.keys));
  }
  for (const std::string& name : zoo_names()) {
    CAPTURE(name);
    CHECK(docs.find("`" + name + "`") != std::string::npos);
  }
}

TEST_CASE("a layer read from its entry has the name of its kind") {
  const std::map<std::string, std::string> values{
      {"out_channels", "2"}, {"kernel", "1"},        {"out_features", "2"},
      {"first", "0"},        {"last", "1"},          {"groups", "1"},
      {"axes", "[0]"},       {"forward_flops", "1"}, {"backward_flops", "1"},
      {"output", "[1]"},     {"heads", "1"},         {"rois", "1"},
      {"size", "1"}};
  for (const LayerEntry& entry : layer_registry()) {
    CAPTURE(entry.kind);
    std::string text = "{kind: " + std::string(entry.kind);
    for (const KeyText& key : entry.keys)
      if (key.meaning.ends_with("required")) text += ", " + key.name + ": " + values.at(key.name);
    const YamlNode node = parse_yaml(text + "}", "test.yaml");
    YamlMap map(node, "");
    CHECK(kind_name(read_layer_kind(map)) == entry.kind);
  }
}

TEST_CASE("every example of a model in docs/models.md reads") {
  std::ifstream file(data_path("docs") + "/models.md");
  std::string line, block;
  bool inside = false;
  int read = 0;
  while (std::getline(file, line)) {
    if (!inside && line == "```yaml") {
      inside = true;
      block.clear();
    } else if (inside && line == "```") {
      inside = false;
      if (!block.starts_with("model:")) continue;
      CAPTURE(block);
      const YamlNode root = parse_yaml(block, "docs/models.md");
      CHECK_NOTHROW(read_model(*root.find("model")));
      ++read;
    } else if (inside) {
      block += line + "\n";
    }
  }
  CHECK(read >= 3);
}
