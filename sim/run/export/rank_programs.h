// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/costs/cost_model.h"
#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline runs {

/// A plan as other simulators read it: a rank for each endpoint that has a program, with a list of steps of
/// which each names the steps that it waits for. Nothing here depends on a replay.

/// A message of a rank.
struct RankMessage {
  EndpointId member;  ///< whose message it is: of its sender, or of its receiver
  EndpointId peer;
  std::uint32_t round;
  bool sends;
  double fraction;  ///< of Communication::bytes
  /// Of a round that all members do in step, the latencies of all of its repetitions but one.
  double more_latency_s;
};

struct RankStep {
  enum class Kind : std::uint8_t {
    issue,       ///< the host issues an operation of the device
    compute,     ///< an operation of a device, or what a host computes
    collective,  ///< the member's part in a communication as a whole
    send,        ///< one message
    receive,
    join,  ///< nothing: what comes after it comes after all that is before it
  };
  Kind kind;
  bool on_host = false;   ///< of a device's rank: it is the host that is busy
  std::string name;       ///< of the operation, the task, or the communication
  double seconds = 0;     ///< of issue and compute
  double flops = 0, bytes = 0;
  CommId comm = 0;            ///< of communications
  std::uint32_t message = 0;  ///< of send and receive: index into RankPrograms::messages
  double delay_s = 0;         ///< passes between what it waits for and the communication
  /// What has its own thing to run on: 0 computes, 1 issues, 2 joins; then the role's streams, and what has none.
  std::uint32_t queue = 0;
  std::vector<std::uint32_t> after;  ///< smaller indices, ascending
};

/// Members of a role whose steps differ in nothing but whom they send to and receive from.
struct RankProgram {
  std::vector<EndpointId> members;
  std::vector<RankStep> steps;
};

class RankPrograms {
 public:
  enum class Collectives : std::uint8_t {
    known,  ///< as one step where it is known what they do (collective_type), else as messages
    none,   ///< all as messages
  };
  /// @pre the plan has no service; it, machine and cost outlive the object
  RankPrograms(const Plan& plan, const Machine& machine, const CostModel& cost, Collectives collectives);

  const std::vector<RankProgram>& programs() const { return programs_; }
  /// Endpoints by rank: those that have a program, in their order.
  const std::vector<EndpointId>& ranks() const { return ranks_; }
  std::uint32_t rank_of(EndpointId endpoint) const { return rank_of_[endpoint]; }
  /// What the member sends and receives in any communication of the pattern, by round, of each first what it sends.
  std::span<const RankMessage> messages(std::uint32_t pattern, EndpointId member) const;
  /// Bytes of a member's message, whole, and at least 1: simulators of networks take no empty messages.
  std::uint64_t message_bytes(const RankStep& step, EndpointId member) const;

 private:
  friend class RankProgramMaker;
  void list_messages();

  const Plan& plan_;
  const Machine& machine_;
  const CostModel& cost_;
  Collectives collectives_;
  std::vector<bool> one_by_one_;  ///< by pattern
  std::vector<std::vector<RankMessage>>
      messages_;  ///< by pattern; ordered by member, round, and whether it sends
  std::vector<RankProgram> programs_;
  std::vector<EndpointId> ranks_;
  std::vector<std::uint32_t> rank_of_;
};

/// Whole bytes, at least 1.
std::uint64_t whole_bytes(double bytes);

/// What a communication does as a whole.
enum class CollectiveType : std::uint8_t { all_reduce, all_gather, reduce_scatter };
/// Nothing: it is one of other messages, or the plan does not say what it means.
std::optional<CollectiveType> collective_type(const Plan& plan, const Communication& comm);

/// Whole units of time, of which the sum over steps is never off by more than half a unit: each step has what
/// the sum gains by it.
class WholeTimes {
 public:
  explicit WholeTimes(double units_per_s) : units_per_s_(units_per_s) {}
  /// @param queue whose sum it is
  std::uint64_t next(std::uint32_t queue, double seconds);

 private:
  double units_per_s_;
  std::vector<std::pair<double, std::uint64_t>> sums_;  ///< by queue: in seconds, and in units
};

}  // namespace convoy::runs
