// SPDX-License-Identifier: MIT
// The time line of one run: the point is simulated again, with what its streams did.
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

#include "python/calls.h"
#include "python/table.h"
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

  std::shared_ptr<Table> spans() const {
    const auto table = std::make_shared<Table>(std::vector<Column>{{"process", Column::Kind::text},
                                                                   {"thread", Column::Kind::text},
                                                                   {"name", Column::Kind::text},
                                                                   {"start_s"},
                                                                   {"end_s"},
                                                                   {"flops"},
                                                                   {"memory_bytes"},
                                                                   {"images"},
                                                                   {"bytes"},
                                                                   {"critical", Column::Kind::truth}});
    for (const TraceProcess& process : trace_.processes)
      for (const TraceThread& thread : process.threads)
        for (const TraceSpan& span : thread.spans)
          table->add_row(process.name, thread.name, span.name, span.start_s, span.end_s, span.flops,
                         span.memory_bytes, span.images, span.bytes, span.critical);
    return table;
  }

  std::shared_ptr<Table> memory() const {
    std::vector<Column> columns{{"process", Column::Kind::text}, {"name", Column::Kind::text}, {"time_s"}};
    for (const std::string_view name : memory_class_names) columns.push_back({fmt::format("{}_bytes", name)});
    const auto table = std::make_shared<Table>(std::move(columns));
    for (const TraceProcess& process : trace_.processes)
      for (const TraceMemory& memory : process.memory)
        for (const TraceMemoryPoint& point : memory.points)
          std::apply(
              [&](const auto&... bytes) {
                table->add_row(process.name, memory.name, point.time_s, bytes...);
              },
              point.bytes);
    return table;
  }

  std::shared_ptr<Table> traffic() const {
    const auto table = std::make_shared<Table>(
        std::vector<Column>{{"process", Column::Kind::text}, {"time_s"}, {"sent_Bps"}, {"received_Bps"}});
    for (const TraceProcess& process : trace_.processes)
      for (const TraceTrafficPoint& point : process.traffic)
        table->add_row(process.name, point.time_s, point.sent_Bps, point.received_Bps);
    return table;
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

  std::int64_t left_out() const {
    std::int64_t events = 0;
    for (const TraceProcess& process : trace_.processes) events += process.left_out;
    return events;
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
  SweepOptions options;
  options.trace = true;
  options.jobs = all_cores();  // a search's candidates
  options.shard = {index + 1, experiment.size()};
  store.set_subject(make_subject(preparer, {}, {}, std::nullopt, options.shard));
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
      .def_property_readonly("left_out", &Timeline::left_out)
      .def_property_readonly("step_time_s", &Timeline::step_time_s);
  module.def("timeline", &timeline_of);
}

}  // namespace convoy::bindings
