// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/support/approx.h"
#include "tests/topologies/machines.h"
#include "topologies/catalog.h"

using namespace convoy;

namespace {

ClusterSpec derived_cluster(const std::string& yaml) { return read_cluster(parse_yaml(yaml, "c.yaml")); }

/// A user's catalogue in a folder of this process, as long as the object is there.
class UserCatalogue {
 public:
  UserCatalogue() {
    if (const char* old = std::getenv("XDG_CONFIG_HOME")) before_ = old;
    ::setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
  }
  ~UserCatalogue() {
    before_.empty() ? ::unsetenv("XDG_CONFIG_HOME") : ::setenv("XDG_CONFIG_HOME", before_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }
  std::string write(const std::string& kind, const std::string& name, const std::string& text) const {
    const std::filesystem::path folder = folder_ / "convoy/catalog" / kind;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / (name + ".yaml")) << text;
    return (folder / (name + ".yaml")).string();
  }

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("convoy-catalogue-{}", ::getpid());
  std::string before_;
};

}  // namespace

TEST_CASE("a cluster's fabric without a kind changes that of its server, and nothing else") {
  const ServerSpec base = load_server("aws-p3.2xlarge", {});
  REQUIRE(find_source(base.sources, "fabric.protocol")->grade == Grade::assumed);
  for (const char* server :
       {"server: aws-p3.2xlarge\n", "server: mine\nservers: {mine: {base: aws-p3.2xlarge}}\n",
        "server: {base: aws-p3.2xlarge}\n"}) {
    CAPTURE(server);
    const std::string plain = std::string(server) + "nodes: 2\n";
    const ClusterSpec changed = derived_cluster(plain + "fabric: {bandwidth: 10Gbps}\n");
    CHECK(!changed.fabric);
    const ServerSpec own = changed.servers.at(0), before = derived_cluster(plain).servers.at(0);
    CHECK(own.host.server == before.host.server);
    CHECK(own.host.price_usd_per_h == base.host.price_usd_per_h);
    CHECK(own.fabric->nic().bandwidth_Bps == approx(0.99 * 1.25e9));
    CHECK(own.fabric->nic().latency_s == base.fabric->nic().latency_s);
    CHECK(own.fabric->nic().protocol == base.fabric->nic().protocol);
    CHECK(find_source(own.sources, "fabric.bandwidth")->grade == Grade::given);
    CHECK(find_source(own.sources, "fabric.protocol")->grade == Grade::assumed);
    CHECK(find_source(own.sources, "fabric.latency")->text ==
          find_source(base.sources, "fabric.latency")->text);
  }
  // With a kind it is another fabric, of which nothing is the server's.
  const ClusterSpec other = derived_cluster(
      "server: aws-p3.2xlarge\nnodes: 2\nfabric: {kind: switch, bandwidth: 10Gbps, latency: 1us}\n");
  CHECK(other.fabric->nic().bandwidth_Bps == 1.25e9);
  CHECK(!other.fabric->nic().protocol);
  CHECK(error_of("server: aws-p3.2xlarge\nnodes: 2\nfabric: {bandwith: 10Gbps}\n")
            .find("cluster.fabric.bandwith: unknown key") != std::string::npos);
  CHECK(error_of(
            "server: {base: aws-p3.2xlarge, fabric: {latency: 1us}}\nnodes: 2\nfabric: {bandwidth: 10Gbps}\n")
            .find("the server says its `fabric` itself") != std::string::npos);
  CHECK(error_of("nodes: [{server: aws-p3.2xlarge, count: 2}]\nfabric: {bandwidth: 10Gbps}\n")
            .find("'kind' is missing") != std::string::npos);
}

TEST_CASE("what a network gives for a while is told, unless it gives that always") {
  const auto told = [](const std::string& yaml) { return burst_text(derived_cluster(yaml)); };
  const std::string two = "server: aws-p3.2xlarge\nnodes: 2\n";
  CHECK(told(two) ==
        "the network of aws-p3.2xlarge sustains 2.5 Gbit/s, which is simulated, and gives 10 Gbit/s for a "
        "while");
  CHECK(told(two + "fabric: {bandwidth: 9.9Gbps}\n") ==
        "the network of aws-p3.2xlarge sustains 9.9 Gbit/s, which is simulated, and gives 10 Gbit/s for a "
        "while");
  CHECK(told(two + "fabric: {bandwidth: 10Gbps}\n").empty());
  CHECK(told(two + "fabric: {kind: switch, bandwidth: 1Gbps, latency: 1us}\n").empty());
  CHECK(told(two + "fabric: {kind: switch, bandwidth: 1Gbps, burst: 2Gbps, latency: 1us}\n")
            .starts_with("the network of the cluster"));
  CHECK(told("server: aws-p3.16xlarge\nnodes: 2\n").empty());
}

TEST_CASE("a server derives from one of the catalogue: only what is said differs") {
  const ServerSpec base = load_server("aws-p3.16xlarge", {});
  const ClusterSpec cluster = derived_cluster(
      "server: mine\nnodes: 2\nservers: {mine: {base: aws-p3.16xlarge, price: 10USD/h, fabric.bandwidth: "
      "50Gbps}}\n");
  const ServerSpec& mine = cluster.servers.at(0);
  CHECK(mine.host.server == "mine");
  CHECK(mine.host.price_usd_per_h == 10);
  CHECK(mine.host.price_origin == "");
  CHECK(mine.fabric->nic().bandwidth_Bps == approx(2 * base.fabric->nic().bandwidth_Bps));
  CHECK(mine.fabric->nic().latency_s == base.fabric->nic().latency_s);
  CHECK(mine.interior->text() == base.interior->text());
  CHECK(mine.device_count() == 8);
  CHECK(mine.host.vcpus == base.host.vcpus);
}

TEST_CASE("a derived server without a price of its own has its base's, with date and region") {
  const ClusterSpec cluster =
      derived_cluster("server: {base: aws-p4d.24xlarge, fabric: {bandwidth: 200Gbps}}\nnodes: 2\n");
  const ServerSpec &mine = cluster.servers.at(0), base = load_server("aws-p4d.24xlarge", {});
  CHECK(mine.host.server == "aws-p4d.24xlarge, changed");
  CHECK(cluster.name == "2 x aws-p4d.24xlarge, changed");
  CHECK(mine.host.price_usd_per_h == base.host.price_usd_per_h);
  CHECK(mine.host.price_origin == base.host.price_origin);
  CHECK(mine.fabric->nic().bandwidth_Bps == approx(2 * base.fabric->nic().bandwidth_Bps));
  CHECK(mine.fabric->nic().count == base.fabric->nic().count);
}

TEST_CASE("an entry that has a catalogue name and is incomplete changes that entry") {
  const ClusterSpec cluster = derived_cluster(
      "server: aws-p3.16xlarge\nnodes: 1\n"
      "servers: {aws-p3.16xlarge: {price: 1USD/h}}\ndevices: {v100-sxm2-16gb: {memory: 32GiB}}\n");
  CHECK(cluster.servers.at(0).host.price_usd_per_h == 1);
  CHECK(cluster.servers.at(0).devices.at(0).first.memory_bytes == 32.0 * (1u << 30));
  CHECK(cluster.servers.at(0).devices.at(0).first.memory_bandwidth_Bps ==
        load_device("v100-sxm2-16gb", {}).memory_bandwidth_Bps);
  CHECK(cluster.servers.at(0).devices.at(0).first.framework_reserves);
}

TEST_CASE("a mapping with a kind replaces, and entries derive from one another") {
  const ClusterSpec cluster = derived_cluster(
      "server: b\nnodes: 1\nservers:\n"
      "  a: {base: dgx1-v100, interconnect: {kind: nvswitch, bandwidth: 100GB/s}}\n"
      "  b: {base: a, price: 2USD/h}\n");
  CHECK(cluster.servers.at(0).interior->text().starts_with("NVSwitch 100"));
  CHECK(cluster.servers.at(0).host.price_usd_per_h == 2);
}

TEST_CASE("a mixture of a server and a changed one") {
  const ClusterSpec cluster = derived_cluster(
      "nodes: [{name: a, server: aws-p3.16xlarge}, {name: b, server: {base: aws-p3.16xlarge, price: "
      "1USD/h}},\n"
      "        {name: c, server: {base: aws-p3.16xlarge, price: 2USD/h, name: cheap}}]\n");
  REQUIRE(cluster.servers.size() == 3);
  CHECK(cluster.servers[1].host.price_usd_per_h == 1);
  CHECK(cluster.servers[2].host.server == "cheap");
}

TEST_CASE("what is wrong with a derived entry is told where it stands") {
  CHECK(error_of("server: {base: aws-p3.16xlarg}\n") ==
        "c.yaml:1:16: unknown server 'aws-p3.16xlarg' (did you mean 'aws-p3.16xlarge'?); `convoy show "
        "servers` lists "
        "them");
  CHECK(error_of("server: {base: aws-p3.16xlarge, prise: 1USD/h}\n")
            .starts_with("c.yaml:1:33: cluster.server.prise: "));
  CHECK(error_of("server: {base: aws-p3.16xlarge, price: 1}\n")
            .starts_with("c.yaml:1:40: cluster.server.price: "));
  CHECK(error_of("server: {base: aws-p3.16xlarge, fabric.bandwith: 1Gbps}\n")
            .starts_with(
                "c.yaml:1:33: cluster.server.fabric.bandwith: unknown key (did you mean 'bandwidth'?)"));
  CHECK(error_of("server: a\nservers: {a: {base: b}, b: {base: a}}\n").find("comes back to itself") !=
        std::string::npos);
  CHECK(error_of("nodes: [{name: a, server: {base: dgx1-v100}}, {name: b, server: {base: dgx1-v100}}]\n") ==
        "c.yaml:1:65: cluster.nodes[1].server: there is a server 'dgx1-v100, changed' already; give this one "
        "a `name`");
}

TEST_CASE("a user's folder adds devices and servers, and changes the program's") {
  const UserCatalogue user;
  user.write("devices", "my-gpu", "{base: v100-sxm2-16gb, memory: 24GiB, title: Mine}\n");
  user.write("servers", "my-box",
             "{base: dgx1-v100, devices: [{device: my-gpu, count: 8}], price: 3USD/h}\n");
  user.write("servers", "aws-p3.16xlarge", "{base: aws-p3.16xlarge, price: 12USD/h}\n");
  const std::string wrong = user.write("servers", "wrong-box", "{base: dgx1-v100,\n prize: 3USD/h}\n");
  const std::string astray = user.write("devices", "astray", "{base: v100-sxm2-16g}\n");
  CHECK(load_device("my-gpu", {}).memory_bytes == 24.0 * (1u << 30));
  CHECK(load_device("my-gpu", {}).peak_flops == load_device("v100-sxm2-16gb", {}).peak_flops);
  CHECK(load_server("my-box", {}).devices.at(0).first.title == "Mine");
  CHECK(load_server("my-box", {}).host.price_usd_per_h == 3);
  CHECK(load_server("aws-p3.16xlarge", {}).host.price_usd_per_h == 12);
  CHECK(machine_of("server: my-box\nnodes: 2").devices.size() == 16);
  const std::vector<std::string> names = server_names();
  CHECK(std::count(names.begin(), names.end(), "aws-p3.16xlarge") == 1);
  CHECK(std::count(names.begin(), names.end(), "my-box") == 1);
  CHECK_THROWS_WITH(load_server("wrong-box", {}),
                    doctest::Contains((wrong + ":2:2: prize: unknown key").c_str()));
  CHECK_THROWS_WITH(
      load_device("astray", {}),
      doctest::Contains((astray + ":1:8: unknown device 'v100-sxm2-16g' (did you mean").c_str()));
}

TEST_CASE("a derived device with other memory keeps the share that the driver leaves") {
  const UserCatalogue user;
  user.write("devices", "twice", "{base: v100-sxm2-16gb, memory: 32GiB}\n");
  user.write("devices", "half", "{base: v100-sxm2-16gb, memory: 8GiB}\n");
  user.write("devices", "told", "{base: v100-sxm2-16gb, memory: 32GiB, usable_memory: 30GiB}\n");
  const double usable = load_device("v100-sxm2-16gb", {}).usable_memory_bytes;
  CHECK(load_device("twice", {}).usable_memory_bytes == approx(2 * usable));
  CHECK(load_device("half", {}).usable_memory_bytes == approx(usable / 2));
  CHECK(load_device("told", {}).usable_memory_bytes == 30.0 * (1u << 30));
}

TEST_CASE("a device with another chip than its base's is none that anybody measured") {
  const UserCatalogue user;
  const DeviceType base = load_device("v100-sxm2-16gb", {});
  const auto changed = [&](const std::string& changes) {
    user.write("devices", "own", "{base: v100-sxm2-16gb, " + changes + "}\n");
    return load_device("own", {});
  };
  REQUIRE(base.evidence_rows > 0);
  REQUIRE(base.evidence_spread < left_out_device_spread());
  for (const char* same : {"memory: 32GiB", "title: mine", "sms: 80", "peak.fp32: 15700GFLOPS",
                           "memory_bandwidth: 0.9TB/s", "idle_power: 40W"}) {
    CAPTURE(same);
    const DeviceType own = changed(same);
    CHECK(own.evidence_rows == base.evidence_rows);
    CHECK(own.evidence_spread == base.evidence_spread);
    CHECK(own.efficiency == base.efficiency);
  }
  for (const char* other :
       {"sms: 40", "peak.fp32: 12TFLOPS", "peak: {fp16: 100TFLOPS}", "peak: {tf32: 60TFLOPS}",
        "memory_bandwidth: 800GB/s", "efficiency.matmul: 0.5"}) {
    CAPTURE(other);
    const DeviceType own = changed(other);
    CHECK(own.evidence_rows == 0);
    CHECK(own.evidence_spread == left_out_device_spread());
  }
  // What its owner measured, or wrote whole, is his own.
  const DeviceType calibrated = changed("sms: 40, evidence: {rows: 7, spread: 0.05, left_out_error: 6%}");
  CHECK(calibrated.evidence_rows == 7);
  CHECK(calibrated.evidence_spread == 0.05);
  CHECK(calibrated.evidence_left_out_error == approx(0.06));
  CHECK(changed("efficiency: 1.0").is_exact());
  CHECK_FALSE(changed("efficiency: 0.5").is_exact());
  CHECK(changed("efficiency: 0.5").evidence_spread == 0);
}

TEST_CASE("a changed number does not keep the source of the old one") {
  const UserCatalogue user;
  user.write("devices", "cut",
             "{base: v100-sxm2-16gb, memory: 8GiB, peak.fp32: 10TFLOPS, sources: {clock: mine}}\n");
  const auto source_of = [](const DeviceType& device, const std::string& key) {
    for (const auto& [name, text] : device.sources)
      if (name == key) return to_string(text);
    return std::string();
  };
  const DeviceType before = load_device("v100-sxm2-16gb", {}), after = load_device("cut", {});
  CHECK(source_of(before, "memory") != "");
  CHECK(source_of(after, "memory") == "given");
  CHECK(source_of(after, "peak.fp32") == "given");
  CHECK(source_of(after, "memory_bandwidth") == source_of(before, "memory_bandwidth"));
  CHECK(source_of(after, "peak") == source_of(before, "peak"));  // of fp16 it still tells the truth
  CHECK(source_of(after, "clock") == "given: mine");
}

TEST_CASE("a user's bases in a circle are an error") {
  const UserCatalogue user;
  user.write("devices", "one", "base: two\n");
  user.write("devices", "two", "base: one\n");
  CHECK_THROWS_WITH(load_device("one", {}), doctest::Contains("comes back to itself"));
}
