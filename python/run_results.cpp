// SPDX-License-Identifier: MIT
#include "python/run_results.h"

#include <sstream>

#include "python/calls.h"
#include "sim/results/field_text.h"
#include "sim/results/read_json.h"
#include "sim/results/write_json.h"
#include "sim/results/write_report.h"
#include "sim/results/write_table.h"

namespace py = pybind11;

namespace convoy::bindings {

std::string RunResults::json() const {
  return text_of([&](std::ostream& out) { write_json(results_, out); });
}

std::string RunResults::page() const {
  return text_of([&](std::ostream& out) { write_report(results_, {}, {}, out); });
}

std::string RunResults::words() const {
  return text_of([&](std::ostream& out) { write_table(results_, out); });
}

const std::shared_ptr<const Table>& RunResults::table() {
  if (!table_) table_ = table_of(results_);
  return table_;
}

void add_results(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  py::class_<RunResults, std::shared_ptr<RunResults>>(module, "RunResults")
      .def("__len__", [](const RunResults& all) { return all.results().runs.size(); })
      .def("failed", [](const RunResults& all) { return all.results().failed.size(); })
      .def("json", &RunResults::json, Unlocked())
      .def("page", &RunResults::page, Unlocked())
      .def("words", &RunResults::words, Unlocked())
      .def("table", [](RunResults& all) { return std::const_pointer_cast<Table>(all.table()); })
      .def(py::pickle(
          [](const RunResults& all) {
            return py::make_tuple(all.json(), to_text(all.origin(), origin_fields));
          },
          [](const py::tuple& state) {
            std::istringstream json(state[0].cast<std::string>());
            return std::make_shared<RunResults>(
                read_json(json, "results"), from_text<Origin>(state[1].cast<std::string>(), origin_fields));
          }));
}

}  // namespace convoy::bindings
