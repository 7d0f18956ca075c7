// SPDX-License-Identifier: MIT
#include "sim/cli/show_grades.h"

#include <fmt/format.h>

#include <ostream>

namespace convoy::inline cli {

void print_sources(std::ostream& out, const Sources& sources) {
  for (const auto& [key, source] : sources)
    out << fmt::format("  source of {}: {}\n", key, to_string(source));
}

void write_grades(JsonWriter& json, const Sources& sources) {
  json.key("grades");
  json.begin_object();
  for (const auto& [key, source] : sources) {
    json.key(key);
    json.begin_object(JsonWriter::Style::compact);
    json.field("grade", to_string(source.grade));
    json.key("spread");
    source.spread ? json.value(*source.spread) : json.null();
    json.field("source", source.text);
    json.end_object();
  }
  json.end_object();
}

}  // namespace convoy::cli
