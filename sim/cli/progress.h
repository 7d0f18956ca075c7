// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

namespace convoy::inline cli {

/// How far a long command is, on standard error: one line in place on a terminal, a line a minute where
/// "plain" is asked for, else nothing.
class Progress {
 public:
  enum class Style { automatic, plain, none };
  /// @param what "simulating"
  Progress(Style style, std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Begins to count anew where `what` is another than before: done and rate are of this part.
  void begin(const std::string& what);

  /// @param label names what is being computed, where there is more to say; called only where it is shown
  void operator()(
      std::size_t done, std::size_t all,
      const std::function<std::string()>& label = [] { return std::string(); });

 private:
  using Clock = std::chrono::steady_clock;
  std::string line(std::size_t done, std::size_t all, const std::string& label) const;

  bool terminal_, plain_;
  std::string what_;
  Clock::time_point begun_ = Clock::now(), shown_{};
  bool drawn_ = false;
};

/// "0:07", "12:30", "3:04:05"
std::string clock_text(double seconds);

}  // namespace convoy::cli
