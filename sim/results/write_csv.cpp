// SPDX-License-Identifier: MIT
#include "sim/results/write_csv.h"

#include <ostream>
#include <string>
#include <string_view>

#include "sim/base/clean_text.h"
#include "sim/base/quantity.h"
#include "sim/results/columns.h"

namespace convoy::inline results {
namespace {

/// @param text if it begins like a formula of a spreadsheet, it is written with an apostrophe in front
std::string csv_cell(std::string text) {
  text = clean(text);
  if (!text.empty() && std::string_view("=+-@").find(text[0]) != std::string_view::npos &&
      !parse_number(text))
    text.insert(0, 1, '\'');
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

void write_csv(const Results& results, std::ostream& out) {
  const RunTable table(results);
  std::string line;
  const auto add = [&](const std::string& text) { line += (line.empty() ? "" : ",") + csv_cell(text); };
  for (const RunTable::Header& header : table.header()) add(header.name);
  out << line << '\n';
  for (std::size_t run = 0; run < results.runs.size(); ++run) {
    line.clear();
    bool first = true;
    for (const RunTable::Cell& cell : table.row(run)) {
      if (!first) line += ',';
      line +=
          std::holds_alternative<std::string>(cell) ? csv_cell(std::get<std::string>(cell)) : text_of(cell);
      first = false;
    }
    out << line << '\n';
  }
}

}  // namespace convoy::results
