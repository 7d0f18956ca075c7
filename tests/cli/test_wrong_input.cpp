// SPDX-License-Identifier: MIT
// Whatever is wrong with an experiment ends as one line with its place and the fix, exit code 2, and nothing
// written.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <regex>

#include "tests/cli/program.h"

namespace {

void refused(const Workplace& place, const std::vector<std::string>& arguments, const std::string& message) {
  const std::vector<std::string> before = place.files();
  const Finished run = place.convoy(arguments);
  CAPTURE(run.out);
  CHECK(run.exit_code == 2);
  CHECK(run.err == message + "\n");
  CHECK(run.out.empty());
  CHECK(place.files() == before);
}

/// The small experiment with `old` replaced is refused by run and by check.
void refused(const std::string& old, const std::string& fresh, const std::string& message) {
  const Workplace place;
  place.file("e.yaml", replaced(small_experiment(), old, fresh));
  refused(place, {"run", "e.yaml"}, "e.yaml:" + message);
  refused(place, {"check", "e.yaml"}, "e.yaml:" + message);
}

/// One line "FILE:LINE:COLUMN: text" on standard error; the text itself is tested where it is made.
void refused_with_place(const std::string& old, const std::string& fresh, const std::string& part) {
  const Workplace place;
  place.file("e.yaml", replaced(small_experiment(), old, fresh));
  const Finished run = place.convoy({"run", "e.yaml"});
  CAPTURE(run.err);
  CHECK(run.exit_code == 2);
  CHECK(std::regex_match(run.err, std::regex("e\\.yaml:[0-9]+:[0-9]+: [^\n]+\n")));
  CHECK(run.err.find(part) != std::string::npos);
  CHECK(place.files() == std::vector<std::string>{"e.yaml"});
}

}  // namespace

TEST_CASE("wrong input: an unknown key is named with the nearest known one") {
  refused(
      "batch_per_device: 8", "batch_per_devise: 8",
      "10:12: training.batch_per_devise: unknown key (did you mean 'batch_per_device'?); known here: anchor, "
      "batch_per_device, dataset, execution, framework, global_batch, input, layout, optimizer, precision, "
      "processes, profile, recompute, update");
  refused("batch_per_device: 8, ", "",
          "10:11: training: the batch is missing: give batch_per_device or global_batch");
  refused(
      "optimizer: sgd", "optimizer: sgd, precison: fp32",
      "10:66: training.precison: unknown key (did you mean 'precision'?); known here: anchor, "
      "batch_per_device, dataset, execution, framework, global_batch, input, layout, optimizer, precision, "
      "processes, profile, recompute, update");
  refused(
      "optimizer: sgd", "optimizer: sgd, framework: cafe",
      "10:77: training.framework: unknown value 'cafe' (did you mean 'caffe'?); allowed: pytorch, pytorch1, "
      "tensorflow, tensorflow1, mxnet, mxnet1, paddle, caffe, caffe2, torch7");
  refused("optimizer: sgd", "optimizer: sgd, recompute: all",
          "10:77: training.recompute: unknown value 'all'; allowed: none, blocks, sqrt");
  refused(
      "strategy:", "stategy:",
      "20:1: stategy: unknown key (did you mean 'strategy'?); known here: cluster, experiment, jobs, model, "
      "numerics, spread, strategy, study, sweep, training, variability");
}

TEST_CASE("wrong input: a plan is asked of an experiment") {
  const Workplace place;
  place.file("e.yaml", small_experiment());
  place.file("swept.yaml",
             "experiment: e\nmodel: resnet18\ntraining: {batch_per_device: 8}\ncluster: {server: dgx1-v100}\n"
             "sweep: {strategy: [{kind: single}]}\n");
  for (const std::string file : {"e.yaml", "swept.yaml"})
    refused(place, {"plan", file},
            file +
                ":1:1: this is an experiment: use `convoy run FILE`; a plan has the keys goal and plan in "
                "place of cluster and strategy");
}

TEST_CASE("wrong input: a value of the wrong type") {
  refused("batch_per_device: 8", "batch_per_device: eight",
          "10:30: training.batch_per_device: expected a whole number, found 'eight'");
  refused("batch_per_device: 8", "batch_per_device: [8]",
          "10:30: training.batch_per_device: expected a whole number, found a list; a sweep tries several "
          "values: sweep: {training.batch_per_device: [...]}");
  refused("experiment: small", "experiment: [small]", "1:13: experiment: expected a text, found a list");
  refused("precision: fp32, opt", "precision: fp31, opt",
          "10:44: training.precision: unknown value 'fp31' (did you mean 'fp32'?); allowed: fp32, tf32, "
          "fp16, bf16");
}

TEST_CASE("wrong input: a missing or foreign unit") {
  refused("bandwidth: 10Gbps", "bandwidth: 10",
          "15:37: cluster.fabric.bandwidth: '10' lacks its unit; write a bandwidth such as 10Gbps or 12GB/s");
  refused(
      "latency: 25us", "latency: 25MB",
      "15:54: cluster.fabric.latency: unit 'MB' does not fit here; write a time such as 25us, 3ms or 1.5s");
}

TEST_CASE("wrong input: negative, zero, not a number, infinite") {
  refused("batch_per_device: 8", "batch_per_device: -8",
          "10:30: training.batch_per_device: -8 is out of range: between 1 and 1000000000 is allowed");
  refused("batch_per_device: 8", "batch_per_device: .nan",
          "10:30: training.batch_per_device: expected a whole number, found '.nan'");
  refused_with_place("memory: 16GiB", "memory: -16GiB", "negative");
  refused_with_place("memory: 16GiB", "memory: nanGiB", "nanGiB");
  refused_with_place("bandwidth: 10Gbps", "bandwidth: 0Gbps", "zero");
  refused_with_place("memory: 16GiB", "memory: 1e999GiB", "1e999GiB");
}

TEST_CASE("wrong input: zero devices") {
  refused_with_place("count: 4", "count: 0", "0 is out of range");
  refused_with_place("{device: ideal, count: 1}", "{device: ideal, count: 0}", "0 is out of range");
}

TEST_CASE("wrong input: names that are not there") {
  refused_with_place("device: ideal", "device: idael", "idael");
  refused_with_place("server: box", "server: bxo", "bxo");
  refused_with_place("algorithm: ring", "algorithm: rign", "did you mean 'ring'?");
  const Workplace place;
  const std::string text = small_experiment();
  const std::size_t model = text.find("model:"), training = text.find("training:");
  place.file("e.yaml", fmt::format("{}model: resnet51\n{}", text.substr(0, model), text.substr(training)));
  const Finished run = place.convoy({"run", "e.yaml"});
  CHECK(run.exit_code == 2);
  CHECK(run.err.starts_with("e.yaml:2:8: model: unknown model 'resnet51' (did you mean 'resnet50'?)"));
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
}

TEST_CASE("wrong input: a cycle and shapes that do not fit") {
  refused_with_place("{name: relu, kind: relu}", "{name: relu, kind: relu, inputs: [fc]}",
                     "the layers read one another in a circle: flat -> fc -> relu -> flat");
  refused_with_place("kernel: 3, padding: 1", "kernel: 30", "conv");
}

TEST_CASE("wrong input: a batch that does not divide") {
  refused_with_place("batch_per_device: 8", "global_batch: 10", "10");
}

TEST_CASE("wrong input: a model's file where its name is expected says how files are named") {
  const Workplace place;
  for (const auto& [file, key] :
       {std::pair{"net.onnx", "onnx"}, {"net.yaml", "file"}, {"net.csv", "profile"}}) {
    place.file("e.yaml",
               std::string("experiment: e\nmodel: ") + file +
                   "\ntraining: {batch_per_device: 1}\ncluster: {server: dgx1-v100, nodes: 1, fabric: "
                   "{kind: switch, bandwidth: 1GB/s, latency: 1us}}\nstrategy: {kind: single}\n");
    const Finished run = place.convoy({"run", "e.yaml"});
    CHECK(run.exit_code == 2);
    CHECK(run.err == std::string("e.yaml:2:8: model: '") + file +
                         "' is not a model of the zoo; a file is named by {" + key + ": " + file + "}\n");
  }
}

TEST_CASE("wrong input: a file of another kind is told for what it is, with what takes it") {
  const Workplace place;
  place.file("e.yaml", small_experiment());
  place.file("m.yaml", "name: m\nlayers: []\n");
  place.file("c.yaml", "nodes: []\n");
  place.file("g.yaml", "nodes: []\nedges: []\n");
  place.file("r.yaml", "{schema: 1, experiment: e, runs: []}\n");
  const std::string experiment =
      "this is an experiment (it has the key 'experiment'), not a model: `convoy run FILE` simulates it";
  refused(place, {"show", "models", "e.yaml"}, "e.yaml:1:1: " + experiment);
  refused(place, {"run", "e.yaml", "--set", "model={file: e.yaml}"}, "e.yaml:1:1: " + experiment);
  for (const char* command : {"run", "check", "plan"}) {
    refused(place, {command, "m.yaml"},
            "m.yaml:1:1: this is a model (it has the key 'layers'), not an experiment: `convoy show models "
            "FILE` shows it, and an experiment names it by model: {file: FILE}");
    refused(place, {command, "c.yaml"},
            "c.yaml:1:1: this is a cluster (it has the key 'nodes'), not an experiment: `convoy show "
            "clusters FILE` shows it, and an experiment has it behind its key cluster");
    refused(place, {command, "g.yaml"},
            "g.yaml:1:1: this is an operation graph (it has the key 'edges'), not an experiment: `convoy "
            "partition FILE` cuts it");
    refused(place, {command, "r.yaml"},
            "r.yaml:1:1: this is the results of a run (it has the key 'schema'), not an experiment: `convoy "
            "report DIR` takes their folder");
  }
  refused(place, {"show", "clusters", "m.yaml"},
          "m.yaml:1:1: this is a model (it has the key 'layers'), not a cluster: `convoy show models FILE` "
          "shows it, and an experiment names it by model: {file: FILE}");
}

TEST_CASE("wrong input: a network of views alone computes nothing") {
  const Workplace place;
  place.file(
      "e.yaml",
      "experiment: views\nmodel: {name: v, input: [3, 8, 8], layers: [{name: f, kind: flatten}]}\n"
      "training: {batch_per_device: 8}\ncluster: {name: c, nodes: 1, server: gcp-n1-standard-8-k80, fabric: "
      "{kind: switch, bandwidth: 1GB/s, latency: 0us}}\nstrategy: {kind: single}\n");
  const Finished run = place.convoy({"run", "e.yaml"});
  CHECK(run.exit_code == 2);
  CHECK(run.err == "e.yaml:2:8: model: no layer of 'v' computes anything: all are views of the image\n");
}

TEST_CASE("wrong input: both batches, or a precision the device lacks") {
  refused("batch_per_device: 8", "batch_per_device: 8, global_batch: 8",
          "10:47: training.global_batch: batch_per_device is given too; give one of the two (a sweep over "
          "one of them "
          "needs a file without the other)");
  refused("precision: fp32, opt", "precision: fp16, opt",
          "10:44: training.precision: device 'ideal' cannot run fp16; it runs fp32");
}

TEST_CASE("wrong input: a key given twice") {
  refused("experiment: small", "experiment: small\nexperiment: large",
          "2:1: key 'experiment' given twice (first in line 1)");
}

TEST_CASE("wrong input: not YAML, not a mapping, empty, binary, two documents") {
  const Workplace place;
  place.file("a.yaml", "{a: [1, 2");
  const Finished broken = place.convoy({"run", "a.yaml"});
  CHECK(broken.exit_code == 2);
  CHECK(std::regex_match(broken.err, std::regex("a\\.yaml:[0-9]+:[0-9]+: not valid YAML: [^\n]+\n")));
  place.file("b.yaml", "- 1\n");
  refused(place, {"run", "b.yaml"}, "b.yaml:1:1: expected a mapping (key: value), found a list");
  place.file("c.yaml", "");
  refused(place, {"run", "c.yaml"}, "c.yaml:1:1: empty: expected a YAML mapping");
  place.file("d.yaml", std::string("\x7f"
                                   "ELF\0\0\0",
                                   7));
  refused(place, {"run", "d.yaml"}, "d.yaml:1:5: holds zero bytes: this is not a YAML text file");
  place.file("e.yaml", "a: 1\n---\nb: 2\n");
  refused(place, {"run", "e.yaml"}, "e.yaml:3:1: a second YAML document; a file holds one");
}

TEST_CASE("wrong input: no file, a folder, a file of 100 MB") {
  const Workplace place;
  refused(place, {"run", "none.yaml"}, "none.yaml: cannot be opened: no such file, or not readable");
  std::filesystem::create_directory(place.path() / "folder.yaml");
  refused(place, {"run", "folder.yaml"}, "folder.yaml: is a folder; expected a YAML file");
  place.file("large.yaml", "experiment: x\n");
  std::filesystem::resize_file(place.path() / "large.yaml", 100'000'000);
  refused(place, {"run", "large.yaml"}, "large.yaml:1:1: larger than 8 MiB, more than any experiment needs");
}

TEST_CASE("wrong input: a model file that is not there, at the key that names it") {
  const Workplace place;
  std::string text = small_experiment();
  const std::size_t begin = text.find("model:"), end = text.find("training:");
  for (const std::string key : {"file", "onnx"}) {
    place.file("e.yaml",
               text.substr(0, begin) + fmt::format("model: {{{}: none}}\n", key) + text.substr(end));
    refused(place, {"run", "e.yaml"},
            fmt::format("e.yaml:2:{}: model.{}: there is no file 'none'", 11 + key.size(), key));
  }
}

TEST_CASE("wrong input: an alias bomb and nesting without end") {
  const Workplace place;
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i)
    bomb += fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i, i - 1);
  place.file("bomb.yaml", bomb);
  const Finished run = place.convoy({"run", "bomb.yaml"});
  CHECK(run.exit_code == 2);
  CHECK(std::regex_match(
      run.err, std::regex("bomb\\.yaml:[0-9]+:[0-9]+: more than 500000 values once aliases are expanded\n")));
  place.file("deep.yaml", "a: " + std::string(5000, '[') + std::string(5000, ']') + "\n");
  refused(place, {"run", "deep.yaml"}, "deep.yaml:1:103: nested deeper than 100 levels");
}

TEST_CASE("wrong input: what a sweep may not be") {
  const std::string text = small_experiment();
  const auto with_sweep = [&](const std::string& sweep, const std::string& message) {
    const Workplace place;
    place.file("e.yaml", text + sweep);
    refused(place, {"run", "e.yaml"}, "e.yaml:" + message);
  };
  with_sweep(
      "sweep: {training.batch_per_device: 8}\n",
      "21:36: sweep.training.batch_per_device: expected a list of values such as [1, 2, 4], found '8'");
  with_sweep("sweep: {training.batch_per_device: []}\n",
             "21:36: sweep.training.batch_per_device: expected a list of values such as [1, 2, 4], found an "
             "empty list");
  with_sweep("sweep: {trainin.batch: [1]}\n",
             "21:9: sweep.trainin.batch: only parts of model, training, cluster, strategy, variability, "
             "numerics can be swept (did "
             "you mean "
             "'training'?)");
  with_sweep("sweep:\n  strategy.bucket: [1MiB]\n  strategy: [{kind: single}]\n",
             "23:3: sweep.strategy: replaces what sweep.strategy.bucket above it sets; put it first");
  with_sweep(
      "sweep: {training.batch_per_devise: [8, 16]}\n",
      "21:37: training.batch_per_devise: unknown key (did you mean 'batch_per_device'?); known here: anchor, "
      "batch_per_device, dataset, execution, framework, global_batch, input, layout, optimizer, precision, "
      "processes, "
      "profile, recompute, update");
  with_sweep("sweep: {training.batch_per_device: [8, 0]}\n",
             "21:40: training.batch_per_device: 0 is out of range: between 1 and 1000000000 is allowed");
  std::vector<int> numbers(1001);
  std::iota(numbers.begin(), numbers.end(), 1);
  const std::string many = fmt::format("[{}]", fmt::join(numbers, ", "));
  with_sweep(fmt::format("sweep:\n  training.batch_per_device: {0}\n  cluster.nodes.0.count: {0}\n", many),
             "23:3: sweep.cluster.nodes.0.count: with this list the sweep has 1002001 points; at most "
             "1000000 are run in "
             "one piece; `--shard I/N` runs every N-th of them");
}

TEST_CASE("wrong input: --set points at itself") {
  const Workplace place;
  place.file("e.yaml", small_experiment());
  const auto with_set = [&](const std::string& setting, const std::string& message) {
    refused(place, {"run", "e.yaml", "--set", setting}, message);
  };
  with_set(
      "training.batch_per_device=-1",
      "--set training.batch_per_device:1:1: training.batch_per_device: -1 is out of range: between 1 and "
      "1000000000 is allowed");
  with_set("training.batch=1",
           "--set training.batch:1:1: training.batch: unknown key (did you mean one of batch_per_device, "
           "global_batch?); known here: "
           "anchor, batch_per_device, dataset, execution, framework, global_batch, input, layout, optimizer, "
           "precision, processes, profile, recompute, update");
  with_set("training.batch_per_device",
           "--set training.batch_per_device:1:1: write --set key.path=value, such as --set "
           "cluster.nodes=4");
  with_set("training.batch_per_device=",
           "--set training.batch_per_device:1:1: the value after "
           "'training.batch_per_device=' is missing");
  with_set("experiment.name.first=x",
           "--set experiment.name.first:1:1: path 'experiment.name.first' runs through "
           "'small', which has no keys");
}

TEST_CASE("wrong input: an experiment's name cannot lead out of the results' folder") {
  refused("experiment: small", "experiment: ../small",
          "1:13: experiment: '../small' cannot name a folder of results: use up to 100 letters, digits, '-', "
          "'_' and "
          "'.', not beginning with '.'");
}

TEST_CASE("wrong input: control characters do not reach the terminal") {
  const Workplace place;
  place.file("e.yaml", replaced(small_experiment(), "experiment: small", "experiment: \"a\\e[2J\\nb\""));
  const Finished run = place.convoy({"run", "e.yaml"});
  CHECK(run.exit_code == 2);
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  CHECK(run.err.find('\x1b') == std::string::npos);
}
