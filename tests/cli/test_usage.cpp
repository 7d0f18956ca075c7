// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "tests/cli/program.h"

namespace {

void wrong_usage(const std::vector<std::string>& arguments) {
  const Workplace place;
  const Finished run = place.convoy(arguments);
  CAPTURE(run.err);
  CHECK(run.exit_code == 2);
  CHECK(run.out.empty());
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  CHECK(place.files().empty());
}

}  // namespace

TEST_CASE("usage: what is not a command is one line and exit code 2") {
  wrong_usage({});
  wrong_usage({"run"});
  wrong_usage({"simulate", "x.yaml"});
  wrong_usage({"run", "x.yaml", "--jbos", "2"});
  wrong_usage({"run", "x.yaml", "--jobs", "0"});
  wrong_usage({"run", "x.yaml", "y.yaml"});
  wrong_usage({"show", "gpus"});
  wrong_usage({"show", "models", "resnet51"});
  wrong_usage({"show", "devices", "k81"});
  wrong_usage({"show", "servers", "k81"});
  wrong_usage({"show", "clusters", "k81"});
  wrong_usage({"show", "strategies", "parallel"});
  wrong_usage({"calibrate", "none.csv", "--device", "k80"});
  wrong_usage({"reproduce", "everything"});
  wrong_usage({"from-torch", "none.onnx"});
  wrong_usage({"doctor", "x.yaml", "--seed", "3"});
}

TEST_CASE("usage: an empty name of a file or folder is said to be one, by every command that takes one") {
  const Workplace place;
  int count = 0;
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"run", ""},
                                                    {"check", ""},
                                                    {"plan", ""},
                                                    {"doctor", ""},
                                                    {"diagnose", "", "e.yaml"},
                                                    {"diagnose", "t.json", ""},
                                                    {"validate", ""},
                                                    {"calibrate", ""},
                                                    {"from-torch", ""},
                                                    {"from-torch", "n.onnx", "--out", ""},
                                                    {"report", ""},
                                                    {"compare", "a", ""},
                                                    {"merge", "", "--out", "o"},
                                                    {"merge", "o", "--out", ""},
                                                    {"partition", "", "--parts", "2"},
                                                    {"run", "e.yaml", "--out", ""},
                                                    {"run", "e.yaml", "--tasks", ""},
                                                    {"run", "e.yaml", "--chakra", ""},
                                                    {"run", "e.yaml", "--goal", ""},
                                                    {"plan", "e.yaml", "--prices", ""}}) {
    const Finished done = place.convoy(arguments);
    CAPTURE(arguments[0]);
    CAPTURE(done.err);
    CHECK(done.exit_code == 2);
    CHECK(done.err.starts_with("convoy: "));
    CHECK(done.err.find(": is empty; give the name of a ") != std::string::npos);
    ++count;
  }
  CHECK(place.convoy({"run", ""}).err ==
        "convoy: FILE: is empty; give the name of a file (convoy --help says more)\n");
  CHECK(place.convoy({"report", ""}).err ==
        "convoy: DIR: is empty; give the name of a folder (convoy --help says more)\n");
  CHECK(count == 20);
  CHECK(place.files().empty());
}

TEST_CASE("usage: a command that there is not is named, with the nearest one") {
  const Workplace place;
  CHECK(
      place.convoy({"sho", "models"}).err ==
      "convoy: there is no command 'sho' (did you mean 'show'?); commands are run, check, plan, study, show, "
      "calibrate, "
      "reproduce, validate, doctor, diagnose, from-torch, report, compare, merge, partition (convoy --help "
      "says more)\n");
}

TEST_CASE("usage: a value that an option does not have is named, with those that it has") {
  const Workplace place;
  const auto refused = [&](const std::string& command, const std::string& option, const std::string& of) {
    CAPTURE(command);
    for (const char* value : {"plian", "1", ""}) {
      const Finished finished = place.convoy({command, "x", "--out", "y", option, value});
      CHECK(finished.exit_code == 2);
      CHECK(finished.err.starts_with(fmt::format("convoy: {}: there is no '{}'", option, value)));
      CHECK(finished.err.ends_with(fmt::format("; there are {} (convoy --help says more)\n", of)));
    }
  };
  for (const char* command : {"run", "merge", "plan", "study"})
    refused(command, "--progress", "auto, plain, none");
  refused("run", "--network-model", "convoy, simgrid");
  CHECK(place.convoy({"run", "x", "--progress", "plian"}).err.find("(did you mean 'plain'?)") !=
        std::string::npos);
}

TEST_CASE("usage: an option that there is not is named before its value is taken for something else") {
  const Workplace place;
  CHECK(place.convoy({"reproduce", "layers", "--tolerance", "3"}).err ==
        "convoy: `convoy reproduce` has no option '--tolerance'; it has --help, --where, --json, --progress (convoy "
        "--help says more)\n");
  CHECK(place.convoy({"report", "d", "--jsno=1"})
            .err.starts_with("convoy: `convoy report` has no option "
                             "'--jsno'"));
  CHECK(place.convoy({"reproduce", "layer"})
            .err.starts_with(
                "convoy: NAME: there is no 'layer' (did you mean 'layers'?); there are single-device, "));
  CHECK(place.convoy({"show", "server"})
            .err.starts_with(
                "convoy: WHAT: there is no 'server' (did you mean 'servers'?); there are models, "));
}

TEST_CASE("usage: a missing argument is named") {
  const Workplace place;
  CHECK(place.convoy({"run"}).err == "convoy: FILE is required (convoy --help says more)\n");
}

TEST_CASE("usage: help and version are answers, not errors") {
  const Workplace place;
  const Finished version = place.convoy({"--version"});
  CHECK(version.exit_code == 0);
  CHECK(version.out.starts_with("convoy 0.2.0 (SimGrid 3."));
  CHECK(version.err.empty());
  for (const char* command : {"run", "check", "show", "calibrate", "reproduce", "partition"}) {
    const Finished help = place.convoy({command, "--help"});
    CHECK(help.exit_code == 0);
    CHECK(help.out.find(command) != std::string::npos);
    CHECK(help.err.empty());
  }
}

TEST_CASE("usage: the network that is read is not replaced by the model that is written of it") {
  const Workplace place;
  place.file("net.onnx", "what was exported");
  const Finished done = place.convoy({"from-torch", "net.onnx", "--out", "./net.onnx"});
  CHECK(done.exit_code == 2);
  CHECK(done.err.find("./net.onnx: cannot be written: it is read, as net.onnx") != std::string::npos);
  CHECK(place.read("net.onnx") == "what was exported");
}
