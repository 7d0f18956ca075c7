// SPDX-License-Identifier: MIT
// What the commands do, as functions that take texts and give JSON; convoy/__init__.py makes a Python
// interface of them.
#include <fmt/format.h>
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <sstream>

#include "python/calls.h"
#include "python/run_results.h"
#include "sim/base/clean_text.h"
#include "sim/base/input_error.h"
#include "sim/base/names.h"
#include "sim/cli/commands.h"
#include "sim/cli/compared.h"
#include "sim/plan/ledger.h"
#include "sim/planning/answer.h"
#include "sim/planning/plan_report.h"
#include "sim/planning/plan_spec.h"
#include "sim/planning/write_plan.h"
#include "sim/results/field_writer.h"
#include "sim/results/result_fields.h"
#include "sim/run/manifest.h"
#include "sim/run/output_folder.h"
#include "sim/run/store/point_key.h"
#include "sim/run/sweep.h"
#include "sim/run/workers.h"
#include "sim/studies/diagnose.h"
#include "sim/studies/doctor.h"
#include "sim/studies/validation.h"

namespace py = pybind11;

namespace convoy {
namespace {

using namespace bindings;

/// Memory that a worker has for its point beside what it has of this process, which may hold much.
double worker_memory_bytes(std::size_t jobs) {
  std::size_t pages[6] = {};
  if (std::FILE* statm = std::fopen("/proc/self/statm", "r")) {
    for (std::size_t& count : pages)
      if (std::fscanf(statm, "%zu", &count) != 1) break;
    std::fclose(statm);
  }
  const double here = static_cast<double>(pages[5]) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  return here + machine_memory_bytes() / static_cast<double>(jobs);
}

/// @returns results and warnings
std::tuple<std::shared_ptr<RunResults>, std::vector<std::string>> run_experiment(
    const std::string& file, const std::string& text, const Settings& settings,
    const std::optional<std::size_t>& jobs, const std::string& out, const std::string& tasks,
    const Told& told) {
  const py::gil_scoped_release unlocked;
  const Experiment experiment = experiment_of(file, text, settings);
  if (experiment.plan())
    throw InputError(experiment.plan()->key_pos,
                     "plan: this file asks what to rent, and names no one cluster: use convoy.plan");
  RunArguments arguments;
  if (text.empty()) arguments.file = file;
  arguments.settings = settings;
  arguments.jobs = jobs_or_all(jobs);
  arguments.tasks = tasks;
  SweepOptions options = sweep_options(arguments);
  options.point_memory_bytes = worker_memory_bytes(arguments.jobs);
  Raised raised;
  options.stop = [&] { return raised.stops(); };
  options.slow = [](const std::string& slow) {
    const py::gil_scoped_acquire lock;
    py::module_::import("warnings").attr("warn")(slow, py::module_::import("convoy").attr("ConvoyWarning"));
  };
  std::optional<std::size_t> done;
  options.progress = [&](const SweepProgress& now) {
    if (done == now.done) return;
    done = now.done;
    raised.tell(told, now.done, now.all);
  };
  FinishedRun finished = run_points(experiment, arguments, out, options, experiment.size());
  raised.rethrow();
  if (!finished.origin) finished.origin = Origin{program_build(), experiment.tree(), program_files()};
  return {std::make_shared<RunResults>(std::move(finished.results).take(), std::move(*finished.origin)),
          std::move(finished.warnings)};
}

/// What a sweep's points would be; of a plan what it would try.
std::string check_experiment(const std::string& file, const std::string& text, const Settings& settings,
                             const std::optional<std::size_t>& jobs) {
  const py::gil_scoped_release unlocked;
  const Experiment experiment = experiment_of(file, text, settings);
  std::ostringstream out;
  {
    JsonWriter json(out);
    json.begin_object();
    json.field("experiment", experiment.name());
    if (experiment.plan()) {
      json.field("plan", check_plan(read_plan(experiment), jobs_or_all(jobs)));
      json.end_object();
      json.flush();
      return std::move(out).str();
    }
    Raised raised;
    const SweepCheck checked =
        check_sweep(experiment, jobs_or_all(jobs), worker_memory_bytes(jobs_or_all(jobs)),
                    [&] { return raised.stops(); });
    raised.rethrow();
    FieldWriter archive(json);
    json.key("points");
    json.begin_array();
    for (std::size_t i = 0; i < experiment.size(); ++i) {
      json.begin_object();
      json.field("id", point_id(i));
      archive.point("point", experiment.coordinates(i));
      if (const std::optional<PlannedPoint>& planned = checked.planned[i]) {
        json.field("device", planned->device);
        json.field("device_memory_bytes", planned->device_bytes);
        json.field("peak_memory_bytes", total_bytes(planned->peak_bytes));
        json.field("process_memory_bytes", planned->process_bytes);
        archive.texts("warnings", planned->warnings);
      }
      json.end_object();
    }
    json.end_array();
    archive.list("failed", checked.failed, failed_fields);
    json.end_object();
  }
  return std::move(out).str();
}

/// @returns plan.json, the page, and the text for people
std::tuple<std::string, std::string, std::string> plan_experiment(
    const std::string& file, const std::string& text, const Settings& settings, const std::string& prices,
    bool exhaustive, const std::optional<std::size_t>& jobs, const std::string& out, const Told& told) {
  const py::gil_scoped_release unlocked;
  const Experiment experiment = experiment_of(file, text, settings);
  const PlanSpec spec = read_plan(experiment, prices);
  if (!out.empty()) OutputFolder::check(out);
  PlanOptions options;
  options.jobs = jobs_or_all(jobs);
  options.exhaustive = exhaustive;
  Raised raised;
  options.progress = [&](const std::string&, std::size_t done, std::size_t all) {
    raised.tell(told, done, all);
    if (raised.stops()) raised.rethrow();  // ends the workers on its way out
  };
  PlanAnswer answer = make_plan(spec, options);
  answer.manifest = make_manifest(experiment, text.empty() ? file : std::string{}, settings);
  if (!out.empty())
    OutputFolder(out).replace_all(
        {{"plan.json", [&](std::ostream& stream) { write_json(answer, stream); }},
         {"report.html", [&](std::ostream& stream) { write_report(answer, stream); }}});
  return {text_of([&](std::ostream& stream) { write_json(answer, stream); }),
          text_of([&](std::ostream& stream) { write_report(answer, stream); }), table(answer)};
}

/// One side of a comparison: a place, or results under a name.
using Side = std::pair<std::string, std::shared_ptr<RunResults>>;

ComparedResults compared_side(const Side& side) {
  const auto& [name, results] = side;
  if (!results) return read_compared(name);
  return {name, results->results(), results->origin()};
}

/// @returns convoy.compare/1, the page, and the text for people
std::tuple<std::string, std::string, std::string> compare_sides(const Side& a, const Side& b) {
  const py::gil_scoped_release unlocked;
  const Comparison comparison = compare(compared_side(a), compared_side(b));
  return {text_of([&](std::ostream& out) { write_json(comparison, out); }),
          text_of([&](std::ostream& out) { write_page(comparison, out); }), comparison_text(comparison)};
}

/// @returns convoy.validate/1, the page, and the text for people
std::tuple<std::string, std::string, std::string> validate(const std::string& rows,
                                                           const std::optional<std::size_t>& jobs) {
  const py::gil_scoped_release unlocked;
  Raised raised;
  const Validation validation = validate_rows(rows, jobs_or_all(jobs), [&](std::size_t, std::size_t) {
    if (raised.stops()) raised.rethrow();  // ends the workers on its way out
  });
  return {text_of([&](std::ostream& out) { write_validation(validation, out); }),
          text_of([&](std::ostream& out) { write_page(validation, out); }), validation_text(validation)};
}

/// @returns convoy.doctor/1, the page, and the text for people
std::tuple<std::string, std::string, std::string> doctor(const std::string& file, const std::string& text,
                                                         const Settings& settings, const std::string& prices,
                                                         const std::optional<std::size_t>& jobs) {
  const py::gil_scoped_release unlocked;
  const Experiment experiment = experiment_of(file, text, settings);
  Raised raised;
  const auto told = [&](std::size_t, std::size_t) {
    if (raised.stops()) raised.rethrow();  // ends the workers on its way out
  };
  const Diagnosis diagnosis = diagnose_file(experiment, prices, jobs_or_all(jobs), told);
  return {text_of([&](std::ostream& out) { write_doctor(diagnosis, out); }),
          text_of([&](std::ostream& out) { write_page(diagnosis, out); }), doctor_text(diagnosis)};
}

/// @returns convoy.diagnose/1, the page, and the text for people
std::tuple<std::string, std::string, std::string> diagnose_step(
    const std::string& trace, const std::string& file, const std::string& text, const Settings& settings,
    const std::optional<std::size_t>& jobs, const std::string& joint_trace) {
  const py::gil_scoped_release unlocked;
  const Experiment experiment = experiment_of(file, text, settings);
  refuse_input(joint_trace, {trace, file});
  const TraceDiagnosis diagnosis = diagnose_trace(trace, experiment, jobs_or_all(jobs), !joint_trace.empty());
  if (!joint_trace.empty())
    write_file(joint_trace, [&](std::ostream& out) { write_joint_trace(diagnosis, out); });
  return {text_of([&](std::ostream& out) { write_diagnosis(diagnosis, out); }),
          text_of([&](std::ostream& out) { write_page(diagnosis, out); }), diagnosis_text(diagnosis)};
}

std::string show_subject(const std::string& what, const std::string& name) {
  const py::gil_scoped_release unlocked;
  const std::vector<std::string> subjects = show_subjects();
  if (std::find(subjects.begin(), subjects.end(), what) == subjects.end())
    throw InputError({"show", 0, 0}, fmt::format("there is no '{}'{}; there are {}", excerpt(what),
                                                 suggestion(what, subjects), list_of(subjects)));
  ShowArguments arguments;
  arguments.what = what;
  arguments.name = name;
  arguments.json = true;
  return text_of([&](std::ostream& out) { show(out, arguments); });
}

/// @returns the fitted keys of the device as YAML and as JSON, the fit's mean and worst error, the factor of its
/// host (ServerSpec), and the rows as JSON
std::tuple<std::string, std::string, double, double, double, std::string> calibrate_device(
    const std::vector<std::string>& profiles, const std::string& device, const std::string& experiment) {
  const py::gil_scoped_release unlocked;
  CalibrateArguments arguments;
  arguments.profiles = profiles;
  arguments.device = device;
  arguments.experiment = experiment;
  const CalibrationReport report =
      calibrated_device(arguments, [](const KinetoTrace&, const std::string&) {});
  std::ostringstream out;
  {
    JsonWriter json(out);
    json.begin_array();
    for (const AccuracyRow& row : report.rows) {
      json.begin_object();
      json.field("role", row.role);
      json.field("model", row.model);
      json.field("kind", row.kind);
      json.field("batch", static_cast<double>(row.batch));
      json.field("images_per_s", row.published);
      json.field("fitted", row.predicted);
      json.field("error", row.error);
      json.end_object();
    }
    json.end_array();
  }
  const std::string keys =
      text_of([&](std::ostream& stream) { JsonWriter(stream).value(parse_yaml(report.yaml, "calibrate")); });
  return {report.yaml,         keys, report.mean_error, report.worst_error, report.host_issue_factor,
          std::move(out).str()};
}

}  // namespace
}  // namespace convoy

PYBIND11_MODULE(_convoy, module) {
  using namespace convoy;
  module.attr("version") = std::string(version());
  // convoy/__init__.py makes its own exceptions of these.
  py::register_exception<InputError>(module, "InputErrorText");
  py::register_exception<OutputError>(module, "OutputErrorText", PyExc_OSError);
  module.def("run", &run_experiment);
  module.def("check", &check_experiment);
  module.def("plan", &plan_experiment);
  module.def("compare", &compare_sides);
  module.def("validate", &validate);
  module.def("doctor", &doctor);
  module.def("diagnose", &diagnose_step);
  module.def("show", &show_subject);
  module.def("calibrate", &calibrate_device);
  add_tables(module);
  add_results(module);
  add_timelines(module);
}
