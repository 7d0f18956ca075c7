// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "sim/cli/commands.h"

namespace convoy::inline cli {

/// `convoy show schema`: the kinds of files, a kind's line in the list, and the JSON Schema (draft 7, which
/// editors of YAML know best) of one. It is made of the key tables by which the files are read, and refuses
/// what they refuse for its form: unknown and missing keys, wrong types and units, unknown names. What hangs
/// on the values of other keys, on files or on the catalogue is left to the program. Of documents that the program
/// writes it is made of the fields by which they are written (field_schema.h).
std::vector<std::string> schema_names();
std::string schema_line(const std::string& name);
void show_schema(std::ostream& out, const ShowArguments& arguments);

}  // namespace convoy::cli
