// SPDX-License-Identifier: MIT
#pragma once

#include "sim/base/csv.h"
#include "topologies/sources.h"

namespace convoy::inline topologies {

/// The grade of a table's row, from its column `grade`; given where the table, a user's, has none. @throws
/// InputError: no grade
Grade read_grade(const CsvTable& table, const CsvRow& row);

}  // namespace convoy::topologies
