// SPDX-License-Identifier: MIT
#pragma once

namespace convoy::inline runs {

/// During its lifetime, SIGINT and SIGTERM are recorded instead of ending the process; a second one ends it.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  /// The signal that was received, or 0.
  static int signal();
};

}  // namespace convoy::runs
