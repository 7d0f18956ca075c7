// SPDX-License-Identifier: MIT
// The time line of one run: the point is simulated again, with what its streams did.
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "python/calls.h"
#include "sim/results/write_report.h"
#include "sim/results/write_trace.h"
#include "sim/run/output_folder.h"
#include "sim/run/sweep.h"

namespace py = pybind11;

namespace convoy::bindings {
namespace {

/// What the streams of a run did in a step, as columns.
class Timeline {
 public:
  explicit Timeline(Results results, std::vector<TraceProcess> processes)
      : results_(std::move(results)), trace_{0, std::move(processes)} {}

  py::dict spans() const {
    std::vector<std::string> processes, threads, names;
    std::vector<double> starts, ends, flops, memory_bytes, images, bytes;
    std::vector<bool> critical;
    for (const TraceProcess& process : trace_.processes)
      for (const TraceThread& thread : process.threads)
        for (const TraceSpan& span : thread.spans) {
          processes.push_back(process.name);
          threads.push_back(thread.name);
          names.push_back(span.name);
          starts.push_back(span.start_s);
          ends.push_back(span.end_s);
          flops.push_back(span.flops);
          memory_bytes.push_back(span.memory_bytes);
          images.push_back(span.images);
          bytes.push_back(span.bytes);
          critical.push_back(span.critical);
        }
    py::dict columns;
    columns["process"] = std::move(processes);
    columns["thread"] = std::move(threads);
    columns["name"] = std::move(names);
    columns["start_s"] = std::move(starts);
    columns["end_s"] = std::move(ends);
    columns["flops"] = std::move(flops);
    columns["memory_bytes"] = std::move(memory_bytes);
    columns["images"] = std::move(images);
    columns["bytes"] = std::move(bytes);
    columns["critical"] = std::move(critical);
    return columns;
  }

  py::dict memory() const {
    std::vector<std::string> processes, names;
    std::vector<double> times;
    std::array<std::vector<double>, memory_class_count> bytes;
    for (const TraceProcess& process : trace_.processes)
      for (const TraceMemory& memory : process.memory)
        for (const TraceMemoryPoint& point : memory.points) {
          processes.push_back(process.name);
          names.push_back(memory.name);
          times.push_back(point.time_s);
          for (std::size_t c = 0; c < memory_class_count; ++c) bytes[c].push_back(point.bytes[c]);
        }
    py::dict columns;
    columns["process"] = std::move(processes);
    columns["name"] = std::move(names);
    columns["time_s"] = std::move(times);
    for (std::size_t c = 0; c < memory_class_count; ++c)
      columns[py::str(fmt::format("{}_bytes", memory_class_names[c]))] = std::move(bytes[c]);
    return columns;
  }

  py::dict traffic() const {
    std::vector<std::string> processes;
    std::vector<double> times, sent, received;
    for (const TraceProcess& process : trace_.processes)
      for (const TraceTrafficPoint& point : process.traffic) {
        processes.push_back(process.name);
        times.push_back(point.time_s);
        sent.push_back(point.sent_Bps);
        received.push_back(point.received_Bps);
      }
    py::dict columns;
    columns["process"] = std::move(processes);
    columns["time_s"] = std::move(times);
    columns["sent_Bps"] = std::move(sent);
    columns["received_Bps"] = std::move(received);
    return columns;
  }

  std::string page() const {
    return text_of([&](std::ostream& out) { write_timeline(results_, trace_, out); });
  }

  void save(const std::string& file) const {
    write_file(file, [&](std::ostream& out) {
      TraceWriter writer(out);
      for (const TraceProcess& process : trace_.processes) writer.add(process);
    });
  }

  double step_time_s() const { return results_.runs.front().step_time_s; }

 private:
  Results results_;  ///< of this run alone
  StepTrace trace_;
};

/// Simulates the point of a run once more. @param step_time_s of that run: the point has to have it still
std::unique_ptr<Timeline> timeline_of(const std::string& file, const std::string& text,
                                      const Settings& settings, const std::string& id, double step_time_s) {
  const py::gil_scoped_release unlocked;
  const Experiment experiment = experiment_of(file, text, settings);
  const auto changed = [&] {
    return InputError({file, 0, 0}, fmt::format("what run {} was computed from has changed since", id));
  };
  const std::size_t index = point_index(id);
  if (index >= experiment.size()) throw changed();
  Preparer preparer(experiment);
  Store store;
  store.set_subject(make_subject(preparer, {}, {}, std::nullopt));
  SweepOptions options;
  options.trace = true;
  options.jobs = all_cores();  // a search's candidates
  options.shard = {index + 1, experiment.size()};
  Raised raised;
  options.stop = [&] { return raised.stops(); };
  run_sweep(preparer, options, store);
  raised.rethrow();
  Results results = load_results(store, &experiment);
  if (!results.failed.empty()) throw InputError({}, results.failed.front().reason);
  if (results.runs.front().step_time_s != step_time_s) throw changed();
  return std::make_unique<Timeline>(std::move(results), load_trace(store, index));
}

}  // namespace

void add_timelines(py::module_& module) {
  py::class_<Timeline>(module, "Timeline")
      .def("spans", &Timeline::spans)
      .def("memory", &Timeline::memory)
      .def("traffic", &Timeline::traffic)
      .def("page", &Timeline::page, py::call_guard<py::gil_scoped_release>())
      .def("save", &Timeline::save, py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("step_time_s", &Timeline::step_time_s);
  module.def("timeline", &timeline_of);
}

}  // namespace convoy::bindings
