// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/base/data_path.h"
#include "tests/support/approx.h"
#include "tests/topologies/machines.h"
#include "topologies/catalog.h"
#include "topologies/prices.h"
#include "topologies/regions.h"
#include "topologies/risks.h"

using namespace convoy;

namespace {

/// Dotted paths of the values that are numbers, with or without a unit.
void collect_numbers(const YamlNode& node, const std::string& path, std::vector<std::string>& paths) {
  if (node.kind == YamlNode::Kind::scalar && !node.quoted &&
      std::isdigit(static_cast<unsigned char>(node.scalar[0])))
    paths.push_back(path);
  for (const YamlNode& item : node.items) collect_numbers(item, path, paths);
  for (const auto& [key, value] : node.entries)
    if (key != "sources") collect_numbers(value, path.empty() ? key : path + "." + key, paths);
}

bool has_source(const YamlNode& file, std::string path) {
  const YamlNode* sources = file.find("sources");
  while (sources && !path.empty()) {
    if (sources->find(path)) return true;
    const std::size_t dot = path.rfind('.');
    path = dot == std::string::npos ? "" : path.substr(0, dot);
  }
  return false;
}

bool has_place(const YamlNode& file, const std::string& path) {
  const YamlNode* node = &file;
  for (std::size_t start = 0; node && start <= path.size();) {
    const std::size_t end = std::min(path.find('.', start), path.size());
    node = node->find(path.substr(start, end - start));
    start = end + 1;
  }
  return node != nullptr;
}

}  // namespace

TEST_CASE("every number of the servers and clusters has a source, and every source a number") {
  for (const std::string folder : {"topologies/catalog/servers", "topologies/catalog/clusters"})
    for (const std::string& name : data_names(folder)) {
      CAPTURE(name);
      const YamlNode file = load_yaml(data_path(folder) + "/" + name + ".yaml");
      std::vector<std::string> numbers;
      collect_numbers(file, "", numbers);
      CHECK(!numbers.empty());
      for (const std::string& path : numbers) {
        CAPTURE(path);
        CHECK(has_source(file, path));
      }
      REQUIRE(file.find("sources"));
      for (const auto& [path, citation] : file.find("sources")->entries) {
        CAPTURE(path);
        CHECK(has_place(file, path));
        CHECK(citation.scalar.size() > 10);
      }
    }
}

TEST_CASE("every number of the catalogue says how it is known") {
  int texts = 0;
  const auto graded = [&](const Sources& sources) {
    CHECK(!sources.empty());
    for (const auto& [key, source] : sources) {
      CAPTURE(key);
      ++texts;
      CHECK(source.grade != Grade::given);
      CHECK(source.grade != Grade::unstated);
      CHECK(source.text.size() > 5);
    }
  };
  for (const char* const folder :
       {"devices", "servers", "clusters", "transports", "input_libraries", "inputs",
        "synchronization/all_reduce", "synchronization/parameter_server"})
    for (const std::string& name : data_names(std::string("topologies/catalog/") + folder)) {
      CAPTURE(name);
      const YamlNode file =
          load_yaml(data_path(std::string("topologies/catalog/") + folder) + "/" + name + ".yaml");
      YamlMap map(file, "");
      graded(read_sources(map));
    }
  CHECK(texts > 2500);
  const auto is_known = [](Grade grade) { return grade != Grade::given && grade != Grade::unstated; };
  for (const Price& price : PriceTable::shipped().prices()) CHECK(is_known(price.grade));
  for (const InterruptionRate& rate : interruption_rates()) CHECK(is_known(rate.grade));
  for (const FailureRate& rate : failure_rates()) CHECK(is_known(rate.grade));
  for (const GridRegion& region : grid_regions()) CHECK(is_known(region.grade));
}

TEST_CASE("a source is a grade, a spread where it is told, and a text") {
  const auto read = [](const std::string& text) {
    const YamlNode node = parse_yaml("{sources: {a.b: \"" + text + "\"}}", "s");
    YamlMap map(node, "x");
    return read_sources(map).at(0).second;
  };
  CHECK(read("assumed: as others") == Source{Grade::assumed, std::nullopt, "as others"});
  CHECK(read("measured +-20%: here: now").grade == Grade::measured);
  CHECK(*read("measured +-20%: here: now").spread == approx(std::log(1.2)));
  CHECK(read("measured +-20%: here: now").text == "here: now");
  CHECK(read("given") == Source{Grade::given, std::nullopt, ""});
  CHECK(read("measured by me") == Source{Grade::given, std::nullopt, "measured by me"});
  CHECK(to_string(read("fitted +-5%: to rows")) == "fitted +-5%: to rows");
  CHECK_THROWS_WITH_AS(read("assumed +-much: x"), doctest::Contains("sources.a.b: "), InputError);
  const Sources sources{{"fabric", {Grade::assumed, {}, "1"}},
                        {"fabric.latency", {Grade::measured, {}, "2"}}};
  CHECK(find_source(sources, "fabric.latency")->text == "2");
  CHECK(find_source(sources, "fabric.bandwidth")->text == "1");
  CHECK(find_source(sources, "fabrics") == nullptr);
}

TEST_CASE("every device of the catalogue tells its generation, and draws less when it idles") {
  for (const std::string& name : device_names()) {
    CAPTURE(name);
    const DeviceType device = load_device(name, {});
    CHECK(!device.generation.empty());
    CHECK(device.clock_hz + device.sms > 0);
    CHECK(device.idle_power_w > 0);
    CHECK(device.idle_power_w < 0.5 * device.peak_power_w);
    CHECK(device.usable_memory_bytes <= device.memory_bytes);
    CHECK(device.usable_memory_bytes >= 0.92 * device.memory_bytes);
  }
}

TEST_CASE("a device's fp32 peak is that of its multiprocessors at its clock") {
  // fp32 multiply-adds a clock of a multiprocessor (of a core): CUDA C++ Programming Guide, table of
  // arithmetic throughput by compute capability; for CPUs, vectors times units.
  const std::map<std::string, std::vector<double>> lanes = {
      {"kepler", {192}},        {"maxwell", {128}},    {"pascal", {64, 128}}, {"volta", {64}},
      {"turing", {64}},         {"ampere", {64, 128}}, {"ada", {128}},        {"hopper", {128}},
      {"blackwell", {128}},     {"haswell", {16}},     {"zen3", {16}},        {"zen4", {16}},
      {"sapphire_rapids", {32}}};
  int checked = 0;
  for (const std::string& name : device_names()) {
    CAPTURE(name);
    const DeviceType device = load_device(name, {});
    if (!device.sms || device.clock_hz <= 0 || !lanes.contains(device.generation)) continue;
    const double found = device.peak_flops.at(Precision::fp32) / (2 * device.sms * device.clock_hz);
    const std::vector<double>& allowed = lanes.at(device.generation);
    CHECK_MESSAGE(
        std::any_of(allowed.begin(), allowed.end(), [&](double n) { return std::abs(found / n - 1) < 0.03; }),
        found << " multiply-adds a clock");
    ++checked;
  }
  CHECK(checked > 55);
}

TEST_CASE(
    "lower precision has no lower peak, and tensor cores of a GeForce add up in fp32 at half their rate") {
  for (const std::string& name : device_names()) {
    CAPTURE(name);
    const DeviceType device = load_device(name, {});
    const double fp32 = device.peak_flops.at(Precision::fp32);
    for (const auto& [precision, flops] : device.peak_flops) CHECK(flops >= 0.999 * fp32);
    if (device.runs(Precision::bf16))
      CHECK(device.peak_flops.at(Precision::bf16) == device.peak_flops.at(Precision::fp16));
    if (device.generation == "pascal" || device.generation == "volta") CHECK(device.runs(Precision::fp16));
  }
  const auto fp16 = [](const char* name) { return load_device(name, {}).peak_flops.at(Precision::fp16); };
  // TU102 with all 72 and 68 multiprocessors: per multiprocessor and clock 512 and 1024 FLOPs (x 2 for both).
  CHECK(fp16("rtx-2080-ti") / (68 * 1.545e9) == approx(512).epsilon(0.01));
  CHECK(fp16("titan-rtx") / (72 * 1.77e9) == approx(1024).epsilon(0.01));
}

TEST_CASE("every server of the catalogue makes a machine of two nodes with a way between any two places") {
  for (const std::string& name : server_names()) {
    CAPTURE(name);
    const ServerSpec server = load_server(name, {});
    const Machine machine = machine_of(fmt::format("server: {}\nnodes: 2", name), 1);
    CHECK(machine.devices.size() == 2 * server.device_count());
    CHECK(check_routes(machine) == "");
    CHECK(describe(server).front().second == name);
  }
}

TEST_CASE("every server of the catalogue says what predictions would otherwise assume in silence") {
  for (const std::string& name : server_names()) {
    CAPTURE(name);
    const YamlNode file = load_yaml(data_path("topologies/catalog/servers") + "/" + name + ".yaml");
    const ServerSpec server = load_server(name, {});
    CHECK(!server.title.empty());
    REQUIRE(server.fabric);
    REQUIRE(server.fabric->nic().protocol);
    CHECK(*server.fabric->nic().protocol != Protocol::ideal);
    CHECK(has_source(file, "fabric.protocol"));
    CHECK(server.fabric->nic().bandwidth_Bps > 0);
    CHECK(server.fabric->nic().latency_s > 0);
    CHECK(server.fabric->nic().efficiency < 1);
    CHECK((server.interior || server.device_count() == 1));
    CHECK(server.step_jitter > 0);
    CHECK(server.host.host_power_w > 0);  // else energy and carbon leave the host out
    // What their owners put together has no data sheet, and what nobody rents out has no price: images read
    // from files are refused there until `vcpus` is given, and plans name it as a server without a price.
    const bool own = name.starts_with("workstation-");
    CHECK((own || server.host.vcpus > 0));
    CHECK((own || server.host.memory_bytes > 0));
    const bool bought =
        own || name.starts_with("dgx") || name == "perlmutter" || name.starts_with("piz-daint");
    CHECK(PriceTable::shipped().find(name, Market::on_demand).has_value() == !bought);
  }
}

TEST_CASE("servers with the same NICs speak the same over them") {
  using Nic = std::tuple<std::string, double, double, double, std::uint32_t>;
  std::map<Nic, std::pair<std::string, NicSpec>> first;
  for (const std::string& name : server_names()) {
    CAPTURE(name);
    const NicSpec nic = load_server(name, {}).fabric->nic();
    const std::string provider = name.substr(0, name.find('-'));
    const Nic key{provider, nic.bandwidth_Bps, nic.latency_s, nic.efficiency, nic.count};
    const auto& [other, same] = first.emplace(key, std::pair{name, nic}).first->second;
    CAPTURE(other);
    CHECK(nic.protocol == same.protocol);
    CHECK(nic.streams == same.streams);
    CHECK(nic.handshake_s == same.handshake_s);
    CHECK(nic.simple_only == same.simple_only);
  }
}

TEST_CASE("every cluster of the catalogue can be built by its name") {
  REQUIRE(!cluster_names().empty());
  for (const std::string& name : cluster_names()) {
    CAPTURE(name);
    const ClusterSpec cluster = load_cluster(name, {});
    const Machine machine = build_machine(cluster, 0);
    CHECK(machine.name == name);
    CHECK(machine.devices.size() == cluster.device_count());
    CHECK(describe(cluster).front().second == name);
  }
  CHECK(build_machine(load_cluster("tf-ec2-p2", {}), 0).devices.size() == 64);
}

TEST_CASE("servers have the names and devices that the contract gives them") {
  const std::vector<std::pair<std::string, std::uint32_t>> expected = {{"aws-p2.xlarge", 1},
                                                                       {"aws-p2.8xlarge", 8},
                                                                       {"aws-p2.16xlarge", 16},
                                                                       {"aws-p3.2xlarge", 1},
                                                                       {"aws-p3.8xlarge", 4},
                                                                       {"aws-p3.16xlarge", 8},
                                                                       {"aws-p3dn.24xlarge", 8},
                                                                       {"aws-g4dn.xlarge", 1},
                                                                       {"aws-g4dn.12xlarge", 4},
                                                                       {"aws-p4d.24xlarge", 8},
                                                                       {"azure-nc6", 1},
                                                                       {"azure-nc24", 4},
                                                                       {"azure-nc24rs-v3", 4},
                                                                       {"azure-nd96asr-v4", 8},
                                                                       {"gcp-n1-standard-4-k80", 1},
                                                                       {"gcp-n1-standard-8-k80", 1},
                                                                       {"gcp-n1-standard-16-k80", 1},
                                                                       {"gcp-n1-standard-32-k80", 1},
                                                                       {"gcp-n1-standard-32-k80x8", 8},
                                                                       {"gcp-a2-highgpu-8g", 8},
                                                                       {"dgx1-p100", 8},
                                                                       {"dgx1-v100", 8},
                                                                       {"dgx2", 16},
                                                                       {"dgx-a100", 8},
                                                                       {"dgx-h100", 8}};
  for (const auto& [name, devices] : expected) {
    CAPTURE(name);
    CHECK(load_server(name, {}).device_count() == devices);
  }
}

TEST_CASE("a Google Cloud machine has 2 Gbit/s a vCPU, up to 32 with a K80") {
  const auto nic_Bps = [](const std::string& server) {
    return load_server(server, {}).fabric->nic().bandwidth_Bps;
  };
  // 94% of the nominal rate is payload.
  CHECK(nic_Bps("gcp-n1-standard-4-k80") == approx(0.94 * 8e9 / 8));
  CHECK(nic_Bps("gcp-n1-standard-8-k80") == approx(0.94 * 16e9 / 8));
  CHECK(nic_Bps("gcp-n1-standard-32-k80x8") == approx(0.94 * 32e9 / 8));
}

TEST_CASE("every P100 of a DGX-1 uses its four NVLinks and every V100 its six") {
  for (const auto& [name, links, link_Bps] :
       {std::tuple{"dgx1-p100", 4, 0.9 * 20e9}, std::tuple{"dgx1-v100", 6, 0.8 * 25e9}}) {
    CAPTURE(name);
    const Machine machine = machine_of(fmt::format("server: {}\nnodes: 1", name));
    std::vector<double> sum_Bps(8, 0);
    for (std::uint32_t a = 0; a < 8; ++a)
      for (std::uint32_t b = 0; b < 8; ++b) {
        Route route;
        if (a != b) machine.router->route(a, b, route);
        if (route.links.size() == 1) sum_Bps[a] += machine.links[route.links[0]].bandwidth_Bps;
      }
    for (const double sum : sum_Bps) CHECK(sum == approx(links * link_Bps));
  }
}

TEST_CASE("devices of a DGX-1 leave by the NIC at their PCIe switch") {
  const Machine machine = machine_of("server: dgx1-v100\nnodes: 2");
  CHECK(way(machine, "n0.gpu5", "n1.gpu2") == "n0.gpu5.pcie.up n0.nic2.up n1.nic1.down n1.gpu2.pcie.down");
}
