// SPDX-License-Identifier: MIT
#include "sim/replay/executor.h"

#include "sim/replay/repeated_services.h"
#include "sim/replay/step_run.h"

namespace convoy::inline replays {

Execution execute(const FoldedPlan& folded, const Surroundings& surroundings) {
  return folded.plan.service() ? run_service(folded, surroundings) : StepRun(folded, surroundings).run();
}

}  // namespace convoy::replays
