// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "sim/base/quantity.h"
#include "tests/cli/program.h"
#include "tests/support/approx.h"

using nlohmann::json;

namespace {

constexpr const char* swept_file = R"(sweep:
  training.batch_per_device: [8, 16]
  strategy:
    - {kind: data_parallel, sync: all_reduce, algorithm: ring}
    - {kind: data_parallel, sync: parameter_server, servers: 1}
  cluster.nodes.0.count: [1, 2, 4, 8]
)";

Finished run_small(const Workplace& place, std::vector<std::string> more) {
  place.file("e.yaml", small_experiment() + swept_file);
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

TEST_CASE("run: every name of the contract is there, and the critical device's times add up") {
  const Workplace place;
  const json results = json::parse(run_small(place, {"--json"}).out);
  const std::set<std::string> names{"id",
                                    "point",
                                    "model",
                                    "cluster",
                                    "servers",
                                    "device_type",
                                    "strategy",
                                    "algorithms",
                                    "devices",
                                    "global_batch",
                                    "step_time_s",
                                    "throughput_images_per_s",
                                    "epoch_time_s",
                                    "cost_usd_per_epoch",
                                    "energy_j",
                                    "compute_s",
                                    "issue_wait_s",
                                    "exposed_comm_s",
                                    "idle_s",
                                    "comm_bytes",
                                    "load_imbalance",
                                    "peak_memory_bytes",
                                    "process_memory_bytes",
                                    "device_memory_bytes",
                                    "fits",
                                    "software",
                                    "warnings",
                                    "bottleneck",
                                    "per_device",
                                    "per_link"};
  for (const json& run : results["runs"]) {
    std::set<std::string> keys;
    for (const auto& [key, value] : run.items()) keys.insert(key);
    CHECK(keys == names);
    const double parts =
        run["compute_s"].get<double>() + run["exposed_comm_s"].get<double>() + run["idle_s"].get<double>();
    CHECK(parts == convoy::approx(run["step_time_s"].get<double>()).epsilon(1e-9));
    CHECK(
        run["throughput_images_per_s"].get<double>() ==
        convoy::approx(run["global_batch"].get<double>() / run["step_time_s"].get<double>()).epsilon(1e-12));
    double sent = 0, received = 0;
    std::int64_t devices = 0;
    for (const json& device : run["per_device"]) {
      const auto count = device["count"].get<std::int64_t>();
      devices += count;
      sent += static_cast<double>(count) * device["sent_bytes"].get<double>();
      received += static_cast<double>(count) * device["received_bytes"].get<double>();
      double memory = 0;
      for (const auto& [name, bytes] : device["memory"].items()) memory += bytes.get<double>();
      CHECK(memory == convoy::approx(device["peak_memory_bytes"].get<double>()).epsilon(1e-12));
    }
    CHECK(sent == convoy::approx(received).epsilon(1e-12));
    CHECK(run["devices"] == devices);
    CHECK(run["fits"] == true);
    CHECK(run["epoch_time_s"].is_null());
  }
  const json& manifest = results["manifest"];
  CHECK(manifest["version"] == "0.2.0");
  CHECK(manifest["simgrid"].get<std::string>().starts_with("3."));
  CHECK(manifest["config_sha256"].get<std::string>().size() == 64);
  CHECK(manifest["inputs"].contains("e.yaml"));
}

TEST_CASE("run: devices and links by class, or one by one with --full") {
  const Workplace place;
  place.file("e.yaml", small_experiment());
  const json slim = json::parse(place.convoy({"run", "e.yaml", "--json"}).out)["runs"][0];
  const json full = json::parse(place.convoy({"run", "e.yaml", "--json", "--full"}).out)["runs"][0];
  REQUIRE(slim["per_device"].size() == 1);
  CHECK(slim["per_device"][0]["count"] == 4);
  REQUIRE(full["per_device"].size() == 4);
  for (const char* part : {"per_device", "per_link"}) {
    std::int64_t count = 0;
    for (const json& entry : slim[part]) count += entry["count"].get<std::int64_t>();
    CHECK(count == static_cast<std::int64_t>(full[part].size()));
    for (const json& entry : full[part]) CHECK(entry["count"] == 1);
    // each of the full list is in a class
    for (json entry : full[part]) {
      const bool found = std::any_of(slim[part].begin(), slim[part].end(), [&](json other) {
        for (const char* key : {"name", "count"}) other[key] = entry[key];
        return other == entry;
      });
      CHECK(found);
    }
  }
}

TEST_CASE(
    "run: of servers of two kinds, which differ in one thing, each counts with its own energy, power and "
    "price") {
  struct Other {
    const char *device, *host;  ///< what the second kind has that the first has not
    double host_w, usd_an_hour;
  };
  for (const auto& [device, host, host_w, usd_an_hour] :
       {Other{", peak_power: 350W", "", 100, 1}, Other{", idle_power: 20W", "", 100, 1},
        Other{", memory: 32GiB", "", 100, 1}, Other{", memory_bandwidth: 100GB/s", "", 100, 1},
        Other{", peak: {fp32: 1TFLOPS}", "", 100, 1}, Other{"", "power: 70W", 70, 1},
        Other{"", "", 100, 3}}) {
    CAPTURE(device);
    CAPTURE(host);
    const Workplace place;
    place.file(
        "e.yaml",
        fmt::format("experiment: e\nmodel: lenet5\ntraining: {{batch_per_device: 8, dataset: {{samples: "
                    "100000}}}}\ncluster:\n  name: lab\n"
                    "  nodes: [{{name: a, count: 2, server: box}}, {{name: b, count: 3, server: crate}}]\n"
                    "  fabric: {{kind: switch, bandwidth: 1Gbps, latency: 50us, protocol: tcp}}\n"
                    "  servers:\n"
                    "    box: {{devices: [{{device: one}}], price: 1USD/h, host: {{power: 100W}}}}\n"
                    "    crate: {{devices: [{{device: two}}], price: {}USD/h, host: {{{}}}}}\n"
                    "  devices:\n"
                    "    one: {{peak: {{fp32: 10TFLOPS}}, memory: 16GiB, memory_bandwidth: 500GB/s, "
                    "efficiency: 1.0, idle_power: 50W, peak_power: 250W}}\n"
                    "    two: {{base: one{}}}\n"
                    "strategy: {{kind: data_parallel, sync: all_reduce}}\n",
                    usd_an_hour, *host ? host : "power: 100W", device));
    const json run = json::parse(place.convoy({"run", "e.yaml", "--json"}).out)["runs"][0];
    const json full = json::parse(place.convoy({"run", "e.yaml", "--json", "--full"}).out)["runs"][0];
    const double step_s = run["step_time_s"], hosts_j = (2 * 100 + 3 * host_w) * step_s;
    for (const json& listed : {run, full}) {
      double devices_j = 0;
      for (const json& of : listed["per_device"])
        devices_j += of["count"].get<double>() * of["energy_j"].get<double>();
      CHECK(listed["energy_j"] == convoy::approx(hosts_j + devices_j).epsilon(1e-9));
    }
    REQUIRE(full["per_device"].size() == 5);
    for (json entry : full["per_device"]) {
      const auto is_its_class = [&](json other) {
        for (const char* key : {"name", "count"}) other[key] = entry[key];
        return other == entry;
      };
      CHECK(std::ranges::any_of(run["per_device"], is_its_class));
    }
    CHECK(run["cost_usd_per_epoch"] ==
          convoy::approx((2 + 3 * usd_an_hour) * run["epoch_time_s"].get<double>() / 3600).epsilon(1e-9));
  }
}

TEST_CASE("run: hosts without devices draw their power and cost their price too") {
  const Workplace place;
  place.file("e.yaml",
             "experiment: e\nmodel: lenet5\ntraining: {batch_per_device: 8, dataset: {samples: 100000}}\n"
             "cluster:\n  nodes: [{name: a, count: 3, server: box}]\n"
             "  fabric: {kind: switch, bandwidth: 1Gbps, latency: 50us, protocol: tcp}\n"
             "  servers:\n    box: {devices: [{device: one}], price: 2USD/h, host: {power: 100W}}\n"
             "    bare: {devices: [{device: one}], price: 5USD/h, host: {power: 30W}}\n"
             "  dedicated: {server: bare, price: 0.5USD/h}\n"
             "  devices:\n    one: {peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, "
             "efficiency: 1.0, idle_power: 50W, peak_power: 250W}\n"
             "strategy: {kind: data_parallel, sync: parameter_server, servers: 2}\n");
  const json run = json::parse(place.convoy({"run", "e.yaml", "--json"}).out)["runs"][0];
  double devices_j = 0;
  for (const json& of : run["per_device"])
    devices_j += of["count"].get<double>() * of["energy_j"].get<double>();
  CHECK(run["energy_j"] ==
        convoy::approx(devices_j + (3 * 100 + 2 * 30) * run["step_time_s"].get<double>()).epsilon(1e-9));
  CHECK(run["cost_usd_per_epoch"] ==
        convoy::approx((3 * 2 + 2 * 0.5) * run["epoch_time_s"].get<double>() / 3600).epsilon(1e-9));
}

TEST_CASE("run: epoch time and cost of a data set, by hand") {
  const Workplace place;
  place.file("e.yaml", small_experiment());
  const json run =
      json::parse(place.convoy({"run", "e.yaml", "--json", "--set", "training.dataset={samples: 1000000}"})
                      .out)["runs"][0];
  const double epoch_s = 1e6 / run["throughput_images_per_s"].get<double>();
  CHECK(run["epoch_time_s"].get<double>() == convoy::approx(epoch_s).epsilon(1e-12));
  // 4 hosts at 1 USD/h
  CHECK(run["cost_usd_per_epoch"].get<double>() == convoy::approx(4 * epoch_s / 3600).epsilon(1e-12));
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

TEST_CASE("run: --tasks writes what was replayed of one point, and says where it cannot") {
  const Workplace place;
  place.file("one.yaml", small_experiment());
  const Finished table = place.convoy({"run", "one.yaml", "--tasks", "tasks.json"});
  CHECK(table.err.empty());
  CHECK(table.exit_code == 0);
  CHECK(table.out.ends_with("report.html, results.json, results.csv\ntasks in tasks.json\n"));
  const json tasks = json::parse(place.read("tasks.json"));
  CHECK(tasks["schema"] == "convoy.tasks/1");
  const Finished again = place.convoy({"run", "one.yaml", "--json", "--tasks", "again.json"});
  CHECK(tasks["result"]["step_time_s"] == json::parse(again.out)["runs"][0]["step_time_s"]);
  CHECK(place.read("again.json") == place.read("tasks.json"));

  const auto check_refused = [&](std::vector<std::string> arguments, const std::string& reason) {
    arguments.insert(arguments.begin(), {"run", "--json", "--tasks", "refused.json"});
    const Finished refused = place.convoy(arguments);
    CHECK(refused.exit_code == 2);
    CHECK(refused.out.empty());
    CHECK_MESSAGE(refused.err.find(reason) != std::string::npos, refused.err);
    CHECK(std::count(refused.err.begin(), refused.err.end(), '\n') == 1);
    const std::vector<std::string> files = place.files();
    CHECK(std::find(files.begin(), files.end(), "refused.json") == files.end());
  };
  place.file("many.yaml", small_experiment() + swept_file);
  check_refused({"many.yaml"}, "--tasks: the tasks of one point can be written, and the experiment has 16");
  check_refused({"one.yaml", "--network-model", "simgrid"}, "SimGrid's network model has other rules");
  const auto with = [](const std::string& strategy) {
    return replaced(small_experiment(), "{kind: data_parallel, sync: all_reduce, algorithm: ring}", strategy);
  };
  place.file("async.yaml", with("{kind: data_parallel, sync: parameter_server, servers: 1, mode: async}"));
  check_refused({"async.yaml"}, "they have no common step");
  place.file("auto.yaml", with("{kind: auto}"));
  const Finished best = place.convoy({"run", "auto.yaml", "--json", "--tasks", "auto.json"});
  CHECK(json::parse(place.read("auto.json"))["result"]["step_time_s"] ==
        json::parse(best.out)["runs"][0]["step_time_s"]);
  const Finished nowhere = place.convoy({"run", "one.yaml", "--json", "--tasks", "none/tasks.json"});
  CHECK(nowhere.exit_code == 2);
  CHECK(nowhere.err == "convoy: none/tasks.json: cannot be written: No such file or directory\n");
}

TEST_CASE("run: --chakra and --goal write it for other simulators, and refuse what --tasks refuses") {
  const Workplace place;
  place.file("one.yaml", small_experiment());
  const Finished alone = place.convoy({"run", "one.yaml", "--json", "--tasks", "alone.json"});
  const Finished all =
      place.convoy({"run", "one.yaml", "--tasks", "tasks.json", "--chakra", "traces", "--goal", "step.goal"});
  CHECK(all.err.empty());
  CHECK(all.exit_code == 0);
  CHECK(
      all.out.ends_with("tasks in tasks.json\ntraces of Chakra in traces\nschedule of GOAL in step.goal\n"));
  CHECK(place.read("tasks.json") == place.read("alone.json"));
  const std::string goal = place.read("step.goal"), trace = place.read("traces/trace.0.et");
  const auto ranks = json::parse(place.read("tasks.json"))["roles"][0]["members"].size();
  CHECK(goal.starts_with(fmt::format("num_ranks {}\n", ranks)));
  CHECK(json::parse(place.read("traces/comm_groups.json"))["1"].size() == ranks);
  place.convoy({"run", "one.yaml", "--json", "--chakra", "traces", "--goal", "step.goal"});
  CHECK(place.read("traces/trace.0.et") == trace);
  CHECK(place.read("step.goal") == goal);

  place.file("many.yaml", small_experiment() + swept_file);
  for (const char* option : {"--chakra", "--goal"}) {
    const Finished refused = place.convoy({"run", "many.yaml", "--json", option, "refused"});
    CHECK(refused.exit_code == 2);
    CHECK_MESSAGE(
        refused.err.find(fmt::format("{}: the tasks of one point can be written", option)) != std::string::npos,
        refused.err);
  }
  const Finished lost = place.convoy({"run", "one.yaml", "--json", "--chakra", "none/traces"});
  CHECK(lost.exit_code == 2);
  CHECK(lost.out.empty());
  CHECK(lost.err.find("none is not a folder") != std::string::npos);
  place.file("other/mine.txt", "");
  const Finished other = place.convoy({"run", "one.yaml", "--json", "--chakra", "other"});
  CHECK(other.exit_code == 2);
  CHECK(other.err == "convoy: other: holds other files than traces (mine.txt); choose another folder\n");
}

TEST_CASE("run: a reader that has seen enough is no error, a full disk is one") {
  const Workplace place;
  place.file("e.yaml", small_experiment() + swept_file);
  const Finished closed =
      place.shell("$CONVOY run e.yaml --json 2>err | true; echo ${PIPESTATUS[0]}; cat err");
  CHECK(closed.out == "0\n");
  const Finished full = place.shell("$CONVOY run e.yaml --json > /dev/full");
  CHECK(full.exit_code == 2);
  CHECK(full.err == "convoy: standard output: No space left on device\n");
}

TEST_CASE("check: says what would be run and runs nothing") {
  const Workplace place;
  place.file("e.yaml", small_experiment() + "sweep: {cluster.nodes.0.count: [1, 2]}\n");
  const Finished run = place.convoy({"check", "e.yaml"});
  CHECK(run.exit_code == 0);
  CHECK(run.err.empty());
  std::string points = "small: 2 runs\n";
  for (const int count : {1, 2})
    points += fmt::format("  {0}  cluster.nodes.0.count: {0}\n     memory of n0: MEMORY\n", count);
  CHECK(std::regex_replace(
            run.out,
            std::regex("memory of n0: [0-9.]+ [KM]iB of 16.0 GiB at the peak \\(weights [^)]+\\), "
                       "process [^\n]+"),
            "memory of n0: MEMORY") == points);
  CHECK(place.files() == std::vector<std::string>{"e.yaml"});
}

TEST_CASE("check: tells the memory that a run reports, and warns of what does not fit, as it does") {
  const Workplace place;
  const auto text = [](int batch) {
    return fmt::format(
        "experiment: e\nmodel: resnet50\ntraining: {{batch_per_device: {}, precision: fp32}}\ncluster: "
        "{{server: aws-p3.2xlarge, nodes: 2, fabric: {{kind: switch, bandwidth: 10Gbps, latency: 25us, "
        "protocol: "
        "tcp}}}}\nstrategy: {{kind: data_parallel, sync: all_reduce}}\n",
        batch);
  };
  for (const int batch : {16, 100'000'000}) {
    CAPTURE(batch);
    place.file("e.yaml", text(batch));
    const Finished check = place.convoy({"check", "e.yaml"});
    CAPTURE(check.out);
    CAPTURE(check.err);
    CHECK(check.exit_code == 0);
    const json run = json::parse(place.convoy({"run", "e.yaml", "--json"}).out)["runs"][0];
    const json& memory = run["per_device"][0]["memory"];
    std::string classes;
    for (const char* name : {"weights", "gradients", "optimizer", "activations", "workspace", "reserved"})
      if (memory[name].get<double>() > 0)
        classes += fmt::format("{}{} {}", classes.empty() ? "" : ", ", name,
                               convoy::format_bytes(memory[name].get<double>()));
    const std::string told =
        fmt::format("memory of n0: {} of 16.0 GiB at the peak ({}), process {}\n",
                    convoy::format_bytes(run["peak_memory_bytes"].get<double>()), classes,
                    convoy::format_bytes(run["process_memory_bytes"].get<double>()));
    CHECK(check.out == "e: 1 run\n  " + told);
    const bool warned = check.err.find("convoy: warning: the process on n0 needs 7.7") != std::string::npos &&
                        check.err.ends_with(": this run would fail\n");
    CHECK(warned == !run["fits"].get<bool>());
    if (run["fits"].get<bool>()) CHECK(check.err.empty());
  }
  CHECK(place.files() == std::vector<std::string>{"e.yaml"});
}

TEST_CASE("check: warns of every strategy as a run of it does, and of devices that have nothing to do") {
  const std::pair<std::string, std::size_t> strategies[] = {
      {"{kind: single}", 3},
      {"{kind: data_parallel, sync: all_reduce}", 0},
      {"{kind: data_parallel, sync: gossip}", 0},
      {"{kind: data_parallel, sync: all_reduce, sync_every: 4}", 0},
      {"{kind: data_parallel, sync: parameter_server, mode: async}", 0},
      {"{kind: pipeline, stages: 2, micro_batches: 2}", 0},
      {"{kind: pardnn, parts: 3}", 1},
      {"{kind: hypergraph, parts: 2}", 2},
      {"{kind: filter_parallel}", 0}};
  std::size_t most = 0;
  // A fabric that says no protocol is warned of too: all that a run warns of is told, not the first alone.
  for (const char* fabric : {"", ", fabric: {kind: switch, bandwidth: 1Gbps, latency: 50us}"})
    for (const auto& [strategy, idle] : strategies) {
      CAPTURE(strategy);
      const Workplace place;
      place.file("e.yaml",
                 fmt::format("experiment: e\nmodel: lenet5\ntraining: {{batch_per_device: 8}}\n"
                             "cluster: {{server: gcp-n1-standard-8-k80, nodes: 4{}}}\nstrategy: {}\n",
                             fabric, strategy));
      std::string warnings;
      std::size_t told = 0;
      const json results = json::parse(place.convoy({"run", "e.yaml", "--json"}).out);
      for (const std::string warning : results["runs"][0]["warnings"]) {
        warnings += fmt::format("convoy: warning: {}\n", warning);
        if (warning.starts_with(fmt::format("{} of the 4 devices (n{}", idle, 4 - idle))) ++told;
      }
      CHECK(place.convoy({"check", "e.yaml"}).err == warnings);
      most = std::max(most, results["runs"][0]["warnings"].size());
      CHECK(told == (idle > 0 ? 1 : 0));
      CHECK((warnings.find("nothing to do") != std::string::npos) == (idle > 0));
    }
  CHECK(most >= 2);
}

TEST_CASE(
    "run: a slower host takes longer where kernels are short, and an interval is narrower where it is told") {
  const auto run = [](int batch, const std::string& host) {
    const Workplace place;
    place.file("e.yaml",
               fmt::format("experiment: e\nmodel: densenet121\ntraining: {{batch_per_device: {}, precision: "
                           "fp32}}\ncluster: {{nodes: 1, server: one, servers: {{one: {{devices: [{{device: "
                           "v100-sxm2-16gb}}]{}}}}}}}\nstrategy: {{kind: single}}\n",
                           batch, host));
    return json::parse(place.convoy({"run", "e.yaml", "--json"}).out)["runs"][0];
  };
  const auto step_s = [](const json& of) { return of["step_time_s"].get<double>(); };
  const auto width = [&](const json& of) {
    const json& ends = of["interval"]["step_time_s"];
    return (ends[1].get<double>() - ends[0].get<double>()) / step_s(of);
  };
  const json unknown = run(1, ""), typical = run(1, ", host: {issue_factor: 1}");
  CHECK(step_s(typical) == step_s(unknown));
  CHECK(width(typical) < width(unknown) / 1.5);
  // One image is computed while the next operation is issued; 128 take longer than their operations' issue.
  CHECK(step_s(run(1, ", host: {issue_factor: 2}")) / step_s(unknown) == convoy::approx(2).epsilon(0.02));
  const json large = run(128, "");
  CHECK(step_s(run(128, ", host: {issue_factor: 1.5}")) / step_s(large) == convoy::approx(1).epsilon(0.01));
  CHECK(width(run(128, ", host: {issue_factor: 1}")) == convoy::approx(width(large)).epsilon(0.02));
}
