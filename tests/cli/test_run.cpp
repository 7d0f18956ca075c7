// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

using nlohmann::json;

namespace {

Finished run_small(const Workplace& place, std::vector<std::string> more) {
  place.file("e.yaml", swept_experiment());
  more.insert(more.begin(), {"run", "e.yaml"});
  return place.convoy(more);
}

}  // namespace

TEST_CASE("run: a table for people, files in runs/EXPERIMENT, nothing on standard error") {
  const Workplace place;
  const Finished run = run_small(place, {});
  CHECK(run.exit_code == 0);
  CHECK(run.err.empty());
  CHECK(run.out.starts_with("toy on box (ideal)\nstrategy"));
  CHECK(run.out.ends_with("\nresults in runs/small: report.html, results.json, results.csv\n"));
  CHECK(std::count(run.out.begin(), run.out.end(), '\n') == 2 + 16 + 2 + 2);
  CHECK(
      run.out.find(
          "\n\nsoftware: pytorch, eager, nchw, fp32, foreach updates; transport ideal; input synthetic\n") !=
      std::string::npos);
  CHECK(place.files() == std::vector<std::string>{"e.yaml", "runs", "runs/small", "runs/small/report.html",
                                                  "runs/small/results.csv", "runs/small/results.json",
                                                  "runs/small/results.sqlite"});
}

TEST_CASE("run: the same bytes for any number of jobs, and again") {
  const Workplace place;
  const Finished one = run_small(place, {"--jobs", "1", "--out", "one", "--trace"});
  const Finished two = run_small(place, {"--jobs", "2", "--out", "two", "--trace"});
  const Finished many = run_small(place, {"--jobs", "16", "--json"});
  REQUIRE(one.exit_code == 0);
  for (const char* name : {"results.json", "results.csv", "report.html", "trace.json"})
    CHECK(place.read(std::string("one/") + name) == place.read(std::string("two/") + name));
  CHECK(place.read("one/results.json") == many.out);
}

TEST_CASE("run: a point of a sweep gives the same bytes as a run of its own") {
  const Workplace place;
  const json swept = json::parse(run_small(place, {"--json"}).out);
  place.file("single.yaml", small_experiment());
  const json single =
      json::parse(place
                      .convoy({"run", "single.yaml", "--json", "--set", "cluster.nodes.0.count=8", "--set",
                               "training.batch_per_device=16"})
                      .out);
  json point = swept["runs"][11];
  CHECK(point["point"]["cluster.nodes.0.count"] == 8);
  CHECK(point["point"]["training.batch_per_device"] == 16);
  json alone = single["runs"][0];
  CHECK(alone["point"] == json::object());
  for (const char* key : {"id", "point"}) point.erase(key), alone.erase(key);
  CHECK(point == alone);
}

TEST_CASE("run: --json prints results.json only and writes nothing") {
  const Workplace place;
  const Finished run = run_small(place, {"--json"});
  CHECK(run.exit_code == 0);
  CHECK(run.err.empty());
  CHECK(place.files() == std::vector<std::string>{"e.yaml"});
  const json results = json::parse(run.out);
  CHECK(results["schema"] == "convoy.results/1");
  CHECK(results["experiment"] == "small");
  REQUIRE(results["runs"].size() == 16);
  // The product of the lists, the last changing fastest.
  CHECK(results["runs"][0]["id"] == "1");
  CHECK(
      results["runs"][1]["point"].dump() ==
      R"({"cluster.nodes.0.count":2,"strategy":{"algorithm":"ring","kind":"data_parallel","sync":"all_reduce"},)"
      R"("training.batch_per_device":8})");
  CHECK(results["runs"][15]["point"]["cluster.nodes.0.count"] == 8);
  CHECK(results["runs"][15]["devices"] == 8);
  CHECK(results["runs"][15]["global_batch"] == 128);
}

TEST_CASE("run: --json with --out writes the same file") {
  const Workplace place;
  const Finished run = run_small(place, {"--json", "--out", "here/there"});
  CHECK(run.exit_code == 0);
  CHECK(place.read("here/there/results.json") == run.out);
}

TEST_CASE("run: the digest of the configuration follows settings") {
  const Workplace place;
  place.file("e.yaml", small_experiment());
  const auto manifest = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"run", "e.yaml", "--json"});
    return json::parse(place.convoy(more).out)["manifest"];
  };
  const json plain = manifest({}), again = manifest({}),
             set = manifest({"--set", "training.batch_per_device=16"});
  CHECK(plain == again);
  CHECK(plain["config_sha256"] != set["config_sha256"]);
  CHECK(plain["inputs"] == set["inputs"]);
  CHECK(set["set"] == json::array({"training.batch_per_device=16"}));
}

TEST_CASE("run: an axis can be set, a swept value cannot be set by the way") {
  const Workplace place;
  const Finished fewer = run_small(place, {"--json", "--set", "sweep.cluster.nodes.0.count=[3]"});
  CHECK(json::parse(fewer.out)["runs"].size() == 4);
  const Finished none = run_small(place, {"--json", "--set", "sweep=null"});
  CHECK(json::parse(none.out)["runs"].size() == 1);
  const Finished refused = run_small(place, {"--json", "--set", "strategy.algorithm=tree"});
  CHECK(refused.exit_code == 2);
  CHECK(refused.err ==
        "--set strategy.algorithm:1:1: the experiment sweeps 'strategy', which would override this; "
        "write --set sweep.strategy=[...], or --set sweep=null for one point\n");
  // In whatever order the settings come: what the sweep at the end overrides is refused, and no more.
  for (const bool first : {false, true}) {
    const auto set = [&](const std::string& a, const std::string& b) {
      return first ? run_small(place, {"--json", "--fresh", "--set", a, "--set", b})
                   : run_small(place, {"--json", "--fresh", "--set", b, "--set", a});
    };
    const Finished single = set("strategy={kind: single}", "sweep=null");
    CHECK(single.err == "");
    CHECK(single.exit_code == 0);
    const Finished both = set("training.batch_per_device=2", "sweep.training.batch_per_device=[4]");
    CHECK(both.exit_code == 2);
    CHECK(both.err.find("the experiment sweeps 'training.batch_per_device', which would override this") !=
          std::string::npos);
  }
}

TEST_CASE("run: --require-fit ends with 3 when memory is short, and the table says so") {
  const Workplace place;
  place.file("e.yaml", replaced(small_experiment(), "memory: 16GiB", "memory: 1KiB"));
  const Finished run = place.convoy({"run", "e.yaml", "--require-fit"});
  CHECK(run.exit_code == 3);
  CHECK(run.err == "convoy: 1 of 1 runs need more memory than their devices have\n");
  CHECK(run.out.find("(!) more than the device's memory: this run would fail\n") != std::string::npos);
  const Finished lenient = place.convoy({"run", "e.yaml", "--json"});
  CHECK(lenient.exit_code == 0);
  const json result = json::parse(lenient.out)["runs"][0];
  CHECK(result["fits"] == false);
  CHECK(result["bottleneck"]["kind"] == "memory");
}

TEST_CASE("run: a folder that holds other things is left alone") {
  const Workplace place;
  place.file("precious/thesis.txt", "years");
  const Finished run = run_small(place, {"--out", "precious"});
  CHECK(run.exit_code == 2);
  CHECK(run.err ==
        "convoy: precious: holds other files than convoy's results; choose another folder with --out\n");
  CHECK(place.read("precious/thesis.txt") == "years");
  place.file("taken", "a file");
  CHECK(run_small(place, {"--out", "taken"}).err == "convoy: taken: is not a folder; --out names a folder\n");
  CHECK(run_small(place, {"--out", "taken/below"}).exit_code == 2);
}

TEST_CASE("run: former results are replaced, with the trace they had") {
  const Workplace place;
  REQUIRE(run_small(place, {"--trace"}).exit_code == 0);
  CHECK(std::filesystem::exists(place.path() / "runs/small/trace.json"));
  REQUIRE(run_small(place, {}).exit_code == 0);
  CHECK_FALSE(std::filesystem::exists(place.path() / "runs/small/trace.json"));
}

TEST_CASE("run: names as people write them give the results, and the names, of the catalogue") {
  const Workplace place;
  const std::string plain =
      "experiment: names\nmodel: resnet50\n"
      "training: {batch_per_device: 32, precision: fp32, framework: pytorch, optimizer: sgd, layout: nchw}\n"
      "cluster: {server: aws-p4d.24xlarge, nodes: 2}\n"
      "strategy: {kind: data_parallel, sync: all_reduce, algorithm: ring, bucket: 25MiB, transport: nccl}\n";
  std::string other = plain;
  for (const auto& [name, written] : {std::pair{"resnet50", "ResNet-50"},
                                      {"fp32", "float32"},
                                      {"framework: pytorch", "framework: PyTorch"},
                                      {"sgd", "SGD"},
                                      {"nchw", "channels_first"},
                                      {"aws-p4d.24xlarge", "p4d"},
                                      {"data_parallel", "ddp"},
                                      {"all_reduce", "allreduce"},
                                      {"ring", "Ring"},
                                      {"25MiB", "25mib"},
                                      {"transport: nccl", "transport: NCCL"}})
    other = replaced(other, name, written);
  place.file("plain.yaml", plain);
  place.file("other.yaml", other);
  const auto results = [&](const char* file) {
    const Finished run = place.convoy({"run", file, "--json"});
    CAPTURE(run.err);
    REQUIRE(run.exit_code == 0);
    return run.out.substr(0, run.out.find("\"manifest\""));
  };
  CHECK(results("other.yaml") == results("plain.yaml"));
  place.file("many.yaml", replaced(plain, "batch_per_device", "batch_size"));
  CHECK(place.convoy({"run", "many.yaml", "--json"})
            .err.find("unknown key (did you mean one of batch_per_device, global_batch?)") !=
        std::string::npos);
}

TEST_CASE("run: a reader that has seen enough is no error, a full disk is one") {
  const Workplace place;
  place.file("e.yaml", swept_experiment());
  const Finished closed =
      place.shell("$CONVOY run e.yaml --json 2>err | true; echo ${PIPESTATUS[0]}; cat err");
  CHECK(closed.out == "0\n");
  const Finished full = place.shell("$CONVOY run e.yaml --json > /dev/full");
  CHECK(full.exit_code == 2);
  CHECK(full.err == "convoy: standard output: No space left on device\n");
}
