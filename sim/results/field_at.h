// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "models/training_graph.h"

namespace convoy::inline results {

/// The archive (result_fields.h) of one column of a table: hands the field of a row that has this position to `use`. Each class
/// of memory is a field.
template <class Use>
class FieldAt {
 public:
  FieldAt(std::size_t position, Use use) : position_(position), use_(std::move(use)) {}

  template <class Value>
  void field(std::string_view name, Value& value) {
    if (seen_++ == position_) use_(name, value);
  }
  template <class Bytes>
  void memory(std::string_view, Bytes& bytes) {
    for (std::size_t c = 0; c < memory_class_count; ++c) field(memory_class_names[c], bytes[c]);
  }
  std::size_t seen() const { return seen_; }

 private:
  std::size_t position_, seen_ = 0;
  Use use_;
};

/// Number of columns of a table of such rows.
template <class Row, class Fields>
std::size_t column_count(Fields fields) {
  Row row;
  FieldAt counter(0, [](std::string_view, auto&) {});
  fields(counter, row);
  return counter.seen();
}

/// Calls `use(name, value)` for the field of the row in this column.
template <class Row, class Fields, class Use>
void use_field(Row& row, Fields fields, std::size_t column, Use use) {
  FieldAt archive(column, std::move(use));
  fields(archive, row);
}

}  // namespace convoy::results
