// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/plan/meaning.h"

namespace convoy::inline plans {

/// Ranges in ascending order, with gaps between them; empty: no index.
using IndexSet = std::vector<IndexRange>;

IndexSet all_of(std::int64_t size);
/// @param sorted ascending, each once
IndexSet set_of(const std::vector<std::int64_t>& sorted);
/// @param ranges in any order, some of which may overlap
IndexSet united(std::vector<IndexRange> ranges);
IndexSet united(IndexSet a, const IndexSet& b);
IndexSet intersection(const IndexSet& a, const IndexSet& b);
IndexSet difference(const IndexSet& a, const IndexSet& b);
std::int64_t count(const IndexSet& set);
bool contains(const IndexSet& set, std::int64_t index);
/// "0 to 3 and 8 to 11"
std::string text_of(const IndexSet& set);

}  // namespace convoy::plans
