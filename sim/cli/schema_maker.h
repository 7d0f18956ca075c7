// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/cli/schema_values.h"

namespace convoy::inline cli {

/// JSON Schema of a document that is a section of the tables of keys (show_keys.h), with the definitions that
/// it refers to.
/// @param begin the schema's title and what else comes first
Json schema_of_section(const std::string& section, Json begin);

}  // namespace convoy::cli
