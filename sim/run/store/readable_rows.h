// SPDX-License-Identifier: MIT
#pragma once

#include <functional>

#include "sim/run/store/database.h"

namespace convoy::inline runs {

using VisitRow = std::function<void(const Statement& row)>;

/// Visits the rows of a table, with all of its columns. @throws DamagedStore: a page of it is damaged
void each_row(Database& database, const char* table, const VisitRow& visit);

/// Visits those rows that can be reached where pages may be damaged, one by one: a row that cannot does not cost
/// others. What the visitor reads of a row may be damaged.
void each_readable_row(Database& database, const char* table, const VisitRow& visit);

}  // namespace convoy::runs
