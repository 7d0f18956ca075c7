// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/costs/cost_model.h"
#include "sim/plan/plan.h"
#include "sim/replay/disturbances.h"
#include "sim/replay/engine.h"
#include "topologies/machine.h"

namespace convoy::inline replays {

/// What the servers of a Service and their clients did, in the order in which it happened.
struct ServiceLog {
  struct Event {
    enum class Kind : std::uint8_t {
      begin,   ///< the client begins a step, with the parameters of the answers to its last one
      add,     ///< the server has added up the client's gradients of the exchange
      update,  ///< the server updates the exchange's parameters with what it has added up since the last time
      answer,  ///< the server sends the client the exchange's parameters
    };
    Kind kind = Kind::begin;
    double time_s = 0;
    EndpointId client = 0, server = 0;  ///< server: of the other kinds than begin; client: not of update
    std::uint32_t exchange = 0;         ///< index into Service::exchanges
  };
  std::vector<Event> events{};
  /// Clients go on until all together have done so many steps, even if the measurement is over before.
  std::uint64_t steps_wanted = 0;
};

struct ReplayOptions {
  bool fold =
      true;  ///< simulate one of each class of equal devices and flows; exact, so `false` is for tests only
  NetworkModel network_model = NetworkModel::convoy;
  Disturbances disturbances{};  ///< with NetworkModel::convoy
  /// Gets the events of a plan with a service, from the first step on. @pre nothing is folded
  ServiceLog* service_log = nullptr;
};

/// When a task of a program ran. A collective starts when its messages do, not when its rank is ready for it.
struct TaskTimes {
  double start_s = 0, end_s = 0;
};

/// What all endpoints of one class did: the program of their role with its times. For clients of a service:
/// one step, with times from the beginning of the measurement.
struct Timeline {
  std::uint32_t role = 0;
  EndpointId representative = 0;
  std::vector<TaskTimes> tasks;  ///< by task of the role's program
};

/// What one endpoint did in the step.
struct EndpointUsage {
  double compute_s = 0;     ///< computing, without waiting for the last of many devices (Role::slowdown)
  double issue_wait_s = 0;  ///< of compute_s, while the host had not yet issued the next operation
  double running_s() const { return compute_s - issue_wait_s; }
  double exposed_comm_s =
      0;  ///< not computing while a message to or from it, or its collective's overhead, was under way
  double hidden_comm_s = 0;  ///< messages under way while it computed
  double comm_slack_s =
      0;             ///< computing since its first message while none was under way: slower messages fit in
  double end_s = 0;  ///< end of its last task
  double sent_bytes = 0, received_bytes = 0;
  double peak_memory_bytes = 0;
  std::array<double, memory_class_count> memory_at_peak{};
};

/// What all endpoints did. Those of a class (Timeline) compute and wait alike, and all this is kept once for them; what they
/// sent and received is kept for each, since endpoints of a class whose ranks proceed in step may differ in it.
class EndpointUsages {
 public:
  static constexpr std::uint32_t no_class = 0xffffffff;

  EndpointUsages() = default;
  /// @param class_of by endpoint; no_class: it has no role, and does nothing
  /// @param of_class without the bytes
  EndpointUsages(std::vector<std::uint32_t> class_of, std::vector<EndpointUsage> of_class)
      : class_of_(std::move(class_of)), of_class_(std::move(of_class)), bytes_(class_of_.size()) {}

  std::size_t size() const { return class_of_.size(); }
  EndpointUsage operator[](std::size_t endpoint) const {
    const std::uint32_t c = class_of_[endpoint];
    EndpointUsage usage = c == no_class ? EndpointUsage() : of_class_[c];
    usage.sent_bytes = bytes_[endpoint].sent;
    usage.received_bytes = bytes_[endpoint].received;
    return usage;
  }
  struct Iterator {
    const EndpointUsages* usages;
    std::size_t endpoint;
    EndpointUsage operator*() const { return (*usages)[endpoint]; }
    Iterator& operator++() { return ++endpoint, *this; }
    bool operator==(const Iterator&) const = default;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }
  /// By class, without the bytes.
  std::vector<EndpointUsage>& of_class() { return of_class_; }
  void add_sent(std::size_t endpoint, double bytes) { bytes_[endpoint].sent += bytes; }
  void add_received(std::size_t endpoint, double bytes) { bytes_[endpoint].received += bytes; }

 private:
  struct Bytes {
    double sent = 0, received = 0;
  };
  std::vector<std::uint32_t> class_of_;
  std::vector<EndpointUsage> of_class_;
  std::vector<Bytes> bytes_;
};

struct LinkUsage {
  double bytes = 0;
  double busy_s = 0;  ///< at least one message under way over it
};

/// How many updates by others the parameters from which a gradient was computed had missed when it was
/// applied, over the gradients of the measurement, tensors and servers. Updates at exactly the moment at
/// which the parameters were sent or the gradient was applied count half, since either order is possible.
struct StalenessResult {
  double mean = 0, max = 0;
  std::uint64_t max_lead = 0;  ///< pushed steps by which a worker was ahead of the slowest when it began one
};

/// For a plan with a service, "the step" is the mean over the measured steps, for the time in which a global
/// batch is learnt from.
struct ReplayResult {
  double step_time_s = 0;
  EndpointUsages endpoints;  ///< devices, then hosts
  std::vector<LinkUsage> links;
  std::vector<double> port_busy_s;  ///< by Link::port: either direction busy
  double comm_bytes = 0;            ///< payload, each message once however many hops; nothing within a place
  std::vector<Timeline> timelines;  ///< one for each class of equal endpoints
  std::vector<std::uint32_t>
      timeline_of;  ///< by endpoint: index into timelines, or no_timeline (it has no role)
  static constexpr std::uint32_t no_timeline = 0xffffffff;
  std::size_t simulated_flows = 0;           ///< flow classes
  std::optional<StalenessResult> staleness;  ///< of a plan with a service
  /// Of a plan with a service whose steps are not all equal: half of the 95 % interval of the measured mean, as a
  /// share of step_time_s.
  double doubt = 0;
  std::vector<double> pace;  ///< of such a plan by endpoint: how often its program runs in a step
  /// The part of the step in which devices only wait for images, and the host for which they wait.
  double input_wait_s = 0;
  std::uint32_t input_host = 0;
};

/// By pattern of a plan: whether it has the answers of a service. They are sent as often as those do steps who get
/// them, all other messages as often as those who send them.
std::vector<bool> patterns_of_answers(const Plan& plan);

/// Replays one step of `plan` on `machine` with SimGrid. What a plan leaves out (RepeatedTasks) is taken from the
/// periods that it lists where the replay repeats itself (repeated_periods.h), and is listed otherwise: as much
/// more as that takes, and all where something disturbs the machine or SimGrid's own model is asked. Timelines
/// are of the listed tasks of the given plan or, as the case may be, of the longer one. A process can run one replay at a time; several may
/// follow one another, in any order with the same bits. Exact alpha-beta links with max-min sharing.
/// @throws std::runtime_error that names the blocked tasks if the plan cannot finish.
ReplayResult replay(const Plan& plan, const Machine& machine, const CostModel& cost,
                    const ReplayOptions& options);

/// A stretch of time in which an endpoint ran one operation or took part in one communication.
struct Span {
  std::string name;
  int stream;  ///< index into the role's streams, or Task::no_stream
  bool compute;
  double start_s, end_s;
  TaskId task = 0;             ///< of the role's program
  const PlanOp* op = nullptr;  ///< of the plan: what it computes on a device; else nullptr
};

/// What `endpoint` did in the step, operation by operation, ordered by stream and start. Spans of a stream do
/// not overlap.
std::vector<Span> spans_of(const ReplayResult& result, const Plan& plan, const Machine& machine,
                           const CostModel& cost, EndpointId endpoint);

struct MemoryPoint {
  double time_s;
  std::array<double, memory_class_count> bytes;
};

/// Memory of `endpoint` by class over the step: the level from each point's time on.
std::vector<MemoryPoint> memory_of(const ReplayResult& result, const Plan& plan, const Machine& machine,
                                   const CostModel& cost, EndpointId endpoint);

}  // namespace convoy::replays
