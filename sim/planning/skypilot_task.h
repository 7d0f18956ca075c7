// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/planning/answer.h"

namespace convoy::inline planning {

/// The task file (YAML) with which SkyPilot rents the choice's machines and starts a training program on each:
/// `sky launch task.yaml`. Keys are those of SkyPilot's task schema (sky/utils/schemas.py at commit 00052dfe).
/// @param plan_file for the file's first line and errors
/// @throws InputError: nothing was chosen, or SkyPilot cannot rent it: machines of one's own, of two kinds, or of a
/// provider that it does not know
std::string skypilot_task(const PlanAnswer& answer, const std::string& plan_file);

}  // namespace convoy::planning
