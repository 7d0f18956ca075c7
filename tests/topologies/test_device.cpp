// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>

#include "sim/base/data_path.h"
#include "tests/support/approx.h"
#include "topologies/device.h"
#include "topologies/transport.h"

using namespace convoy;

namespace {

DeviceType device(const std::string& yaml) { return read_device(parse_yaml(yaml, "lab.yaml"), "mine"); }

std::string device_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& e) {
    return e.what();
  }
  return "no error";
}

std::string error_in(const std::string& yaml) {
  return device_error([&] { device(yaml); });
}

// `yaml` as flow style without its closing brace, plus one more entry.
std::string with(const std::string& entry) {
  return "{peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 1.0, " + entry + "}";
}

double compute(const Efficiency& e, KernelClass c) { return e.compute[static_cast<std::size_t>(c)]; }
double bandwidth(const Efficiency& e, KernelClass c) { return e.bandwidth[static_cast<std::size_t>(c)]; }

}  // namespace

TEST_CASE(
    "every kind of device is a row: a name of its own, devices in the catalogue, and a library that has "
    "transports") {
  std::set<std::string_view> used;
  for (const std::string& name : device_names()) used.insert(load_device(name, {}).kind->name);
  std::set<std::string_view> names;
  for (const DeviceKind& kind : device_kinds) {
    CAPTURE(kind.name);
    CHECK(names.insert(kind.name).second);
    CHECK(used.contains(kind.name));
    CHECK(!kind.text.empty());
    CHECK(!kind.units.empty());
    CHECK(std::ranges::binary_search(library_names(), std::string(kind.library)));
  }
}

TEST_CASE("an inline device is read with its units") {
  const DeviceType d = device(
      "{peak: {fp32: 10TFLOPS, fp16: 40TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 1.0, "
      "launch_overhead: 5us, idle_power: 50W, peak_power: 250W, reserved: 500MiB, sources: {peak: data "
      "sheet}}");
  CHECK(d.name == "mine");
  CHECK(d.peak_flops == std::map<Precision, double>{{Precision::fp32, 10e12}, {Precision::fp16, 40e12}});
  CHECK(d.memory_bytes == 16.0 * 1024 * 1024 * 1024);
  CHECK(d.memory_bandwidth_Bps == 500e9);
  CHECK(d.launch_overhead_s == approx(5e-6).epsilon(1e-15));
  CHECK(d.idle_power_w == 50);
  CHECK(d.peak_power_w == 250);
  CHECK(d.reserved_bytes == 500.0 * 1024 * 1024);
  CHECK(d.sources == Sources{{"peak", {Grade::given, std::nullopt, "data sheet"}}});
  CHECK(d.runs(Precision::fp16));
  CHECK_FALSE(d.runs(Precision::tf32));
}

TEST_CASE("what an inline device may leave out is zero") {
  const DeviceType d =
      device("{peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 1.0}");
  CHECK(d.launch_overhead_s == 0);
  CHECK(d.reserved_bytes == 0);
  CHECK(d.idle_power_w == 0);
  CHECK(d.peak_power_w == 0);
}

TEST_CASE("a device tells its chip and what the driver leaves of its memory") {
  const DeviceType d =
      device(with("generation: volta, sms: 80, clock: 1530MHz, l2: 6MiB, usable_memory: 16160MiB"));
  CHECK(d.generation == "volta");
  CHECK(d.sms == 80);
  CHECK(d.clock_hz == approx(1.53e9).epsilon(1e-15));
  CHECK(d.l2_bytes == 6.0 * 1024 * 1024);
  CHECK(d.usable_memory_bytes == 16160.0 * 1024 * 1024);
  CHECK(device(with("sms: 1")).usable_memory_bytes == 16.0 * 1024 * 1024 * 1024);
  CHECK(error_in(with("generation: vulta")).find("unknown value 'vulta'") != std::string::npos);
  CHECK(error_in(with("clock: 1530")).find("lacks its unit; write a clock such as 1380MHz") !=
        std::string::npos);
  CHECK(error_in(with("usable_memory: 17GiB")).find("at most the device's memory") != std::string::npos);
}

TEST_CASE("a power limit lowers the clock so that full load draws just the limit") {
  // Power above idle: the cube of the clock, and in proportion to it below 0.815 of the full clock.
  const auto drawn = [](double clock) {
    return 50 + 200 * (clock >= 0.815 ? clock * clock * clock : 0.815 * 0.815 * clock);
  };
  double before = 0;
  for (const int limit : {60, 100, 150, 158, 159, 200, 249, 250, 400}) {
    CAPTURE(limit);
    const DeviceType d =
        device(with(fmt::format("idle_power: 50W, peak_power: 250W, clock: 1GHz, power_limit: {}W", limit)));
    const double clock = d.peak_flops.at(Precision::fp32) / 10e12;
    CHECK(drawn(clock) == approx(std::min(limit, 250)));
    CHECK(clock >= before);
    CHECK(clock <= 1);
    before = clock;
    CHECK(d.clock_hz == approx(1e9 * clock));
    CHECK(d.memory_bandwidth_Bps == 500e9);
    CHECK(d.peak_power_w == std::min(limit, 250));
  }
  CHECK(error_in(with("idle_power: 50W, peak_power: 250W, power_limit: 50W"))
            .find("devices.mine.power_limit: must be above idle_power") != std::string::npos);
}

TEST_CASE("efficiency 1.0 is the neutral one for every precision") {
  const DeviceType d =
      device("{peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 1.0}");
  for (const Efficiency& e : d.efficiency) CHECK(e == Efficiency());
}

TEST_CASE("a single number is the share of peak and of bandwidth for everything") {
  const DeviceType d =
      device("{peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 0.5}");
  for (const Efficiency& e : d.efficiency) CHECK(e == Efficiency(0.5));
}

TEST_CASE("an efficiency mapping names kinds, the rest is its default") {
  const DeviceType d = device(
      "{peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: {default: 0.5, "
      "convolution_3x3: 1.5, normalization: 0.25, bandwidth: 0.75, weight_gradient: 0.8, half_rows: 100, "
      "fp16: {convolution_3x3: 0.4, half_rows: 300}}}");
  const Efficiency& fp32 = d.efficiency[static_cast<std::size_t>(Precision::fp32)];
  CHECK(compute(fp32, KernelClass::convolution_3x3) == 1.5);
  CHECK(bandwidth(fp32, KernelClass::convolution_3x3) == 0.75);
  CHECK(compute(fp32, KernelClass::matmul) == 0.5);
  CHECK(bandwidth(fp32, KernelClass::matmul) == 0.75);
  CHECK(bandwidth(fp32, KernelClass::normalization) == 0.25);
  CHECK(compute(fp32, KernelClass::normalization) == 1.0);
  CHECK(bandwidth(fp32, KernelClass::elementwise) == 0.5);
  CHECK(compute(fp32, KernelClass::custom) == 1.0);
  CHECK(bandwidth(fp32, KernelClass::custom) == 1.0);
  CHECK(fp32.data_gradient == 1);
  CHECK(fp32.weight_gradient == 0.8);
  CHECK(fp32.half_rows == 100);
  // Where they are not given, weight gradients and plain products have the rows of all.
  CHECK(fp32.half_weight_rows == 100);
  CHECK(fp32.half_matmul_rows == 100);
  CHECK(fp32.strided_data_gradient == 1);
  CHECK(fp32.half_winograd == 0);
  CHECK(fp32.unaligned == 1);
  CHECK_FALSE(d.kind->in_process);
  const Efficiency& fp16 = d.efficiency[static_cast<std::size_t>(Precision::fp16)];
  CHECK(compute(fp16, KernelClass::convolution_3x3) == 0.4);
  CHECK(fp16.half_rows == 300);
  CHECK(fp16.half_weight_rows == 300);
  CHECK(bandwidth(fp16, KernelClass::normalization) == 0.25);
  CHECK(d.efficiency[static_cast<std::size_t>(Precision::bf16)] == fp32);
}

TEST_CASE("weight gradients, strides, Winograd and tensor cores have keys of their own") {
  const DeviceType d = device(
      "{kind: cpu, peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: {default: "
      "0.5, half_outputs: 10, half_weight_outputs: 20, half_weight_reduction: 30, half_weight_rows: 40, "
      "half_matmul_rows: 50, strided_data_gradient: 0.6, half_winograd: 70, "
      "fp16: {half_outputs: 11, half_winograd: 0, unaligned: 0.8}}}");
  CHECK(d.kind->in_process);
  Efficiency expected(0.5);
  expected.compute[static_cast<std::size_t>(KernelClass::custom)] = 1;
  for (std::size_t c = static_cast<std::size_t>(KernelClass::normalization); c < kernel_class_count; ++c)
    expected.compute[c] = 1;
  expected.bandwidth[static_cast<std::size_t>(KernelClass::custom)] = 1;
  expected.half_outputs = 10;
  expected.half_weight_outputs = 20;
  expected.half_weight_reduction = 30;
  expected.half_weight_rows = 40;
  expected.half_matmul_rows = 50;
  expected.strided_data_gradient = 0.6;
  expected.half_winograd = 70;
  CHECK(d.efficiency[static_cast<std::size_t>(Precision::fp32)] == expected);
  expected.half_outputs = 11;
  expected.half_winograd = 0;
  expected.unaligned = 0.8;
  CHECK(d.efficiency[static_cast<std::size_t>(Precision::fp16)] == expected);
}

TEST_CASE(
    "a device that states no efficiency has those of the nearest of its kind, unstated and unmeasured") {
  // Of each device of the catalogue, the nearest is itself, or one with its very peaks and bandwidth.
  for (const std::string& name : data_names("topologies/catalog/devices")) {
    CAPTURE(name);
    YamlNode silent = data_yaml("topologies/catalog/devices", name);
    const DeviceType known = read_device(silent, name);
    std::erase_if(silent.entries, [](const auto& entry) {
      return entry.first == "efficiency" || entry.first == "evidence" || entry.first == "launch_overhead" ||
             entry.first == "issue_factor" || entry.first == "sources";
    });
    const DeviceType guessed = read_device(silent, name);
    const Source* source = find_source(guessed.sources, "efficiency");
    REQUIRE(source);
    CHECK(source->grade == Grade::unstated);
    CHECK(source->spread == doctest::Approx(left_out_device_spread()).epsilon(0.05));
    CHECK(guessed.evidence_rows == 0);
    CHECK(guessed.evidence_spread == left_out_device_spread());
    CHECK(guessed.issue_factor == known.issue_factor);
    CHECK_FALSE(guessed.is_exact());
    const std::string& text = source->text;
    const std::size_t begin = std::string("those of ").size();
    const DeviceType like = load_device(text.substr(begin, text.find(',') - begin), {});
    CHECK(like.kind == known.kind);
    CHECK(like.generation == known.generation);
    CHECK(like.peak_flops.at(Precision::fp32) == known.peak_flops.at(Precision::fp32));
    CHECK(like.memory_bandwidth_Bps == known.memory_bandwidth_Bps);
    CHECK(guessed.launch_overhead_s == like.launch_overhead_s);
    if (like.sms == known.sms) CHECK(guessed.efficiency == like.efficiency);
  }
}

TEST_CASE("what a device states of itself stays where it states no efficiency") {
  const std::string least = "peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s";
  const DeviceType d =
      device("{" + least + ", launch_overhead: 3us, issue_factor: 0.5, evidence: {rows: 4, spread: 0.07}}");
  CHECK(d.launch_overhead_s == 3e-6);
  CHECK(d.issue_factor == 0.5);
  CHECK(d.evidence_rows == 4);
  CHECK(d.evidence_spread == 0.07);
  const DeviceType cpu = device("{kind: cpu, " + least + "}");
  CHECK(find_source(cpu.sources, "efficiency")->text.ends_with(", the nearest CPU of the catalogue"));
  CHECK(find_source(d.sources, "efficiency")->text.ends_with(", the nearest GPU of the catalogue"));
  // Half the multiprocessors are filled by half the rows, as of {base: ...}.
  const auto half_rows = [&](int sms) {
    return device(fmt::format("{{generation: volta, sms: {}, {}}}", sms, least)).efficiency[0].half_rows;
  };
  CHECK(half_rows(80) == approx(2 * half_rows(40)));
  CHECK(half_rows(40) > 0);
  // What is wrong besides is told, at its place.
  CHECK(error_in("{peak: {fp32: 10}, memory: 16GiB, memory_bandwidth: 500GB/s}") ==
        "lab.yaml:1:15: devices.mine.peak.fp32: '10' lacks its unit; write a rate such as 15.7TFLOPS");
  CHECK(error_in("{memory: 16GiB, memory_bandwidth: 500GB/s}") ==
        "lab.yaml:1:1: devices.mine: key 'peak' is missing");
}

TEST_CASE("wrong devices are refused with their place and the remedy") {
  CHECK(error_in(with("memroy: 1GiB")) ==
        "lab.yaml:1:85: devices.mine.memroy: unknown key (did you mean 'memory'?); known here: clock, "
        "efficiency, "
        "evidence, generation, idle_power, issue_factor, kind, l2, launch_overhead, memory, "
        "memory_bandwidth, peak, peak_power, "
        "peer_to_peer, power_limit, reserved, sms, sources, title, usable_memory");
  CHECK(error_in("{peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: [1]}") ==
        "lab.yaml:1:80: devices.mine.efficiency: expected a number such as 0.7 or a mapping of shares, found "
        "a list");
  CHECK(error_in("{peak: {fp32: 10}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 1}") ==
        "lab.yaml:1:15: devices.mine.peak.fp32: '10' lacks its unit; write a rate such as 15.7TFLOPS");
  CHECK(error_in("{peak: {fp8: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 1}") ==
        "lab.yaml:1:9: devices.mine.peak.fp8: unknown key (did you mean 'fp16'?); known here: bf16, fp16, "
        "fp32, tf32");
  CHECK(error_in("{peak: {}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 1.0}") ==
        "lab.yaml:1:8: devices.mine.peak: give the peak of at least one precision: fp32, tf32, fp16 or bf16");
  CHECK(error_in(with("reserved: 16GiB")) ==
        "lab.yaml:1:95: devices.mine.reserved: must be less than the device's memory");
  CHECK(error_in(with("idle_power: 60W, peak_power: 50W")) ==
        "lab.yaml:1:114: devices.mine.peak_power: must be at least idle_power");
  CHECK(error_in("{peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 0}") ==
        "lab.yaml:1:80: devices.mine.efficiency: 0 is out of range: between 1e-06 and 4 is allowed");
  CHECK(error_in(
            "{peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: {matmul: 1}}") ==
        "lab.yaml:1:80: devices.mine.efficiency: key 'default' is missing");
  CHECK(error_in("[1, 2]") == "lab.yaml:1:1: devices.mine: expected a mapping (key: value), found a list");
}

TEST_CASE("an unknown device is refused with the nearest name") {
  const std::string message = device_error([] { load_device("v100-sxm2-16g", {"cluster.yaml", 3, 5}); });
  CHECK(
      message.starts_with("cluster.yaml:3:5: unknown device 'v100-sxm2-16g' (did you mean "
                          "'v100-sxm2-16gb'?); `convoy show devices` lists them"));
  CHECK(device_error([] {
          load_device("A100", {"cluster.yaml", 3, 5});
        }) ==
        "cluster.yaml:3:5: unknown device 'A100' (did you mean one of a100-pcie-40gb, a100-pcie-80gb, "
        "a100-sxm4-40gb, a100-sxm4-80gb?); `convoy show devices` lists them");
  CHECK(device_error([] {
          load_device("transformer", {"cluster.yaml", 3, 5});
        }).starts_with("cluster.yaml:3:5: unknown device 'transformer'; the catalogue has a10, "));
}

TEST_CASE("devices are found by what their makers call them, and keep their own names") {
  const SourcePos pos{"cluster.yaml", 3, 5};
  for (const auto& [written, name] : {std::pair{"Tesla T4", "t4"},
                                      {"NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"},
                                      {"1080ti", "gtx-1080-ti"},
                                      {"GeForce RTX 2080 Ti", "rtx-2080-ti"},
                                      {"Tesla V100-SXM2-16GB", "v100-sxm2-16gb"}})
    CHECK(load_device(written, pos).name == name);
}

TEST_CASE("the catalogue has every device it promises") {
  const std::vector<std::string> names = device_names();
  for (const char* name : {"k20",
                           "k40",
                           "k80",
                           "m40",
                           "p40",
                           "p100-pcie-16gb",
                           "p100-sxm2-16gb",
                           "v100-pcie-16gb",
                           "v100-sxm2-16gb",
                           "v100-sxm2-32gb",
                           "t4",
                           "a100-sxm4-40gb",
                           "a100-sxm4-80gb",
                           "a100-pcie-40gb",
                           "a10",
                           "l4",
                           "h100-sxm5-80gb",
                           "h200-sxm-141gb",
                           "titan-x-maxwell",
                           "titan-x-pascal",
                           "titan-xp",
                           "titan-v",
                           "gtx-980",
                           "gtx-1080",
                           "gtx-1080-ti",
                           "rtx-2080-ti",
                           "rtx-3090",
                           "v100-pcie-32gb",
                           "v100-sxm3-32gb",
                           "m60",
                           "gtx-1060",
                           "gtx-1070",
                           "rtx-2080",
                           "titan-rtx",
                           "quadro-rtx-5000",
                           "quadro-rtx-6000",
                           "quadro-rtx-8000",
                           "rtx-3070",
                           "rtx-3080",
                           "rtx-4090",
                           "rtx-a4000",
                           "rtx-a5000",
                           "rtx-a6000",
                           "rtx-6000-ada",
                           "a30",
                           "a40",
                           "a10g",
                           "l40",
                           "l40s",
                           "a100-pcie-80gb",
                           "h100-pcie-80gb",
                           "h100-nvl-94gb",
                           "gh200-96gb",
                           "b200-sxm-180gb",
                           "jetson-tx2",
                           "jetson-xavier",
                           "jetson-orin",
                           "epyc-7763",
                           "epyc-9654",
                           "xeon-platinum-8480",
                           "xeon-e5-2630-v3-dual"}) {
    CAPTURE(name);
    CHECK(std::binary_search(names.begin(), names.end(), name));
  }
}

namespace {

// Dotted paths of the leaves that hold a number.
void number_leaves(const YamlNode& node, const std::string& path, std::vector<std::string>& leaves) {
  for (const auto& [key, value] : node.entries) {
    const std::string here = path.empty() ? key : path + "." + key;
    if (here == "sources") continue;
    if (value.kind == YamlNode::Kind::mapping) number_leaves(value, here, leaves);
    if (value.kind == YamlNode::Kind::scalar && !value.scalar.empty() && value.scalar[0] >= '0' &&
        value.scalar[0] <= '9')
      leaves.push_back(here);
  }
}

bool covers(const std::string& source, const std::string& leaf) {
  return leaf == source || (leaf.starts_with(source) && leaf[source.size()] == '.');
}

}  // namespace

TEST_CASE("every number of the catalogue has its source, and every source a number") {
  for (const std::string& name : device_names()) {
    CAPTURE(name);
    const DeviceType d = load_device(name, {});
    CHECK(d.name == name);
    CHECK_FALSE(d.title.empty());
    std::vector<std::string> leaves;
    number_leaves(load_yaml(data_path("topologies/catalog/devices") + "/" + name + ".yaml"), "", leaves);
    CHECK(leaves.size() > 10);
    if (!d.peer_to_peer) leaves.push_back("peer_to_peer");
    for (const std::string& leaf : leaves) {
      CAPTURE(leaf);
      CHECK(std::any_of(d.sources.begin(), d.sources.end(),
                        [&](const auto& s) { return covers(s.first, leaf); }));
    }
    for (const auto& [key, text] : d.sources) {
      CAPTURE(key);
      CHECK(text.text.size() > 5);
      CHECK(std::any_of(leaves.begin(), leaves.end(),
                        [&](const std::string& leaf) { return covers(key, leaf); }));
    }
  }
}

TEST_CASE("a K80 is half of a board") {
  const DeviceType k80 = load_device("k80", {});
  CHECK(k80.title == "NVIDIA Tesla K80, one of the board's two GPUs (half a board)");
  CHECK(k80.peak_flops.at(Precision::fp32) == approx(8.736e12 / 2));
  CHECK(k80.memory_bytes == 12.0 * 1024 * 1024 * 1024);
  CHECK(k80.memory_bandwidth_Bps == approx(480e9 / 2));
}
