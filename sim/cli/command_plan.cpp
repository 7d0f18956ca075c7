// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <unistd.h>

#include <ostream>

#include "sim/cli/commands.h"
#include "sim/planning/answer.h"
#include "sim/planning/plan_report.h"
#include "sim/planning/write_plan.h"
#include "sim/run/manifest.h"
#include "sim/run/output_folder.h"

namespace convoy {
namespace {

/// One line in place, on a terminal only.
void show_progress(const std::string& what, std::size_t done, std::size_t all) {
  static const bool terminal = ::isatty(STDERR_FILENO) == 1;
  if (!terminal) return;
  fmt::print(stderr, "\r\033[K{} {}/{}", what, done, all);
  if (done == all) fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
}

}  // namespace

Exit plan_command(const PlanArguments& arguments) {
  const Experiment experiment = Experiment::load(arguments.file, arguments.settings);
  const PlanSpec spec = read_plan(experiment, arguments.prices);
  const std::string path = arguments.out.empty() ? "runs/" + experiment.name() : arguments.out;
  const bool to_folder = !arguments.json || !arguments.out.empty();
  if (to_folder) OutputFolder::check(path);
  PlanOptions options;
  options.jobs = arguments.jobs;
  options.exhaustive = arguments.exhaustive;
  options.progress = show_progress;
  PlanAnswer answer = make_plan(spec, options);
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
  if (answer.choice) return Exit::done;
  fmt::print(stderr, "convoy: no candidate meets the constraints; nearest is {}: {}\n", answer.nearest->name,
             answer.nearest->text);
  return Exit::check_failed;
}

}  // namespace convoy
