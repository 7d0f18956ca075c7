// SPDX-License-Identifier: MIT
#include "sim/cli/prove_experiment.h"

#include <fmt/format.h>

#include <ostream>

#include "sim/base/clean_text.h"
#include "sim/prove/prove.h"
#include "sim/run/output_folder.h"
#include "sim/run/search/search_spec.h"
#include "sim/run/simulate.h"

namespace convoy::inline cli {
namespace {

Proof prove_point(Preparer& preparer, const Experiment& experiment, std::size_t index, std::string& what) {
  if (is_search(experiment.point(index).strategy))
    return {Proof::Outcome::not_covered,
            "`kind: auto` tries many plans; write the strategy that is to be proved"};
  const PreparedRun run = preparer.prepare(index);
  if (run.phased) return {Proof::Outcome::not_covered, "devices come and go"};
  what = fmt::format("{} images on {} {}", run.plan.images, run.machine.devices.size(),
                     run.machine.devices.size() == 1 ? "device" : "devices");
  return prove_plan(run.plan, run.report, *run.graph, run.machine);
}

}  // namespace

Exit prove_experiment(const Experiment& experiment) {
  if (experiment.plan() || experiment.jobs())
    throw InputError({"--prove", 0, 0},
                     "proves the plans of experiments with a strategy; this file has none of its own");
  Preparer preparer(experiment);
  preparer.ask_for_meaning();
  bool refuted = false, not_covered = false;
  for (std::size_t i = 0; i < experiment.size(); ++i) {
    std::string what;
    const Proof proof = prove_point(preparer, experiment, i, what);
    std::string line;
    switch (proof.outcome) {
      case Proof::Outcome::proved:
        line = fmt::format(
            "proved: {} compute what one device does: every operation reads what the training graph says, and "
            "every replica of a parameter is updated with the gradients of all images, each once{}; {} tasks",
            what, proof.allowed.empty() ? "" : fmt::format(" (allowed: {})", proof.allowed), proof.tasks);
        break;
      case Proof::Outcome::refuted:
        line = "refuted: " + clean(proof.text);
        refuted = true;
        break;
      case Proof::Outcome::not_covered:
        line = "not proved: " + clean(proof.text);
        not_covered = true;
        break;
    }
    write_stdout([&](std::ostream& out) {
      if (experiment.swept()) out << point_id(i) << "  ";
      out << line << '\n';
    });
  }
  return refuted ? Exit::check_failed : not_covered ? Exit::bad_input : Exit::done;
}

}  // namespace convoy::cli
