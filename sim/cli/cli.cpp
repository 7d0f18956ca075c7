// SPDX-License-Identifier: MIT
// The only file that includes CLI11, which is slow to compile.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <new>

#include "sim/base/clean_text.h"
#include "sim/base/input_error.h"
#include "sim/base/names.h"
#include "sim/calibration/cross_validation.h"
#include "sim/cli/commands.h"
#include "sim/replay/engine.h"
#include "sim/run/manifest.h"
#include "sim/run/output_folder.h"
#include "sim/run/workers.h"

namespace convoy::inline cli {
namespace {

void complain(const std::string& message) {
  std::string line = message;
  std::replace(line.begin(), line.end(), '\n', ' ');
  fmt::print(stderr, "{}\n", clean(line));
}

/// Takes one of the names; says which is the nearest where it is none.
CLI::Validator one_of(std::vector<std::string> names) {
  const std::string shown = fmt::format("{{{}}}", fmt::join(names, ","));
  return {[names = std::move(names)](const std::string& value) -> std::string {
            if (std::find(names.begin(), names.end(), value) != names.end()) return {};
            return fmt::format("there is no '{}'{}; there are {}", excerpt(value), suggestion(value, names),
                               list_of(names));
          },
          shown};
}

/// The sub-commands and their arguments; `command` is what the command line chose.
struct CommandLine {
  CLI::App app{"Simulates distributed training of convolutional networks.", "convoy"};
  std::function<Exit()> command;
  RunArguments run;
  CheckArguments check;
  PlanArguments plan;
  ShowArguments show;
  CalibrateArguments calibrate;
  ReproduceArguments reproduce;
  ValidateArguments validate;
  DoctorArguments doctor;
  ReportArguments report;
  CompareArguments compare;
  MergeArguments merge;
  PartitionArguments partition;

  CommandLine() {
    app.require_subcommand(1);
    app.set_version_flag("--version", [] {
      return fmt::format("convoy {} (SimGrid {})", version(), Engine::simgrid_version());
    });
    app.footer(
        "Exit codes: 0 done, 1 a check failed, 2 wrong usage or input, 3 does not fit in memory "
        "(--require-fit), 4 out of memory or "
        "time, 70 a bug, 128 + signal: interrupted.");
    add_run();
    add_check();
    add_plan();
    add_show();
    add_calibrate();
    add_reproduce();
    add_validate();
    add_doctor();
    add_report();
    add_compare();
    add_merge();
    add_partition();
  }

 private:
  static void add_file(CLI::App* sub, std::string& file) {
    sub->add_option("FILE", file, "experiment (YAML)")->required();
  }
  static void add_settings(CLI::App* sub, std::vector<std::string>& settings) {
    sub->add_option("--set", settings, "key.path=value: replace a value of the file (several times)")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->allow_extra_args(false);
  }
  static void add_jobs(CLI::App* sub, std::size_t& jobs) {
    jobs = all_cores();
    sub->add_option("--jobs", jobs, "processes at a time (default: all cores)")->check(CLI::Range(1, 4096));
  }

  static void add_progress(CLI::App* sub, Progress::Style& style) {
    sub->add_option("--progress", style, "auto (default): on a terminal; plain: a line a minute; none")
        ->transform(CLI::CheckedTransformer(
                        std::map<std::string, Progress::Style>{{"auto", Progress::Style::automatic},
                                                               {"plain", Progress::Style::plain},
                                                               {"none", Progress::Style::none}})
                        .description("auto|plain|none"));
  }
  static Shard parse_shard(const std::string& text) {
    Shard shard{0, 0};
    char end = 0;
    if (std::sscanf(text.c_str(), "%zu/%zu%c", &shard.index, &shard.of, &end) != 2 || shard.index < 1 ||
        shard.index > shard.of || text.find('-') != std::string::npos)
      throw CLI::ValidationError(
          "--shard", fmt::format("write I/N with I from 1 to N, such as 2/8, not '{}'", excerpt(text)));
    return shard;
  }

  void add_run() {
    CLI::App* sub = app.add_subcommand("run", "simulate an experiment, all points of its sweep");
    add_file(sub, run.file);
    add_settings(sub, run.settings);
    sub->add_option("--out", run.out,
                    "folder for the results (default: runs/EXPERIMENT, with --set a folder in it)");
    sub->add_flag("--json", run.json, "print results.json only; write a folder only with --out or --trace");
    add_jobs(sub, run.jobs);
    sub->add_option("--network-model", run.network_model,
                    "who shares out links: convoy's flow model (default), or SimGrid's as the reference")
        ->check(one_of({"convoy", "simgrid"}));
    sub->add_flag("--trace", run.trace, "write trace.json too, for Perfetto or chrome://tracing");
    sub->add_option("--tasks", run.tasks,
                    "file for every task and message that was replayed, of one point (JSON, docs/tasks.md)");
    sub->add_flag("--explain", run.explain, "say what a faster network, faster devices, ... would gain each");
    sub->add_flag("--require-fit", run.require_fit, "exit with 3 when a run needs more memory than there is");
    sub->add_flag("--full", run.full, "results of each device and link, not of each class of equal ones");
    sub->add_flag("--fresh", run.fresh, "forget what the folder has and begin anew");
    sub->add_option_function<std::string>(
           "--shard", [this](const std::string& text) { run.shard = parse_shard(text); },
           "I/N: only every N-th point, from number I on; `convoy merge` joins the shards")
        ->type_name("I/N");
    sub->add_option("--point-memory", run.point_memory,
                    "memory a point may take, such as 4GiB (default: the machine's, shared among --jobs)");
    sub->add_option("--point-time", run.point_time, "time a point may take, such as 60s (default: no limit)");
    add_progress(sub, run.progress);
    sub->callback([this] { command = [this] { return run_command(run); }; });
  }
  void add_check() {
    CLI::App* sub = app.add_subcommand("check", "read and plan an experiment without simulating it");
    add_file(sub, check.file);
    add_settings(sub, check.settings);
    add_jobs(sub, check.jobs);
    sub->add_flag("--prove", check.prove, "prove that the plan computes what one device would");
    sub->callback([this] { command = [this] { return check_command(check); }; });
  }
  void add_plan() {
    CLI::App* sub = app.add_subcommand("plan", "what to rent: the cheapest or quickest way to a goal");
    sub->add_option("FILE", plan.file, "experiment with goal and plan (YAML)")->required();
    add_settings(sub, plan.settings);
    sub->add_option("--out", plan.out, "folder for the plan (default: runs/EXPERIMENT)");
    sub->add_option("--prices", plan.prices,
                    "price table (CSV as topologies/catalog/prices.csv, or SkyPilot's vms.csv)");
    sub->add_flag("--json", plan.json, "print plan.json only; write a folder only with --out");
    sub->add_flag("--exhaustive", plan.exhaustive, "simulate every candidate: the same answer, slowly");
    add_jobs(sub, plan.jobs);
    add_progress(sub, plan.progress);
    sub->callback([this] { command = [this] { return plan_command(plan); }; });
  }
  void add_show() {
    CLI::App* sub = app.add_subcommand("show", "what there is, or one thing in detail");
    sub->add_option("WHAT", show.what, "what to show")->required()->check(one_of(show_subjects()));
    sub->add_option("NAME", show.name, "one of them in detail; for models also a YAML or ONNX file");
    CLI::Option* json = sub->add_flag("--json", show.json, "as JSON");
    CLI::Option* const dot =
        sub->add_flag("--dot", show.dot, "a model or cluster as a drawing for Graphviz")->excludes(json);
    sub->add_flag("--svg", show.svg, "a cluster as a drawing")->excludes(json)->excludes(dot);
    CLI::Option* device = sub->add_option("--device", show.device, "a model's time on this device, by layer");
    sub->add_option("--batch", show.batch, "images a step on it (default: 32)")
        ->check(CLI::Range(1, 1'000'000))
        ->needs(device);
    sub->add_option("--precision", show.precision, "fp32 (default), tf32, fp16 or bf16")->needs(device);
    sub->add_option("--optimizer", show.optimizer,
                    "momentum (default), sgd or adam: its update is a part of the time")
        ->needs(device);
    sub->callback([this] { command = [this] { return show_command(show); }; });
  }
  void add_calibrate() {
    CLI::App* sub =
        app.add_subcommand("calibrate", "fit a device's efficiencies, or a link, to measured times");
    sub->add_option(
           "PROFILE", calibrate.profiles,
           "measured speeds (CSV, docs/cost_model.md), a trace of torch.profiler (JSON), or a log of "
           "nccl-tests' all_reduce_perf")
        ->required();
    CLI::Option* device = sub->add_option("--device", calibrate.device,
                                          "device of the catalogue; none for a log of nccl-tests");
    sub->add_option("--experiment", calibrate.experiment,
                    "file whose cluster describes the device, in place of the catalogue")
        ->needs(device);
    sub->add_option("--catalogue", calibrate.catalogue,
                    "fit all devices and frameworks together, and write their files' parts into this folder")
        ->excludes(device);
    sub->add_option(
           "--leave-out", calibrate.leave_out,
           "fit all devices and frameworks without one device, generation, source or family at a time, "
           "and print its rows as predicted by the fit that has not seen them (CSV)")
        ->check(one_of(std::vector<std::string>(leave_out_names.begin(), leave_out_names.end())))
        ->excludes(device)
        ->excludes("--catalogue");
    sub->callback([this] { command = [this] { return calibrate_command(calibrate); }; });
  }
  void add_reproduce() {
    CLI::App* sub = app.add_subcommand("reproduce", "predict published measurements and compare");
    sub->add_option("NAME", reproduce.names, "which of them (default: all)")
        ->check(one_of(reproduction_names()));
    sub->add_flag("--json", reproduce.json, "as JSON");
    add_progress(sub, reproduce.progress);
    sub->callback([this] { command = [this] { return reproduce_command(reproduce); }; });
  }
  void add_validate() {
    CLI::App* sub = app.add_subcommand("validate", "predict measured training steps of your own and compare");
    sub->add_option("ROWS", validate.file, "measured rows (CSV, docs/compare.md#measurements-of-your-own)")
        ->required();
    sub->add_flag("--json", validate.json, "as JSON");
    add_jobs(sub, validate.jobs);
    add_progress(sub, validate.progress);
    sub->callback([this] { command = [this] { return validate_command(validate); }; });
  }
  void add_doctor() {
    CLI::App* sub = app.add_subcommand(
        "doctor", "which unmeasured numbers an answer depends on, and how to measure them");
    sub->add_option("FILE", doctor.file, "experiment, or a plan (YAML)")->required();
    add_settings(sub, doctor.settings);
    sub->add_option("--prices", doctor.prices, "price table of a plan, as that of convoy plan");
    sub->add_flag("--json", doctor.json, "as JSON (docs/doctor.md)");
    add_jobs(sub, doctor.jobs);
    add_progress(sub, doctor.progress);
    sub->callback([this] { command = [this] { return doctor_command(doctor); }; });
  }
  void add_report() {
    CLI::App* sub = app.add_subcommand("report", "rewrite report.html of a finished run");
    sub->add_option("DIR", report.folder, "folder of the run")->required();
    sub->callback([this] { command = [this] { return report_command(report); }; });
  }
  void add_compare() {
    CLI::App* sub = app.add_subcommand("compare", "what two results differ in, point by point, and why");
    sub->add_option("A", compare.a, "folder of a run, its results.sqlite or its results.json")->required();
    sub->add_option("B", compare.b, "what it is compared with")->required();
    CLI::Option* json = sub->add_flag("--json", compare.json, "as JSON (docs/compare.md)");
    sub->add_flag("--html", compare.html, "as a page")->excludes(json);
    sub->callback([this] { command = [this] { return compare_command(compare); }; });
  }
  void add_merge() {
    CLI::App* sub = app.add_subcommand("merge", "join the results of shards");
    sub->add_option("DIR", merge.folders, "folders of the shards")->required();
    sub->add_option("--out", merge.out, "folder for the results")->required();
    sub->add_flag("--fresh", merge.fresh, "forget what the folder has");
    sub->add_flag("--store-only", merge.store_only,
                  "take over the points that can be read, whatever sweeps they are of, and write no results");
    sub->callback([this] { command = [this] { return merge_command(merge); }; });
  }
  void add_partition() {
    CLI::App* sub = app.add_subcommand("partition", "place the operations of a graph on devices");
    sub->add_option("GRAPH", partition.graph,
                    "operation graph (JSON, docs/partition.md), or experiment (YAML): its training graph")
        ->required();
    sub->add_option("--method", partition.method, "how (default: pardnn)")
        ->check(one_of(partition_method_names()));
    sub->add_option("--parts", partition.parts, "devices")->required()->check(CLI::Range(1, 1024));
    sub->add_option("--memory", partition.memory, "memory of a device, such as 16GiB (default: no limit)");
    sub->add_option("--bandwidth", partition.bandwidth, "between any two devices (default: 130GB/s)");
    sub->add_option("--latency", partition.latency, "of a message (default: 25us)");
    sub->add_option("--host-bandwidth", partition.host_bandwidth,
                    "with --memory: of a device to its host, for one device that pages (default: 12GB/s)");
    sub->add_option("--seed", partition.seed, "of methods that draw (default: 1)");
    sub->add_flag("--json", partition.json, "as JSON");
    sub->callback([this] { command = [this] { return partition_command(partition); }; });
  }
};

/// What is wrong with the first argument where it stands in the place of a command and is none; else "".
std::string unknown_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return {};
  return fmt::format("there is no command '{}'{}; commands are {}", excerpt(argv[1]),
                     suggestion(argv[1], names), list_of(names));
}

/// What is wrong where the chosen command has no such option; else "". CLI11 looks at values first, among
/// them that of the option that there is not.
std::string unknown_option(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands())
    for (const std::string& argument : command->remaining()) {
      if (!argument.starts_with("--") || argument == "--") continue;
      const std::string name = argument.substr(0, argument.find('='));
      std::vector<std::string> names;
      for (const CLI::Option* option : command->get_options())
        for (const std::string& known : option->get_lnames()) names.push_back("--" + known);
      return fmt::format("`convoy {}` has no option '{}'{}; it has {}", command->get_name(), excerpt(name),
                         suggestion(name, names), list_of(names));
    }
  return {};
}

}  // namespace

Exit convoy_main(int argc, char** argv) {
  // A closed pipe, or a file that may not grow, is an error of the write, with a message.
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  try {
    CommandLine line;
    if (const std::string wrong = unknown_command(line.app, argc, argv); !wrong.empty()) {
      complain(fmt::format("convoy: {} (convoy --help says more)", wrong));
      return Exit::bad_input;
    }
    try {
      line.app.parse(argc, argv);
    } catch (const CLI::Success& wanted) {  // --help, --version
      write_stdout([&](std::ostream& out) { line.app.exit(wanted, out, out); });
      return Exit::done;
    } catch (const CLI::ParseError& error) {
      const std::string wrong = unknown_option(line.app);
      complain(fmt::format("convoy: {} (convoy --help says more)", wrong.empty() ? error.what() : wrong));
      return Exit::bad_input;
    }
    return line.command();
  } catch (const InputError& error) {
    complain(error.what());
    return Exit::bad_input;
  } catch (const OutputError& error) {
    complain(fmt::format("convoy: {}", error.what()));
    return Exit::bad_input;
  } catch (const std::bad_alloc&) {
    complain("convoy: out of memory");
    return Exit::out_of_resources;
  } catch (const std::filesystem::filesystem_error& error) {  // too few descriptors, a catalogue that is gone
    const std::string place = error.path1().string();
    complain(fmt::format("convoy: {}{}{}", place, place.empty() ? "" : ": ", error.code().message()));
    return Exit::out_of_resources;
  } catch (const std::exception& error) {
    complain(fmt::format("convoy: internal error: {}", error.what()));
    return Exit::bug;
  }
}

}  // namespace convoy::cli
