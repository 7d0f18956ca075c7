// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <optional>
#include <ostream>

#include "sim/cli/commands.h"
#include "sim/cli/results_folder.h"
#include "sim/cli/tell.h"
#include "sim/run/interrupt.h"
#include "sim/run/workers.h"
#include "sim/studies/regions/write_study.h"

namespace convoy::inline cli {

Exit study_command(const StudyArguments& arguments) {
  const Experiment experiment = Experiment::load(arguments.file, arguments.settings);
  const StudySpec spec = read_study(experiment);
  const bool to_folder = !arguments.json || !arguments.out.empty();
  const std::string path = !to_folder              ? ""
                           : arguments.out.empty() ? default_folder(experiment.name(), arguments.settings)
                                                   : arguments.out;
  if (to_folder) OutputFolder::check(path);
  std::optional<ResultsPlace> place;
  if (to_folder)
    place.emplace(path, arguments.fresh);
  else
    place.emplace();
  const InterruptGuard guard;
  std::optional<Progress> progress(std::in_place, arguments.progress, "simulating");
  StudyOptions options;
  options.file = arguments.file;
  options.settings = arguments.settings;
  options.store_options = to_folder ? "convoy" : "";
  options.begin = [&](StoreSubject subject) { place->begin(std::move(subject)); };
  options.sweep.jobs = arguments.jobs;
  options.sweep.point_memory_bytes = machine_memory_bytes() / static_cast<double>(arguments.jobs);
  options.sweep.stop = [] { return InterruptGuard::signal() != 0; };
  options.sweep.progress = [&](const SweepProgress& now) {
    (*progress)(now.done, now.all, [] { return std::string("points"); });
  };
  const StudyResult study = run_study(experiment, spec, place->store(), options);
  progress.reset();
  if (!study.whole) {
    tell("convoy: interrupted: {} experiments are done{}\n", study.simulated,
         to_folder ? fmt::format(" and kept in {}; the same command goes on with the others", path)
                   : "; with --out DIR they would be kept");
    return static_cast<Exit>(128 + InterruptGuard::signal());
  }
  if (to_folder) {
    place->folder()->replace_all({{"study.json", [&](std::ostream& out) { write_json(study, out); }},
                                  {"report.html", [&](std::ostream& out) { write_report(study, out); }}});
    place->keep();
  }
  write_stdout([&](std::ostream& out) {
    if (arguments.json)
      write_json(study, out);
    else
      out << table(study) << fmt::format("\nstudy in {}: report.html, study.json\n", path);
  });
  return Exit::done;
}

}  // namespace convoy::cli
