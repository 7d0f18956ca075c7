// SPDX-License-Identifier: MIT
#pragma once

#include "sim/results/result.h"

namespace convoy::inline results {

/// Merges devices that are equal in everything but their name into one entry with their count and the name of
/// the first, and does the same with links whose names differ in numbers only ("n0.nic.up", "n1.nic.up").
void merge_equal(RunResult& run);

}  // namespace convoy::results
