// SPDX-License-Identifier: MIT
// What the program says of its own commands: examples, manual pages, completion; and who need not listen.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "sim/cli/command_texts.h"
#include "sim/cli/commands.h"
#include "tests/cli/program.h"

namespace {

/// The files that the examples name.
void put_files(const Workplace& place) {
  place.shell("cp '" CONVOY_SOURCE "/configs/first-experiment.yaml' lab.yaml");
  place.shell("sed 's/max: 64/max: 2/' '" CONVOY_SOURCE "/configs/plan-imagenet.yaml' > plan.yaml");
  place.file("study.yaml",
             "experiment: asked\nmodel: alexnet\ntraining: {batch_per_device: 8}\n"
             "cluster: {server: gcp-n1-standard-8-k80, nodes: 2}\nstrategy: {kind: data_parallel, sync: all_reduce}\n"
             "study: {inputs: {nodes: {sets: cluster.nodes, values: [2, 4], because: a test}}, points: 16,\n"
             "  variants: {ring: {}}, claims: [{claim: c, value: ring.step_time_s, at_most: 1}]}\n");
  place.file("speeds.csv",
             "device,model,batch,precision,step,images_per_s,role\n"
             "v100-sxm2-16gb,resnet50,128,fp32,train,412,fit\nv100-sxm2-16gb,vgg16,64,fp32,train,230,fit\n");
  place.shell("cp '" CONVOY_SOURCE
              "/tests/calibration/traces/resnet18_batch8_32x32_cpu.json.gz' trace.json.gz");
  place.file(
      "mine.yaml",
      "experiment: mine\nmodel: {name: resnet18, input: [3, 32, 32]}\ntraining: {batch_per_device: 8}\n"
      "strategy: {kind: single}\n"
      "cluster: {nodes: [{name: n, count: 1, server: box}], servers: {box: {devices: [{device: mine, count: "
      "1}], interconnect: {kind: none}}}, devices: {mine: {base: epyc-7763, peak: {fp32: 78.4GFLOPS}, "
      "memory_bandwidth: 20GB/s, sms: 1}}}\n");
  // relu of an image of [3, 8, 8]
  place.file("net.onnx",
             "\x08\x07\x3a\x4b\x0a\x0c\x0a\x01\x78\x12\x01\x79\x22\x04\x52\x65\x6c\x75\x12\x01"
             "\x67\x5a\x1b\x0a\x01\x78\x12\x16\x0a\x14\x08\x01\x12\x10\x0a\x02\x08\x01\x0a\x02"
             "\x08\x03\x0a\x02\x08\x08\x0a\x02\x08\x08\x62\x1b\x0a\x01\x79\x12\x16\x0a\x14\x08"
             "\x01\x12\x10\x0a\x02\x08\x01\x0a\x02\x08\x03\x0a\x02\x08\x08\x0a\x02\x08\x08\x42"
             "\x02\x10\x0d");
  place.file("epochs.csv", "batch,epochs\n1000,40\n3000,60\n7000,100\n");
  place.file("rows.csv", "device,model,batch_per_device,images_per_s\nv100-sxm2-16gb,resnet50,64,360\n");
  place.file("graph.json",
             R"({"nodes": [{"id": 0, "name": "a", "time_us": 2, "output_bytes": 8, "memory_bytes": 0},
                           {"id": 1, "name": "b", "time_us": 3, "output_bytes": 8, "memory_bytes": 0}],
                 "edges": [[0, 1]]})");
}

std::vector<std::string> lines_in(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// What `convoy complete` offers, without what it says of it.
std::vector<std::string> offered(const Workplace& place, std::vector<std::string> words) {
  words.insert(words.begin(), "complete");
  std::vector<std::string> lines = lines_in(place.convoy(words).out);
  for (std::string& line : lines) line = line.substr(0, line.find('\t'));
  return lines;
}

bool has(const std::vector<std::string>& lines, const std::string& line) {
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

/// "--json", ... of a command's --help.
std::set<std::string> options_of_help(const Workplace& place, const std::string& command) {
  std::set<std::string> options;
  const std::string help = place.convoy({command, "--help"}).out;
  const std::regex option("\n  (?:-\\w,)?(--[a-z-]+)");
  for (std::sregex_iterator it(help.begin(), help.end(), option), end; it != end; ++it)
    options.insert((*it)[1]);
  return options;
}

/// As troff writes what is typed: a bare - would be a dash.
std::string with_hyphens(std::string text) {
  for (std::size_t at = 0; (at = text.find('-', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

}  // namespace

TEST_CASE(
    "help: every example runs as it is written, and each command's first where nobody reads what it prints") {
  const Workplace place;
  put_files(place);
  std::size_t count = 0;
  for (const convoy::CommandText& command : convoy::command_texts()) {
    CAPTURE(command.name);
    CHECK_FALSE(command.examples.empty());
    const std::string help =
        command.name.empty() ? place.convoy({"--help"}).out : place.convoy({command.name, "--help"}).out;
    for (const convoy::ExampleText& example : command.examples) {
      CAPTURE(example.command);
      CHECK(help.find("\n  " + example.command + "\n      " + example.meaning) != std::string::npos);
      REQUIRE(example.command.starts_with("convoy "));
      if (command.name.empty()) continue;  // those of the commands
      const Finished run = place.shell("convoy() { \"$CONVOY\" \"$@\"; }\n" + example.command);
      CAPTURE(run.err);
      CHECK(run.exit_code == 0);
      ++count;
      if (&example != &command.examples.front()) continue;
      // The reader of file 7 is gone before the program begins.
      const std::string alone = "\"$CONVOY\" " + example.command.substr(7, example.command.find(" > ") - 7);
      const Finished unread = place.shell("exec 7> >(:); wait $!\n" + alone + " >&7");
      CHECK(unread.exit_code == 0);
      CHECK(unread.err == run.err);
    }
  }
  CHECK(count >= 20);
}

TEST_CASE(
    "streams: a reader that is gone, a full disk or a closed stream changes no exit code but by what it is") {
  const Workplace place;
  place.file("e.yaml", small_experiment());
  const std::string gone = "exec 7> >(:); wait $!\n\"$CONVOY\" ";
  for (const auto& [command, code] : std::vector<std::pair<std::string, int>>{{"show models", 0},
                                                                              {"show devices --json", 0},
                                                                              {"--help", 0},
                                                                              {"run --help", 0},
                                                                              {"run e.yaml --json", 0},
                                                                              {"check e.yaml", 0},
                                                                              {"complete show devices ''", 0},
                                                                              {"show nothing", 2},
                                                                              {"run none.yaml", 2},
                                                                              {"nothing", 2}}) {
    CAPTURE(command);
    const Finished usual = place.shell("\"$CONVOY\" " + command);
    CHECK(usual.exit_code == code);
    const Finished unread = place.shell(gone + command + " >&7");
    CHECK(unread.exit_code == usual.exit_code);
    CHECK(unread.err == usual.err);
    for (const char* where : {"2>&7", "2>/dev/full", "2>&-"}) {
      CAPTURE(where);
      const Finished unheard = place.shell(gone + command + " " + where);
      CHECK(unheard.exit_code == usual.exit_code);
      CHECK(unheard.out == usual.out);
    }
    if (usual.out.empty()) continue;
    const Finished full = place.shell("\"$CONVOY\" " + command + " >/dev/full");
    CHECK(full.exit_code == 2);
    CHECK(full.err == usual.err + "convoy: standard output: No space left on device\n");
    const Finished closed = place.shell("\"$CONVOY\" " + command + " >&-");
    CHECK(closed.exit_code == 2);
    CHECK(closed.err == usual.err + "convoy: standard output: Bad file descriptor\n");
  }
}

TEST_CASE("completion: commands, options and names are those that the program takes") {
  const Workplace place;
  const std::vector<std::string> commands = offered(place, {""});
  CHECK(commands.size() == convoy::command_texts().size() - 1);
  for (const std::string& command : commands) {
    CAPTURE(command);
    const std::vector<std::string> options = offered(place, {command, "--"});
    CHECK(std::set<std::string>(options.begin(), options.end()) == options_of_help(place, command));
  }
  CHECK(offered(place, {"sho"}) == std::vector<std::string>{"show"});
  for (const std::string& subject : convoy::show_subjects()) {
    CAPTURE(subject);
    CHECK(has(offered(place, {"show", ""}), subject));
    std::vector<std::string> names = nlohmann::json::parse(place.convoy({"show", subject, "--json"}).out);
    names.emplace_back(":files");
    CHECK(offered(place, {"show", subject, ""}) == names);
  }
  CHECK(offered(place, {"show", "--json", "devices", "tit"}).front() == "titan-rtx");
  CHECK(
      offered(place, {"show", "models", "resnet50", "--device", "v100-p"}).front().starts_with("v100-pcie"));
  CHECK(offered(place, {"show", "models", "resnet50", "--device=k8"}) ==
        std::vector<std::string>{"--device=k80"});
  CHECK(offered(place, {"run", ""}) == std::vector<std::string>{":files"});
  CHECK(offered(place, {"run", "e.yaml", ""}).empty());
  CHECK(offered(place, {"run", "e.yaml", "--out", ""}) == std::vector<std::string>{":folders"});
  CHECK(offered(place, {"run", "--progress", "p"}) == std::vector<std::string>{"plain"});
  CHECK(offered(place, {"merge", "a", "b", ""}) == std::vector<std::string>{":folders"});
  CHECK(offered(place, {"simulate", ""}).empty());
}

TEST_CASE("completion: --set goes down the keys of an experiment to their names") {
  const Workplace place;
  const auto of = [&](const std::string& word) { return offered(place, {"run", "e.yaml", "--set", word}); };
  CHECK(has(of(""), "training."));
  CHECK(has(of("training.batch_per"), "training.batch_per_device="));
  CHECK(has(of("strategy.kind="), "strategy.kind=data_parallel"));
  CHECK(has(of("model="), "model=resnet50"));
  CHECK(has(of("cluster.server=dgx"), "cluster.server=dgx-a100"));
  CHECK(has(of("cluster.fabric.kind=sw"), "cluster.fabric.kind=switch"));
  CHECK(of("training.nothing.").empty());
  CHECK(has(offered(place, {"plan", "p.yaml", "--set", "plan.obj"}), "plan.objective="));
}

TEST_CASE("completion: bash puts the candidate in place of what is typed") {
  const Workplace place;
  place.shell("mkdir -p bin folder; ln -s \"$CONVOY\" bin/convoy; touch file.yaml");
  const auto replies = [&](const std::string& line) {
    const Finished run = place.shell("PATH=$PWD/bin:$PATH; source '" CONVOY_SOURCE
                                     "/sim/cli/completion/convoy.bash'\n"
                                     "COMP_LINE='" +
                                     line +
                                     "' COMP_POINT=${#COMP_LINE}\n_convoy 2>/dev/null\n"
                                     "printf '%s\\n' \"${COMPREPLY[@]}\"");
    CHECK(run.exit_code == 0);
    return lines_in(run.out);
  };
  CHECK(replies("convoy sh") == std::vector<std::string>{"show"});
  CHECK(replies("convoy show devices k8") == std::vector<std::string>{"k80"});
  CHECK(replies("convoy show models --device=k8") == std::vector<std::string>{"k80"});
  CHECK(has(replies("convoy run file.yaml --set strategy.kind=data"), "data_parallel"));
  CHECK(replies("convoy run fi") == std::vector<std::string>{"file.yaml"});
  CHECK(replies("convoy run file.yaml --out fo") == std::vector<std::string>{"folder"});
}

TEST_CASE("manual: a page a command says every option of its help, and man finds nothing wrong with it") {
  const Workplace place;
  REQUIRE(place.convoy({"manual", "."}).exit_code == 0);
  for (const convoy::CommandText& command : convoy::command_texts()) {
    if (command.name.empty()) continue;
    CAPTURE(command.name);
    const std::string page = place.read("convoy-" + command.name + ".1");
    for (const std::string& option : options_of_help(place, command.name)) {
      CAPTURE(option);
      CHECK(page.find("\n\\fB" + with_hyphens(option) + "\\fR") != std::string::npos);
    }
    CHECK(place.read("convoy.1").find("\\fB" + with_hyphens("convoy-" + command.name) + "\\fR(1)") !=
          std::string::npos);
  }
  CHECK(place.read("convoy.5").find("\n\\fBbatch_per_device\\fR: ") != std::string::npos);
  CHECK(place.convoy({"manual", "none"}).exit_code == 2);
  const Finished shown = place.shell(
      "command -v man > /dev/null || exit 0\n"
      "for page in *.[15]; do LC_ALL=C.UTF-8 MANWIDTH=100 man --warnings -E UTF-8 -l \"$page\" > /dev/null; "
      "done");
  CHECK(shown.exit_code == 0);
  CHECK(shown.err.empty());
}
