// SPDX-License-Identifier: MIT
#include "sim/base/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "sim/base/input_file.h"
#include "sim/base/names.h"
#include "sim/base/quantity.h"

namespace convoy::inline base {
namespace {

constexpr std::uintmax_t max_file_bytes = 64u << 20;

CsvRow split(const std::string& line, const std::string& file, int number) {
  CsvRow row;
  std::size_t i = 0;
  while (true) {
    CsvCell cell{"", {file, number, static_cast<int>(i) + 1}};
    if (i < line.size() && line[i] == '"') {
      for (++i;; ++i) {
        if (i >= line.size()) throw InputError(cell.pos, "a quoted cell does not end on its line");
        if (line[i] != '"') {
          cell.text += line[i];
        } else if (i + 1 < line.size() && line[i + 1] == '"') {
          cell.text += line[i++];
        } else {
          break;
        }
      }
      ++i;
      if (i < line.size() && line[i] != ',')
        throw InputError(cell.pos, "expected a comma after the closing quote");
    } else {
      while (i < line.size() && line[i] != ',') cell.text += line[i++];
    }
    row.push_back(std::move(cell));
    if (i >= line.size()) return row;
    ++i;
  }
}

}  // namespace

CsvTable::CsvTable(const std::string& file, const std::vector<std::string>& known,
                   const std::vector<std::string>& required)
    : header_{file, 0, 0} {
  const SourcePos whole{file, 0, 0};
  std::ifstream stream = open_input(file, std::ios::binary | std::ios::ate);
  if (!stream) throw InputError(whole, "cannot be read");
  const auto size = static_cast<std::uintmax_t>(stream.tellg());
  if (size > max_file_bytes) throw InputError(whole, "is larger than 64 MiB");
  stream.seekg(0);
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) {
    // Spreadsheets write a byte order mark at the beginning.
    if (number == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    CsvRow row = split(line, file, number);
    if (!columns_.empty()) {
      if (row.size() != columns_.size())
        throw InputError(row.front().pos,
                         fmt::format("{} cells where the header has {}", row.size(), columns_.size()));
      rows_.push_back(std::move(row));
      continue;
    }
    header_ = row.front().pos;
    for (CsvCell& cell : row) {
      if (has(cell.text)) throw InputError(cell.pos, fmt::format("column '{}' is there twice", cell.text));
      columns_.push_back(std::move(cell));
    }
    expect(known, required);
  }
}

void CsvTable::expect(const std::vector<std::string>& known, const std::vector<std::string>& required) const {
  for (const CsvCell& cell : columns_)
    if (!known.empty() && std::find(known.begin(), known.end(), cell.text) == known.end())
      throw InputError(cell.pos, fmt::format("unknown column '{}'{}; there are {}", cell.text,
                                             suggestion(cell.text, known), list_of(known)));
  for (const std::string& name : required)
    if (!has(name)) throw InputError(header_, fmt::format("column '{}' is missing", name));
}

std::optional<std::size_t> CsvTable::index(std::string_view column) const {
  const auto found = std::find_if(columns_.begin(), columns_.end(),
                                  [&](const CsvCell& cell) { return cell.text == column; });
  if (found == columns_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns_.begin());
}

std::vector<std::string> CsvTable::columns() const {
  std::vector<std::string> names;
  for (const CsvCell& cell : columns_) names.push_back(cell.text);
  return names;
}

const CsvCell* CsvTable::find(const CsvRow& row, std::string_view column) const {
  const std::optional<std::size_t> i = index(column);
  return i && !row[*i].text.empty() ? &row[*i] : nullptr;
}

std::string CsvTable::text(const CsvRow& row, std::string_view column) const {
  const CsvCell* cell = find(row, column);
  return cell ? cell->text : "";
}

double CsvTable::number(const CsvRow& row, std::string_view column, bool positive) const {
  const std::optional<std::size_t> i = index(column);
  const std::optional<double> value = i ? parse_number(row[*i].text) : std::nullopt;
  if (!value || *value < 0 || (positive && *value == 0))
    throw InputError(i ? row[*i].pos : row.front().pos,
                     fmt::format("{}: expected a number {}, found '{}'", column,
                                 positive ? "above zero" : "that is not below zero", text(row, column)));
  return *value;
}

}  // namespace convoy::base
