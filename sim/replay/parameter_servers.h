// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/busy_clock.h"
#include "sim/replay/engine.h"
#include "sim/replay/flows.h"
#include "sim/replay/fold.h"
#include "sim/replay/large_pages.h"
#include "sim/replay/replay.h"
#include "sim/replay/step_counts.h"
#include "sim/replay/transfers.h"
#include "topologies/machine.h"

namespace convoy::inline replays {

/// Executes a plan's Service between classes: receives the clients' pushes, adds them up, and answers by its
/// rule.
class ParameterServers {
 public:
  ParameterServers(const Plan& plan, const Machine& machine, const FlowTable& table, const Folding& folding,
                   Engine& engine, Transfers& transfers, MessageListener& listener, ServiceLog* log);

  /// Capacities (bytes/s) of the links that stand for the CPUs of servers; in the engine, they follow those
  /// of the folding.
  static std::vector<double> adder_capacities(const Plan& plan, const Machine& machine,
                                              const Folding& folding);

  /// A client begins a step: its pushes are computed from the parameters that it has now.
  void begin_step(std::uint32_t client_class);
  /// Called when it is the turn of a send or receive of the client's program.
  void start(std::uint32_t client_class, TaskId id, Task::Kind kind, CommId comm);

  /// Version of the parameters of a client that is between two steps, counted in updates by quorum.
  std::uint64_t version(std::uint32_t client_class) const { return clients_[client_class].next_version; }
  /// Time for which the CPUs of a server have been adding up.
  double adding_s(std::uint32_t server_class, double now_s) const;
  /// Staleness of the gradients applied in a stretch of time; max_lead since the beginning.
  StalenessResult staleness(double from_s, double until_s) const;

 private:
  static constexpr std::uint32_t none = Folding::none;
  /// Equal messages from clients to a server, and back.
  struct Connection {
    std::uint32_t client, server;          ///< endpoint classes
    std::uint32_t push, pull;              ///< classes of their routes
    std::uint32_t arrivals;                ///< how many reach one server
    std::uint32_t adding = Folding::none;  ///< route of their addition; none: it takes no time
    double push_fraction = 0, pull_fraction = 0;
  };
  /// One exchange over one connection, with the state that the server has of it. Those of a client are consecutive,
  /// exchange by exchange, since it is these that an event finds in the processor's caches, and not those of
  /// other clients.
  struct Channel {
    std::uint32_t served, connection;
    std::uint64_t steps = 0;  ///< steps pushed; or the version from which the push under way was computed
    /// Its last push, and the push that was applied when that was answered: positions in ServedExchange::pushes.
    std::uint32_t applied = none, answered = none;
  };
  /// An update by the push of a client. An answer is sent at the moment of an update of the same exchange.
  struct Push {
    double applied_at_s;
    std::uint32_t
        answered;  ///< the update at whose moment its parameters had been sent; none: they are the first
    std::uint32_t members : 31;  ///< of the connection at one server
    bool waited : 1;             ///< the answer had to wait
  };
  /// One exchange on one class of servers.
  struct ServedExchange {
    double push_bytes = 0, pull_bytes = 0, added_bytes = 0;  ///< of the exchange, as Communication::bytes
    std::uint32_t exchange = 0, server = 0;                  ///< server: endpoint class
    std::vector<std::uint32_t> waiting;                      ///< channels whose answer waits
    StepCounts steps;                                        ///< of channels (max_lead)
    std::uint64_t released_at = 0;  ///< their smallest number of steps at the last check of all that wait
    std::uint64_t version = 0;
    std::uint32_t counted = 0;  ///< pushes made from `version`
    std::deque<Push> pushes;    ///< in the order in which they are applied
  };
  /// One exchange as a client class sees it.
  struct ExchangeProgress {
    std::uint32_t first_channel = 0, channel_count = 0;
    std::uint32_t to_deliver = 0;
    std::uint32_t to_receive : 31 = 0;
    std::uint32_t receive_started : 1 = 0;
  };
  /// The tasks of an exchange in the program of a role.
  struct ExchangeTasks {
    TaskId send = 0, receive = 0;
  };

  struct Client {
    std::uint32_t first_exchange = none;  ///< in exchange_progress_, exchange by exchange; none: no client
    std::uint32_t first_tasks = none;     ///< in exchange_tasks_, as well
    std::uint64_t version = 0;                ///< version with which the current step began
    std::uint64_t next_version = 0;           ///< version in the answers so far in this step
    std::uint64_t steps = 0;                  ///< steps whose gradients have all been applied
    std::size_t left = 0;  ///< gradients of the current step that have not been applied yet
  };

  ExchangeProgress& progress(std::uint32_t client_class, std::size_t exchange) {
    return exchange_progress_[clients_[client_class].first_exchange + exchange];
  }
  std::span<ExchangeProgress> exchanges_of(const Client& client) {
    if (client.first_exchange == none) return {};
    return {exchange_progress_.data() + client.first_exchange, service_.exchanges.size()};
  }
  using ConnectionsByServer = std::map<std::uint32_t, std::vector<std::uint32_t>>;
  ConnectionsByServer find_connections(std::uint32_t push_pattern, const FlowTable& table,
                                       const std::vector<std::uint32_t>& way_back);
  void list_tasks(const Plan& plan);
  void add_exchanges(const Plan& plan, const std::map<std::uint32_t, ConnectionsByServer>& by_pattern);
  void count_first_steps();
  void send(std::uint32_t client_class, std::size_t exchange);
  void arrive(std::uint32_t channel);
  void apply(std::uint32_t channel);
  /// The arrival of a push.
  struct Arrival {
    ParameterServers* servers;
    std::uint32_t channel, progress;
    void operator()() { servers->arrive(channel); }
    void fetch() const {
      fetch_soon(servers->channels_[channel]);
      fetch_soon(servers->exchange_progress_[progress]);
    }
  };
  /// The arrival of an answer.
  struct Answered {
    ParameterServers* servers;
    std::uint32_t client, progress;
    void operator()() { servers->receive(client, progress); }
    void fetch() const { fetch_soon(servers->exchange_progress_[progress]); }
  };
  void receive(std::uint32_t client_class, std::uint32_t progress);
  void count_push(std::uint32_t client_class);
  bool may_go_on(const ServedExchange& served, const Channel& channel) const;
  void release(ServedExchange& served);
  void answer(std::uint32_t channel);
  void log(ServiceLog::Event::Kind kind, const Channel& channel) {
    if (log_) add_to_log(kind, channel);
  }
  void add_to_log(ServiceLog::Event::Kind kind, const Channel& channel);

  const Service& service_;
  const Folding& folding_;
  Engine& engine_;
  Transfers& transfers_;
  MessageListener& listener_;
  ServiceLog* log_;  ///< may be nullptr
  std::vector<Connection> connections_;
  std::vector<ServedExchange> served_;
  LargeVector<Channel> channels_;
  LargeVector<ExchangeProgress> exchange_progress_;
  std::vector<ExchangeTasks> exchange_tasks_;  ///< by role and exchange
  std::vector<std::size_t> exchange_of_;  ///< by communication
  std::vector<Client> clients_;           ///< by endpoint class; others have none
  StepCounts steps_;                      ///< of clients
  std::uint64_t max_lead_ = 0;
  std::unordered_map<std::uint32_t, std::uint32_t> adder_;  ///< link by server class; absent: takes no time
  std::unordered_map<std::uint32_t, BusyTime> adding_;      ///< by server class
  std::vector<std::uint32_t> members_;                      ///< by endpoint class
};

}  // namespace convoy::replays
