// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/cli/program.h"
#include "tests/support/approx.h"

using nlohmann::json;

TEST_CASE("run: every name of the contract is there, and the critical device's times add up") {
  const Workplace place;
  place.file("e.yaml", swept_experiment());
  const json results = json::parse(place.convoy({"run", "e.yaml", "--json"}).out);
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
