// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/results/result.h"

namespace convoy {

/// For people: what the searches over strategies (`kind: auto`) among the runs found, the first candidates of
/// each with the reason why they are not the best. Of many searches only the first line. "" without any.
std::string search_tables(const std::vector<RunResult>& runs);

}  // namespace convoy
