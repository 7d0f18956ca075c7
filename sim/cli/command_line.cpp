// SPDX-License-Identifier: MIT
#include "sim/cli/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "sim/base/clean_text.h"
#include "sim/base/names.h"
#include "sim/base/precision.h"
#include "sim/calibration/cross_validation.h"
#include "sim/cli/completion.h"
#include "sim/cli/manual.h"
#include "sim/replay/engine.h"
#include "sim/run/manifest.h"
#include "sim/run/output_folder.h"
#include "sim/run/workers.h"

namespace convoy::inline cli {
namespace {

/// Takes one of the names; says which is the nearest where it is none.
CLI::Validator one_of(std::vector<std::string> names) {
  return {[names = std::move(names)](const std::string& value) -> std::string {
            if (std::find(names.begin(), names.end(), value) != names.end()) return {};
            return fmt::format("there is no '{}'{}; there are {}", excerpt(value), suggestion(value, names),
                               list_of(names));
          },
          ""};
}

/// Takes any text but the empty one, with which a script passes a variable that is not set.
CLI::Validator not_empty(const char* what) {
  return {[what](const std::string& value) -> std::string {
            return value.empty() ? fmt::format("is empty; give the name of a {}", what) : std::string{};
          },
          ""};
}

/// Names of a subject of `convoy show`, for completion.
ArgumentValues::Names names_of(const std::string& subject) {
  return [subject](const std::vector<std::string>&, const std::string&) { return names_to_show(subject); };
}

ArgumentValues::Names fixed(std::vector<std::string> names) {
  return [names = std::move(names)](const std::vector<std::string>&, const std::string&) { return names; };
}

CLI::Option* takes(CLI::Option* option, const char* value) {
  return option->nonpositional() ? option->type_name(value) : option;
}

void add_jobs(CLI::App* sub, std::size_t& jobs) {
  jobs = all_cores();
  sub->add_option("--jobs", jobs, "processes at a time, 1 to 4096 (default: all cores)")
      ->check(CLI::Range(1, 4096).description(""))
      ->type_name("N");
}

Shard parse_shard(const std::string& text) {
  Shard shard{0, 0};
  char end = 0;
  if (std::sscanf(text.c_str(), "%zu/%zu%c", &shard.index, &shard.of, &end) != 2 || shard.index < 1 ||
      shard.index > shard.of || text.find('-') != std::string::npos)
    throw CLI::ValidationError(
        "--shard", fmt::format("write I/N with I from 1 to N, such as 2/8, not '{}'", excerpt(text)));
  return shard;
}

}  // namespace

CommandLine::CommandLine() {
  app.require_subcommand(1);
  app.set_version_flag("--version", [] {
    return fmt::format("convoy {} (SimGrid {})", version(), Engine::simgrid_version());
  });
  add_run();
  add_check();
  add_plan();
  add_study();
  add_show();
  add_calibrate();
  add_reproduce();
  add_validate();
  add_doctor();
  add_diagnose();
  add_from_torch();
  add_report();
  add_compare();
  add_merge();
  add_partition();
  add_manual();
  add_examples(&app, {{"convoy run lab.yaml", "simulate an experiment"},
                      {"convoy show devices", "what there is to write into one"},
                      {"convoy run --help", "options and examples of a command"}});
  std::string codes;
  for (const auto& [code, meaning] : exit_code_texts)
    codes += fmt::format("{}{} {}", codes.empty() ? "" : ", ", code, meaning);
  app.footer(fmt::format("{}\n\nExit codes: {}.", app.get_footer(), codes));
}

std::vector<const CLI::App*> CommandLine::commands() const {
  return app.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
}

std::vector<CommandText> CommandLine::texts() const {
  std::vector<CommandText> texts{text_of(app, "")};
  for (const CLI::App* sub : commands()) texts.push_back(text_of(*sub, sub->get_name()));
  return texts;
}

CommandText CommandLine::text_of(const CLI::App& of, const std::string& name) const {
  CommandText text{name, of.get_description(), {}, {}, examples_.at(&of)};
  for (const CLI::Option* option : of.get_options()) {
    ArgumentText argument;
    const bool positional = option->get_positional();
    argument.name = positional ? option->get_name() : "--" + option->get_lnames().front();
    if (!positional && option->get_items_expected_max() > 0) argument.value = option->get_type_name();
    argument.meaning = option->get_description();
    argument.required = option->get_required();
    argument.repeated = option->get_items_expected_max() > 1;
    if (const auto found = values_.find(option); found != values_.end()) argument.values = found->second;
    (positional ? text.arguments : text.options).push_back(std::move(argument));
  }
  return text;
}

void CommandLine::add_examples(CLI::App* of, std::vector<ExampleText> examples) {
  std::string text = "Examples:";
  for (const ExampleText& example : examples)
    text += fmt::format("\n  {}\n      {}", example.command, example.meaning);
  of->footer(text);
  examples_[of] = std::move(examples);
}

CLI::Option* CommandLine::takes_file(CLI::Option* option) {
  values_[option].files = true;
  return takes(option->check(not_empty("file")), "FILE");
}

CLI::Option* CommandLine::takes_folder(CLI::Option* option) {
  values_[option].folders = true;
  return takes(option->check(not_empty("folder")), "DIR");
}

CLI::Option* CommandLine::chooses(CLI::Option* option, const std::vector<std::string>& names) {
  values_[option].names = fixed(names);
  return option->check(one_of(names))->type_name(fmt::format("{}", fmt::join(names, "|")));
}

CLI::Option* CommandLine::offers(CLI::Option* option, const char* value, ArgumentValues::Names names) {
  values_[option].names = std::move(names);
  return takes(option, value);
}

void CommandLine::add_file(CLI::App* sub, std::string& file, const char* what) {
  takes_file(sub->add_option("FILE", file, what))->required();
}

void CommandLine::add_settings(CLI::App* sub, std::vector<std::string>& settings, const char* section) {
  CLI::Option* option = sub->add_option("--set", settings, "replace a value of the file (several times)")
                            ->expected(1)
                            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                            ->allow_extra_args(false);
  offers(option, "KEY.PATH=VALUE", [section](const std::vector<std::string>&, const std::string& word) {
    return setting_candidates(section, word);
  });
}

void CommandLine::add_progress(CLI::App* sub, Progress::Style& style) {
  CLI::Option* option =
      sub->add_option("--progress", style, "auto (default): on a terminal; plain: a line a minute; none")
          ->transform(CLI::CheckedTransformer(
                          std::map<std::string, Progress::Style>{{"auto", Progress::Style::automatic},
                                                                 {"plain", Progress::Style::plain},
                                                                 {"none", Progress::Style::none}})
                          .description(""));
  offers(option, "auto|plain|none", fixed({"auto", "plain", "none"}));
}

void CommandLine::add_run() {
  CLI::App* sub = app.add_subcommand("run", "simulate an experiment, all points of its sweep");
  add_file(sub, run.file);
  add_settings(sub, run.settings);
  takes_folder(sub->add_option("--out", run.out,
                               "for the results (default: runs/EXPERIMENT, with --set a folder in it)"));
  sub->add_flag("--json", run.json,
                "print results.json only; write a folder only with --out, --trace or --monitor");
  add_jobs(sub, run.jobs);
  chooses(
      sub->add_option("--network-model", run.network_model,
                      "who shares out links: convoy's flow model (default), or SimGrid's as the reference"),
      {"convoy", "simgrid"});
  sub->add_flag("--trace", run.trace, "write trace.json too, for Perfetto or chrome://tracing");
  takes_file(
      sub->add_option("--tasks", run.tasks,
                      "for every task and message that was replayed, of one point (JSON, docs/tasks.md)"));
  takes_folder(sub->add_option("--chakra", run.chakra,
                               "for the same as execution traces of Chakra, which ASTRA-sim reads"));
  takes_file(
      sub->add_option("--goal", run.goal, "for the same as a schedule of GOAL, which LogGOPSim reads"));
  sub->add_flag("--monitor", run.monitor,
                "write monitor.csv too: traffic, load and memory of each host, as a provider reports them");
  sub->add_option("--monitor-every", run.monitor_every, "interval of its samples (default: 60s)")
      ->type_name("TIME");
  sub->add_option("--monitor-for", run.monitor_for,
                  "time that it covers (default: an epoch, or 10 intervals without a dataset)")
      ->type_name("TIME");
  sub->add_flag("--explain", run.explain, "say what a faster network, faster devices, ... would gain each");
  sub->add_flag("--require-fit", run.require_fit, "exit with 3 when a run needs more memory than there is");
  sub->add_flag("--full", run.full, "results of each device and link, not of each class of equal ones");
  sub->add_flag("--fresh", run.fresh, "forget what the folder has and begin anew");
  sub->add_option_function<std::string>(
         "--shard", [this](const std::string& text) { run.shard = parse_shard(text); },
         "only every N-th point, from number I on; `convoy merge` joins the shards")
      ->type_name("I/N");
  sub->add_option("--point-memory", run.point_memory,
                  "that a point may take, such as 4GiB (default: the machine's, shared among --jobs)")
      ->type_name("MEMORY");
  sub->add_option("--point-time", run.point_time, "that a point may take, such as 60s (default: no limit)")
      ->type_name("TIME");
  add_progress(sub, run.progress);
  add_examples(sub, {{"convoy run lab.yaml", "all points of its sweep; results and a report in runs/"},
                     {"convoy run lab.yaml --set training.batch_per_device=32 --out runs/half-batch",
                      "the same with another value"},
                     {"convoy run lab.yaml --set 'sweep.cluster.fabric.bandwidth=[1Gbps]' --explain",
                      "what would make the step shorter, and by how much"},
                     {"convoy run lab.yaml --json > results.json", "the numbers alone"}});
  sub->callback([this] { command = [this] { return run_command(run); }; });
}

void CommandLine::add_check() {
  CLI::App* sub = app.add_subcommand("check", "read and plan an experiment without simulating it");
  add_file(sub, check.file, "experiment (YAML), or a folder of results");
  add_settings(sub, check.settings);
  add_jobs(sub, check.jobs);
  sub->add_flag(
      "--prove", check.prove,
      "prove that the plan computes what one device would, one point after the other (docs/proof.md)");
  add_examples(sub,
               {{"convoy check lab.yaml", "what would be run, and the memory of its fullest device"},
                {"convoy check lab.yaml --prove", "whether its plan sums every gradient of every image once"},
                {"convoy check runs/half-batch", "which stored points of a results folder are sound"}});
  sub->callback([this] { command = [this] { return check_command(check); }; });
}

void CommandLine::add_plan() {
  CLI::App* sub = app.add_subcommand("plan", "what to rent: the cheapest or quickest way to a goal");
  add_file(sub, plan.file, "experiment with goal and plan (YAML)");
  add_settings(sub, plan.settings, "plan-file");
  takes_folder(sub->add_option("--out", plan.out, "for the plan (default: runs/EXPERIMENT)"));
  takes_file(sub->add_option("--prices", plan.prices,
                             "price table (CSV as topologies/catalog/prices.csv, or SkyPilot's vms.csv)"));
  takes_file(sub->add_option("--skypilot", plan.skypilot,
                             "write the task file with which SkyPilot rents the choice"));
  sub->add_flag("--json", plan.json, "print plan.json only; write a folder only with --out");
  sub->add_flag("--exhaustive", plan.exhaustive, "simulate every candidate: the same answer, slowly");
  add_jobs(sub, plan.jobs);
  add_progress(sub, plan.progress);
  add_examples(sub, {{"convoy plan plan.yaml", "what to rent, and why nothing else"},
                     {"convoy plan plan.yaml --set plan.constraints.deadline=12h --json > plan.json",
                      "another deadline; the numbers alone"},
                     {"convoy plan plan.yaml --skypilot task.yaml",
                      "and how SkyPilot rents it: sky launch task.yaml"}});
  sub->callback([this] { command = [this] { return plan_command(plan); }; });
}

void CommandLine::add_study() {
  CLI::App* sub = app.add_subcommand("study", "for which inputs claims hold: their share, border and causes");
  add_file(sub, study.file, "experiment with study (YAML)");
  add_settings(sub, study.settings);
  takes_folder(sub->add_option("--out", study.out,
                               "for the study (default: runs/EXPERIMENT, with --set a folder in it)"));
  sub->add_flag("--json", study.json, "print study.json only; write a folder only with --out");
  sub->add_flag("--fresh", study.fresh, "forget what the folder has and begin anew");
  add_jobs(sub, study.jobs);
  add_progress(sub, study.progress);
  add_examples(sub, {{"convoy study study.yaml", "where each of its claims holds, and a page with pictures"},
                     {"convoy study study.yaml --set study.points=512", "with more points"},
                     {"convoy study study.yaml --json > study.json", "the numbers alone"}});
  sub->callback([this] { command = [this] { return study_command(study); }; });
}

void CommandLine::add_show() {
  CLI::App* sub = app.add_subcommand("show", "what there is, or one thing in detail");
  chooses(sub->add_option("WHAT", show.what, "what to show")->required(), show_subjects());
  CLI::Option* name = sub->add_option(
      "NAME", show.name,
      "one of them in detail; for models also a YAML or ONNX file, for clusters a YAML file, for "
      "algorithms a schedule (YAML, or MSCCL's XML)");
  values_[name] = {[](const std::vector<std::string>& before, const std::string&) {
                     return before.empty() ? std::vector<std::string>{} : names_to_show(before.front());
                   },
                   true, false};
  CLI::Option* json = sub->add_flag("--json", show.json, "as JSON");
  CLI::Option* const dot =
      sub->add_flag("--dot", show.dot, "a model or cluster as a drawing for Graphviz")->excludes(json);
  sub->add_flag("--svg", show.svg, "a cluster as a drawing")->excludes(json)->excludes(dot);
  CLI::Option* device = sub->add_option("--device", show.device, "a model's time on this device, by layer");
  offers(device, "DEVICE", names_of("devices"));
  sub->add_option("--batch", show.batch, "images a step on it, 1 to 1000000 (default: 32)")
      ->check(CLI::Range(1, 1'000'000).description(""))
      ->type_name("N")
      ->needs(device);
  offers(sub->add_option("--precision", show.precision, "fp32 (default), tf32, fp16 or bf16"), "PRECISION",
         fixed({precision_names.begin(), precision_names.end()}))
      ->needs(device);
  offers(sub->add_option("--optimizer", show.optimizer,
                         "momentum (default), sgd or adam: its update is a part of the time"),
         "OPTIMIZER", fixed({optimizer_names.begin(), optimizer_names.end()}))
      ->needs(device);
  sub->add_option("--ranks", show.ranks, "of an algorithm's messages, 2 to 1024 (default: 8)")
      ->check(CLI::Range(2, 1024).description(""))
      ->type_name("N");
  sub->add_option("--ranks-per-host", show.ranks_per_host, "of them on each host (default: 1)")
      ->check(CLI::Range(1, 1024).description(""))
      ->type_name("N");
  add_examples(sub, {{"convoy show devices", "all devices with their peaks and memories"},
                     {"convoy show models resnet50 --device v100-sxm2-16gb", "what its layers take on one"},
                     {"convoy show servers aws-p3.16xlarge --json", "one thing in detail, as JSON"},
                     {"convoy show clusters lab.yaml --svg > lab.svg", "a drawing of your own"},
                     {"convoy show algorithms ring --ranks 4", "who sends what to whom, as a schedule"},
                     {"convoy show keys training", "what a part of an experiment may say"},
                     {"convoy show schema experiment > experiment.schema.json", "for your editor"}});
  sub->callback([this] { command = [this] { return show_command(show); }; });
}

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

void CommandLine::add_from_torch() {
  CLI::App* sub =
      app.add_subcommand("from-torch", "a network that PyTorch exported to ONNX, as a model in YAML");
  takes_file(sub->add_option("FILE", from_torch.file, "what torch.onnx.export wrote (ONNX)"))->required();
  takes_file(sub->add_option("--out", from_torch.out, "file for the model (default: standard output)"))
      ->type_name("FILE");
  add_examples(
      sub, {{"convoy from-torch net.onnx --out net.yaml", "for `model: {file: net.yaml}`, to be edited"}});
  sub->callback([this] { command = [this] { return from_torch_command(from_torch); }; });
}

void CommandLine::add_report() {
  CLI::App* sub = app.add_subcommand("report", "rewrite report.html of a finished run");
  takes_folder(sub->add_option("DIR", report.folder, "folder of the run"))->required();
  add_examples(sub, {{"convoy report runs/half-batch", "with the program as it is now"}});
  sub->callback([this] { command = [this] { return report_command(report); }; });
}

void CommandLine::add_compare() {
  CLI::App* sub = app.add_subcommand("compare", "what two results differ in, point by point, and why");
  takes_file(sub->add_option("A", compare.a, "folder of a run, its results.sqlite or its results.json"))
      ->required();
  takes_file(sub->add_option("B", compare.b, "what it is compared with"))->required();
  CLI::Option* json = sub->add_flag("--json", compare.json, "as JSON (docs/compare.md)");
  sub->add_flag("--html", compare.html, "as a page")->excludes(json);
  add_examples(
      sub, {{"convoy compare runs/first-experiment runs/half-batch", "what another batch size changes"},
            {"convoy compare runs/first-experiment runs/half-batch --html > difference.html", "as a page"}});
  sub->callback([this] { command = [this] { return compare_command(compare); }; });
}

void CommandLine::add_merge() {
  CLI::App* sub = app.add_subcommand("merge", "join the results of shards");
  takes_folder(sub->add_option("DIR", merge.folders, "folders of the shards"))->required();
  takes_folder(sub->add_option("--out", merge.out, "for the results"))->required();
  sub->add_flag("--fresh", merge.fresh, "forget what the folder has");
  sub->add_flag("--store-only", merge.store_only,
                "take over the points that can be read, whatever sweeps they are of, and write no results");
  add_examples(sub, {{"convoy run lab.yaml --shard 1/2 --out shard1", "on one machine"},
                     {"convoy run lab.yaml --shard 2/2 --out shard2", "on another"},
                     {"convoy merge shard1 shard2 --out runs/merged", "the results of both"}});
  sub->callback([this] { command = [this] { return merge_command(merge); }; });
}

void CommandLine::add_partition() {
  CLI::App* sub = app.add_subcommand("partition", "place the operations of a graph on devices");
  takes_file(
      sub->add_option("GRAPH", partition.graph,
                      "operation graph (JSON, docs/partition.md), or experiment (YAML): its training graph"))
      ->required();
  chooses(sub->add_option("--method", partition.method, "how (default: pardnn)"), partition_method_names());
  sub->add_option("--parts", partition.parts, "devices, 1 to 1024")
      ->required()
      ->check(CLI::Range(1, 1024).description(""))
      ->type_name("N");
  sub->add_option("--memory", partition.memory, "of a device, such as 16GiB (default: no limit)")
      ->type_name("MEMORY");
  sub->add_option("--bandwidth", partition.bandwidth, "between any two devices (default: 130GB/s)")
      ->type_name("BANDWIDTH");
  sub->add_option("--latency", partition.latency, "of a message (default: 25us)")->type_name("TIME");
  sub->add_option("--host-bandwidth", partition.host_bandwidth,
                  "with --memory: of a device to its host, for one device that pages (default: 12GB/s)")
      ->type_name("BANDWIDTH");
  sub->add_option("--seed", partition.seed, "of methods that draw (default: 1)")->type_name("N");
  sub->add_flag("--json", partition.json, "as JSON");
  add_examples(sub,
               {{"convoy partition graph.json --parts 4 --memory 16GiB", "operations of a graph of your own"},
                {"convoy partition lab.yaml --parts 2 --method heft", "those of an experiment's network"}});
  sub->callback([this] { command = [this] { return partition_command(partition); }; });
}

void CommandLine::add_manual() {
  CLI::App* sub = app.add_subcommand("manual", "write the manual pages into a folder")->group("");
  sub->add_option("DIR", manual, "folder that exists")->required();
  sub->callback([this] {
    command = [this] {
      for (const ManualPage& page : manual_pages(texts()))
        write_file(manual + '/' + page.file, [&](std::ostream& out) { out << page.text; });
      return Exit::done;
    };
  });
}

std::vector<CommandText> command_texts() { return CommandLine().texts(); }

}  // namespace convoy::cli
