// SPDX-License-Identifier: MIT
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "sim/results/field_reader.h"
#include "sim/results/field_writer.h"
#include "sim/results/result_fields.h"

namespace convoy {

/// A value as one line of JSON, by its fields.
template <class T, class Fields>
std::string to_text(const T& value, Fields fields) {
  std::ostringstream out;
  {
    JsonWriter json(out, JsonWriter::Style::compact);
    FieldWriter archive(json);
    json.begin_object();
    fields(archive, value);
    json.end_object();
  }
  return std::move(out).str();
}

/// Reads it back. @throws JsonError
template <class T, class Fields>
T from_text(const std::string& text, Fields fields) {
  std::istringstream in(text);
  const Json document = parse_json(in, "", [](const std::string&, const Json&) {}, {});
  T value;
  FieldReader::whole(document, JsonPlace{}, value, fields);
  return value;
}

}  // namespace convoy
