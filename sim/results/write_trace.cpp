// SPDX-License-Identifier: MIT
#include "sim/results/write_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/results/json_writer.h"

namespace convoy::inline results {

class TraceWriter::Impl {
 public:
  explicit Impl(std::ostream& out) : json_(out) {
    json_.begin_object();
    json_.field("displayTimeUnit", "ms");
    json_.key("traceEvents");
    json_.begin_array();
  }
  ~Impl() {
    json_.end_array();
    json_.end_object();
    json_.raw("\n");
  }

  void add(const TraceProcess& process) {
    ++pid_;
    metadata("process_name", 0, process.name);
    for (std::size_t t = 0; t < process.threads.size(); ++t) {
      const auto tid = static_cast<std::int64_t>(t) + 1;
      metadata("thread_name", tid, process.threads[t].name);
      for (const TraceSpan& span : process.threads[t].spans) complete(tid, span);
    }
    for (const TraceMemory& memory : process.memory)
      for (const TraceMemoryPoint& point : memory.points) counter(memory.name, point);
    for (const TraceTrafficPoint& point : process.traffic) counter(point);
    for (const TraceArrowEnd& end : process.arrows) arrow(end);
    if (process.left_out > 0) left_out(process.left_out);
  }

  void begin_run() { first_arrow_ = next_arrow_; }

 private:
  void begin(const char* phase, std::int64_t tid, std::string_view name) {
    json_.begin_object(JsonWriter::Style::compact);
    json_.field("ph", phase);
    json_.field("pid", pid_);
    json_.field("tid", tid);
    json_.field("name", name);
  }

  void metadata(std::string_view what, std::int64_t tid, const std::string& name) {
    begin("M", tid, what);
    json_.key("args");
    json_.begin_object();
    json_.field("name", name);
    json_.end_object();
    json_.end_object();
  }

  void complete(std::int64_t tid, const TraceSpan& span) {
    begin("X", tid, span.name);
    // Whole nanoseconds, so that a span that begins where another one ends does not look as if it were inside
    // it.
    const double start_ns = std::round(span.start_s * 1e9), end_ns = std::round(span.end_s * 1e9);
    json_.field("ts", start_ns / 1000);
    json_.field("dur", (end_ns - start_ns) / 1000);
    const bool computes = span.flops > 0 || span.memory_bytes > 0 || span.images > 0;
    if (computes || span.bytes > 0) json_.field("cat", computes ? "kernel" : "communication");
    if (span.critical) json_.field("cname", critical_colour);
    if (span.critical || computes || span.bytes > 0 || !span.shape.empty()) arguments(span);
    json_.end_object();
  }

  void arguments(const TraceSpan& span) {
    json_.key("args");
    json_.begin_object();
    if (span.flops > 0) json_.field("flops", span.flops);
    if (span.memory_bytes > 0) json_.field("memory_bytes", span.memory_bytes);
    if (span.images > 0) json_.field("images", span.images);
    if (span.bytes > 0) json_.field("bytes", span.bytes);
    if (span.critical) json_.field("critical", true);
    if (!span.shape.empty()) json_.field("shape", span.shape);
    json_.end_object();
  }

  void arrow(const TraceArrowEnd& end) {
    begin(end.begins ? "s" : "f", end.thread + 1, "waits for");
    json_.field("ts", std::round(end.time_s * 1e9) / 1000);
    json_.field("cat", "dependency");
    json_.field("id", first_arrow_ + end.id);
    if (!end.begins) json_.field("bp", "e");  // at the span around this time, not at the next one
    json_.end_object();
    next_arrow_ = std::max(next_arrow_, first_arrow_ + end.id + 1);
  }

  void left_out(std::int64_t events) {
    begin("M", 0, "process_labels");
    json_.key("args");
    json_.begin_object();
    json_.field("labels", fmt::format("{} smaller events left out", events));
    json_.field("left_out", events);
    json_.end_object();
    json_.end_object();
  }

  void counter(const std::string& name, const TraceMemoryPoint& point) {
    begin("C", 0, name);
    json_.field("ts", std::round(point.time_s * 1e9) / 1000);
    json_.key("args");
    json_.begin_object();
    for (std::size_t c = 0; c < memory_class_count; ++c) json_.field(memory_class_names[c], point.bytes[c]);
    json_.end_object();
    json_.end_object();
  }

  void counter(const TraceTrafficPoint& point) {
    begin("C", 0, traffic_counter);
    json_.field("ts", std::round(point.time_s * 1e9) / 1000);
    json_.key("args");
    json_.begin_object();
    json_.field("sent_Bps", point.sent_Bps);
    json_.field("received_Bps", point.received_Bps);
    json_.end_object();
    json_.end_object();
  }

  JsonWriter json_;
  std::int64_t pid_ = 0, first_arrow_ = 0, next_arrow_ = 0;
};

TraceWriter::TraceWriter(std::ostream& out) : impl_(std::make_unique<Impl>(out)) {}
TraceWriter::~TraceWriter() = default;
void TraceWriter::begin_run() { impl_->begin_run(); }
void TraceWriter::add(const TraceProcess& process) { impl_->add(process); }

}  // namespace convoy::results
