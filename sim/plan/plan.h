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

/// A plan is what a strategy decides, as plain values: who computes what, what is sent to whom, what waits
/// for what. It is written by role: members of a role run the same program, so the plan of 16,384 equal
/// replicas is one program. Nothing here knows how it is replayed.

using TaskId = std::uint32_t;  ///< index into Role::program
using CommId = std::uint32_t;  ///< index into Plan::communications

struct MemoryDelta {
  MemoryClass memory_class;
  double bytes;  ///< > 0
};

/// One operation as a member of the role executes it.
struct PlanOp {
  static constexpr OpId of_plan = 0xffffffff;

  std::string name;  ///< "conv1.forward" or "conv1.forward #3" for micro-batch 3
  Work work;
  double images;
  std::vector<MemoryDelta> allocates;  ///< when it starts
  std::vector<MemoryDelta> frees;      ///< when it has ended
  /// The graph's operation that it does, or does a share of; `of_plan` where the graph has none: what only
  /// the plan makes necessary, and what it runs again.
  OpId operation = of_plan;
  std::uint32_t meaning = no_meaning;  ///< index into Meaning::operations
};

/// A step of a role's program. A task may start when all of `after` (tasks of the same program, smaller ids)
/// are done and, with a stream, when every earlier task of the program on the same stream is done (streams
/// are in order).
struct Task {
  enum class Kind : std::uint8_t {
    compute,     ///< runs `ops` in order on the member (a device: cost model; a host: see host_seconds)
    collective,  ///< takes part in `comm`; done when the member's part is done
    send,        ///< starts this member's messages of `comm`; done when they have been delivered
    receive,     ///< done when all messages of `comm` to this member have been delivered
  };
  static constexpr int no_stream = -1;

  std::string name;
  Kind kind = Kind::compute;
  int stream = 0;  ///< index into Role::streams, or no_stream
  std::vector<TaskId> after;
  std::vector<PlanOp> ops;  ///< compute on a device
  double seconds = 0;       ///< compute on a host: its length (hosts have no cost model)
  CommId comm = 0;          ///< the other kinds
  /// Compute on a device: a further step begins with it (Plan::steps), whose operations the host issues from
  /// then on, as those of a program from its beginning.
  bool begins_step = false;
  std::uint32_t meaning = no_meaning;  ///< compute on a host: index into Meaning::operations
};

/// A part of a program that is gone through again and again, of which the program lists some periods and
/// leaves out others: what thousands of micro-batches do is then said once (repetition.h). Task t + `tasks` does
/// what task t does, for the micro-batches of the next period. Tasks of a period wait for tasks of the same
/// period, and those after the listed periods for one another or for tasks of the last one.
struct RepeatedTasks {
  TaskId first = 0;                ///< of the first period
  std::uint32_t tasks = 0;         ///< of a period
  std::uint32_t listed = 0;        ///< periods in the program, one after the other
  std::uint64_t left_out = 0;      ///< periods that follow the listed ones, more than 0
  std::int64_t micro_batches = 1;  ///< of a period: by so much the numbers in names (" #3") grow with it

  TaskId end() const { return first + tasks * listed; }  ///< after the listed periods
  /// How often a task is done: those of the last listed period stand for the ones that are left out.
  double times(TaskId task) const {
    return task < end() && task >= end() - tasks ? 1 + static_cast<double>(left_out) : 1;
  }
  bool operator==(const RepeatedTasks&) const = default;
};

/// Members and their common program. All members are devices, or all are hosts.
struct Role {
  std::string name;  ///< "worker", "server", "stage 2"
  std::vector<EndpointId> members;
  std::vector<std::string> streams;                         ///< stream 0 is the compute stream of a device
  SharedList<Task> program;                                 ///< copies of a plan share it
  std::array<double, memory_class_count> resident_bytes{};  ///< of each member, throughout the step
  /// Operations last so many times as long. What is beyond once is waiting for the last of many devices
  /// (jitter.h): it counts as idle, not as computing.
  double slowdown = 1;
  /// Of a plan with OneStep: what the program leaves out. All programs of a plan leave out as many periods of
  /// as many micro-batches, or none does.
  std::optional<RepeatedTasks> repeats{};

  /// How often a task of the program is done in a step (or in Plan::steps).
  double times(TaskId task) const { return repeats ? repeats->times(task) : 1; }
};

/// Everyone of `senders` sends to everyone of `receivers` but himself, without a list of the pairs: sender i
/// sends receiver j the part senders[i].share * receivers[j].share of Communication::bytes.
struct AllToAll {
  struct Part {
    std::uint32_t member;  ///< position in the group; at most once among senders and once among receivers
    double share;
    bool operator==(const Part&) const = default;
  };
  std::vector<Part> senders, receivers;
  bool operator==(const AllToAll&) const = default;
};

/// What goes around rings whose members have shares of different sizes. A round's pairs are then rings, one after
/// the other: the pair after (p, q) of a ring is (q, r). In repetition k of `ring` - 1, the pair at position i of
/// its ring carries the share of position (i + first - k) mod `ring`.
struct RotatingShares {
  std::uint32_t ring = 0;      ///< members of each
  std::uint32_t first = 0;     ///< each begins with its own share; ring - 1: with that of the one before it
  std::vector<double> shares;  ///< of Communication::bytes, by pair: of its position

  double share(std::size_t pair, std::uint32_t repetition) const {
    const std::size_t position = pair % ring;
    return shares[pair - position + (position + first + ring - repetition) % ring];
  }
  bool operator==(const RotatingShares&) const = default;
};

/// Messages that start together: from sender to receiver (positions in the group). The whole round is done
/// `repeat` times, every repetition with the same pairs.
struct Round {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  std::vector<double>
      fractions;  ///< of Communication::bytes that each pair carries; one value may stand for all pairs
  std::uint32_t repeat = 1;
  std::optional<AllToAll> all_to_all{};  ///< where given, its messages; `pairs` and `fractions` are empty
  /// Of each message, each repetition, in place of its route's: where a library's own steps make up a round
  /// (nccl_pattern.h). Not of an all-to-all.
  std::optional<double> latency_s{};
  /// Where given, what each pair carries in each repetition; `fractions` are the means over them. All members
  /// proceed in step.
  std::optional<RotatingShares> rotation{};

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
  /// The same with a round for each repetition, where these carry different shares.
  std::vector<Round> listed() const;
  /// Every message the other way; pairs in the same order.
  Round reversed() const;
  bool operator==(const Round&) const = default;
};

/// Who sends to whom, for any size. Communications of one pattern differ in bytes only (the buckets of one
/// ring).
struct Pattern {
  std::vector<std::vector<EndpointId>>
      groups;                 ///< each does all rounds for itself; an endpoint is in at most one group
  std::vector<Round> rounds;  ///< in order. For send/receive: exactly one, repeat 1
  /// Of send/receive between hosts: this pattern's messages of one sender to one receiver go one after the
  /// other, in the order in which they were sent; else they share the links as all others do.
  bool in_order = false;
};

/// How a collective is replayed: `chunk` sends every message of every repetition, each rank going on as soon
/// as its own messages of the last repetition are there; `fluid` sends the repetitions of a round as one flow
/// a pair, with the latencies of all of them, all ranks of a group in step.
enum class Fidelity : std::uint8_t { automatic, chunk, fluid };

/// Of a plan, at most so many messages are replayed one by one where nobody asked for it: a second of work.
inline constexpr double most_messages_one_by_one = 1e6;

/// What a communication is there for.
enum class CommPurpose : std::uint8_t {
  all_reduce,  ///< of gradients, or of parameters that are averaged
  half,        ///< reduce-scatter of gradients or all-gather of parameters
  neighbours,  ///< parameters, to those with whom a device averages its own
  other,
};

struct Communication {
  std::string name;           ///< "all-reduce bucket 3", "push conv1.weight"
  std::uint32_t pattern = 0;  ///< index into Plan::patterns
  double bytes = 0;
  Fidelity fidelity = Fidelity::automatic;
  double overhead_s = 0;  ///< before the first round (kernel launch, rendezvous)
  CommPurpose purpose = CommPurpose::other;
  std::uint32_t meaning = no_meaning;  ///< index into Meaning::communications
};

/// Servers that answer each message by a rule instead of a program, and clients that repeat their programs,
/// each at its own pace: asynchronous and stale-synchronous training, and synchronous training with backup
/// workers. Clients are devices and send every `push` and receive every `pull` once in their program, which
/// is one step; servers are hosts, and their programs are empty. A server's CPUs add up a gradient at
/// HostType::reduce_bandwidth_Bps, all that are there at a time sharing that rate.
struct Service {
  struct Client {
    EndpointId device = 0;
    double images = 0;             ///< of one of its steps
    double start_s = 0;            ///< when it begins its first step
    std::uint32_t head_start = 0;  ///< steps that it counts as having done before it (max_lead)
    /// Of the sequences of random numbers the one from which its compute times are drawn.
    std::uint32_t sequence = 0;
  };
  struct Exchange {
    CommId push = 0,
           pull = 0;  ///< the pairs of pull are those of push the other way round, in the same order
    /// That a server's CPUs add up of a push, as Communication::bytes: those of the push unless given (they
    /// differ where gradients are sent compressed).
    std::optional<double> added_bytes = std::nullopt;
  };
  static constexpr std::uint32_t unbounded = std::numeric_limits<std::uint32_t>::max();

  std::vector<Client> clients;
  std::vector<Exchange> exchanges;
  /// 0: every push is an update. Else a server updates when it has `quorum` pushes made from its present
  /// parameters, and answers all of these; what comes later is dropped and answered at once.
  std::uint32_t quorum = 0;
  /// Without quorum: a push that makes its client more than so many steps ahead of the slowest is answered
  /// when it no longer is; at least 1.
  std::uint32_t max_lead = unbounded;
  /// Where above 0, what clients compute in a step takes a random multiple of its mean, between 1 minus this
  /// and 1 plus this, drawn for each client and step from a fixed seed: in the long run everybody meets
  /// everybody at every phase, and what is measured is that mean, not what one choice of phases leads to. For
  /// messages that share links fairly, so that phases would stay what they were. (Throughput then hardly
  /// depends on how compute times are spread: where such messages follow one another it depends on their
  /// means only, Baskett, Chandy, Muntz & Palacios, J. ACM 22(2), 1975.)
  double compute_spread = 0;
  /// Where above 0, what clients compute in a step takes a normal multiple of its mean, of mean 1 and this
  /// standard deviation (never below 0), drawn likewise: with a quorum it decides who is late, and who is
  /// late begins later and is late again. Not with a spread.
  double step_jitter = 0;
  bool is_random() const { return compute_spread > 0 || step_jitter > 0; }
  /// Clients push each other to other phases: servers that take in one message after the other.
  bool drifts = false;
  bool is_measured_until_known() const { return is_random() || drifts; }
  /// Steps that every client does before the measurement begins, and at least those that it does in it,
  /// whole; where that is until the mean is known, so many again and again
  /// (sim/replay/steady_state.h).
  std::uint32_t warm_up_steps = 4, measured_steps = 8;
};

/// Programs that are a stretch of an endless run whose steps overlap, from its first step on: pipelines that
/// are never flushed. What a replay says of "the step" is then the mean of a steady stretch of it.
struct EndlessRun {
  struct End {
    std::uint32_t role;
    TaskId task;
  };
  std::vector<std::vector<End>> steps;  ///< of each step, what all members of these roles must have done
  std::size_t steady_steps = 0;         ///< after so many steps the first members have nothing more to do
  std::vector<double> uses_per_step;    ///< by pattern: how many of its communications a step has
};

/// Images that hosts make ready for their devices while these train: a producer a device, which works on a
/// batch at a time and no more than `prefetch` ahead (none: it begins when the device asks).
struct InputFeed {
  std::vector<double>
      interval_s;  ///< by host: time that its CPUs and disks need for a step's batches; 0: none
  std::uint32_t prefetch = 1;
  std::vector<std::string> limit;  ///< by host, for people: what sets the interval and what would shorten it
};

/// A step (or Plan::steps) of which everyone waits for everyone: programs begin together and are gone through
/// once.
struct OneStep {};

struct Plan {
  std::vector<Role> roles;
  std::vector<Pattern> patterns;
  std::vector<Communication> communications;
  double images = 0;  ///< of one step, over all devices: the global batch
  /// That the programs are of, after which everyone waits for everyone: more than 1 where that is not in
  /// every step. What a replay says of "the step" is then the mean of so many. With OneStep only.
  double steps = 1;
  /// How the programs are gone through. With a service a step is the mean time in which `images` are learnt
  /// from.
  std::variant<OneStep, EndlessRun, Service> course{};
  std::optional<InputFeed> input{};
  /// Who launches the collectives that sum gradients, where a launch costs anything: "per_process"; "" else.
  std::string launches{};
  /// Where it was asked for. Shared by copies of the plan, which are made freely; nobody changes it once the
  /// plan is made.
  std::shared_ptr<Meaning> meaning{};

  const EndlessRun* endless() const { return std::get_if<EndlessRun>(&course); }  ///< nullptr: no such run
  const Service* service() const { return std::get_if<Service>(&course); }
  Service* service() { return std::get_if<Service>(&course); }
};

}  // namespace convoy::plans
