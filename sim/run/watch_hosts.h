// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/costs/input_pipeline.h"
#include "sim/replay/replay.h"
#include "sim/results/monitor.h"
#include "sim/run/prepared_run.h"

namespace convoy::inline runs {

/// What a provider's monitoring agents report of the hosts of a run: one sample a host and interval, from the
/// beginning of the first step on, of intervals in which the host belongs to the run for some time. The step is
/// repeated as often as it fits; phases and changes of a run with a changing set of devices follow one another
/// (for_each_stretch). What happens within a step has its place in it, apart from the copies of the transport
/// and the preparation of images, which are spread over it, and from runs without a common step (services,
/// pipelines that are never flushed), of which everything is spread.
///
/// Busy vCPUs are the threads that the simulation knows: one for each process that issues operations, as long as
/// it does; one that copies and serialises messages, and one that adds gradients, as long as their rates in the
/// catalogue say; and two vCPUs for each core that prepares images. In the pause of a change nothing of
/// a host is busy, and tensors do not count.
/// @param replayed the replay of the run's plan, of its last phase where it has phases
/// @param input what images are made of
/// @param every_s length of an interval  @param for_s so long is monitored, and up to the end of an interval
std::vector<MonitoredHost> watch_hosts(const PreparedRun& run, const ReplayResult& replayed,
                                       const InputSpec& input, double every_s, double for_s);

}  // namespace convoy::runs
