// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

namespace convoy {

/// A stretch of time on a thread of the trace.
struct TraceSpan {
  std::string name;
  double start_s = 0, end_s = 0;
};

/// One stream of a device or host. Its spans are ordered by start and nest properly or do not overlap.
struct TraceThread {
  std::string name;  ///< "gpu0 compute"
  std::vector<TraceSpan> spans;
};

/// A host with its streams.
struct TraceProcess {
  std::string name;
  std::vector<TraceThread> threads;
};

/// Writes trace.json: Chrome's trace event format (JSON object form, complete events, times in microseconds),
/// which Perfetto and chrome://tracing load. Processes are written as they come.
class TraceWriter {
 public:
  explicit TraceWriter(std::ostream& out);
  ~TraceWriter();
  void add(const TraceProcess& process);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace convoy
