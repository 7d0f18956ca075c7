// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/run/preparer.h"
#include "sim/run/simulate.h"
#include "sim/schedule/schedule.h"
#include "sim/studies/job_study.h"

namespace convoy::inline studies {

/// Somebody ended the program (InterruptGuard) while a queue was simulated.
struct QueueInterrupted : std::runtime_error {
  QueueInterrupted() : std::runtime_error("interrupted") {}
};

/// What jobs of a queue lose because they share the links of `jobs.cluster`. Jobs meet where the messages of
/// both cross a link; those that meet, directly or through others, are simulated together
/// (slowdowns_beside), once for all sets of jobs with the same models and, up to the names of hosts that are
/// alike, the same places. A job has the plan of the run of its model with the most devices that are no more
/// than its own, and of these with the number of hosts closest to its own.
class SharedLinks {
 public:
  /// @throws InputError: the cluster has not the hosts and GPUs of the queue, or not the devices of the sweep's runs,
  /// or a strategy of the sweep cannot be simulated beside others
  SharedLinks(Preparer& preparer, const JobStudy& study);
  /// ScheduleOptions::slowdowns. @throws InputError: a job's strategy cannot use its GPUs
  /// @throws QueueInterrupted
  std::vector<double> slowdowns(const std::vector<PlacedJob>& jobs);
  std::size_t simulated_sets() const { return known_.size(); }

 private:
  /// A run of the sweep, on the queue's cluster.
  struct Plannable {
    Point point;
    std::uint32_t devices = 0, hosts = 0;
    std::set<std::string> device_names = {};  ///< of its own cluster
  };
  /// GPUs of a host, counted from its first.
  struct Seat {
    std::uint32_t host = 0;
    std::vector<std::uint32_t> gpus;
  };
  /// A job where it is.
  struct Member {
    std::size_t plannable = 0;
    std::vector<Seat> seats;
  };

  void read_points();
  void check_strategies();
  std::size_t plannable_of(const PlacedJob& job) const;
  std::vector<Member> members(const std::vector<PlacedJob>& jobs) const;
  std::vector<EndpointId> devices(const Member& member) const;
  const std::vector<LinkId>& links(const Member& member);
  std::vector<double> together(const std::vector<Member>& set, bool hosts_are_alike);
  std::vector<double> simulate(const std::vector<Member>& set);

  Preparer& preparer_;
  const JobStudy& study_;
  std::map<std::string, std::vector<std::size_t>> by_model_;
  std::vector<Plannable> plannables_;
  Machine machine_;
  bool hosts_alike_ = false;
  std::map<std::pair<std::size_t, std::vector<EndpointId>>, std::vector<LinkId>> links_;
  std::map<std::string, std::vector<double>> known_;  ///< by text of a set
};

/// Reads `jobs:`, if the experiment has it, and what its jobs share. @throws InputError
void check_queues(const Experiment& experiment);

/// The queues of an experiment whose runs are all there. @throws InputError, QueueInterrupted
std::vector<ScheduleResult> run_queues(const Experiment& experiment, const JobStudy& study,
                                       const JobKinds& kinds, const SourcePos& pos);

}  // namespace convoy::studies
