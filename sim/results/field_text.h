// SPDX-License-Identifier: MIT
#pragma once

#include <sstream>
#include <string>
#include <utility>

#include "sim/results/field_writer.h"
#include "sim/results/result_fields.h"
#include "sim/results/stored_reader.h"

namespace convoy::inline results {

/// A value as one line of JSON, by its fields.
template <class T, class Fields>
std::string to_text(const T& value, Fields fields) {
  std::ostringstream out;
  {
    JsonWriter json(out, JsonWriter::Style::compact);
    FieldWriter archive(json, FieldWriter::Tables::by_column);
    json.begin_object();
    fields(archive, value);
    json.end_object();
  }
  return std::move(out).str();
}

/// Reads it back. @throws JsonError
template <class T, class Fields>
T from_text(const std::string& text, Fields fields) {
  T value;
  StoredReader reader(text);
  reader.whole(value, fields);
  return value;
}

}  // namespace convoy::results
