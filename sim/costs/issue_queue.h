// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace convoy::inline costs {

/// The time that a sequence of operations takes on a device and on the host thread that issues them. Together
/// with the end of what comes before, these values determine when the sequence ends (IssueQueue), and two
/// consecutive sequences combine into one (`then`). So this is the price of a set of operations, wherever in
/// a step they are.
struct QueuedTime {
  double device_s = 0;  ///< time on the device if it waits for nothing
  double issue_s = 0;   ///< time of the host
  /// Time from when the host reaches the first operation to the end of the last one, on a device that has
  /// nothing else to do: max over operations of (issue up to it + device time from it on). -infinity: nothing
  /// runs.
  double alone_s = -std::numeric_limits<double>::infinity();

  /// The time of one operation. If it takes no time on the device (a view, a layer without work), nothing has
  /// to wait for it either.
  static QueuedTime operation(double issue_s, double device_s);
  /// Appends the operations of `next`.
  void then(const QueuedTime& next);
};

/// A host thread that issues operations one after the other, ahead of the device that runs them in order:
/// each starts at the later of "issued" and "the one before it is done". The thread waits for nothing.
class IssueQueue {
 public:
  /// @param begin_s when the host begins to issue: what it does of its own in a step comes before
  explicit IssueQueue(double begin_s = 0) : issued_s_(begin_s) {}
  void run(const QueuedTime& operations) {
    end_s_ = std::max(end_s_ + operations.device_s, issued_s_ + operations.alone_s);
    issued_s_ += operations.issue_s;
  }
  /// @param issue_s host time to issue the operation  @param device_s time for which it runs
  void run(double issue_s, double device_s) { run(QueuedTime::operation(issue_s, device_s)); }
  /// The device does nothing until then; the host continues.
  void wait_until(double time_s) { end_s_ = std::max(end_s_, time_s); }
  double issued_s() const { return issued_s_; }
  double end_s() const { return end_s_; }

 private:
  double issued_s_, end_s_ = 0;
};

/// QueuedTime of any part of a sequence, in constant time.
class QueuedSequence {
 public:
  enum class Order : bool { ascending, descending };
  QueuedSequence() = default;  ///< without parts
  /// @param parts parts of the sequence  @param order the order in which they run
  QueuedSequence(const std::vector<QueuedTime>& parts, Order order);
  /// The time of parts [begin, end). @pre begin <= end
  QueuedTime of(std::size_t begin, std::size_t end) const;

 private:
  Order order_ = Order::ascending;
  std::vector<double> device_before_s_{0}, issue_before_s_{0};  ///< of all parts before a part
  /// Indexed by power of two and part: the largest lag among that many parts, starting with this one. The lag
  /// of a part is by how much its last operation ends later than the device alone would end it, apart from
  /// what the range adds to all of its parts.
  std::vector<std::vector<double>> largest_lag_s_;
};

/// A stretch of operations in such a queue, for any time at which the device reaches it.
class IssuedStretch {
 public:
  /// @param issued_s when the host has issued everything before the stretch, from the beginning of the step
  explicit IssuedStretch(double issued_s = 0) : issued_s_(issued_s) {}
  void add(double issue_s, double device_s);
  /// Appends operations that are not looked at one by one: where the same ones come before and after them, so that
  /// the device waits longest for the first or the last of all.
  void skip(double issue_s, double device_s) { issued_s_ += issue_s, device_s_ += device_s; }
  /// Time on the device if it never waits.
  double device_s() const { return device_s_; }
  double issued_s() const { return issued_s_; }  ///< when the host has issued the stretch as well
  /// When the last operation ends, from the beginning of the step: max(start + device, max over operations of
  /// (issued + device time from it on)).
  /// @param start_s when the device comes to it, from the beginning of the step
  /// @param slowness operations take so many times as long on this device; the host does not
  /// @param done_s of device_s, which has been done when the device comes to it
  double end_s(double start_s, double slowness = 1, double done_s = 0) const;
  /// How much of device_s has been done at until_s, where done_s of it has been at start_s.
  double done_s(double start_s, double done_s, double until_s, double slowness) const;

 private:
  struct Operation {
    double issued_s, before_s;  ///< before_s: device time of the stretch before it
  };
  /// The first of `issued_` that has not begun when so much of device_s has been done.
  std::vector<Operation>::const_iterator first_after(double done_s) const;

  std::vector<Operation> issued_;  ///< those that the device may have to wait for, in order
  double issued_s_, device_s_ = 0;
};

}  // namespace convoy::costs
