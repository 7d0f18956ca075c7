// SPDX-License-Identifier: MIT
#include "sim/run/wire.h"

#include <array>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "sim/results/field_text.h"

namespace convoy::inline runs {
namespace {

constexpr auto span_fields = [](auto& archive, auto& span) {
  archive.field("name", span.name);
  archive.field("start_s", span.start_s);
  archive.field("end_s", span.end_s);
  archive.field("flops", span.flops);
  archive.field("memory_bytes", span.memory_bytes);
  archive.field("images", span.images);
  archive.field("bytes", span.bytes);
  archive.field("critical", span.critical);
  archive.field("shape", span.shape);
};

constexpr auto arrow_fields = [](auto& archive, auto& end) {
  archive.field("id", end.id);
  archive.field("thread", end.thread);
  archive.field("time_s", end.time_s);
  archive.field("begins", end.begins);
};

constexpr auto thread_fields = [](auto& archive, auto& thread) {
  archive.field("name", thread.name);
  archive.list("spans", thread.spans, span_fields);
};

constexpr auto memory_point_fields = [](auto& archive, auto& point) {
  archive.field("time_s", point.time_s);
  archive.memory("bytes", point.bytes);
};

constexpr auto memory_fields = [](auto& archive, auto& memory) {
  archive.field("name", memory.name);
  archive.list("points", memory.points, memory_point_fields);
};

constexpr auto traffic_fields = [](auto& archive, auto& point) {
  archive.field("time_s", point.time_s);
  archive.field("sent_Bps", point.sent_Bps);
  archive.field("received_Bps", point.received_Bps);
};

constexpr auto process_fields = [](auto& archive, auto& process) {
  archive.field("name", process.name);
  archive.list("threads", process.threads, thread_fields);
  archive.list("memory", process.memory, memory_fields);
  archive.list("traffic", process.traffic, traffic_fields);
  archive.list("arrows", process.arrows, arrow_fields);
  archive.field("left_out", process.left_out);
};

constexpr auto trace_fields = [](auto& archive, auto& trace) {
  archive.list("processes", trace, process_fields);
};

constexpr auto assessment_fields = [](auto& archive, auto& assessment) {
  archive.field("label", assessment.label);
  archive.field("images", assessment.images);
  archive.field("step_bound_s", assessment.step_bound_s);
  archive.field("input_step_s", assessment.input_step_s);
  archive.field("running_s", assessment.running_s);
  archive.field("energy_bound_j", assessment.energy_bound_j);
  archive.field("bound_text", assessment.bound_text);
  archive.nullable("price_usd_per_h", assessment.price_usd_per_h);
  archive.nullable("samples", assessment.samples);
  archive.field("peak_bytes", assessment.peak_bytes);
  archive.field("process_bytes", assessment.process_bytes);
  archive.field("fits", assessment.fits);
  archive.field("fullest", assessment.fullest);
  archive.field("fullest_size_bytes", assessment.fullest_size_bytes);
};

template <class T, class Fields>
T read_or_throw(const std::string& text, Fields fields) {
  try {
    return from_text<T>(text, fields);
  } catch (const JsonError& error) {
    throw UnreadableRun(std::string("a stored run cannot be read: ") + error.what());
  }
}

}  // namespace

StoredRun stored_form(const RunOutput& output, bool with_trace) {
  return {to_text(output.result, run_body_fields), output.result.network_model,
          with_trace ? to_text(output.trace, trace_fields) : std::string{}};
}

RunResult run_of_stored(const StoredRun& run) {
  RunResult result = read_or_throw<RunResult>(run.result, run_body_fields);
  result.network_model = run.network_model;
  return result;
}

std::vector<TraceProcess> trace_of_stored(const StoredRun& run) {
  if (run.trace.empty()) return {};
  return read_or_throw<std::vector<TraceProcess>>(run.trace, trace_fields);
}

// JSON has no zero byte in it, and a network's model is a name.
std::string encode(const StoredRun& run) {
  const std::array parts{&run.network_model, &run.trace, &run.result};
  std::string bytes;
  bytes.reserve(std::accumulate(parts.begin(), parts.end(), parts.size(),
                                [](std::size_t sum, const std::string* part) { return sum + part->size(); }));
  for (const std::string* part : parts) (bytes += *part) += '\0';
  return bytes;
}

// The result, which may be most of the memory of a process, stays where it is.
StoredRun decode_stored(std::string bytes) {
  StoredRun run;
  std::size_t at = 0;
  const auto next = [&] {
    const std::size_t begin = at, end = bytes.find('\0', at);
    if (end == std::string::npos) throw std::runtime_error("a worker's answer is cut short");
    at = end + 1;
    return std::string_view(bytes).substr(begin, end - begin);
  };
  run.network_model = next();
  run.trace = next();
  const std::size_t begin = at;
  next();
  bytes.resize(at - 1);
  bytes.erase(0, begin);
  run.result = std::move(bytes);
  return run;
}

std::string encode(const RunOutput& output) { return encode(stored_form(output, true)); }
RunOutput decode_output(std::string bytes) {
  const StoredRun run = decode_stored(std::move(bytes));
  return {run_of_stored(run), trace_of_stored(run)};
}

std::string encode(const Assessment& assessment) { return to_text(assessment, assessment_fields); }
Assessment decode_assessment(const std::string& bytes) {
  return read_or_throw<Assessment>(bytes, assessment_fields);
}

}  // namespace convoy::runs
