// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/training_graph.h"

namespace convoy::inline results {

/// A stretch of time on a thread of the trace. What does not apply to it is 0.
struct TraceSpan {
  std::string name;
  double start_s = 0, end_s = 0;
  double flops = 0;         ///< floating-point operations of what it computes
  double memory_bytes = 0;  ///< that it reads from and writes to the device's memory
  double images = 0;        ///< that it computes on
  double bytes = 0;         ///< that this endpoint sends and receives in it
  bool critical = false;    ///< on the step's critical path
  std::string shape = {};   ///< of a convolution or product on this device: "64>256 1x1, 56x56"
};

/// One end of an arrow from a task to one that waits for it. The other end, with the same id, may be in another
/// process.
struct TraceArrowEnd {
  std::int64_t id = 0;
  std::int64_t thread = 0;  ///< index into TraceProcess::threads
  double time_s = 0;        ///< within a span of that thread
  bool begins = false;
};

/// One stream of a device or host. Its spans are ordered by start and nest properly or do not overlap.
struct TraceThread {
  std::string name;  ///< "gpu0 compute"
  std::vector<TraceSpan> spans;
};

/// Memory of a device from a time on.
struct TraceMemoryPoint {
  double time_s = 0;
  std::array<double, memory_class_count> bytes{};  ///< by class
};

/// A device's memory over the step, ordered by time.
struct TraceMemory {
  std::string name;  ///< "gpu0 memory"
  std::vector<TraceMemoryPoint> points;
};

/// What a host sends to and receives from others, in bytes per second, from a time on.
struct TraceTrafficPoint {
  double time_s = 0, sent_Bps = 0, received_Bps = 0;
};

/// A host with its streams.
struct TraceProcess {
  std::string name;
  std::vector<TraceThread> threads;
  std::vector<TraceMemory> memory = {};
  std::vector<TraceTrafficPoint> traffic = {};  ///< over the step, ordered by time; empty: none
  std::vector<TraceArrowEnd> arrows = {};
  std::int64_t left_out = 0;  ///< spans, points and ends of arrows that keep_largest took away
};

/// The most events that a run has in trace.json, beside names.
inline constexpr std::size_t most_trace_events = 250'000;

/// Takes the least of the events away where there are more than `most`: of half of `most` spans those on the
/// critical path stay, then the longest; of a quarter of `most` points of counters those at which a counter
/// changes most for its range; of arrows, a quarter of `most` ends, those whose both ends are in spans that
/// stay, the first ones. Each process tells how many it lost.
void keep_largest(std::vector<TraceProcess>& processes, std::size_t most = most_trace_events);

/// Name of the counter that shows TraceProcess::traffic.
inline constexpr std::string_view traffic_counter = "network";

/// The colour of spans on the critical path, by chrome://tracing's names.
inline constexpr std::string_view critical_colour = "terrible";

/// Writes trace.json in Chrome's trace event format (JSON object form, complete events, counters for memory and
/// traffic, and flow events for arrows; times in microseconds), which Perfetto and chrome://tracing load.
/// Categories are those of PyTorch's traces: "kernel" computes; "communication" here. Processes are written as
/// they come.
class TraceWriter {
 public:
  explicit TraceWriter(std::ostream& out);
  ~TraceWriter();
  /// What follows is of another run: its arrows' ids are others.
  void begin_run();
  void add(const TraceProcess& process);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace convoy::results
