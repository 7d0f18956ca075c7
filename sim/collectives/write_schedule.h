// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/collectives/schedule.h"

namespace convoy::inline collectives {

/// A schedule for so many ranks as YAML that lists every message, as `algorithm: {file}` reads it. Its halves
/// are kept. @throws InputError where it has no rounds for them, or they are no all-reduce
std::string listed_schedule(const SumSchedule& schedule, const SumSchedule::Size& size);

}  // namespace convoy::collectives
