// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "sim/base/value_form.h"

// JSON Schema of single values: a schema, or several of which one must hold.

namespace convoy::inline cli {

using Json = nlohmann::ordered_json;

Json any_of(std::vector<Json> alternatives);
void add_if_new(std::vector<Json>& alternatives, Json alternative);

/// A name as YAML readers of JSON Schema see it: 2 is a number, true a truth value.
Json plain_value(const std::string& name);
/// The names, and their other spellings where they are understood.
std::vector<Json> of_names(std::span<const std::string> names, std::span<const std::string> patterns);

std::vector<Json> of_quantity(const ValueForm& form);
/// "bandwidth-above-0"
std::string quantity_name(const ValueForm& form);

/// A number of the JSON type within the form's bounds.
Json bounded(const char* type, const ValueForm& form);

}  // namespace convoy::cli
