// SPDX-License-Identifier: MIT
#include "sim/cli/prove_experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ostream>
#include <set>
#include <utility>

#include "sim/base/clean_text.h"
#include "sim/prove/prove_change.h"
#include "sim/run/output_folder.h"
#include "sim/run/preparer.h"
#include "sim/run/search/search_spec.h"
#include "topologies/first_devices.h"

namespace convoy::inline cli {
namespace {

/// Each phase, and each change from one to the next: the first that is refuted, else the first that is not
/// proved, if any.
Proof prove_phases(const PreparedRun& run, const BatchSpec& batch, std::string& what) {
  const std::vector<RunPhase>& phases = run.phased->phases;
  Proof all;
  std::vector<std::uint32_t> devices;  // each number once in a row
  std::set<std::string> allowed;
  std::optional<Proof> not_covered;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const RunPhase& phase = phases[i];
    const Machine machine = first_devices(run.phased->machine, phase.devices);
    std::vector<Proof> proofs{prove_plan(phase.plan, phase.report, *run.graph, machine,
                                         static_cast<double>(batch.over(phase.devices)))};
    if (i > 0) proofs.push_back(prove_change(phases[i - 1], phase, *run.graph, run.phased->machine));
    for (Proof& proof : proofs) {
      proof.tasks += all.tasks;
      if (proof.outcome != Proof::Outcome::proved)
        proof.text = fmt::format("from step {} on: {}", phase.at_step, proof.text);
      if (proof.outcome == Proof::Outcome::refuted) return proof;
      if (proof.outcome == Proof::Outcome::not_covered && !not_covered) not_covered = proof;
      if (!proof.allowed.empty()) allowed.insert(proof.allowed);
      all = std::move(proof);
    }
    if (i == 0 || phase.devices != phases[i - 1].devices) devices.push_back(phase.devices);
  }
  if (not_covered) return *not_covered;
  std::erase_if(allowed, [&](const std::string& text) {  // another phase says the same, and more
    return std::any_of(allowed.begin(), allowed.end(), [&](const std::string& other) {
      return other != text && other.find(text) != std::string::npos;
    });
  });
  all.allowed = fmt::format("{}", fmt::join(allowed, ", "));
  const std::uint32_t last = devices.back();
  devices.pop_back();
  what = fmt::format("{} images on {}{}{} devices", run.plan.images, fmt::join(devices, ", "),
                     devices.empty() ? "" : " and then ", last);
  return all;
}

Proof prove_point(Preparer& preparer, std::size_t index, std::string& what,
                  std::optional<PlannedPoint>& planned) {
  const Experiment& experiment = preparer.experiment();
  if (is_search(experiment.point(index).strategy))
    return {Proof::Outcome::not_covered,
            "`kind: auto` tries many plans; write the strategy that is to be proved"};
  const PreparedRun run = preparer.prepare(index);
  planned = planned_point(run);
  if (run.phased) return prove_phases(run, experiment.point(index).training.batch, what);
  const std::size_t devices = devices_used(run.plan, run.machine);
  const BatchSpec batch = experiment.point(index).training.batch;
  what = fmt::format("{} images on {} {}", run.plan.images, devices, devices == 1 ? "device" : "devices");
  return prove_plan(run.plan, run.report, *run.graph, run.machine,
                    static_cast<double>(batch.over(static_cast<std::int64_t>(devices))));
}

}  // namespace

Exit exit_for(const std::vector<Proof::Outcome>& outcomes) {
  const auto any = [&](Proof::Outcome outcome) {
    return std::find(outcomes.begin(), outcomes.end(), outcome) != outcomes.end();
  };
  if (any(Proof::Outcome::refuted)) return Exit::check_failed;
  return any(Proof::Outcome::not_covered) ? Exit::bad_input : Exit::done;
}

ProvedExperiment prove_experiment(Preparer& preparer) {
  const Experiment& experiment = preparer.experiment();
  for (const auto& [key, node] : {std::pair{"plan", experiment.plan()}, {"jobs", experiment.jobs()}, {"study", experiment.study()}})
    if (node)
      throw InputError(node->pos,
                       fmt::format("{}: --prove takes an experiment with one strategy of its own", key));
  preparer.ask_for_meaning();
  ProvedExperiment proved;
  proved.check.planned.resize(experiment.size());
  for (std::size_t i = 0; i < experiment.size(); ++i) {
    std::string what;
    const Proof proof = prove_point(preparer, i, what, proved.check.planned[i]);
    proved.outcomes.push_back(proof.outcome);
    std::string line;
    switch (proof.outcome) {
      case Proof::Outcome::proved:
        line = fmt::format(
            "proved: {} {}: every operation reads what the training graph says, and {}{}; {} tasks", what,
            proof.is_averaged ? "train replicas that are averaged" : "compute what one device does",
            proof.is_averaged ? "the gradients of every image update the parameters of its replica once, "
                                "which are averaged with the others'"
                              : "every replica of a parameter is updated with the gradients of all images, "
                                "each once",
            proof.allowed.empty() ? "" : fmt::format(" (allowed: {})", proof.allowed), proof.tasks);
        break;
      case Proof::Outcome::refuted:
        line = "refuted: " + clean(proof.text);
        break;
      case Proof::Outcome::not_covered:
        line = "not proved: " + clean(proof.text);
        break;
    }
    write_stdout([&](std::ostream& out) {
      if (experiment.swept()) out << point_id(i) << "  ";
      out << line << '\n';
    });
  }
  return proved;
}

}  // namespace convoy::cli
