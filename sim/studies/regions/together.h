// SPDX-License-Identifier: MIT
#pragma once

#include "sim/studies/regions/region.h"

namespace convoy::inline studies {

/// Looks for the set of inputs nearest to the middle that makes all claims hold: among the points of the
/// sample, then nearer to the middle, an input at a time. Where the sample has none, from the points that
/// miss by the least an input at a time is moved, by halves of a quarter, or to every value of a list, as long as
/// that makes the misses smaller: a search that can end before a set is found that there is.
/// @returns false: stopped
bool find_together(StudyResult& study, StudyRuns& runs);

}  // namespace convoy::studies
