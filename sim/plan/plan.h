// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "models/training_graph.h"
#include "sim/base/shared_list.h"
#include "sim/plan/meaning.h"
#include "topologies/machine.h"

namespace convoy::inline plans {

using TaskId = std::uint32_t;  ///< index into Role::program
using CommId = std::uint32_t;  ///< index into Plan::communications

/// Memory that an operation takes or gives back.
struct MemoryDelta {
  MemoryClass memory_class;  ///< of what is stored there
  double bytes;              ///< > 0
};

/// One operation as a member of the role executes it.
struct PlanOp {
  static constexpr OpId of_plan = 0xffffffff;  ///< see `operation`

  std::string name;                    ///< "conv1.forward" or "conv1.forward #3" for micro-batch 3
  Work work;                           ///< what it costs, for the cost model
  double images;                       ///< that it computes
  std::vector<MemoryDelta> allocates;  ///< when it starts
  std::vector<MemoryDelta> frees;      ///< when it has ended
  /// The operation of the graph that it is, or of which it is a share; `of_plan` if the graph has no such
  /// operation, because only the plan needs it or runs it again.
  OpId operation = of_plan;
  std::uint32_t meaning = no_meaning;  ///< index into Meaning::operations
};

/// A step of a role's program. A task may start when all of `after` (tasks of the same program, smaller ids)
/// are done and, with a stream, when every earlier task of the program on the same stream is done (streams
/// are in order).
struct Task {
  /// What a task does.
  enum class Kind : std::uint8_t {
    compute,     ///< runs `ops` in order on the member (a device: cost model; a host: see host_seconds)
    collective,  ///< takes part in `comm`; done when the member's part is done
    send,        ///< starts this member's messages of `comm`; done when they have been delivered
    receive,     ///< done when all messages of `comm` to this member have been delivered
  };
  static constexpr int no_stream = -1;  ///< it waits only for `after`

  std::string name;           ///< for traces and messages
  Kind kind = Kind::compute;  ///< decides which of the members below count
  int stream = 0;             ///< index into Role::streams, or no_stream
  std::vector<TaskId> after;  ///< what has to be done before
  SharedList<PlanOp> ops;  ///< compute on a device; tasks that do the same for other micro-batches share them
  /// The operations are those of a task so many micro-batches before, and have its numbers in their names (name_of).
  std::int64_t micro_batches_later = 0;
  double seconds = 0;         ///< compute on a host: its length (hosts have no cost model)
  CommId comm = 0;            ///< the other kinds
  /// Compute on a device: a further step begins with this task (Plan::steps). The host begins to issue the
  /// operations of that step then, as it does at the beginning of a program.
  bool begins_step = false;
  std::uint32_t meaning = no_meaning;  ///< compute on a host: index into Meaning::operations
};

/// A part of a program that is repeated. The program lists some periods of it and leaves out the others, so
/// that what thousands of micro-batches do is listed once (repetition.h). Task t + `tasks` does what task t
/// does, for the micro-batches of the next period. Tasks of a period wait only for tasks of the same period;
/// tasks after the listed periods wait for one another, or for tasks of the last period.
struct RepeatedTasks {
  TaskId first = 0;                ///< of the first period
  std::uint32_t tasks = 0;         ///< of a period
  std::uint32_t listed = 0;        ///< periods in the program, one after the other
  std::uint64_t left_out = 0;      ///< periods that follow the listed ones, more than 0
  std::int64_t micro_batches = 1;  ///< of a period: the numbers in names (" #3") grow by as much

  TaskId end() const { return first + tasks * listed; }  ///< after the listed periods
  /// How often a task is run: those of the last listed period stand for the periods that are left out.
  double times(TaskId task) const {
    return task < end() && task >= end() - tasks ? 1 + static_cast<double>(left_out) : 1;
  }
  bool operator==(const RepeatedTasks&) const = default;
};

/// Members and their common program. All members are devices, or all are hosts.
struct Role {
  std::string name;                                         ///< "worker", "server", "stage 2"
  std::vector<EndpointId> members;                          ///< all devices, or all hosts
  std::vector<std::string> streams;                         ///< stream 0 is the compute stream of a device
  SharedList<Task> program;                                 ///< copies of a plan share it
  std::array<double, memory_class_count> resident_bytes{};  ///< of each member, throughout the step
  /// Operations take this many times as long. The time beyond 1 is spent waiting for the last of many devices
  /// (jitter.h) and counts as idle, not as computing.
  double slowdown = 1;
  /// In a plan with OneStep: what the program leaves out. Either all programs of a plan leave out the same
  /// number of periods, with the same number of micro-batches, or none leaves out anything.
  std::optional<RepeatedTasks> repeats{};

  /// Two programs are equal if they share their tasks (SharedList).
  bool operator==(const Role&) const = default;

  /// How often a task of the program is run in a step (or in Plan::steps).
  double times(TaskId task) const { return repeats ? repeats->times(task) : 1; }
};

/// Each of `senders` sends to each of `receivers` except itself, without a list of the pairs: sender i sends
/// receiver j the part senders[i].share * receivers[j].share of Communication::bytes.
struct AllToAll {
  /// One member's share of what is sent or received.
  struct Part {
    std::uint32_t member;  ///< position in the group; at most once among senders and once among receivers
    double share;          ///< from 0 to 1
    bool operator==(const Part&) const = default;
  };
  std::vector<Part> senders;    ///< who sends
  std::vector<Part> receivers;  ///< who receives
  bool operator==(const AllToAll&) const = default;
};

/// What is sent around rings whose members have shares of different sizes. The pairs of a round are then
/// those of the rings, one ring after the other: the pair after (p, q) of a ring is (q, r). In repetition k
/// of `ring` - 1, the pair at position i of its ring carries the share of position (i + first - k) mod
/// `ring`.
struct RotatingShares {
  std::uint32_t ring = 0;      ///< members of each ring
  std::uint32_t first = 0;     ///< each begins with its own share; ring - 1: with its predecessor's
  std::vector<double> shares;  ///< of Communication::bytes, for the position of each pair

  /// What the pair at this position carries in a repetition, counted from 0.
  double share(std::size_t pair, std::uint32_t repetition) const {
    const std::size_t position = pair % ring;
    return shares[pair - position + (position + first + ring - repetition) % ring];
  }
  bool operator==(const RotatingShares&) const = default;
};

/// Messages that start together: from sender to receiver (positions in the group). The whole round is
/// repeated `repeat` times, each time with the same pairs.
struct Round {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;  ///< sender and receiver
  std::vector<double>
      fractions;  ///< of Communication::bytes that each pair carries; one value may stand for all pairs
  std::uint32_t repeat = 1;              ///< how often it takes place
  std::optional<AllToAll> all_to_all{};  ///< where given, its messages; `pairs` and `fractions` are empty
  /// The latency of each message in each repetition, which replaces that of its route: for rounds that stand
  /// for the steps of a library (nccl_pattern.h). Not for an all-to-all.
  std::optional<double> latency_s{};
  /// If given, what each pair carries in each repetition; `fractions` are the means over the repetitions. All
  /// members proceed in step.
  std::optional<RotatingShares> rotation{};

  /// What the pair at this position carries, of Communication::bytes.
  double fraction(std::size_t pair) const { return fractions.size() == 1 ? fractions[0] : fractions[pair]; }
  std::uint64_t message_count() const;  ///< of one repetition
  double largest_fraction() const;      ///< of a message
  /// Calls `message(from, to, fraction)` for each message of one repetition.
  template <class Message>
  void for_each_message(Message message) const {
    for (std::size_t k = 0; k < pairs.size(); ++k) message(pairs[k].first, pairs[k].second, fraction(k));
    if (!all_to_all) return;
    for (const AllToAll::Part& from : all_to_all->senders)
      for (const AllToAll::Part& to : all_to_all->receivers)
        if (from.member != to.member) message(from.member, to.member, from.share * to.share);
  }
  /// The same, with a round for each repetition if repetitions carry different shares.
  std::vector<Round> listed() const;
  /// Every message in the opposite direction; the pairs keep their order.
  Round reversed() const;
  bool operator==(const Round&) const = default;
};

/// Who sends to whom, for any size. Communications of one pattern differ in bytes only (the buckets of one
/// ring).
struct Pattern {
  std::vector<std::vector<EndpointId>>
      groups;                 ///< each does all rounds for itself; an endpoint is in at most one group
  std::vector<Round> rounds;  ///< in order. For send/receive: exactly one, repeat 1
  /// For send/receive between hosts: this pattern's messages from one sender to one receiver are transferred
  /// one after the other, in the order in which they were sent. Otherwise they share the links as all other
  /// messages do.
  bool in_order = false;
  bool operator==(const Pattern&) const = default;
};

/// How a collective is replayed. `chunk` sends every message of every repetition, and a rank continues as
/// soon as its own messages of the last repetition have arrived. `fluid` sends the repetitions of a round as
/// one flow for each pair, with the latencies of all of them, and all ranks of a group are in step.
enum class Fidelity : std::uint8_t { automatic, chunk, fluid };

/// Unless it is asked for, at most this many messages of a plan are replayed one by one, which takes about a
/// second.
inline constexpr double most_messages_one_by_one = 1e6;

/// The purpose of a communication.
enum class CommPurpose : std::uint8_t {
  all_reduce,  ///< of gradients, or of parameters that are averaged
  half,        ///< reduce-scatter of gradients or all-gather of parameters
  neighbours,  ///< parameters, to the devices with which a device averages its own
  other,
};

/// A collective, or messages that are sent and received: a pattern with a size.
struct Communication {
  std::string name;                          ///< "all-reduce bucket 3", "push conv1.weight"
  std::uint32_t pattern = 0;                 ///< index into Plan::patterns
  double bytes = 0;                          ///< of which the fractions of the pattern's rounds are parts
  Fidelity fidelity = Fidelity::automatic;   ///< of a collective
  double overhead_s = 0;                     ///< before the first round (kernel launch, rendezvous)
  CommPurpose purpose = CommPurpose::other;  ///< for reports
  std::uint32_t meaning = no_meaning;        ///< index into Meaning::communications
  bool operator==(const Communication&) const = default;
};

/// Servers that answer each message by a rule instead of a program, and clients that repeat their programs,
/// each at its own pace: asynchronous and stale-synchronous training, and synchronous training with backup
/// workers. Clients are devices; their program is one step, in which they send every `push` and receive every
/// `pull` once. Servers are hosts with empty programs. A server's CPUs add up gradients at
/// HostType::reduce_bandwidth_Bps, which is shared by all gradients that have arrived.
struct Service {
  /// A worker.
  struct Client {
    EndpointId device = 0;         ///< on which it runs
    double images = 0;             ///< of one of its steps
    double start_s = 0;            ///< when it begins its first step
    std::uint32_t head_start = 0;  ///< steps that it counts as having done before its first one (max_lead)
    /// The sequence of random numbers from which its compute times are drawn.
    std::uint32_t sequence = 0;
    bool operator==(const Client&) const = default;
  };
  /// Gradients that go to servers, and the parameters that come back.
  struct Exchange {
    CommId push = 0;  ///< from the clients to their servers
    CommId pull = 0;  ///< its pairs are those of push in the opposite direction, in the same order
    /// Bytes that a server's CPUs add up for a push, as Communication::bytes. If not given, those of the push
    /// (they differ if gradients are sent compressed).
    std::optional<double> added_bytes = std::nullopt;
    bool operator==(const Exchange&) const = default;
  };
  static constexpr std::uint32_t unbounded =
      std::numeric_limits<std::uint32_t>::max();  ///< as max_lead: no limit

  std::vector<Client> clients;      ///< the workers
  std::vector<Exchange> exchanges;  ///< of every step
  /// 0: every push is an update. Otherwise a server updates when it has received `quorum` pushes that were
  /// computed with its present parameters, and answers all of these; later pushes are dropped and answered at
  /// once.
  std::uint32_t quorum = 0;
  /// Without quorum: a push with which its client is more than this many steps ahead of the slowest client is
  /// answered when that is no longer so; at least 1.
  std::uint32_t max_lead = unbounded;
  /// If above 0, the compute time of a client's step is its mean times a random factor between 1 minus this
  /// and 1 plus this, drawn for each client and step from a fixed seed. In the long run every client meets
  /// every other client at every phase, so the measurement is the mean over phases and not the result of one
  /// choice of phases. For messages that share links fairly, with which phases would otherwise never change.
  /// (Throughput then hardly depends on the distribution of compute times: if such messages follow one
  /// another, it depends only on their means; Baskett, Chandy, Muntz & Palacios, J. ACM 22(2), 1975.)
  double compute_spread = 0;
  /// If above 0, the compute time of a client's step is its mean times a normal factor (never below 0) of
  /// mean 1 and this standard deviation, drawn likewise. With a quorum it decides which clients are late; a
  /// late client begins its next step later and is late again. Not together with compute_spread.
  double step_jitter = 0;
  /// Whether compute times are drawn.
  bool is_random() const { return compute_spread > 0 || step_jitter > 0; }
  /// Clients move each other to other phases, since servers take one message after the other.
  bool drifts = false;
  /// Whether the measurement goes on until the mean of a step is known.
  bool is_measured_until_known() const { return is_random() || drifts; }
  std::uint32_t warm_up_steps = 4;  ///< that every client runs before the measurement begins
  /// Whole steps that every client runs at least in the measurement. If that goes on until the mean is known,
  /// its blocks have this many steps (sim/replay/steady_state.h).
  std::uint32_t measured_steps = 8;
  bool operator==(const Service&) const = default;
};

/// Programs that are the beginning of an endless run whose steps overlap: pipelines that are never flushed.
/// What a replay reports for "the step" is then the mean over a steady stretch of the run.
struct EndlessRun {
  /// A task that belongs to the end of a step.
  struct End {
    std::uint32_t role;  ///< index into Plan::roles
    TaskId task;         ///< of its program
    bool operator==(const End&) const = default;
  };
  std::vector<std::vector<End>> steps;  ///< by step: the tasks that all members of these roles have to end
  std::size_t steady_steps = 0;         ///< after this many steps the first members have nothing more to do
  std::vector<double> uses_per_step;    ///< by pattern: the number of its communications in a step
  bool operator==(const EndlessRun&) const = default;
};

/// Images that hosts prepare for their devices while these train. Each device has a producer, which works on
/// one batch at a time and is at most `prefetch` batches ahead (0: it begins when the device asks).
struct InputFeed {
  std::vector<double>
      interval_s;              ///< by host: time that its CPUs and disks need for a step's batches; 0: none
  std::uint32_t prefetch = 1;  ///< batches that a producer is ahead of its device
  std::vector<std::string> limit;  ///< by host, for people: what sets the interval and what would shorten it
  bool operator==(const InputFeed&) const = default;
};

/// One step (or Plan::steps) at whose end all devices wait for each other: programs begin together and run
/// once.
struct OneStep {
  bool operator==(const OneStep&) const = default;
};

/// What a strategy decides, as plain values: what each device computes, what is sent to which device, and what
/// waits for what. It is written by role: the members of a role run the same program, so the plan of 16,384
/// equal replicas is one program. Nothing here depends on how a plan is replayed.
struct Plan {
  std::vector<Role> roles;                    ///< who runs which program
  std::vector<Pattern> patterns;              ///< of the communications
  std::vector<Communication> communications;  ///< of all programs
  double images = 0;                          ///< of one step, over all devices: the global batch
  /// The number of steps in the programs, after which all devices wait for each other: more than 1 if they do
  /// not wait in every step. What a replay reports for "the step" is then the mean of these. With OneStep
  /// only.
  double steps = 1;
  /// How the programs run. With a service, a step is the mean time in which `images` images are processed.
  std::variant<OneStep, EndlessRun, Service> course{};
  std::optional<InputFeed> input{};  ///< nothing: images never keep a device waiting
  /// How the collectives that sum gradients are launched, if a launch costs anything: "per_process";
  /// otherwise "".
  std::string launches{};
  /// If it was asked for. Copies of the plan share it, and it does not change once the plan is made.
  std::shared_ptr<Meaning> meaning{};

  /// Everything is equal; programs and meanings are if they are shared.
  bool operator==(const Plan&) const = default;

  const EndlessRun* endless() const { return std::get_if<EndlessRun>(&course); }  ///< nullptr: no such run
  const Service* service() const { return std::get_if<Service>(&course); }        ///< nullptr: no servers
  Service* service() { return std::get_if<Service>(&course); }                    ///< the same, to be changed
};

}  // namespace convoy::plans
