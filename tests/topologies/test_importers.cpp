// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <memory>

#include "tests/support/approx.h"
#include "tests/support/working_file.h"
#include "tests/topologies/machines.h"

using namespace convoy;

namespace {

/// A DGX-1 with V100, as nvidia-smi prints it (header underlined, tabs), four adapters.
const char* const dgx1_topo =
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tGPU4\tGPU5\tGPU6\tGPU7\tmlx5_0\tmlx5_2\tmlx5_1\tmlx5_3\tCPU "
    "Affinity\x1b[0m\n"
    "GPU0\t X \tNV1\tNV1\tNV2\tNV2\tSYS\tSYS\tSYS\tPIX\tPHB\tSYS\tSYS\t0-19,40-59\n"
    "GPU1\tNV1\t X \tNV2\tNV1\tSYS\tNV2\tSYS\tSYS\tPIX\tPHB\tSYS\tSYS\t0-19,40-59\n"
    "GPU2\tNV1\tNV2\t X \tNV2\tSYS\tSYS\tNV1\tSYS\tPHB\tPIX\tSYS\tSYS\t0-19,40-59\n"
    "GPU3\tNV2\tNV1\tNV2\t X \tSYS\tSYS\tSYS\tNV1\tPHB\tPIX\tSYS\tSYS\t0-19,40-59\n"
    "GPU4\tNV2\tSYS\tSYS\tSYS\t X \tNV1\tNV1\tNV2\tSYS\tSYS\tPIX\tPHB\t20-39,60-79\n"
    "GPU5\tSYS\tNV2\tSYS\tSYS\tNV1\t X \tNV2\tNV1\tSYS\tSYS\tPIX\tPHB\t20-39,60-79\n"
    "GPU6\tSYS\tSYS\tNV1\tSYS\tNV1\tNV2\t X \tNV2\tSYS\tSYS\tPHB\tPIX\t20-39,60-79\n"
    "GPU7\tSYS\tSYS\tSYS\tNV1\tNV2\tNV1\tNV2\t X \tSYS\tSYS\tPHB\tPIX\t20-39,60-79\n"
    "mlx5_0\tPIX\tPIX\tPHB\tPHB\tSYS\tSYS\tSYS\tSYS\t X \tPHB\tSYS\tSYS\t\n"
    "mlx5_2\tPHB\tPHB\tPIX\tPIX\tSYS\tSYS\tSYS\tSYS\tPHB\t X \tSYS\tSYS\t\n"
    "mlx5_1\tSYS\tSYS\tSYS\tSYS\tPIX\tPIX\tPHB\tPHB\tSYS\tSYS\t X \tPHB\t\n"
    "mlx5_3\tSYS\tSYS\tSYS\tSYS\tPHB\tPHB\tPIX\tPIX\tSYS\tSYS\tPHB\t X \t\n"
    "\nLegend:\n\n  X    = Self\n";

std::string boxes(int devices, const std::string& interconnect, int nodes = 1, int nics = 1) {
  return fmt::format(
      "server: box\nnodes: {}\nfabric: {{kind: switch, bandwidth: 100Gbps, latency: 2us, nics: {}}}\n"
      "servers: {{box: {{devices: [{{device: ideal, count: {}}}], interconnect: {}}}}}\n",
      nodes, nics, devices, interconnect);
}

const char* const dgx1_rates =
    "{kind: nvidia_smi, file: topo.txt, bandwidth: 12GB/s, latency: 4us, nvlink: 20GB/s, nvlink_latency: "
    "3us, "
    "socket_link: 6GB/s, hop_latency: 1us}";

std::string topo_error(const std::string& topo, int devices = 2,
                       const std::string& rates = ", nvlink: 20GB/s, socket_link: 6GB/s") {
  const WorkingFile file("topo.txt", topo);
  return error_of(boxes(devices, "{kind: nvidia_smi, file: topo.txt, bandwidth: 12GB/s" + rates + "}"));
}

const char* const nccl_topo = R"(<system version="1">
  <cpu numaid="0" affinity="0000ffff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:16:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:1a:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="80" rank="0" gdr="1">
          <nvlink target="0000:89:00.0" count="4" tclass="0x030200"/>
        </gpu>
      </pci>
      <pci busid="0000:1b:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">
        <nic><net name="mlx5_0" dev="0" speed="200000" port="1" maxconn="131072" gdr="1"/></nic>
      </pci>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="ffff0000" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:89:00.0" class="0x030200" link_speed="8 GT/s" link_width="8">
      <gpu dev="1" sm="80" rank="1" gdr="1">
        <nvlink target="0000:1a:00.0" count="4" tclass="0x030200"/>
      </gpu>
    </pci>
  </cpu>
</system>
)";

std::string nccl_error(const std::string& xml, const std::string& keys = ", socket_link: 10GB/s") {
  const WorkingFile file("nccl.xml", xml);
  return error_of(boxes(2, "{kind: nccl_xml, file: nccl.xml" + keys + "}"));
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  return text.replace(text.find(what), what.size(), with);
}

const char* const two_clusters = R"(<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <config><prop id="network/TCP-gamma" value="4194304"/></config>
  <zone id="world" routing="Full">
    <cluster id="left" prefix="l-" suffix=".org" radical="0-1" speed="1Gf" bw="125MBps" lat="50us"
             bb_bw="2.25GBps" bb_lat="500us"/>
    <cluster id="right" prefix="r-" suffix="" radical="0,4" speed="1Gf" bw="1Gbps" lat="10us" router_id="gate"/>
    <link id="wan" bandwidth="10MBps" latency="20ms" sharing_policy="SPLITDUPLEX"/>
    <zoneRoute src="left" dst="right" gw_src="l-left_router.org" gw_dst="gate"><link_ctn id="wan" direction="UP"/></zoneRoute>
  </zone>
</platform>
)";

const char* const floyd = R"(<platform version="4">
  <AS id="AS0" routing="Floyd">
    <host id="a" speed="1Gf"/> <host id="b" speed="1Gf"/> <router id="s"/> <host id="c" speed="1Gf"/>
    <link id="la" bandwidth="1GBps" latency="1us"/> <link id="lb" bandwidth="2000000000" latency="2e-6"/>
    <link id="lc" bandwidth="3GBps" latency="3us"/>
    <route src="a" dst="s"><link_ctn id="la"/></route>
    <route src="b" dst="s"><link_ctn id="lb"/></route>
    <route src="s" dst="c"><link_ctn id="lc"/></route>
  </AS>
</platform>
)";

std::string on_platform(int nodes) {
  return fmt::format(
      "server: box\nnodes: {}\nfabric: {{kind: simgrid, file: p.xml}}\nservers: {{box: {{devices: [{{device: "
      "ideal}}]}}}}\n",
      nodes);
}

std::string platform_error(const std::string& xml, int nodes = 2) {
  const WorkingFile file("p.xml", xml);
  return error_of(on_platform(nodes));
}

}  // namespace

TEST_CASE("nvidia-smi topo -m of a DGX-1: NVLinks, switches, sockets and adapters") {
  const WorkingFile file("topo.txt", dgx1_topo);
  const Machine machine = machine_of(boxes(8, dgx1_rates, 2, 4));
  CHECK(check_routes(machine, true) == "");
  CHECK(way(machine, "n0.gpu0", "n0.gpu3") == "n0.gpu0-gpu3.nvlink.up");
  CHECK(latency_s(machine, "n0.gpu0", "n0.gpu3") == approx(3e-6));
  // No NVLink: down to the switch, up to the socket, over to the other one.
  CHECK(way(machine, "n0.gpu0", "n0.gpu5") ==
        "n0.gpu0.pcie.up n0.pix0.uplink.up n0.socket0-1.up n0.pix2.uplink.down n0.gpu5.pcie.down");
  CHECK(latency_s(machine, "n0.gpu0", "n0.gpu5") == approx(4e-6 + 3e-6));
  // Its own switch has an adapter.
  CHECK(way(machine, "n0.gpu2", "n1.gpu7") == "n0.gpu2.pcie.up n0.nic1.up n1.nic3.down n1.gpu7.pcie.down");
  // Each GPU has its six NVLinks of 20 GB/s.
  for (std::uint32_t a = 0; a < 8; ++a) {
    double sum_Bps = 0;
    for (std::uint32_t b = 0; b < 8; ++b) {
      Route route;
      machine.router->route(a, b, route);
      if (route.links.size() == 1) sum_Bps += machine.links[route.links[0]].bandwidth_Bps;
    }
    CHECK(sum_Bps == approx(120e9));
  }
}

TEST_CASE("nvidia-smi topo -m: more NVLinks than ports are an NVSwitch, switches of two levels") {
  std::string topo = "\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity\n";
  for (int a = 0; a < 3; ++a) {
    topo += fmt::format("GPU{}", a);
    for (int b = 0; b < 3; ++b) topo += a == b ? "\tX" : "\tNV12";
    topo += "\t0-63\t0\n";
  }
  {
    const WorkingFile file("topo.txt", topo);
    const Machine machine =
        machine_of(boxes(3, "{kind: nvidia_smi, file: topo.txt, bandwidth: 24GB/s, nvlink: 20GB/s}"));
    CHECK(way(machine, "n0.gpu0", "n0.gpu2") == "n0.gpu0.nvswitch.up n0.gpu2.nvswitch.down");
    CHECK(machine.links[0].bandwidth_Bps == approx(240e9));
  }
  const WorkingFile file("topo.txt",
                         "     GPU0 GPU1 GPU2 GPU3 NIC0\nGPU0 X PIX PXB SYS PXB\nGPU1 PIX X PXB SYS PXB\n"
                         "GPU2 PXB PXB X SYS PIX\nGPU3 SYS SYS SYS X SYS\nNIC0 PXB PXB PIX SYS X\n");
  const Machine machine = machine_of(
      boxes(4, "{kind: nvidia_smi, file: topo.txt, bandwidth: 12GB/s, socket_link: 6GB/s, uplink: 10GB/s}"));
  CHECK(way(machine, "n0.gpu0", "n0.gpu1") == "n0.gpu0.pcie.up n0.gpu1.pcie.down");
  CHECK(way(machine, "n0.gpu0", "n0.gpu2") ==
        "n0.gpu0.pcie.up n0.pix0.uplink.up n0.pix1.uplink.down n0.gpu2.pcie.down");
  CHECK(way(machine, "n0.gpu3", "n0.gpu2") ==
        "n0.gpu3.pcie.up n0.socket0-1.down n0.pxb0.uplink.down n0.pix1.uplink.down n0.gpu2.pcie.down");
}

TEST_CASE("a broken topology table is refused with its place") {
  const std::string good = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV2\t0-7\nGPU1\tNV2\t X \t0-7\n";
  CHECK(topo_error(good) == "no error");
  CHECK(topo_error("") == "topo.txt:1:1: is no table of `nvidia-smi topo -m`: no line begins with GPU0");
  CHECK(topo_error(replaced(good, "NV2", "NVX")) ==
        "topo.txt:2:10: GPU0 to GPU1: unknown word 'NVX'; there are PIX, PXB, PHB, NODE, SYS, and NV1 to "
        "NV99 between GPUs");
  CHECK(topo_error(replaced(good, "NV2", "NV4")) == "topo.txt:1:1: GPU1 to GPU0 is another way than back");
  CHECK(topo_error(replaced(good, " X ", "SYS")) ==
        "topo.txt:2:6: GPU0 to GPU0: found 'SYS'; X stands on the diagonal alone");
  CHECK(topo_error("\tGPU0\tGPU1\nGPU0\tX\tPIX\n") == "topo.txt:1:1: the row of 'GPU1' is missing");
  CHECK(topo_error("\tGPU0\tGPU1\nGPU0\tX\nGPU1\tPIX\tX\n") ==
        "topo.txt:2:1: row 'GPU0' has 1 entries where the table has 2 columns");
  CHECK(topo_error("\tGPU0\tGPU1\nGPU1\tX\tPIX\n") ==
        "topo.txt:2:1: expected the row of 'GPU0', found 'GPU1'");
  CHECK(topo_error(good, 3).ends_with("the table has 2 GPUs, the server 3 devices"));
  CHECK(topo_error(good, 2, "")
            .ends_with("key 'nvlink' is missing: the table has NVLinks, and not how fast one is"));
  CHECK(topo_error("\tGPU0\tGPU1\nGPU0\tX\tSYS\nGPU1\tSYS\tX\n", 2, "")
            .ends_with("key 'socket_link' is missing: the table has 2 sockets"));
  CHECK(error_of(boxes(2, "{kind: nvidia_smi, file: nowhere.txt, bandwidth: 12GB/s}")).find("nowhere.txt") !=
        std::string::npos);
}

TEST_CASE("NCCL's topology: PCIe rates, NVLinks and sockets") {
  const WorkingFile file("nccl.xml", nccl_topo);
  const Machine machine =
      machine_of(boxes(2, "{kind: nccl_xml, file: nccl.xml, socket_link: 10GB/s, efficiency: 50%}", 2));
  CHECK(check_routes(machine, true) == "");
  CHECK(way(machine, "n0.gpu0", "n0.gpu1") == "n0.gpu0-gpu1.nvlink.up");
  const auto bandwidth = [&](const std::string& name) {
    for (const Link& link : machine.links)
      if (link.name == name) return link.bandwidth_Bps;
    return 0.0;
  };
  CHECK(bandwidth("n0.gpu0-gpu1.nvlink.up") == approx(80e9));  // 4 x NCCL's 20.0 GB/s
  CHECK(bandwidth("n0.gpu0.pcie.up") == approx(0.5 * 16e9 * 16 / 8 * 128 / 130));
  CHECK(bandwidth("n0.gpu1.pcie.up") == approx(0.5 * 8e9 * 8 / 8 * 128 / 130));
  // The adapter is at the first GPU's switch; the second GPU comes over the socket link.
  CHECK(way(machine, "n0.gpu0", "n1.gpu0") == "n0.gpu0.pcie.up n0.nic.up n1.nic.down n1.gpu0.pcie.down");
  CHECK(way(machine, "n0.gpu1", "n1.gpu0") ==
        "n0.gpu1.pcie.up n0.socket0-1.down n0.pcie0.uplink.down n0.nic.up n1.nic.down n1.gpu0.pcie.down");
}

TEST_CASE("a broken topology of NCCL's is refused with its place") {
  CHECK(nccl_error(nccl_topo) == "no error");
  CHECK(nccl_error("<system").starts_with("nccl.xml:1:"));
  CHECK(nccl_error("").find("is no XML") != std::string::npos);
  CHECK(nccl_error("<html/>") == "nccl.xml:1:1: <html>: expected NCCL's <system>");
  CHECK(nccl_error("<system version=\"1\"/>") == "nccl.xml:1:1: <system>: has no <cpu>");
  CHECK(nccl_error(replaced(nccl_topo, "dev=\"0\" sm", "sm")) ==
        "nccl.xml:5:1: <gpu>: attribute 'dev' is missing");
  CHECK(nccl_error(replaced(nccl_topo, "16.0 GT/s PCIe", "fast")) ==
        "nccl.xml:3:1: <pci>: link_speed: expected a rate such as '16.0 GT/s PCIe', found 'fast'");
  CHECK(nccl_error(replaced(nccl_topo, "link_width=\"16\"", "link_width=\"0\"")) ==
        "nccl.xml:3:1: <pci>: link_width: 0 lanes; 1 to 32 are allowed");
  CHECK(nccl_error(replaced(nccl_topo, "count=\"4\"", "count=\"four\"")) ==
        "nccl.xml:6:1: <nvlink>: count: expected a number, found 'four'");
  CHECK(nccl_error(nccl_topo, "").ends_with("key 'socket_link' is missing: the file has 2 sockets"));
}

TEST_CASE("a SimGrid platform of two clusters and a WAN") {
  const WorkingFile file("p.xml", two_clusters);
  const Machine machine = machine_of(on_platform(4));
  CHECK(check_routes(machine) == "");
  CHECK(way(machine, "n0", "n1") == "left_link_0.up left_backbone left_link_1.down");
  CHECK(latency_s(machine, "n0", "n1") == approx(600e-6));
  CHECK(way(machine, "n2", "n3") == "right_link_0.up right_link_4.down");
  CHECK(way(machine, "n1", "n2") == "left_link_1.up left_backbone wan.up right_link_0.down");
  CHECK(way(machine, "n3", "n0") == "right_link_4.up wan.down left_backbone left_link_0.down");
  CHECK(latency_s(machine, "n3", "n0") == approx(10e-6 + 20e-3 + 500e-6 + 50e-6));
  for (const Link& link : machine.links)
    if (link.name.starts_with("right_link")) CHECK(link.bandwidth_Bps == approx(125e6));
}

TEST_CASE("a SimGrid platform with shortest ways over shared links") {
  const WorkingFile file("p.xml", floyd);
  const Machine machine = machine_of(on_platform(3));
  CHECK(way(machine, "n0", "n2") == "la lc");
  CHECK(way(machine, "n1", "n0") == "lb la");
  CHECK(latency_s(machine, "n1", "n0") == approx(3e-6));
  CHECK(machine.port_count == 3);
}

TEST_CASE("a broken or unsupported SimGrid platform is refused with its place") {
  CHECK(platform_error(two_clusters) == "no error");
  CHECK(platform_error(two_clusters, 5).ends_with("5 hosts; the platform has 4, and at most 1024 are used"));
  CHECK(platform_error(replaced(floyd, "Floyd", "Vivaldi")) ==
        "p.xml:2:1: <AS>: routing: Vivaldi is not read; Full, Floyd and Dijkstra are");
  CHECK(platform_error(replaced(floyd, "<link_ctn id=\"lb\"/>", "<link_ctn id=\"lx\"/>")) ==
        "p.xml:7:1: <link_ctn>: unknown link 'lx' (did you mean 'la'?)");
  CHECK(platform_error(replaced(floyd, "1GBps", "1Gb")) ==
        "p.xml:4:1: <link>: bandwidth: '1Gb' is no quantity such as '10MBps'");
  CHECK(platform_error(replaced(floyd, "latency=\"1us\"", "latency=\"1us\" sharing_policy=\"FATPIPE\"")) ==
        "p.xml:4:1: <link>: sharing_policy: FATPIPE is not read; SHARED and SPLITDUPLEX are");
  CHECK(platform_error(replaced(floyd, "Floyd", "Full")) ==
        "p.xml:2:1: zone 'AS0' has no route from 'a' to 'b'");
  CHECK(platform_error(replaced(floyd, "dst=\"c\"", "dst=\"d\"")) ==
        "p.xml:8:1: <route>: there is no host or router 'd' here");
  CHECK(platform_error(replaced(floyd, "<host id=\"b\"", "<host id=\"a\"")) ==
        "p.xml:3:1: <host>: there is a host or router 'a' already");
  CHECK(platform_error(replaced(two_clusters, "radical=\"0-1\"", "radical=\"1-0\"")) ==
        "p.xml:7:1: <cluster>: radical: '1-0' is no list of numbers such as 0-15");
  CHECK(platform_error(replaced(two_clusters, "radical=\"0-1\"", "radical=\"0-1\" topology=\"TORUS\"")) ==
        "p.xml:7:1: <cluster>: topology: TORUS is not read");
  CHECK(platform_error(replaced(two_clusters, "version=\"4.1\"", "version=\"3\"")) ==
        "p.xml:3:1: <platform>: version 3 is not read; 4 and 4.1 are");
  CHECK(platform_error("<platform version='4'><zone id='z' routing='Full'/></platform>") ==
        "p.xml:1:1: <platform>: has no hosts");
}
