// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
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

/// The times at which something will have at least one user, as far as users are known before their time has come.
class ForeseenUses {
 public:
  void add(double begin_s, double end_s) {
    std::size_t place = stretches_.size();  // of the first that begins later
    while (place > next_ + (has_begun_ ? 1 : 0) && stretches_[place - 1].begin_s > begin_s) --place;
    if (place > next_ && stretches_[place - 1].end_s >= begin_s) {
      --place;
      stretches_[place].end_s = std::max(stretches_[place].end_s, end_s);
    } else if (place < stretches_.size() && stretches_[place].begin_s <= end_s) {
      stretches_[place].begin_s = begin_s;
      stretches_[place].end_s = std::max(stretches_[place].end_s, end_s);
    } else {
      stretches_.insert(at(place), {begin_s, end_s});
    }
    std::size_t after = place + 1;  // those that it reaches are of one stretch with it
    for (; after < stretches_.size() && stretches_[after].begin_s <= stretches_[place].end_s; ++after)
      stretches_[place].end_s = std::max(stretches_[place].end_s, stretches_[after].end_s);
    if (after > place + 1) stretches_.erase(at(place + 1), at(after));
  }
  /// Forgets what is over by now. Calls `change(at_s, begins)` for each beginning and end up to now, in their order.
  template <class Change>
  void take(double now_s, Change change) {
    for (; next_ < stretches_.size(); ++next_) {
      const Stretch& stretch = stretches_[next_];
      if (!has_begun_ && stretch.begin_s > now_s) break;
      if (!std::exchange(has_begun_, true)) change(stretch.begin_s, true);
      if (stretch.end_s > now_s) break;
      change(stretch.end_s, false);
      has_begun_ = false;
    }
    if (next_ == 0 || 2 * next_ < stretches_.size()) return;
    stretches_.erase(stretches_.begin(), at(next_));
    next_ = 0;
  }

 private:
  struct Stretch {
    double begin_s, end_s;
  };
  std::vector<Stretch>::iterator at(std::size_t place) {
    return stretches_.begin() + static_cast<std::ptrdiff_t>(place);
  }

  std::vector<Stretch> stretches_;  ///< by time; they do not touch each other
  std::size_t next_ = 0;            ///< those before it are over
  bool has_begun_ = false;          ///< the next one
};

/// Busy time of link classes, and of ports (both directions of a cable; Link::port) by classes of equal
/// ports.
class LinkClock {
 public:
  LinkClock(const Machine& machine, const Folding& folding);
  /// @param route_class of the flow
  void flow_begins(std::uint32_t route_class, double now_s);
  void flow_ends(std::uint32_t route_class, double now_s);
  /// A flow that will be there between these times. @pre no other flow is on its links meanwhile
  void flow_foreseen(std::uint32_t route_class, double begin_s, double end_s, double now_s);
  /// Counts everything that has been foreseen.
  void take_foreseen();
  /// Calls `use` with the clock, below size(), of every link and port of a class of routes; a clock may
  /// occur more than once.
  template <class Use>
  void for_each(std::uint32_t route_class, Use use) const {
    for (std::uint32_t i = first_of_route_[route_class]; i < first_of_route_[route_class + 1]; ++i)
      use(of_route_[i]);
  }
  /// How many clocks these are.
  std::size_t count(std::uint32_t route_class) const {
    return first_of_route_[route_class + 1] - first_of_route_[route_class];
  }
  std::size_t size() const { return is_port_.size(); }
  /// Adds busy time of a link or port that nobody uses now.
  void add(std::uint32_t clock, double time_s) { clock_of(clock).add(time_s); }

  std::vector<double> link_busy_s(double now_s) const;  ///< by link class
  std::vector<double> port_busy_s(double now_s) const;  ///< by Link::port

 private:
  void take_foreseen_of_route(std::uint32_t route_class, double now_s);
  void take_foreseen(std::uint32_t clock, double now_s);
  BusyTime& clock_of(std::uint32_t clock) {
    if (clocks_.empty()) [[unlikely]]
      clocks_.resize(size());
    return clocks_[clock];
  }
  double total_s(std::uint32_t clock, double now_s) const {
    return clocks_.empty() ? 0 : clocks_[clock].total_s(now_s);
  }

  /// Of classes of equal ports, each after those of its link classes; empty: nobody has used any yet.
  std::vector<BusyTime> clocks_;
  std::vector<std::uint32_t> link_clock_;                 ///< by link class
  std::vector<std::uint32_t> port_clock_;                 ///< by port
  std::vector<std::uint32_t> first_of_route_, of_route_;  ///< clocks by class of routes, all in one vector
  std::vector<bool> is_port_;                             ///< by clock
  std::vector<ForeseenUses> foreseen_;                    ///< by clock, of ports; empty: nothing ever was
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
  /// A message that will be under way between these times.
  void message_foreseen(double begin_s, double end_s, double now_s) {
    take_foreseen(now_s);
    foreseen_.add(begin_s, end_s);
  }
  /// Counts what has been foreseen up to now.
  void take_foreseen(double now_s) {
    foreseen_.take(now_s, [&](double at_s, bool begins) {
      pass(at_s);
      begins ? ++messages_ : --messages_;
      has_begun_ = true;
    });
  }
  const DeviceTimes& times() const { return times_; }  ///< up to the last call of one of the functions above

  void advance(double now_s) {
    take_foreseen(now_s);
    pass(now_s);
  }

 private:
  void pass(double now_s) {
    const double passed_s = now_s - last_s_;
    if (computing_) {
      times_.compute_s += passed_s;
      if (has_begun_) (messages_ > 0 ? times_.comm.hidden_s : times_.comm.slack_s) += passed_s;
    } else if (messages_ > 0) {
      times_.comm.exposed_s += passed_s;
    }
    last_s_ = now_s;
  }

  bool computing_ = false, has_begun_ = false;
  std::uint32_t messages_ = 0;
  double last_s_ = 0;
  DeviceTimes times_;
  ForeseenUses foreseen_;
};

}  // namespace convoy::replays
