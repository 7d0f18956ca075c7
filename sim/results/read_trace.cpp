// SPDX-License-Identifier: MIT
#include "sim/results/read_trace.h"

#include <fmt/format.h>

#include <cmath>
#include <istream>

#include "sim/base/input_error.h"
#include "sim/results/json_reader.h"

namespace convoy::inline results {
namespace {

/// Receives the events of a trace in their order: the name of a process, then its threads one by one, each
/// before its spans, then its counters.
class TraceReader {
 public:
  explicit TraceReader(const std::function<bool(const std::string& name)>& wanted) : wanted_(wanted) {}

  std::vector<TraceProcess> processes;

  void take(const JsonPlace& place, const Json& value) {
    JsonObject event(value, place);
    const std::string phase = text(event, "ph");
    whole(event, "pid");
    const double thread = whole(event, "tid");
    const std::string name = text(event, "name");
    if (phase == "M")
      metadata(event, name);
    else if (phase == "X")
      span(event, name, thread);
    else if (phase == "C")
      counter(event, name);
    else if (phase == "s" || phase == "f")
      arrow(event, thread, phase == "s");
    else
      throw JsonError(place, fmt::format("an event of kind '{}' is not convoy's", phase));
    event.finish();
  }

 private:
  static std::string text(JsonObject& object, std::string_view name) {
    const Json& value = object.get(name);
    if (!value.is_string())
      throw JsonError({&object.place(), name}, fmt::format("expected text, not {}", kind_of(value)));
    return value.get<std::string>();
  }
  static double number(JsonObject& object, std::string_view name) {
    const Json& value = object.get(name);
    const bool good = value.is_number() && value.get<double>() >= 0 && value.get<double>() <= 1e100;
    if (!good) throw JsonError({&object.place(), name}, "expected a number that is not below zero");
    return value.get<double>();
  }
  static double whole(JsonObject& object, std::string_view name) {
    const double value = number(object, name);
    if (value != std::floor(value)) throw JsonError({&object.place(), name}, "expected a whole number");
    return value;
  }
  /// Microseconds with three decimals are nanoseconds again.
  static double nanoseconds(JsonObject& object, std::string_view name) {
    return std::round(number(object, name) * 1000);
  }

  void metadata(JsonObject& event, const std::string& name) {
    const JsonPlace place{&event.place(), "args"};
    JsonObject arguments(event.get("args"), place);
    if (name == "process_labels") {
      text(arguments, "labels");
      const double events = whole(arguments, "left_out");
      arguments.finish();
      if (inside_) processes.back().left_out = static_cast<std::int64_t>(events);
      return;
    }
    const std::string called = text(arguments, "name");
    arguments.finish();
    if (name == "process_name") {
      inside_ = wanted_(called);
      known_ = true;
      if (inside_) processes.push_back({called, {}});
    } else if (name == "thread_name") {
      if (inside_) processes.back().threads.push_back({called, {}});
    } else {
      throw JsonError(event.place(), fmt::format("unknown metadata '{}'", name));
    }
  }

  void span(JsonObject& event, const std::string& name, double thread) {
    const double start_ns = nanoseconds(event, "ts"), duration_ns = nanoseconds(event, "dur");
    TraceSpan read{name, start_ns * 1e-9, (start_ns + duration_ns) * 1e-9};
    for (const char* const key : {"cat", "cname"})
      if (event.has(key)) text(event, key);
    if (event.has("args")) {
      const JsonPlace place{&event.place(), "args"};
      JsonObject arguments(event.get("args"), place);
      const auto taken = [&](std::string_view key, double& value) {
        if (arguments.has(key)) value = number(arguments, key);
      };
      taken("flops", read.flops);
      taken("memory_bytes", read.memory_bytes);
      taken("images", read.images);
      taken("bytes", read.bytes);
      if (arguments.has("shape")) read.shape = text(arguments, "shape");
      if (arguments.has("critical")) read.critical = arguments.get("critical") == true;
      arguments.finish();
    }
    if (!known_) throw JsonError(event.place(), "a span before any process is named");
    if (!inside_) return;
    if (thread < 1 || thread != static_cast<double>(processes.back().threads.size()))
      throw JsonError(event.place(), "a span of a thread that is not the last one named");
    processes.back().threads.back().spans.push_back(std::move(read));
  }

  void arrow(JsonObject& event, double thread, bool begins) {
    text(event, "cat");
    if (!begins) text(event, "bp");
    const double id = whole(event, "id");
    const TraceArrowEnd end{static_cast<std::int64_t>(id), static_cast<std::int64_t>(thread) - 1,
                            nanoseconds(event, "ts") * 1e-9, begins};
    if (!known_) throw JsonError(event.place(), "an arrow before any process is named");
    if (!inside_) return;
    if (thread < 1 || thread > static_cast<double>(processes.back().threads.size()))
      throw JsonError(event.place(), "an arrow of a thread that is not named");
    processes.back().arrows.push_back(end);
  }

  void counter(JsonObject& event, const std::string& name) {
    const JsonPlace place{&event.place(), "args"};
    if (name == traffic_counter) {
      traffic(event, place);
      return;
    }
    TraceMemoryPoint point{nanoseconds(event, "ts") * 1e-9, {}};
    JsonObject classes(event.get("args"), place);
    for (std::size_t c = 0; c < memory_class_count; ++c)
      point.bytes[c] = number(classes, memory_class_names[c]);
    classes.finish();
    if (!known_) throw JsonError(event.place(), "a counter before any process is named");
    if (!inside_) return;
    std::vector<TraceMemory>& memory = processes.back().memory;
    if (memory.empty() || memory.back().name != name) memory.push_back({name, {}});
    memory.back().points.push_back(point);
  }

  void traffic(JsonObject& event, const JsonPlace& place) {
    const double time_s = nanoseconds(event, "ts") * 1e-9;
    JsonObject rates(event.get("args"), place);
    const TraceTrafficPoint point{time_s, number(rates, "sent_Bps"), number(rates, "received_Bps")};
    rates.finish();
    if (!known_) throw JsonError(event.place(), "a counter before any process is named");
    if (inside_) processes.back().traffic.push_back(point);
  }

  const std::function<bool(const std::string& name)>& wanted_;
  bool known_ = false;   ///< whether a process has been named
  bool inside_ = false;  ///< whether the last one is wanted
};

}  // namespace

std::vector<TraceProcess> read_trace(std::istream& in, const std::string& file,
                                     const std::function<bool(const std::string& name)>& wanted) {
  TraceReader reader(wanted);
  const JsonPlace root, events{&root, "traceEvents"};
  try {
    const Json rest = parse_json(
        in, "traceEvents", [](const std::string&, const Json&) {},
        [&](std::size_t index, const Json& item) {
          reader.take({&events, {}, index}, item);
        });
    JsonObject document(rest, root);
    document.get("displayTimeUnit");
    const Json& list = document.get("traceEvents");
    if (!list.is_array()) throw JsonError(events, fmt::format("expected a list, not {}", kind_of(list)));
    document.finish();
  } catch (const JsonError& error) {
    throw InputError({file, 0, 0}, error.what());
  }
  return std::move(reader.processes);
}

}  // namespace convoy::results
