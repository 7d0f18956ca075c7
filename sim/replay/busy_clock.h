// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/replay/engine.h"
#include "sim/replay/fold.h"
#include "topologies/machine.h"

namespace convoy::inline replays {

/// The time during which something has at least one user.
class BusyTime {
 public:
  void enter(double now_s) {
    if (users_++ == 0) since_s_ = now_s;
  }
  void leave(double now_s) {
    if (--users_ == 0) total_s_ += now_s - since_s_;
  }
  void add(double time_s) { total_s_ += time_s; }
  double total_s(double now_s) const { return users_ > 0 ? total_s_ + (now_s - since_s_) : total_s_; }

 private:
  std::uint32_t users_ = 0;
  double since_s_ = 0, total_s_ = 0;
};

/// Busy time of link classes, and of ports (both directions of a cable; Link::port) by classes of equal
/// ports.
class LinkClock {
 public:
  LinkClock(const Machine& machine, const Folding& folding);
  void flow_begins(std::uint32_t flow_class, double now_s);
  void flow_ends(std::uint32_t flow_class, double now_s);
  /// Calls `use` with the clock, below size(), of every link and port that a flow class crosses; a clock may
  /// occur more than once.
  template <class Use>
  void for_each(std::uint32_t flow_class, Use use) const {
    for (std::uint32_t i = first_of_flow_[flow_class]; i < first_of_flow_[flow_class + 1]; ++i)
      use(of_flow_[i]);
  }
  std::size_t size() const { return clocks_.size(); }
  /// Adds busy time of a link or port that nobody uses now.
  void add(std::uint32_t clock, double time_s) { clocks_[clock].add(time_s); }

  std::vector<double> link_busy_s(double now_s) const;  ///< by link class
  std::vector<double> port_busy_s(double now_s) const;  ///< by Link::port

 private:
  std::vector<BusyTime> clocks_;  ///< of classes of equal ports, each after those of its link classes
  std::vector<std::uint32_t> link_clock_;               ///< by link class
  std::vector<std::uint32_t> port_clock_;               ///< by port
  std::vector<std::uint32_t> first_of_flow_, of_flow_;  ///< clocks by flow class, all in one vector
};

/// How the messages of an endpoint overlap with its computing, in seconds: messages under way while it does
/// not compute; messages under way while it does; and the time in which it computes without any message under
/// way after its first one, which slower messages could fill.
struct CommTimes {
  double exposed_s = 0, hidden_s = 0, slack_s = 0;
};

/// How an endpoint spends its time, in seconds.
struct DeviceTimes {
  double compute_s = 0;     ///< in compute tasks
  double issue_wait_s = 0;  ///< of compute_s, while the host had not yet issued the next operation
  CommTimes comm;
  double running_s() const { return compute_s - issue_wait_s; }
};
inline DeviceTimes operator-(const DeviceTimes& a, const DeviceTimes& b) {
  return {a.compute_s - b.compute_s,
          a.issue_wait_s - b.issue_wait_s,
          {a.comm.exposed_s - b.comm.exposed_s, a.comm.hidden_s - b.comm.hidden_s,
           a.comm.slack_s - b.comm.slack_s}};
}
inline DeviceTimes operator+(const DeviceTimes& a, const DeviceTimes& b) {
  return {a.compute_s + b.compute_s,
          a.issue_wait_s + b.issue_wait_s,
          {a.comm.exposed_s + b.comm.exposed_s, a.comm.hidden_s + b.comm.hidden_s,
           a.comm.slack_s + b.comm.slack_s}};
}
inline DeviceTimes operator*(const DeviceTimes& a, double factor) {
  return {a.compute_s * factor,
          a.issue_wait_s * factor,
          {a.comm.exposed_s * factor, a.comm.hidden_s * factor, a.comm.slack_s * factor}};
}

/// Splits an endpoint's time into computing, waiting for messages under way, and the rest.
class DeviceClock {
 public:
  /// @param issue_wait_s time for which the starting task will wait for its host
  void compute_begins(double now_s, double issue_wait_s = 0) {
    advance(now_s), computing_ = true;
    times_.issue_wait_s += issue_wait_s;
  }
  /// @param more_wait_s by how much longer than that it has waited
  void compute_ends(double now_s, double more_wait_s = 0) {
    advance(now_s), computing_ = false;
    times_.issue_wait_s += more_wait_s;
  }
  void message_begins(double now_s) { advance(now_s), ++messages_, has_begun_ = true; }
  void message_ends(double now_s) { advance(now_s), --messages_; }
  const DeviceTimes& times() const { return times_; }  ///< up to the last call of one of the functions above

  void advance(double now_s) {
    const double passed_s = now_s - last_s_;
    if (computing_) {
      times_.compute_s += passed_s;
      if (has_begun_) (messages_ > 0 ? times_.comm.hidden_s : times_.comm.slack_s) += passed_s;
    } else if (messages_ > 0) {
      times_.comm.exposed_s += passed_s;
    }
    last_s_ = now_s;
  }

 private:
  bool computing_ = false, has_begun_ = false;
  std::uint32_t messages_ = 0;
  double last_s_ = 0;
  DeviceTimes times_;
};

}  // namespace convoy::replays
