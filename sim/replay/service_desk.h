// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/busy_clock.h"
#include "sim/replay/courier.h"
#include "sim/replay/engine.h"
#include "sim/replay/flows.h"
#include "sim/replay/fold.h"
#include "sim/replay/replay.h"
#include "sim/replay/step_counts.h"
#include "topologies/machine.h"

namespace convoy {

/// Carries out a plan's Service between classes: takes the clients' pushes, adds them up, and answers by its
/// rule.
class ServiceDesk {
 public:
  ServiceDesk(const Plan& plan, const Machine& machine, const FlowTable& table, const Folding& folding,
              Engine& engine, Courier& courier, MessageListener& listener);

  /// Capacities (bytes/s) of the links that stand for servers' CPUs; in the engine they follow those of the
  /// folding.
  static std::vector<double> adder_capacities(const Plan& plan, const Machine& machine,
                                              const Folding& folding);

  /// A client begins a step: pushes are made from the parameters that it has now.
  void begin_step(std::uint32_t client_class);
  /// A send or receive of the client's program has its turn.
  void start(std::uint32_t client_class, TaskId id, const Task& task);

  /// Of the parameters that a client that is between two steps has, in updates by quorum.
  std::uint64_t version(std::uint32_t client_class) const { return clients_[client_class].next_version; }
  /// Time for which a server's CPUs have been adding up.
  double adding_s(std::uint32_t server_class, double now_s) const;
  /// Of the gradients applied in a stretch of time; max_lead of all time.
  StalenessResult staleness(double from_s, double until_s) const;

 private:
  /// Equal messages from clients to a server, and back.
  struct Lane {
    std::uint32_t client, server;          ///< endpoint classes
    std::uint32_t push, pull;              ///< flow classes
    std::uint32_t arrivals;                ///< how many reach one server
    std::uint32_t adding = Folding::none;  ///< route of their addition; none: takes no time
  };
  /// What a server knows of a lane.
  struct Account {
    std::uint64_t steps = 0;  ///< pushed; or the version that the push under way was made from
    double applied_at_s = -1, answered_at_s = -1;  ///< its last push
  };
  struct Push {
    double last_applied_at_s, answered_at_s;  ///< the client's push before it; below 0: there was none
    double applied_at_s;
    std::uint32_t members;  ///< of the lane at one server
  };
  struct Applied {
    double at_s, total;  ///< updates up to then
  };
  /// One exchange on one class of servers.
  struct Desk {
    double push_bytes = 0, pull_bytes = 0, added_bytes = 0;  ///< of the exchange, as Communication::bytes
    std::vector<std::uint32_t> lanes;
    std::vector<Account> accounts;       ///< by position in lanes
    std::vector<std::uint32_t> waiting;  ///< positions of lanes whose answer waits
    StepCounts steps;                    ///< of accounts (max_lead)
    std::uint64_t released_at = 0;       ///< their fewest steps when all that wait were last asked
    std::uint64_t version = 0;
    std::uint32_t counted = 0;  ///< pushes made from `version`
    std::vector<Applied> applied;
    std::vector<Push> pushes;
  };
  /// One exchange as a client class sees it.
  struct Turn {
    TaskId send = 0, receive = 0;
    bool receive_started = false;
    std::uint32_t to_deliver = 0, to_receive = 0;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> lanes;  ///< desk and position in its lanes
  };

  struct Client {
    std::vector<Turn> turns;         ///< by exchange
    std::uint64_t version = 0;       ///< that the step under way was begun with
    std::uint64_t next_version = 0;  ///< of the answers so far in this step
    std::uint64_t steps = 0;         ///< whose gradients have all been applied
    std::size_t left = 0;            ///< gradients of the step under way that have not
  };

  Turn& turn(std::uint32_t client_class, std::size_t exchange) {
    return clients_[client_class].turns[exchange];
  }
  void send(std::uint32_t client_class, std::size_t exchange);
  void arrive(std::uint32_t desk, std::uint32_t position);
  void apply(std::uint32_t desk, std::uint32_t position);
  void count_push(std::uint32_t client_class);
  bool may_go_on(const Desk& desk, std::uint32_t position) const;
  void release(std::uint32_t desk);
  void answer(std::uint32_t desk, std::uint32_t position);

  const Plan& plan_;
  const Service& service_;
  const FlowTable& table_;
  const Folding& folding_;
  Engine& engine_;
  Courier& courier_;
  MessageListener& listener_;
  std::vector<Lane> lanes_;
  std::vector<Desk> desks_;
  std::vector<std::size_t> exchange_of_desk_;
  std::vector<std::size_t> exchange_of_;  ///< by communication
  std::vector<Client> clients_;           ///< by endpoint class; others have no turns
  StepCounts steps_;                      ///< of clients
  std::uint64_t max_lead_ = 0;
  std::unordered_map<std::uint32_t, std::uint32_t> adder_;  ///< link by server class; absent: takes no time
  std::unordered_map<std::uint32_t, BusyTime> adding_;      ///< by server class
  std::vector<std::uint32_t> members_;                      ///< by endpoint class
};

}  // namespace convoy
