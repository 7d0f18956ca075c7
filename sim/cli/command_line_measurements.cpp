// SPDX-License-Identifier: MIT
// Commands that compare predictions with measurements.
#include "sim/calibration/cross_validation.h"
#include "sim/cli/command_line.h"

namespace convoy::inline cli {

void CommandLine::add_calibrate() {
  CLI::App* sub =
      app.add_subcommand("calibrate", "fit a device's efficiencies, or a link, to measured times");
  takes_file(
      sub->add_option(
          "PROFILE", calibrate.profiles,
          "measured speeds (CSV, docs/cost_model.md), a trace of torch.profiler (JSON, also packed with "
          "gzip), or a log of nccl-tests' all_reduce_perf"))
      ->required();
  CLI::Option* device =
      sub->add_option("--device", calibrate.device, "of the catalogue; none for a log of nccl-tests");
  offers(device, "DEVICE", names_of("devices"));
  takes_file(sub->add_option("--experiment", calibrate.experiment,
                             "whose cluster describes the device, in place of the catalogue"))
      ->needs(device);
  takes_folder(sub->add_option(
                   "--catalogue", calibrate.catalogue,
                   "fit all devices and frameworks together, and write their files' parts into this folder"))
      ->excludes(device);
  chooses(sub->add_option(
              "--leave-out", calibrate.leave_out,
              "fit all devices and frameworks without one device, generation, source or family at a time, "
              "and print its rows as predicted by the fit that has not seen them (CSV)"),
          {leave_out_names.begin(), leave_out_names.end()})
      ->excludes(device)
      ->excludes("--catalogue");
  add_examples(sub, {{"convoy calibrate speeds.csv --device v100-sxm2-16gb",
                      "efficiencies of a device, fitted to its measured speeds"},
                     {"convoy calibrate trace.json.gz --device mine --experiment mine.yaml",
                      "the same of a GPU or CPU of your own, fitted to a trace of PyTorch"},
                     {"convoy calibrate epochs.csv", "a goal, fitted to epochs by batch size"}});
  sub->callback([this] { command = [this] { return calibrate_command(calibrate); }; });
}

void CommandLine::add_reproduce() {
  CLI::App* sub = app.add_subcommand("reproduce", "predict published measurements and compare");
  chooses(sub->add_option("NAME", reproduce.names, "which of them (default: all)"), reproduction_names());
  sub->add_flag("--where", reproduce.where,
                "for which inputs that a thesis does not state its claims hold (docs/studies.md)");
  sub->add_flag("--json", reproduce.json, "as JSON");
  add_progress(sub, reproduce.progress);
  add_examples(sub, {{"convoy reproduce memory", "one of the comparisons; `convoy reproduce` makes all"},
                     {"convoy reproduce shi2019 --where", "where the claims of its abstract hold"},
                     {"convoy reproduce pipelines --json > pipelines.json", "as JSON"}});
  sub->callback([this] { command = [this] { return reproduce_command(reproduce); }; });
}

void CommandLine::add_validate() {
  CLI::App* sub = app.add_subcommand("validate", "predict measured training steps of your own and compare");
  takes_file(
      sub->add_option("ROWS", validate.file, "measured rows (CSV, docs/compare.md#measurements-of-your-own)"))
      ->required();
  sub->add_flag("--json", validate.json, "as JSON");
  takes_folder(
      sub->add_option("--out", validate.out,
                      "folder for a page to send on, its numbers, and refitted devices as a catalogue"));
  add_jobs(sub, validate.jobs);
  add_progress(sub, validate.progress);
  add_examples(sub,
               {{"convoy validate rows.csv", "how far predictions are off, and which term is to blame"}});
  sub->callback([this] { command = [this] { return validate_command(validate); }; });
}

void CommandLine::add_doctor() {
  CLI::App* sub =
      app.add_subcommand("doctor", "which unmeasured numbers an answer depends on, and how to measure them");
  add_file(sub, doctor.file, "experiment, or a plan (YAML)");
  add_settings(sub, doctor.settings);
  takes_file(sub->add_option("--prices", doctor.prices, "price table of a plan, as that of convoy plan"));
  CLI::Option* draws =
      sub->add_option("--draws", doctor.draws,
                      "simulate so many draws of all numbers at once, and hold the interval against them")
          ->check(CLI::Range(1, 1'000'000).description(""))
          ->type_name("N");
  sub->add_option("--seed", doctor.seed, "of the draws (default: 1)")->needs(draws)->type_name("N");
  sub->add_flag("--json", doctor.json, "as JSON (docs/doctor.md)");
  add_jobs(sub, doctor.jobs);
  add_progress(sub, doctor.progress);
  add_examples(sub, {{"convoy doctor lab.yaml --set 'sweep.cluster.fabric.bandwidth=[1Gbps]'",
                      "what to measure first to be more certain of the answer"}});
  sub->callback([this] { command = [this] { return doctor_command(doctor); }; });
}

void CommandLine::add_diagnose() {
  CLI::App* sub = app.add_subcommand(
      "diagnose", "a trace of PyTorch's profiler beside its prediction: what differs, and what would help");
  takes_file(sub->add_option("TRACE", diagnose.trace, "trace of torch.profiler (JSON, or packed: .json.gz)"))
      ->required();
  add_file(sub, diagnose.file, "experiment that it is of (YAML)");
  add_settings(sub, diagnose.settings);
  CLI::Option* json = sub->add_flag("--json", diagnose.json, "as JSON (docs/diagnose.md)");
  sub->add_flag("--html", diagnose.html, "as a page")->excludes(json);
  takes_file(sub->add_option("--joint-trace", diagnose.joint_trace,
                             "also write the measured and the predicted step as one trace for Perfetto"))
      ->type_name("FILE");
  add_jobs(sub, diagnose.jobs);
  add_examples(sub, {{"convoy diagnose trace.json.gz mine.yaml", "by which operations the two differ"}});
  sub->callback([this] { command = [this] { return diagnose_command(diagnose); }; });
}

}  // namespace convoy::cli
