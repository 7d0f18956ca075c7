// SPDX-License-Identifier: MIT
// Commands that take an experiment, and those that take what it leaves.
#include <fmt/format.h>

#include <cstdio>

#include "sim/base/clean_text.h"
#include "sim/cli/command_line.h"

namespace convoy::inline cli {
namespace {

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
  add_progress(sub, merge.progress);
  add_examples(sub, {{"convoy run lab.yaml --shard 1/2 --out shard1", "on one machine"},
                     {"convoy run lab.yaml --shard 2/2 --out shard2", "on another"},
                     {"convoy merge shard1 shard2 --out runs/merged", "the results of both"}});
  sub->callback([this] { command = [this] { return merge_command(merge); }; });
}

}  // namespace convoy::cli
