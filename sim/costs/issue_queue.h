// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

namespace convoy::inline costs {

/// A host thread that issues operations one after the other, ahead of the device that runs them in order:
/// each starts at the later of "issued" and "the one before is done". The thread begins at time 0 and waits
/// for nothing.
class IssueQueue {
 public:
  /// @param issue_s host time that the operation's issue takes  @param device_s time it runs
  void run(double issue_s, double device_s) {
    // What is nothing to the device (a view, a layer without work) is nothing to wait for either.
    issued_s_ += issue_s;
    if (device_s <= 0) return;
    end_s_ = (issued_s_ > end_s_ ? issued_s_ : end_s_) + device_s;
  }
  double issued_s() const { return issued_s_; }
  double end_s() const { return end_s_; }

 private:
  double issued_s_ = 0, end_s_ = 0;
};

/// A stretch of operations of such a queue, for any time at which the device comes to it.
class IssuedStretch {
 public:
  /// @param issued_s when the host is done with what comes before the stretch, from the beginning of the step
  explicit IssuedStretch(double issued_s = 0) : issued_s_(issued_s) {}
  void add(double issue_s, double device_s);
  /// Time on the device where it never waits.
  double device_s() const { return device_s_; }
  double issued_s() const { return issued_s_; }  ///< when the host is done with the stretch, too
  /// When the last operation ends, from the beginning of the step: max(start + device, max over operations of
  /// (issued + device time from it on)).
  /// @param start_s when the device comes to it, from the beginning of the step
  /// @param slowness operations take so many times as long on this device; the host does not
  double end_s(double start_s, double slowness = 1) const;

 private:
  struct Operation {
    double issued_s, before_s;  ///< before_s: device time of the stretch before it
  };
  std::vector<Operation> issued_;  ///< those that the device may have to wait for
  double issued_s_, device_s_ = 0;
};

}  // namespace convoy::costs
