// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "sim/collectives/table.h"

namespace convoy::inline collectives {

/// Adds an all-reduce algorithm behind those of the table, for programs that are built with convoy as a library
/// (docs/extending.md, "In a program of your own"). It scatters nothing.
/// @param name what `algorithm` of a strategy calls it
/// @param auto_ranks `auto` considers it for up to this many ranks; 0: never
/// @pre nothing has looked at the table yet: called at the beginning of main, before add_strategy(), since keys of
/// strategies list the algorithms
/// @throws std::logic_error where that is not so, or where there is an algorithm of that name
void add_all_reduce(std::string_view name, Pattern (*all_reduce)(const CollectiveCall& call),
                    std::size_t auto_ranks = 0);

}  // namespace convoy::collectives
