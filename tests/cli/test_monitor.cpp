// SPDX-License-Identifier: MIT
// What `convoy run --monitor` writes, against results.json and by hand.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.h"
#include "tests/support/approx.h"

namespace {

using nlohmann::json;

using MonitorLineCells = std::map<std::string, std::string>;

std::vector<std::string> monitor_cells(const std::string& line) {
  std::vector<std::string> cells(1);
  for (const char c : line) c == ',' ? (void)cells.emplace_back() : cells.back().push_back(c);
  return cells;
}

std::vector<MonitorLineCells> monitor_lines(const std::string& csv) {
  std::istringstream in(csv);
  std::string text;
  std::getline(in, text);
  const std::vector<std::string> names = monitor_cells(text);
  std::vector<MonitorLineCells> lines;
  while (std::getline(in, text)) {
    const std::vector<std::string> cells = monitor_cells(text);
    REQUIRE(cells.size() == names.size());
    MonitorLineCells& line = lines.emplace_back();
    for (std::size_t i = 0; i < cells.size(); ++i) line[names[i]] = cells[i];
  }
  return lines;
}

double monitor_number(const MonitorLineCells& line, const char* column) { return std::stod(line.at(column)); }

/// 4 hosts of one device and a server, which gets half of the bytes that it sends; steps of about a second.
const std::string monitored_servers =
    "experiment: servers\nmodel: resnet50\n"
    "training: {batch_per_device: 32, precision: fp32, optimizer: momentum}\n"
    "cluster: {server: gcp-n1-standard-8-k80, nodes: 4}\n"
    "strategy: {kind: data_parallel, sync: parameter_server, servers: 1, compression: fp16}\n"
    "sweep: {strategy.mode: [sync, async]}\n";

}  // namespace

TEST_CASE("monitor: an hour of minutes of parameter servers has the bytes and work of the steps in it") {
  const Workplace place;
  place.file("s.yaml", monitored_servers);
  const Finished run =
      place.convoy({"run", "s.yaml", "--json", "--full", "--out", "o", "--monitor", "--monitor-for", "1h"});
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  const json runs = json::parse(run.out)["runs"];
  const std::vector<MonitorLineCells> lines = monitor_lines(place.read("o/monitor.csv"));
  REQUIRE(lines.size() == 2 * 5 * 60);
  std::map<std::string, double> sent_bytes, received_bytes, busy_s;
  for (const MonitorLineCells& line : lines) {
    const std::string of = line.at("run") + " " + line.at("host");
    CHECK(monitor_number(line, "to_s") - monitor_number(line, "from_s") == 60);
    CHECK(monitor_number(line, "vcpus") > 0);
    CHECK(monitor_number(line, "busy_vcpus") <= monitor_number(line, "vcpus"));
    sent_bytes[of] += 60 * monitor_number(line, "sent_Bps");
    received_bytes[of] += 60 * monitor_number(line, "received_Bps");
    CHECK(line.at("gpu_busy_share").empty() == (line.at("host") == "ps0"));
    if (line.at("host") == "ps0") continue;
    busy_s[of] += 60 * monitor_number(line, "gpu_busy_share");
    CHECK(monitor_number(line, "gpu_tensor_bytes") <= monitor_number(line, "gpu_memory_bytes"));
  }
  for (const json& point : runs) {
    const double steps = 3600 / point["step_time_s"].get<double>();
    const std::string id = point["id"];
    // An hour may end within a step.
    for (const json& link : point["per_link"]) {
      const std::string name = link["name"];
      const std::size_t nic = name.find(".nic.");
      if (nic == std::string::npos) continue;
      const std::string of = id + " " + name.substr(0, nic);
      const bool up = name.ends_with("up");
      CHECK(std::abs((up ? sent_bytes : received_bytes).at(of) / link["bytes"].get<double>() - steps) <= 1);
    }
    for (const json& device : point["per_device"])
      CHECK(busy_s.at(id + " " + device["name"].get<std::string>()) <=
            (steps + 1) * device["busy_s"].get<double>() * (1 + 1e-9));
  }
}

TEST_CASE("monitor: hosts that come later have lines from then on, and in a restart nobody sends") {
  const Workplace place;
  place.file("e.yaml",
             "experiment: e\nmodel: resnet50\n"
             "training: {global_batch: 256, precision: fp32, optimizer: momentum}\n"
             "cluster: {server: gcp-n1-standard-8-k80, nodes: 4}\n"
             "strategy:\n  kind: elastic\n  inner: {kind: data_parallel, sync: all_reduce, algorithm: ring}\n"
             "  schedule: [{at_step: 0, devices: 2}, {at_step: 20, devices: 4}]\n  reconfigure: restart\n");
  const Finished run = place.convoy({"run", "e.yaml", "--json", "--out", "o", "--monitor", "--monitor-every",
                                     "1s", "--monitor-for", "120s"});
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  const json point = json::parse(run.out)["runs"][0];
  const double starts_s = point["phases"][1]["start_s"];
  const double pause_s = point["reconfigurations"][0]["pause_s"];
  REQUIRE(pause_s > 3);
  std::size_t old_host = 0, new_host = 0, paused = 0;
  for (const MonitorLineCells& line : monitor_lines(place.read("o/monitor.csv"))) {
    const double from_s = monitor_number(line, "from_s"), to_s = monitor_number(line, "to_s");
    const bool is_new = line.at("host") == "n2" || line.at("host") == "n3";
    ++(is_new ? new_host : old_host);
    if (is_new) CHECK(to_s > starts_s - pause_s);
    if (from_s >= starts_s - pause_s && to_s <= starts_s - 1) {
      ++paused;
      CHECK(monitor_number(line, "gpu_busy_share") == 0);
      CHECK(monitor_number(line, "sent_Bps") == 0);
    }
    if (from_s >= starts_s + 1) CHECK(monitor_number(line, "gpu_busy_share") > 0.3);
  }
  CHECK(old_host == 2 * 120);
  CHECK(paused >= 2 * 10);
  CHECK(new_host >= 2);
  CHECK(new_host < old_host);
}

TEST_CASE("monitor: the page has its drawings, and is rewritten from the folder to the same bytes") {
  const Workplace place;
  place.file("e.yaml", small_experiment());
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "o", "--monitor", "--monitor-every", "1ms"}).exit_code ==
          0);
  const std::string page = place.read("o/report.html"), csv = place.read("o/monitor.csv");
  CHECK(page.find("As a provider's monitoring reports it") != std::string::npos);
  CHECK(page.find("bandwidth as reported") != std::string::npos);
  REQUIRE(place.convoy({"report", "o"}).exit_code == 0);
  CHECK(place.read("o/report.html") == page);
  // From what is there, for any number of jobs.
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "o", "--monitor", "--monitor-every", "1ms", "--jobs", "3"})
              .exit_code == 0);
  CHECK(place.read("o/monitor.csv") == csv);
  // A line that was changed is refused with its place, and a run without --monitor leaves none.
  place.file("o/monitor.csv", replaced(csv, "\n1,", "\n9,"));
  const Finished changed = place.convoy({"report", "o"});
  CHECK(changed.exit_code == 2);
  CHECK(changed.err.find("monitor.csv:2:1: run '9' is not among the folder's results") != std::string::npos);
  const std::size_t line = csv.find('\n') + 1, host = csv.find(',', line) + 1;
  place.file("o/monitor.csv", csv.substr(0, host) + csv.substr(csv.find(',', host)));
  CHECK(place.convoy({"report", "o"}).err.find("monitor.csv:2:1: host is missing") != std::string::npos);
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "o"}).exit_code == 0);
  CHECK_FALSE(std::filesystem::exists(place.path() / "o/monitor.csv"));
}

TEST_CASE("monitor: options that cannot be are refused in one line, and nothing is written") {
  const Workplace place;
  place.file("e.yaml", small_experiment());
  const auto error_of = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"run", "e.yaml", "--out", "o"});
    const Finished run = place.convoy(options);
    CHECK(run.exit_code == 2);
    CHECK_FALSE(std::filesystem::exists(place.path() / "o/results.json"));
    return run.err;
  };
  CHECK(error_of({"--monitor-every", "1s"}).find("--monitor-every: is for --monitor") != std::string::npos);
  CHECK(error_of({"--monitor-for", "1s"}).find("--monitor-for: is for --monitor") != std::string::npos);
  CHECK(error_of({"--monitor", "--monitor-every", "5"}).find("lacks its unit") != std::string::npos);
  CHECK(error_of({"--monitor", "--monitor-for", "0s"}).find("must be more than 0") != std::string::npos);
  CHECK(error_of({"--monitor", "--network-model", "simgrid"}).find("convoy's own network model") !=
        std::string::npos);
  CHECK(error_of({"--monitor", "--monitor-every", "1us", "--monitor-for", "1h"})
            .find("for a host of a run it would write 3600000000 lines") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(place.path() / "o"));  // not even simulated
  CHECK(error_of({"--monitor", "--monitor-every", "4ms", "--monitor-for", "1h"}).find("up to run 1 it") !=
        std::string::npos);
}
