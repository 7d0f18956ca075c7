// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "sim/schedule/job.h"
#include "sim/schedule/sharing.h"

namespace convoy::inline schedule {

/// Decides how many GPUs each of the jobs in the cluster gets.
class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string name() const = 0;
  /// At work on a queue from which no job has arrived yet. @param jobs outlive it, as the policy does
  virtual std::unique_ptr<Sharing> start(const ArrivedJobs& jobs,
                                         const std::vector<GpuPool>& pools) const = 0;
  /// The GPUs of each job by a single decision on these jobs, in the order of arrival.
  std::vector<Allocation> allocate(const std::vector<ActiveJob>& jobs, const std::vector<GpuPool>& pools,
                                   double now_s) const;
  /// When to decide again if no job arrives or ends before; arrivals and ends always lead to a decision.
  virtual double next_decision_s(const ArrivedJobs& /*jobs*/, double /*now_s*/) const {
    return std::numeric_limits<double>::infinity();
  }
  /// How long a job keeps the GPUs that it was given, whatever happens; 0: until the next decision.
  virtual double lease_s() const { return 0; }
  /// Whether the deadline of the last of `jobs`, which has just arrived, can be kept without breaking that of
  /// another admitted job.
  virtual bool admits(const ArrivedJobs& /*jobs*/, const std::vector<GpuPool>& /*pools*/,
                      double /*now_s*/) const {
    return true;
  }
  /// Whether it shares GPUs of several kinds; other policies have one pool.
  virtual bool several_kinds() const { return false; }
  /// Whether jobs change their batch with their GPUs: the throughput that the policy sees, and at which they
  /// run, is then that of the best batch, in images that count.
  virtual bool adapts_batch() const { return false; }
  /// What a change of its GPUs costs a job; some policies take it into account.
  double pause_s = 0;
};

/// A policy that looks at all jobs at every decision.
class DecidesAnew : public Policy {
 public:
  std::unique_ptr<Sharing> start(const ArrivedJobs& jobs, const std::vector<GpuPool>& pools) const override;

 protected:
  /// The GPUs of each job; for each kind, at most those of its pool in total. @param jobs in the order of
  /// arrival
  virtual std::vector<Allocation> decide(const std::vector<ActiveJob>& jobs,
                                         const std::vector<GpuPool>& pools, double now_s) const = 0;

 private:
  class Deciding;
};

/// AFS-L: GPUs are given one by one, each to the job that pairwise comparisons prefer. Of two jobs without
/// GPUs, this is the one that would end first on one GPU. Otherwise it is the longer one, b, if one more GPU
/// raises its throughput by a larger share of what it then has, (p_b(w+1) - p_b(w)) / p_b(w+1), than that of
/// the shorter one by a share of what it has now, (p_a(w+1) - p_a(w)) / p_a(w); if not, it is the shorter
/// one. p(w) is the throughput on the best number of GPUs up to w, and no job is given GPUs that do not help
/// it. Source: Hwang et al., NSDI 2021, as three public re-implementations agree (heyfey/vodascheduler,
/// pkg/algorithm/afsl.go, 756e4d02, among them).
///
/// These comparisons can form a cycle; which job is preferred in the end then depends on the order in which
/// jobs are compared, which the statement leaves open. Here the GPU goes to the shortest of those jobs whose
/// second quotient is at least the largest first quotient of all, that is, of those to which no other job is
/// preferred for its gain alone. Among equally long jobs, it goes to the one with fewer images left, and then
/// to the first to arrive. If there is a job that is preferred to every other one, it is this job; in a
/// cycle, it is one to which some order leads.
std::unique_ptr<Policy> afs_l();

/// AFS-L's comparisons for jobs whose length is unknown: what a job has been trained on stands for what it
/// still has to be trained on. On average this is right if lengths are spread so widely that jobs live the
/// longer, the longer they have lived. Named after AFS-P by the same authors, whose rule could not be read.
std::unique_ptr<Policy> afs_p_like();

/// Greedy among the jobs that are present: each GPU goes to the job whose remaining time it shortens most.
/// Source: Peng et al., "Optimus", EuroSys 2018; its parameter servers and placement are left out.
std::unique_ptr<Policy> optimus_like();

/// Shortest remaining time first, with preemption; every job runs on the GPUs it asks for, or waits.
std::unique_ptr<Policy> srtf();

/// Tiresias-L: least attained service first (GPUs times seconds), in queues with bounds at 3250, 7200 and
/// 18000 GPU seconds, each in the order of arrival; with preemption; jobs get what they ask for. Source: Gu
/// et al., NSDI 2019 (discretized two-dimensional LAS); bounds as in the authors' public simulator.
std::unique_ptr<Policy> tiresias_l();

/// Like Themis (Mahajan et al., NSDI 2020): first the jobs whose finish-time fairness, (time in the cluster +
/// time still to come on the GPUs asked for) / time in an equal share of the cluster, is worst. Jobs get what
/// they ask for and keep it for leases of 20 minutes, as there, after which they compete again. Auctions and
/// placement are left out.
std::unique_ptr<Policy> themis_like();

/// Earliest deadline first, with preemption; every job runs on the GPUs it asks for, or waits.
std::unique_ptr<Policy> edf();

/// Like ElasticFlow (Gu et al., ASPLOS 2023): a job is admitted if, filling the time up to each deadline in
/// the order of deadlines, every admitted job finds a number of GPUs that meets its own deadline. Each job
/// first gets that number; the rest are given one by one where they raise throughput by the largest factor.
/// Jobs that are not admitted, which ElasticFlow turns away, get what is left.
std::unique_ptr<Policy> elasticflow_like();

/// Like Pollux (Qiao et al., OSDI 2021): maximises the mean of speedups over an equal share to the power of
/// -1, where speedups count images that count, and each is reduced for a change of GPUs by the share of time
/// that all its changes cost; jobs choose their batch. By exchanges instead of a genetic algorithm; no
/// interference.
std::unique_ptr<Policy> pollux_like();

/// Like Sia (Jayaram Subramanya et al., SOSP 2023): each job gets one of its configurations (kind of GPU;
/// powers of two up to a host, whole hosts beyond that) or none, such that the sum of goodput / least goodput
/// to the power of -0.5, with 1.1 for none, is minimal; restarts as there; jobs choose their batch. By
/// exchanges instead of an integer program.
std::unique_ptr<Policy> sia_like();

/// By the names above with hyphens ("afs-l"); nullptr for other names.
std::unique_ptr<Policy> make_policy(const std::string& name);
const std::vector<std::string>& policy_names();

}  // namespace convoy::schedule
