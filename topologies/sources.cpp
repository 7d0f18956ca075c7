// SPDX-License-Identifier: MIT
#include "topologies/sources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "sim/base/quantity.h"
#include "topologies/cluster_keys.h"
#include "topologies/table_grade.h"

namespace convoy::inline topologies {
namespace {

/// "20%" of "+-20%: where from" becomes 0.2. @param rest becomes what follows
double take_spread(YamlMap& sources, const std::string& key, std::string_view& rest) {
  const std::size_t end = std::min(rest.find(':'), rest.size());
  YamlNode share = sources.node(key);
  share.scalar = std::string(rest.substr(2, end - 2));
  rest.remove_prefix(end);
  return std::log1p(read_quantity(share, sources.path_of(key), Dimension::fraction));
}

Source read_source(YamlMap& sources, const std::string& key) {
  const std::string whole = sources.text(key);
  for (std::size_t g = 0; g < grade_names.size(); ++g) {
    std::string_view rest = whole;
    if (!rest.starts_with(grade_names[g])) continue;
    rest.remove_prefix(grade_names[g].size());
    Source source{static_cast<Grade>(g), std::nullopt, ""};
    if (rest.starts_with(" +-")) {
      rest.remove_prefix(1);
      source.spread = take_spread(sources, key, rest);
    }
    if (!rest.empty() && !rest.starts_with(": ")) continue;  // a word that begins a sentence
    source.text = rest.empty() ? "" : rest.substr(2);
    return source;
  }
  return {Grade::given, std::nullopt, whole};
}

}  // namespace

Grade read_grade(const CsvTable& table, const CsvRow& row) {
  const CsvCell* cell = table.find(row, "grade");
  if (!cell) return Grade::given;
  const auto found = std::find(grade_names.begin(), grade_names.end(), cell->text);
  if (found == grade_names.end())
    throw InputError(cell->pos, fmt::format("grade: expected one of {}, found '{}'",
                                            fmt::join(grade_names, ", "), cell->text));
  return static_cast<Grade>(found - grade_names.begin());
}

ValueForm sources_form() { return forms::entries(forms::text("a text"), "a mapping of texts"); }

Sources read_sources(YamlMap& map) {
  Sources sources;
  if (!map.find("sources")) return sources;
  YamlMap texts = map.map("sources");
  for (const std::string& key : texts.keys()) sources.emplace_back(key, read_source(texts, key));
  return sources;
}

const Source* find_source(const Sources& sources, std::string_view key) {
  for (;;) {
    for (const auto& [of, source] : sources)
      if (of == key) return &source;
    const std::size_t dot = key.rfind('.');
    if (dot == std::string_view::npos) return nullptr;
    key = key.substr(0, dot);
  }
}

std::string to_string(const Source& source) {
  return fmt::format("{}{}{}{}", to_string(source.grade),
                     source.spread ? fmt::format(" +-{:.3g}%", 100 * std::expm1(*source.spread)) : "",
                     source.text.empty() ? "" : ": ", source.text);
}

}  // namespace convoy::topologies
