// SPDX-License-Identifier: MIT
// Commands about what there is: the catalogue, networks and graphs.
#include "sim/base/precision.h"
#include "sim/cli/command_line.h"
#include "sim/cli/completion.h"

namespace convoy::inline cli {

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

}  // namespace convoy::cli
