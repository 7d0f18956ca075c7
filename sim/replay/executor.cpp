// SPDX-License-Identifier: MIT
#include "sim/replay/executor.h"

#include "sim/replay/service_run.h"
#include "sim/replay/step_run.h"

namespace convoy::inline replays {

Execution execute(const FoldedPlan& folded, const Surroundings& surroundings) {
  return folded.plan.service() ? ServiceRun(folded, surroundings).run() : StepRun(folded, surroundings).run();
}

}  // namespace convoy::replays
