// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "models/training_graph.h"
#include "sim/costs/cost_model.h"
#include "sim/costs/residuals.h"
#include "sim/costs/tensor_rate.h"
#include "tests/support/approx.h"
#include "topologies/catalogue_files.h"

using namespace convoy;

namespace {

Work convolution_of(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t side,
                    std::int64_t groups, Phase phase, double element) {
  Work w;
  w.kind = groups == in && groups > 1 ? KernelKind::depthwise_convolution : KernelKind::convolution;
  w.phase = phase;
  w.in_channels = in;
  w.out_channels = out;
  w.kernel_h = w.kernel_w = kernel;
  w.stride = 1;
  w.groups = groups;
  w.out_h = w.out_w = side;
  const double values = static_cast<double>(side * side * (in + out));
  const double weights = static_cast<double>(in / groups * out * kernel * kernel);
  w.flops_per_image = 2 * weights * static_cast<double>(side * side);
  w.bytes_per_image = element * values;
  w.bytes_fixed = element * weights;
  return w;
}

struct ConvolutionShape {
  std::int64_t in, out, kernel, side, groups;
};
const std::vector<ConvolutionShape>& shapes() {
  static const std::vector<ConvolutionShape> all{
      {3, 64, 7, 112, 1},    {64, 64, 3, 56, 1},    {256, 64, 1, 56, 1},  {512, 2048, 1, 7, 1},
      {128, 128, 3, 28, 32}, {96, 96, 3, 56, 96},   {192, 384, 5, 13, 1}, {512, 512, 3, 14, 1},
      {240, 240, 3, 28, 10}, {1024, 1024, 3, 7, 32}};
  return all;
}

std::vector<DeviceType> fitted_devices() {
  std::vector<DeviceType> devices;
  for (const std::string& name : device_names())
    if (DeviceType device = load_device(name, {}); device.evidence_spread > 0) devices.push_back(device);
  return devices;
}

template <class Check>
void on_grid(Precision precision, Check check) {
  for (const ConvolutionShape& shape : shapes())
    for (const Phase phase : {Phase::forward, Phase::data_gradient, Phase::weight_gradient})
      for (const double images : {1.0, 8.0, 64.0, 256.0})
        check(convolution_of(shape.in, shape.out, shape.kernel, shape.side, shape.groups, phase,
                             element_bytes(precision)),
              images);
}

}  // namespace

TEST_CASE(
    "no kernel of a catalogue device runs beyond its peak times the algorithm's saving, or its bandwidth") {
  for (const DeviceType& device : fitted_devices()) {
    CAPTURE(device.name);
    for (const auto& [precision, peak] : device.peak_flops) {
      const Precision p = precision;
      const double highest_peak =
          std::max(peak, device.runs(Precision::fp32) ? device.peak_flops.at(Precision::fp32) : 0);
      on_grid(p, [&](const Work& work, double images) {
        const bool on_cores_3x3 = work.kernel_h == 3 && work.groups == 1,
                   on_cores_5x5 = work.kernel_h >= 5 && work.groups == 1;
        const double saving = on_cores_3x3 ? 4 : on_cores_5x5 ? 100.0 / 36 : 1;
        const double limit =
            std::max(p == Precision::fp32 ? peak * saving : peak,
                     device.runs(Precision::fp32) ? device.peak_flops.at(Precision::fp32) * saving : 0);
        CHECK(highest_peak > 0);
        Software software(p);
        software.layout = Layout::nhwc;
        const double time_s = operation_time_s(work, images, software, device);
        REQUIRE(work.flops_per_image * images / time_s <= limit * (1 + 1e-9));
        REQUIRE((work.bytes_per_image * images + work.bytes_fixed) / time_s <=
                device.memory_bandwidth_Bps * (1 + 1e-9));
      });
    }
  }
}

TEST_CASE("no framework's kernels run beyond a device's peak or bandwidth, whatever it makes of them") {
  // Elementwise kernels, pooling and normalizations move their bytes and hardly compute.
  std::vector<Work> moving;
  for (const KernelKind kind : {KernelKind::elementwise, KernelKind::pooling, KernelKind::normalization})
    for (const Phase phase : {Phase::forward, Phase::data_gradient}) {
      Work work;
      work.kind = kind;
      work.phase = phase;
      work.bytes_per_image = 3e6;
      work.flops_per_image = 1e6;
      moving.push_back(work);
    }
  const auto saving_of = [](const Work& work) {
    if (work.groups > 1 || work.stride > 1) return 1.0;
    return work.kernel_h == 3 ? 4.0 : work.kernel_h >= 5 ? 100.0 / 36 : 1.0;
  };
  int faster = 0;  // than the device's own kernels
  for (const DeviceType& device : fitted_devices())
    for (const auto& [precision, peak] : device.peak_flops)
      for (std::size_t f = 0; f < framework_count; ++f)
        for (const ExecutionMode execution : {ExecutionMode::eager, ExecutionMode::graph})
          for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
            CAPTURE(device.name);
            CAPTURE(to_string(precision));
            CAPTURE(framework_names[f]);
            TrainingOptions options;
            options.precision = precision;
            options.framework = static_cast<Framework>(f);
            options.execution = execution;
            options.layout = layout;
            const Software software(options);
            const SoftwareCosts& costs = software.costs;
            if (std::min({costs.convolution, costs.depthwise, costs.normalization, costs.elementwise}) < 1)
              ++faster;
            const auto check = [&](const Work& work, double images) {
              const double time_s = operation_time_s(work, images, software, device);
              const double fp32_peak =
                  device.runs(Precision::fp32) ? device.peak_flops.at(Precision::fp32) : 0;
              const double highest = std::max(precision == Precision::fp32 ? 0 : peak,
                                              fp32_peak * saving_of(work));
              REQUIRE(work.flops_per_image * images / time_s <= highest * (1 + 1e-9));
              REQUIRE((work.bytes_per_image * images + work.bytes_fixed) / time_s <=
                      device.memory_bandwidth_Bps * (1 + 1e-9));
            };
            for (const Work& work : moving) check(work, 256);
            for (const ConvolutionShape& shape : shapes())
              check(convolution_of(shape.in, shape.out, shape.kernel, shape.side, shape.groups,
                                   Phase::forward, element_bytes(precision)),
                    256);
          }
  CHECK(faster > 0);
}

TEST_CASE("lower precision is never slower on the same device") {
  for (const DeviceType& device : fitted_devices()) {
    if (!device.runs(Precision::fp32)) continue;
    CAPTURE(device.name);
    for (const auto& [precision, peak] : device.peak_flops) {
      if (precision == Precision::fp32) continue;
      for (const ConvolutionShape& shape : shapes())
        for (const Phase phase : {Phase::forward, Phase::data_gradient, Phase::weight_gradient})
          for (const double images : {1.0, 32.0, 256.0})
            for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
              const auto time_s = [&](Precision p) {
                Software software(p);
                software.layout = layout;
                return operation_time_s(convolution_of(shape.in, shape.out, shape.kernel, shape.side,
                                                       shape.groups, phase, element_bytes(p)),
                                        images, software, device);
              };
              REQUIRE(time_s(precision) <= time_s(Precision::fp32) * (1 + 1e-9));
            }
    }
  }
}

TEST_CASE(
    "tensor cores at half the rate take longer by their multiply-adds alone, and every GeForce board has "
    "these") {
  // By name: boards of these chips that add up in FP32 at half the rate (white papers of Turing and GA102; a
  // data centre's A10G too, by its data sheet).
  const std::set<std::string> at_half{"rtx-2080", "rtx-2080-ti", "rtx-3070", "rtx-3080",
                                      "rtx-3090", "rtx-4090",    "a10g"};
  for (const DeviceType& device : fitted_devices()) {
    CAPTURE(device.name);
    for (const auto& [precision, peak] : device.peak_flops) {
      const bool is_half = at_half.contains(device.name) && precision != Precision::fp32;
      CHECK(tensor_rate(device, precision) == (is_half ? 0.5 : 1));
    }
    DeviceType own = device;  // whose shares are given
    own.evidence_spread = 0;
    for (const auto& [precision, peak] : device.peak_flops) CHECK(tensor_rate(own, precision) == 1);
  }
  // The same board at the full rate: nothing but the multiply-adds is quicker. Memory and ordinary cores, which
  // would be the faster ones else, are left out, and so is the share of multiprocessors that are idle.
  int compared = 0;
  for (const std::string& name : at_half)
    for (const Precision precision : {Precision::tf32, Precision::fp16, Precision::bf16}) {
      DeviceType half = load_device(name, {});
      if (!half.runs(precision)) continue;
      half.memory_bandwidth_Bps = 1e30;
      half.peak_flops = {{precision, half.peak_flops.at(precision)}};
      half.launch_overhead_s = 0;
      for (Efficiency& e : half.efficiency) e.half_rows = e.half_weight_rows = e.half_matmul_rows = 0;
      DeviceType full = half;
      full.peak_flops[precision] *= 2;
      REQUIRE(tensor_rate(full, precision) == 1);
      on_grid(precision, [&](const Work& work, double images) {
        const double at_full = operation_time_s(work, images, precision, full);
        const double flops = work.flops_per_image * images, peak = half.peak_flops.at(precision);
        if (flops / at_full > 0.999 * 2 * peak) return;  // no kernel is beyond the peak
        CHECK(operation_time_s(work, images, precision, half) ==
              approx(at_full + flops / peak - flops / (2 * peak)).epsilon(1e-9));
        ++compared;
      });
    }
  CHECK(compared > 500);
}

TEST_CASE("half the channels a group: less time, down to depthwise, and never a cliff") {
  for (const DeviceType& device : fitted_devices()) {
    CAPTURE(device.name);
    for (const Phase phase : {Phase::forward, Phase::data_gradient, Phase::weight_gradient}) {
      double before_s = 0;
      for (std::int64_t groups = 1; groups <= 256; groups *= 2) {
        const double time_s =
            operation_time_s(convolution_of(256, 256, 3, 28, groups, phase, 4), 64, Precision::fp32, device);
        // Winograd's algorithm goes with the first halving: one group may be faster than two.
        if (groups > 2) {
          CAPTURE(groups);
          CHECK(time_s <= before_s * 1.6);
          CHECK(time_s >= before_s / 4);
        }
        before_s = time_s;
      }
    }
  }
}

namespace {

const std::vector<TrainingGraph>& networks() {
  static const std::vector<TrainingGraph> graphs = [] {
    std::vector<TrainingGraph> all;
    for (const char* name : {"resnet50", "vgg16", "mobilenet_v2", "densenet121", "resnext50_32x4d"}) {
      const YamlNode node = parse_yaml(fmt::format("name: {}", name), "network.yaml");
      all.push_back(build_training_graph(read_model(node), {}));
    }
    return all;
  }();
  return graphs;
}

std::size_t place_of(const std::string& generation) {
  const auto& names = generation_names();
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), generation) - names.begin());
}

/// A newer generation's GPU with at least the older one's peaks, bandwidth and power: with fewer watts it
/// does not run at the clock that its peaks are stated at (T4's 70 W are for 24 of its 65 TFLOP/s,
/// forums.developer.nvidia.com/t/264462).
bool outdoes(const DeviceType& newer, const DeviceType& older, Precision precision) {
  return !newer.kind->in_process && !older.kind->in_process &&
         place_of(newer.generation) > place_of(older.generation) && newer.runs(precision) &&
         older.runs(precision) && newer.peak_flops.at(precision) >= older.peak_flops.at(precision) &&
         newer.peak_flops.at(Precision::fp32) >= older.peak_flops.at(Precision::fp32) &&
         newer.memory_bandwidth_Bps >= older.memory_bandwidth_Bps && newer.peak_power_w >= older.peak_power_w;
}

}  // namespace

namespace {

/// Whether one multiprocessor of `newer`, with what is left to it of the board's power, has at least what one
/// of `older` has: a few images fill no more of a device than some of its multiprocessors.
bool outdoes_each(const DeviceType& newer, const DeviceType& older, Precision precision) {
  const auto of_each = [](double whole, const DeviceType& device) { return whole / device.sms; };
  const auto watts = [](const DeviceType& device) { return device.peak_power_w - device.idle_power_w; };
  return of_each(newer.peak_flops.at(precision), newer) >= of_each(older.peak_flops.at(precision), older) &&
         of_each(newer.peak_flops.at(Precision::fp32), newer) >=
             of_each(older.peak_flops.at(Precision::fp32), older) &&
         of_each(newer.memory_bandwidth_Bps, newer) >= of_each(older.memory_bandwidth_Bps, older) &&
         of_each(watts(newer), newer) >= of_each(watts(older), older);
}

/// Devices of which the newer may take longer, with the reason. One that never does fails the test too.
struct KnownSlower {
  std::string_view newer, older;  ///< beginnings of names
  Precision precision;
  std::string_view because;
};
constexpr std::array known_slower{
    KnownSlower{
        "a100-", "v100-", Precision::fp32,
        "nobody measured few images, or convolutions in groups, on the A100's ordinary cores (in "
        "single_device.csv: AlexNet, Inception and ResNet-50 of TensorFlow 2.3, 224 images and more): "
        "their parameters are those of GeForce cards of its generation and of older compute chips"},
};

const KnownSlower* find_known_slower(const DeviceType& newer, const DeviceType& older, Precision precision) {
  const auto known = std::find_if(known_slower.begin(), known_slower.end(), [&](const KnownSlower& pair) {
    return newer.name.starts_with(pair.newer) && older.name.starts_with(pair.older) &&
           precision == pair.precision;
  });
  return known == known_slower.end() ? nullptr : &*known;
}

}  // namespace

TEST_CASE(
    "a newer generation with more peak, bandwidth and power is never slower, unless both were measured or "
    "the "
    "pair is known to be, and with few images where each of its multiprocessors has more of them too") {
  const std::vector<DeviceType> devices = fitted_devices();
  std::map<double, int> compared;
  std::set<const KnownSlower*> found;
  for (const DeviceType& older : devices)
    for (const DeviceType& newer : devices)
      for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::fp16}) {
        if (!outdoes(newer, older, precision) || (newer.evidence_rows > 0 && older.evidence_rows > 0))
          continue;
        const bool each = outdoes_each(newer, older, precision);
        const KnownSlower* const known = find_known_slower(newer, older, precision);
        for (const TrainingGraph& graph : networks())
          for (const double images : {1.0, 8.0, 32.0, 256.0}) {
            if (images < 32 && !each) continue;
            const CostModel cost{Software(precision)};  // hosts cost nothing
            const double ratio =
                step_time_s(graph, images, cost, newer) / step_time_s(graph, images, cost, older);
            INFO(newer.name << " takes " << ratio << " times as long as " << older.name << ", "
                            << to_string(precision) << ", " << graph.model.name << ", batch " << images);
            ++compared[images];
            if (known && ratio > 1)
              found.insert(known);
            else
              CHECK(ratio <= 1);
          }
      }
  for (const auto& [images, pairs] : compared) {
    CAPTURE(images);
    CHECK(pairs > 1000);
  }
  CHECK(found.size() == known_slower.size());
}

// ResNet-50 in fp32 on a V100, kernels alone: PyTorch 1.10 replaying a CUDA graph
// (github.com/pytorch/benchmark/pull/706; several steps a figure, so ratios). Nothing was fitted to them.
TEST_CASE(
    "small batches of ResNet-50 on a V100 take the share of a large one's time that a CUDA graph measured") {
  struct Measured {
    double images, ms;
  };
  constexpr double of_64_ms = 562.029;
  const TrainingGraph graph =
      build_training_graph(read_model(parse_yaml("name: resnet50", "network.yaml")), {});
  const DeviceType v100 = load_device("v100-sxm2-16gb", {});
  const CostModel cost{Software(Precision::fp32)};
  const double of_64_s = step_time_s(graph, 64, cost, v100);
  for (const auto [images, ms] :
       {Measured{1, 50.233}, {2, 56.13}, {4, 71.465}, {8, 105.381}, {16, 167.966}, {32, 297.989}}) {
    CAPTURE(images);
    CHECK(step_time_s(graph, images, cost, v100) / of_64_s == approx(ms / of_64_ms).epsilon(0.2));
  }
}

TEST_CASE("a slice of a chip takes as long for its slice of a batch as the whole for all of it") {
  // Equal slices know nothing of each other: each has its share of the multiprocessors, of their peak and of
  // the bandwidth, and one in so many of the images. What is read once whatever the batch (weights) is left
  // out: each slice reads all of it.
  for (const std::string base : {"v100-sxm2-16gb", "t4", "k80", "xeon-e5-2630-v3-dual", "b200-sxm-180gb"}) {
    const DeviceType whole = load_device(base, {});
    for (const int slices : {2, 4}) {
      if (whole.sms % slices != 0) continue;
      CAPTURE(base);
      CAPTURE(slices);
      std::string peaks;
      for (const auto& [precision, flops] : whole.peak_flops)
        peaks += fmt::format("{}{}: {:.9f}TFLOPS", peaks.empty() ? "" : ", ", to_string(precision),
                             flops / slices / 1e12);
      const YamlNode changes =
          parse_yaml(fmt::format("{{base: {}, sms: {}, peak: {{{}}}, memory_bandwidth: {:.9f}GB/s}}", base,
                                 whole.sms / slices, peaks, whole.memory_bandwidth_Bps / slices / 1e9),
                     "slice");
      const DeviceType slice =
          read_device(derive_entry(CatalogueKind::device, "slice", changes, {}).node, "slice");
      for (const auto& [precision, flops] : whole.peak_flops) {
        const Precision p = precision;
        on_grid(p, [&](Work work, double images) {
          work.bytes_fixed = 0;
          CHECK(operation_time_s(work, images, p, slice) ==
                approx(operation_time_s(work, images * slices, p, whole)).epsilon(1e-6));
        });
      }
    }
  }
}

TEST_CASE("the efficiencies of every device of the catalogue have a doubt") {
  for (const std::string& name : device_names()) {
    CAPTURE(name);
    CHECK(device_spread(load_device(name, {}), false) > 0);
  }
}
