// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "sim/schedule/job.h"

namespace convoy::inline schedule {

/// Decides which of the jobs in the cluster get how many GPUs.
class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string name() const = 0;
  /// GPUs of each job, of each kind at most those of its pool in all. @param jobs in the order of arrival
  virtual std::vector<Allocation> allocate(const std::vector<ActiveJob>& jobs,
                                           const std::vector<GpuPool>& pools, double now_s) const = 0;
  /// When to decide again if no job arrives or ends before: these always bring a decision.
  virtual double next_decision_s(const std::vector<ActiveJob>& /*jobs*/, double /*now_s*/) const {
    return std::numeric_limits<double>::infinity();
  }
  /// How long a job keeps GPUs that it was given, whatever comes; 0: until the next decision.
  virtual double lease_s() const { return 0; }
  /// Whether the last of `jobs`, which has just arrived, is one whose deadline can be kept without breaking
  /// that of another admitted one.
  virtual bool admits(const std::vector<ActiveJob>& /*jobs*/, const std::vector<GpuPool>& /*pools*/,
                      double /*now_s*/) const {
    return true;
  }
  /// Whether it shares GPUs of several kinds; the others know one pool.
  virtual bool several_kinds() const { return false; }
  /// Whether jobs change their batch with their GPUs: the throughput that it sees and that they run at is
  /// then that of the best batch, in images that count.
  virtual bool adapts_batch() const { return false; }
  /// What a change of a job's GPUs costs it, which some policies weigh.
  double pause_s = 0;
};

/// AFS-L: GPUs one by one, each to the job that comparisons of two prefer. Of two jobs without GPUs the one
/// that would end first on one GPU; else the longer one, b, if one more GPU raises its throughput by a
/// greater part of what it then has, (p_b(w+1) - p_b(w)) / p_b(w+1), than the shorter one's of what it has
/// now, (p_a(w+1) - p_a(w)) / p_a(w), and the shorter one if not. p(w) is what the best number of GPUs up to
/// w gives, and nobody is given GPUs that do not help it. Source: Hwang et al., NSDI 2021, as three public
/// re-implementations agree (heyfey/vodascheduler, pkg/algorithm/afsl.go, 756e4d02, among them).
///
/// These comparisons can go in a circle, and who is preferred in the end then depends on the order in which
/// jobs are gone through, which the statement leaves open. Here the GPU goes to the shortest of those jobs
/// whose second quotient is at least the greatest first quotient of all, that is, of those to which none is
/// preferred for its gain alone; of equally long ones to that with fewer images left, then to the first to
/// arrive. It is the job that is preferred to every other one wherever there is such a job, and in a circle
/// one that some order leads to.
std::unique_ptr<Policy> afs_l();

/// AFS-L's comparisons for jobs whose length nobody knows: what a job has been trained on stands for what it
/// still has to be trained on, as it is on average where lengths are spread so widely that jobs live the
/// longer the longer they have lived. Named after AFS-P of the same authors, whose rule could not be read.
std::unique_ptr<Policy> afs_p_like();

/// Greedy on the jobs that are there: each GPU to the job whose remaining time it shortens most. Source: Peng
/// et al., "Optimus", EuroSys 2018; its parameter servers and placement are left out.
std::unique_ptr<Policy> optimus_like();

/// Shortest remaining time first, with preemption; every job on the GPUs it asks for, or waiting.
std::unique_ptr<Policy> srtf();

/// Tiresias-L: least attained service first, GPUs times seconds, in queues with bounds at 3250, 7200 and
/// 18000 GPU seconds, each in the order of arrival; with preemption; jobs get what they ask for. Source: Gu
/// et al., NSDI 2019 (discretized two-dimensional LAS); bounds as in the authors' public simulator.
std::unique_ptr<Policy> tiresias_l();

/// Like Themis (Mahajan et al., NSDI 2020): the jobs first whose finish-time fairness, (time in the cluster +
/// time still to come on the GPUs asked for) / time in an equal share of the cluster, is worst; jobs get what
/// they ask for, and keep it for leases of 20 minutes, as there, after which they compete again. Auctions and
/// placement are left out.
std::unique_ptr<Policy> themis_like();

/// Earliest deadline first, with preemption; every job on the GPUs it asks for, or waiting.
std::unique_ptr<Policy> edf();

/// Like ElasticFlow (Gu et al., ASPLOS 2023): a job is admitted if, filling the time up to each deadline in
/// the order of deadlines, every admitted job finds a number of GPUs that keeps its own; each first gets that
/// number, the rest goes one by one where it raises throughput by the greatest part. Jobs that are not
/// admitted, which ElasticFlow turns away, get what is left.
std::unique_ptr<Policy> elasticflow_like();

/// Like Pollux (Qiao et al., OSDI 2021): the mean of speedups over an equal share to the power of -1 at its
/// greatest, speedups in images that count, each lowered for a change of GPUs by the share of time that all
/// its changes cost; jobs choose their batch. By exchanges instead of a genetic algorithm; no interference.
std::unique_ptr<Policy> pollux_like();

/// Like Sia (Jayaram Subramanya et al., SOSP 2023): each job one of its configurations (kind of GPU; powers
/// of two of them up to a host, whole hosts beyond) or none, such that the sum of goodput / least goodput to
/// the power of -0.5, 1.1 for none, is least; restarts as there; jobs choose their batch. By exchanges
/// instead of an integer program.
std::unique_ptr<Policy> sia_like();

/// By the names above with hyphens ("afs-l"); nullptr for other names.
std::unique_ptr<Policy> make_policy(const std::string& name);
const std::vector<std::string>& policy_names();

}  // namespace convoy::schedule
