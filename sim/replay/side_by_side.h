// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/costs/cost_model.h"
#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline replays {

/// A job that trains on some devices of a machine, on whose other devices other jobs do.
struct JobBeside {
  const Plan& plan;
  const CostModel& cost;
  std::vector<EndpointId> endpoints;  ///< of the machine, by endpoint of the plan
};

/// Why a plan for this machine cannot be simulated beside others; "" where it can.
std::string refuses_neighbours(const Plan& plan, const Machine& machine);

/// The links of the machine that the job's messages cross, in ascending order.
std::vector<LinkId> links_of(const JobBeside& job, const Machine& machine);

/// How many times as long steps of each job take beside the others as they take alone, in the mean over the
/// phases in which jobs may meet; 1 for a job that shares no link. All jobs' messages share links max-min
/// fairly; connections are a job's own. Hosts' CPUs are not shared. Collectives of Fidelity::automatic are
/// fluid.
/// Steps take random multiples of their compute times, the same alone and beside others, until every job has
/// done 16 to 128 of them after 16 to warm up, fewer where the jobs' steps differ in length by more than 32
/// times. The result depends on the jobs' order only by the random numbers that each gets.
/// @pre no device is of two jobs, and refuses_neighbours is "" for all
std::vector<double> slowdowns_beside(const std::vector<JobBeside>& jobs, const Machine& machine);

}  // namespace convoy::replays
