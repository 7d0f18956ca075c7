// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <optional>
#include <ostream>
#include <utility>

#include "sim/cli/commands.h"
#include "sim/cli/tell.h"
#include "sim/planning/answer.h"
#include "sim/planning/plan_report.h"
#include "sim/planning/skypilot_task.h"
#include "sim/planning/write_plan.h"
#include "sim/run/manifest.h"
#include "sim/run/output_folder.h"

namespace convoy::inline cli {

Exit plan_command(const PlanArguments& arguments) {
  const Experiment experiment = Experiment::load(arguments.file, arguments.settings);
  const PlanSpec spec = read_plan(experiment, arguments.prices);
  const std::string path = arguments.out.empty() ? "runs/" + experiment.name() : arguments.out;
  const bool to_folder = !arguments.json || !arguments.out.empty();
  if (to_folder) OutputFolder::check(path);
  refuse_input(arguments.skypilot, {arguments.file, arguments.prices});
  PlanOptions options;
  options.jobs = arguments.jobs;
  options.exhaustive = arguments.exhaustive;
  std::optional<Progress> progress(std::in_place, arguments.progress, "planning");
  options.progress = [&](const std::string& what, std::size_t done, std::size_t all) {
    progress->begin(what);
    (*progress)(done, all);
  };
  PlanAnswer answer = make_plan(spec, options);
  progress.reset();
  answer.manifest = make_manifest(experiment, arguments.file, arguments.settings);
  if (to_folder)
    OutputFolder(path).replace_all({{"plan.json", [&](std::ostream& out) { write_json(answer, out); }},
                                    {"report.html", [&](std::ostream& out) { write_report(answer, out); }}});
  write_stdout([&](std::ostream& out) {
    if (arguments.json)
      write_json(answer, out);
    else
      out << table(answer) << fmt::format("\nplan in {}: report.html, plan.json\n", path);
  });
  if (arguments.json)
    for (const LeftOut& each : answer.left_out) tell("convoy: {}\n", left_out_text(each));
  if (answer.choice && !arguments.skypilot.empty()) {
    const std::string task = skypilot_task(answer, arguments.file);
    write_file(arguments.skypilot, [&](std::ostream& out) { out << task; });
  }
  if (answer.choice) return Exit::done;
  tell("convoy: no candidate meets the constraints; nearest is {}: {}\n", answer.nearest->name,
       answer.nearest->text);
  return Exit::check_failed;
}

}  // namespace convoy::cli
