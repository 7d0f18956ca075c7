// SPDX-License-Identifier: MIT
#include "sim/results/write_csv.h"

#include <ostream>
#include <string>
#include <string_view>

#include "sim/base/clean_text.h"
#include "sim/base/quantity.h"

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

CsvWriter::CsvWriter(const RunTable& table, std::ostream& out) : out_(out) {
  std::string line;
  for (const RunTable::Header& header : table.header())
    line += (line.empty() ? "" : ",") + csv_cell(header.name);
  out_ << line << '\n';
}

void CsvWriter::add(const std::vector<RunTable::Cell>& row) {
  std::string line;
  bool first = true;
  for (const RunTable::Cell& cell : row) {
    if (!first) line += ',';
    line +=
        std::holds_alternative<std::string>(cell) ? csv_cell(std::get<std::string>(cell)) : csv_text(cell);
    first = false;
  }
  out_ << line << '\n';
}

void write_csv(const SweepResults& results, std::ostream& out) {
  const RunTable table(results);
  CsvWriter csv(table, out);
  for (std::size_t run = 0; run < results.runs.size(); ++run) csv.add(table.row(*results.whole(run), run));
}

}  // namespace convoy::results
