// SPDX-License-Identifier: MIT
#pragma once

namespace convoy::inline runs {

/// While it lives, SIGINT and SIGTERM are noted instead of ending the process; a second one ends it.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  /// The signal that came, or 0.
  static int signal();
};

}  // namespace convoy::runs
