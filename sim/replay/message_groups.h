// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/engine.h"
#include "sim/replay/flows.h"
#include "sim/replay/fold.h"
#include "sim/replay/transfers.h"
#include "sim/replay/uncontended_collectives.h"

namespace convoy::inline replays {

/// Executes communications between classes: collectives whose ranks proceed in step (fluid) or one by one
/// (chunk), and sends and receives. A message of a collective whose ranks proceed one by one begins when both
/// its ends have reached its round (rendezvous), as with NCCL and with MPI for large messages. A
/// communication in step that has its links to itself is one delay (UncontendedCollective) instead of its
/// messages.
///
/// Where messages of ranks that proceed one by one have their links to themselves (lone_messages.h), their ends are known at
/// their beginnings, and so are the beginnings of the next ones. They need no events: steps are found ahead of their time, as far
/// as they depend on ranks that have started, up to a horizon of several steps. The engine is only asked for the time at which to
/// look further, and for the ends of ranks. Besides these, only clocks depend on when messages begin and end, and they are told
/// in advance.
class MessageGroups {
 public:
  /// @param uncontended if given, finds the times of groups whose patterns are marked in `alone` (by pattern)
  /// @param lone by pattern: whether messages of its collectives are foreseen; empty: none are
  MessageGroups(const Plan& plan, const FlowTable& table, const std::vector<bool>& one_by_one,
                const Folding& folding, Engine& engine, Transfers& transfers, MessageListener& listener,
                UncontendedCollectives* uncontended, std::vector<bool> alone, std::vector<bool> lone);

  /// Called when it is the turn of a collective, send or receive of `endpoint_class`.
  void start(std::uint32_t endpoint_class, TaskId id, Task::Kind kind, CommId comm);

  /// A program whose communications have all ended begins again, with these.
  void begin_again(CommId first, CommId past_last) {
    std::erase_if(runs_,
                  [&](const auto& run) { return run.second.comm >= first && run.second.comm < past_last; });
  }

  /// Called at the end: adds the time for which such groups used links and ports.
  void count_uncontended(LinkClock& clock) const;

 private:
  /// A class of equal groups: its members, and the flow classes of each round.
  struct Group {
    struct Message {
      std::uint32_t route_class, peer;  ///< peer: the member at the other end
      double fraction;                  ///< of the communication's bytes
    };
    struct Member {
      std::uint32_t endpoint_class;
      std::uint32_t receive_count = 0;  ///< messages received in all
    };
    /// The positions of one member's messages of one round: first the sends, then the receives.
    struct Part {
      std::uint32_t first = 0, sends = 0, receives = 0;
      std::uint32_t count() const { return sends + receives; }
    };
    std::vector<Member> members;
    std::vector<Part> parts;        ///< by member and round; of groups whose ranks go one by one
    std::vector<Message> messages;  ///< of all parts
    std::vector<std::vector<std::uint32_t>> flows;  ///< flow classes by round

    const Part& part(std::uint32_t member, std::uint32_t round) const {
      return parts[member * flows.size() + round];
    }
    std::span<const Message> sends(std::uint32_t member, std::uint32_t round) const {
      const Part& it = part(member, round);
      return {messages.data() + it.first, it.sends};
    }
    std::span<const Message> receives(std::uint32_t member, std::uint32_t round) const {
      const Part& it = part(member, round);
      return {messages.data() + it.first + it.sends, it.receives};
    }
  };
  struct Membership {
    std::uint32_t group, member;  ///< group class, and position in its members
  };

  static constexpr double never = std::numeric_limits<double>::infinity();
  /// How far the steps of a communication have been foreseen.
  struct Foresight {
    double ahead_s;                      ///< how far to look
    double horizon_s = 0;                ///< steps that begin later wait
    std::vector<std::uint32_t> waiting;  ///< ranks with such steps
    std::vector<std::uint32_t> next;     ///< ranks whose steps are to be foreseen next
    double first_s = never;              ///< when the first of these steps begins
    double wake_s = never;               ///< when to look further
    std::uint32_t wakes = 0;             ///< how often that has been set
  };

  /// One communication in one class of groups.
  struct Run {
    MessageGroups* groups;  ///< to which it belongs, so that an event needs no other pointer
    CommId comm;
    const Group* group;
    struct Rank {
      TaskId task = 0, receive_task = 0;
      bool started = false, receive_started = false;
      std::uint32_t step = 0;  ///< current repetition, counted over all rounds
      std::uint32_t round = 0, repetition = 0;
      bool step_begun = false;
      std::uint32_t missing = 0;                     ///< messages of this step that have not arrived yet
      double ready_s = 0;                            ///< where messages are foreseen: when it begins its step
      double step_end_s = 0;                         ///< and when it ends it, as far as is known
      std::uint32_t to_deliver = 0, to_receive = 0;  ///< send/receive patterns
    };
    std::vector<Rank> ranks;
    std::uint32_t arrived = 0;
    std::size_t round = 0;
    std::uint32_t repetition = 0;  ///< of a round whose shares rotate
    std::size_t under_way = 0;
    std::optional<Foresight> foresight{};  ///< where its messages are foreseen
  };

  /// The state of a class of groups, once one of its communications has started.
  struct Uncontended {
    bool known = false;
    std::optional<UncontendedCollective> times;
    double communications = 0, bytes = 0;  ///< done so far
  };

  void build_group(std::uint32_t group_class, const FlowGroup& representative);
  void part_messages(Group& group, const std::unordered_map<std::uint32_t, Membership>& member_of) const;
  Run& run_of(CommId comm, std::uint32_t endpoint_class, std::uint32_t& member);
  void start_one_by_one(Run& run, std::uint32_t member, TaskId id, Task::Kind kind);
  const Communication& comm_of(const Run& run) const { return plan_.communications[run.comm]; }
  const std::vector<Round>& rounds_of(const Run& run) const {
    return plan_.patterns[comm_of(run).pattern].rounds;
  }
  /// @param next a closure that fits into a Callback next to a pointer
  template <class Closure>
  void after_overhead(const Run& run, Closure next);
  const Flow& flow(std::uint32_t flow_class) const { return folding_.flow(table_, flow_class); }
  const FlowPath& path(std::uint32_t flow_class) const { return folding_.path(table_, flow_class); }

  void start_in_step(Run& run);
  void next_round_in_step(Run& run);
  bool next_rotation(Run& run);
  void end_in_step(Run& run);
  void begin_step(Run& run, std::uint32_t member);
  void launch_if_met(Run& run, std::uint32_t member, const Group::Message& message, bool sends);
  void message_there(Run& run, std::uint32_t member);
  double time_to_look_ahead_s(const Run& run) const;
  void reach_first_step(Run& run, std::uint32_t member);
  void foresee(Run& run, std::uint32_t first);
  void look_further_later(Run& run);
  void look_further(Run& run);
  void end_one_by_one(Run& run, std::uint32_t member);
  void send(Run& run, std::uint32_t member);
  void sent(Run& run, std::uint32_t from, std::uint32_t to);

  const Plan& plan_;
  const FlowTable& table_;
  const std::vector<bool>& one_by_one_;
  const Folding& folding_;
  Engine& engine_;
  Transfers& transfers_;
  MessageListener& listener_;
  UncontendedCollectives* uncontended_;
  std::vector<bool> alone_, lone_;                                        ///< by pattern
  std::vector<Group> groups_;                                             ///< by group class
  std::vector<Uncontended> uncontended_of_;                                             ///< by group class
  std::vector<std::unordered_map<std::uint32_t, Membership>> member_of_;  ///< by pattern: of endpoint classes
  std::unordered_map<std::uint64_t, Run> runs_;                           ///< by (communication, group class)
};

}  // namespace convoy::replays
