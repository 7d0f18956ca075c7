// SPDX-License-Identifier: MIT
#pragma once

#include "sim/studies/regions/region.h"

namespace convoy::inline studies {

/// Looks for the borders of every claim along each ordered input, from the middle, or, where a claim does not
/// hold there, from the point of the sample nearest to it at which it does: five positions of a range, or all
/// values of a list, then StudySpec::refine halvings between two of which one alone holds.
/// @returns false: stopped
bool find_borders(StudyResult& study, StudyRuns& runs);

/// "rate up to 9.8 Gbps (not at 9.9 Gbps), with batch 64"
std::string text_of(const StudySpec& spec, const StudyBorder& border);

}  // namespace convoy::studies
