// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/calibration/calibration.h"
#include "sim/calibration/efficiency_fit.h"
#include "sim/calibration/fit_parameters.h"
#include "sim/calibration/kineto_trace.h"
#include "sim/costs/residuals.h"
#include "sim/costs/software_evidence.h"
#include "tests/calibration/written_file.h"
#include "tests/support/approx.h"
#include "tests/support/cpu_kind.h"

using namespace convoy;

namespace {

using Profile = WrittenFile;

// The model of docs/cost_model.md, written a second time: time of the forward pass of a convolution, square
// kernel, stride 1, on a device of 10 TFLOP/s and 100 GB/s.
struct Truth {
  double one = 0.62, three = 1.35, five = 1.1, bandwidth = 0.8, launch_s = 17e-6;
  double half_outputs = 20, half_reduction = 40, half_rows = 900;

  double seconds(double images, double in, double out, double kernel, double side) const {
    const double rows = images * side * side, length = in * kernel * kernel;
    const double tiles = rows * std::max(1.0, (out + half_outputs) / 64);
    const double limit = kernel == 1 ? one : kernel == 3 ? three : five;
    const double rate = 10e12 * limit * (out / (out + half_outputs)) * (length / (length + half_reduction)) *
                        (tiles / (tiles + half_rows));
    const double bytes = 4 * (rows * (in + out) + length * out);
    return launch_s + std::max(2 * rows * length * out / rate, bytes / (100e9 * bandwidth));
  }
};

Work kernel(double in, double out, double size, double side) {
  Work w;
  w.kind = KernelKind::convolution;
  w.in_channels = static_cast<std::int64_t>(in);
  w.out_channels = static_cast<std::int64_t>(out);
  w.kernel_h = w.kernel_w = static_cast<std::int64_t>(size);
  w.stride = w.groups = 1;
  w.out_h = w.out_w = static_cast<std::int64_t>(side);
  w.flops_per_image = 2 * side * side * in * out * size * size;
  w.bytes_per_image = 4 * side * side * (in + out);
  w.bytes_fixed = 4 * in * out * size * size;
  return w;
}

// Equal but for the three digits of the YAML and the last bits of the fit.
void check_alike(const DeviceType& a, const DeviceType& b, Precision precision) {
  const Efficiency& x = a.efficiency[static_cast<std::size_t>(precision)];
  const Efficiency& y = b.efficiency[static_cast<std::size_t>(precision)];
  for (std::size_t c = 0; c < kernel_class_count; ++c) {
    CAPTURE(kernel_class_names[c]);
    CHECK(x.compute[c] == approx(y.compute[c]).epsilon(0.02));
    CHECK(x.bandwidth[c] == approx(y.bandwidth[c]).epsilon(0.02));
  }
  CHECK(x.data_gradient == approx(y.data_gradient).epsilon(0.02));
  CHECK(x.weight_gradient == approx(y.weight_gradient).epsilon(0.02));
  CHECK(x.half_outputs == approx(y.half_outputs).epsilon(0.02));
  CHECK(x.half_reduction == approx(y.half_reduction).epsilon(0.02));
  CHECK(x.half_rows == approx(y.half_rows).epsilon(0.02));
  CHECK(x.half_weight_outputs == approx(y.half_weight_outputs).epsilon(0.02));
  CHECK(x.half_weight_reduction == approx(y.half_weight_reduction).epsilon(0.02));
  CHECK(x.half_weight_rows == approx(y.half_weight_rows).epsilon(0.02));
  CHECK(x.half_matmul_rows == approx(y.half_matmul_rows).epsilon(0.02));
  CHECK(x.strided_data_gradient == approx(y.strided_data_gradient).epsilon(0.02));
  CHECK(x.half_winograd == approx(y.half_winograd).epsilon(0.02));
  CHECK(x.unaligned == approx(y.unaligned).epsilon(0.02));
}

DeviceType blank() {
  DeviceType d;
  d.name = "blank";
  d.peak_flops = {{Precision::fp32, 10e12}};
  d.memory_bytes = 16e9;
  d.memory_bandwidth_Bps = 100e9;
  return d;
}

}  // namespace

TEST_CASE("a fit finds the parameters that made the measurements") {
  const Truth truth;
  std::vector<Observation> observations;
  for (const double size : {1.0, 3.0, 5.0})
    for (const double in : {8.0, 32.0, 128.0, 512.0})
      for (const double out : {16.0, 64.0, 512.0})
        for (const double side : {7.0, 28.0})
          for (const double images : {1.0, 32.0})
            observations.push_back({{kernel(in, out, size, side)},
                                    images,
                                    Precision::fp32,
                                    truth.seconds(images, in, out, size, side),
                                    0.01, false, false, {}});
  DeviceType device = blank();
  device.kind = cpu_kind();  // no Winograd's algorithm, nor weight gradients of their own: the model above
  const DeviceType d = fit_efficiencies(device, observations);
  const Efficiency& e = d.efficiency[0];
  const auto compute = [&](KernelClass c) { return e.compute[static_cast<std::size_t>(c)]; };
  CHECK(compute(KernelClass::convolution_1x1) == approx(truth.one).epsilon(0.02));
  CHECK(compute(KernelClass::convolution_3x3) == approx(truth.three).epsilon(0.02));
  CHECK(compute(KernelClass::convolution_5x5) == approx(truth.five).epsilon(0.02));
  CHECK(e.bandwidth[static_cast<std::size_t>(KernelClass::convolution_1x1)] ==
        approx(truth.bandwidth).epsilon(0.02));
  CHECK(d.launch_overhead_s == approx(truth.launch_s).epsilon(0.02));
  CHECK(e.half_outputs == approx(truth.half_outputs).epsilon(0.05));
  CHECK(e.half_reduction == approx(truth.half_reduction).epsilon(0.05));
  CHECK(e.half_rows == approx(truth.half_rows).epsilon(0.05));
  // and predicts kernels it has not seen
  for (const double images : {4.0, 100.0})
    for (const double size : {1.0, 3.0, 5.0}) {
      const double time = operation_time_s(kernel(96, 200, size, 14), images, Precision::fp32, d);
      CHECK(time == approx(truth.seconds(images, 96, 200, size, 14)).epsilon(0.02));
    }
}

TEST_CASE("what is not measured stays at its prior, and other precisions at theirs") {
  const Truth truth;
  DeviceType device = blank();
  device.peak_flops[Precision::fp16] = 80e12;  // of units of its own
  const DeviceType d = fit_efficiencies(
      device, {{{kernel(64, 64, 3, 56)}, 32, Precision::fp32, truth.seconds(32, 64, 64, 3, 56), 0.05, false, false, {}}});
  // the typical values of docs/cost_model.md
  CHECK(d.efficiency[0].compute[static_cast<std::size_t>(KernelClass::matmul)] == approx(0.75).epsilon(1e-6));
  CHECK(d.efficiency[0].bandwidth[static_cast<std::size_t>(KernelClass::update)] ==
        approx(0.7).epsilon(1e-6));
  const Efficiency& fp16 = d.efficiency[static_cast<std::size_t>(Precision::fp16)];
  CHECK(fp16.compute[static_cast<std::size_t>(KernelClass::convolution_1x1)] == approx(0.5).epsilon(1e-6));
}

TEST_CASE("a fit to one's own rows halves Winograd's share where integers share a pipe of the peak") {
  // 128 multiply-adds a multiprocessor and clock, of Ampere's and Ada's chips for graphics; GA100 has 64.
  constexpr double typical = 1.2;
  int shared = 0;
  for (const std::string& name : device_names()) {
    const DeviceType device = load_device(name, {});
    if (device.kind->in_process || !device.runs(Precision::fp32)) continue;
    CAPTURE(device.name);
    Work relu;  // tells nothing of convolutions
    relu.kind = KernelKind::elementwise;
    relu.bytes_per_image = 1e6;
    const DeviceType fitted =
        fit_efficiencies(device, {{{relu}, 32, Precision::fp32, 1e-3, 0.05, true, false, {}}});
    const auto share_of = [](const DeviceType& of, KernelClass c) {
      return of.efficiency.front().compute[static_cast<std::size_t>(c)];
    };
    const bool is_chip_for_computing = device.name.starts_with("a100") || device.name.starts_with("a30");
    const bool is_shared =
        (device.generation == "ampere" && !is_chip_for_computing) || device.generation == "ada";
    CHECK(share_of(fitted, KernelClass::convolution_3x3) ==
          approx(is_shared ? typical / 2 : typical).epsilon(1e-6));
    CHECK(share_of(fitted, KernelClass::convolution_1x1) == approx(0.7).epsilon(1e-6));
    shared += is_shared ? 1 : 0;
    // The catalogue's fit puts what it finds of all GPUs on the device by the same function.
    Efficiency put;
    for (const FitParameter& p : fit_parameters())
      if (p.key == "convolution_3x3") put_parameter(p, p.cores, ComputePath::cores, device, put);
    CHECK(put.compute[static_cast<std::size_t>(KernelClass::convolution_3x3)] ==
          approx(is_shared ? typical / 2 : typical).epsilon(1e-12));
  }
  CHECK(shared >= 10);
  // The same chip under one's own name
  DeviceType own = load_device("a100-sxm4-40gb", {});
  own.name = "own";
  for (const FitParameter& p : fit_parameters())
    if (p.key == "convolution_3x3") CHECK(times_on_device(p, ComputePath::cores, own) == 1);
}

TEST_CASE("without observations a device stays as it is") {
  const DeviceType d = fit_efficiencies(blank(), {});
  CHECK(d.efficiency == blank().efficiency);
  CHECK(d.launch_overhead_s == 0);
}

TEST_CASE("the YAML of a fit reads back as the device") {
  const Profile profile(
      "device,model,batch,precision,step,images_per_s\nv100-sxm2-16gb,resnet18,64,fp32,train,900\n"
      "v100-sxm2-16gb,resnet18,64,fp16,train,1900\n");
  const CalibrationReport report = calibrate({profile.path()}, "v100-sxm2-16gb");
  const std::string yaml =
      "peak: {fp32: 15.7TFLOPS, fp16: 125TFLOPS}\nmemory: 16GiB\nmemory_bandwidth: 900GB/s\ngeneration: "
      "volta\n" +
      report.yaml;
  const DeviceType read = read_device(parse_yaml(yaml, "fit.yaml"), "v100-sxm2-16gb");
  CHECK(read.launch_overhead_s == approx(report.device.launch_overhead_s).epsilon(0.005));
  CHECK(read.issue_factor == approx(report.device.issue_factor).epsilon(0.005));
  for (const Precision p : {Precision::fp32, Precision::fp16}) check_alike(read, report.device, p);
}

TEST_CASE(
    "the YAML of a fit of one's own device, of which no generation is known, reads back as the device") {
  DeviceType device = blank();
  device.name = "own";
  device.peak_flops[Precision::fp16] = 80e12;
  const Profile profile(
      "device,model,batch,precision,step,images_per_s\nown,resnet18,64,fp32,train,300\n"
      "own,resnet18,64,fp16,train,900\n");
  const CalibrationReport report = calibrate(read_measurements(profile.path()), device, {});
  const DeviceType read = read_device(
      parse_yaml(
          "peak: {fp32: 10TFLOPS, fp16: 80TFLOPS}\nmemory: 16GB\nmemory_bandwidth: 100GB/s\n" + report.yaml,
          "own.yaml"),
      "own");
  for (const Precision p : {Precision::fp32, Precision::fp16}) {
    check_alike(read, report.device, p);
    const std::size_t at = static_cast<std::size_t>(p);
    CHECK(read.efficiency[at].transpose_passes ==
          approx(report.device.efficiency[at].transpose_passes).epsilon(0.02));
    CHECK(read.efficiency[at].half_group == approx(report.device.efficiency[at].half_group).epsilon(0.02));
  }
  CHECK(read.efficiency[static_cast<std::size_t>(Precision::fp16)].transpose_passes > 0);
}

TEST_CASE(
    "a device whose efficiencies were given is calibrated as one whose efficiencies are those of a fit "
    "[law]") {
  for (const char* name : {"rtx-3090", "rtx-2080-ti", "a100-sxm4-40gb", "epyc-7763"}) {
    CAPTURE(name);
    const DeviceType fitted = load_device(name, {});
    DeviceType given = fitted;
    given.evidence_spread = 0;
    std::string rows = "device,model,batch,precision,step,images_per_s\n";
    for (const auto& [model, images_per_s] : {std::pair{"resnet18", 900}, std::pair{"vgg16", 150}})
      rows += fmt::format("{},{},32,{},train,{}\n", name, model, fitted.kind->in_process ? "fp32" : "fp16",
                          fitted.kind->in_process ? images_per_s / 20 : images_per_s);
    const Profile profile(rows);
    const std::vector<Measurement> measurements = read_measurements(profile.path());
    CHECK(calibrate(measurements, given, {}).yaml == calibrate(measurements, fitted, {}).yaml);
  }
}

TEST_CASE(
    "however fast a profile's kernels are, the YAML of its fit is read as a device, or the profile refused") {
  const std::string folder = std::string(CONVOY_SOURCE) + "/tests/calibration/traces/";
  int fitted = 0, refused = 0;
  for (const char* name : {"xeon-e5-2630-v3-dual", "epyc-7763", "v100-sxm2-16gb"})
    for (const double factor : {1e-6, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e6}) {
      CAPTURE(name);
      CAPTURE(factor);
      std::vector<Measurement> rows =
          read_kineto_trace(folder + "resnet18_batch8_32x32_cpu.json.gz", name).measurements;
      for (Measurement& row : rows) row.images_per_s *= factor;
      const DeviceType device = load_device(name, {});
      try {
        const std::string kind = device.kind->in_process ? "kind: cpu\n" : "";
        const std::string yaml = kind + "peak: {fp32: 1TFLOPS}\nmemory: 16GiB\nmemory_bandwidth: 100GB/s\n" +
                                 calibrate(rows, device, {}).yaml;
        CAPTURE(yaml);
        CHECK_NOTHROW(read_device(parse_yaml(yaml, "fit.yaml"), "own"));
        ++fitted;
      } catch (const InputError& error) {
        CHECK(std::string(error.what()).find("would have to run") != std::string::npos);
        ++refused;
      }
    }
  CHECK(fitted >= 9);
  CHECK(refused >= 3);
}

TEST_CASE("a calibration's evidence is what networks are off by that it has not seen") {
  DeviceType own = load_device("xeon-e5-2630-v3-dual", {});
  own.name = "own";
  // Images/s of the device of the catalogue are taken for another's, some networks being off for themselves.
  const std::vector<std::pair<std::string, double>> networks{
      {"resnet18", 11}, {"vgg16", 2.1}, {"squeezenet1_0", 16}, {"resnet50", 3}};
  const auto profile = [&](const std::string& left_out, double factor) {
    std::string text = "device,model,batch,precision,step,images_per_s,role\n";
    for (const auto& [model, speed] : networks)
      for (const double batch : {8.0, 16.0})
        text += fmt::format("own,{},{},fp32,train,{},{}\n", model, batch,
                            speed * (model == "vgg16" ? factor : 1), model == left_out ? "test" : "fit");
    return Profile(text);
  };
  double before = 0;
  for (const double factor : {1.0, 2.5}) {
    CAPTURE(factor);
    const Profile all = profile("none", factor);
    const CalibrationReport report = calibrate(read_measurements(all.path()), own, {});
    double errors = 0, squares = 0;
    for (const auto& [left_out, speed] : networks) {
      const Profile without = profile(left_out, factor);
      for (const AccuracyRow& row : calibrate(read_measurements(without.path()), own, {}).rows) {
        if (row.role != "test") continue;
        errors += std::abs(row.error) / 8;
        squares += std::pow(std::log1p(row.error), 2) / 8;
      }
    }
    CHECK(report.left_out_networks == 4);
    CHECK(report.device.evidence_rows == 8);
    CHECK(report.device.evidence_left_out_error == approx(errors).epsilon(1e-6));
    // Four networks tell less than many: 1.533 standard deviations of a t-distribution hold 80 %, not 1.2816.
    const double of_steps = residual_spread(residual_kind({}, 8, Precision::fp32));
    CHECK(machine_spread(report.device) == 0);  // it was calibrated on its machine, with its host
    CHECK(unknown_host_spread(report.device, [](const DeviceType& d) { return d.issue_factor; }) == 0);
    CHECK(report.device.evidence_spread <= 1.533 / 1.2816 * std::sqrt(squares) * 1.001);
    CHECK(std::hypot(report.device.evidence_spread, 2 * of_steps) >= 1.533 / 1.2816 * std::sqrt(squares));
    CHECK(report.device.evidence_left_out_error > before);
    before = 1.5 * report.device.evidence_left_out_error;
    // Its kernels have been seen now, whoever's framework they are.
    CHECK(unseen_kernels_spread(own, Precision::fp32, Software().costs) > 0);
    CHECK(unseen_kernels_spread(report.device, Precision::fp32, Software().costs) == 0);
    CHECK(report.yaml.find(fmt::format("evidence: {{rows: 8, spread: {:.3g}, left_out_error: {:.3g}%}}",
                                       report.device.evidence_spread,
                                       100 * report.device.evidence_left_out_error)) != std::string::npos);
  }
}

TEST_CASE("of one network alone a calibration leaves as much open as of a device that nobody measured") {
  const Profile profile(
      "device,model,batch,precision,step,images_per_s\nv100-sxm2-16gb,resnet18,64,fp32,train,900\n");
  const CalibrationReport report = calibrate({profile.path()}, "v100-sxm2-16gb");
  CHECK(report.left_out_networks == 0);
  CHECK(report.device.evidence_rows == 1);
  const AccuracyRow& row = report.rows.front();
  const double missed = std::log(row.predicted / row.published);
  CHECK(report.device.evidence_spread == approx(std::hypot(left_out_device_spread(), missed)).epsilon(1e-9));
  CHECK(report.device.evidence_left_out_error == 0);
  // A fit that is far off its own rows, since no such device computes as slowly, is as unsure of others.
  const Profile slow(
      "device,kernel,batch,step,time_ms\nv100-sxm2-16gb,convolution 64>64 3x3/1 56x56,32,forward,900\n");
  const CalibrationReport far = calibrate({slow.path()}, "v100-sxm2-16gb");
  const double factor = far.rows.front().predicted / far.rows.front().published;
  CHECK(factor > 2);
  CHECK(far.device.evidence_spread > std::log(factor));
}

TEST_CASE("devices without figures have their generation's parameters, and say that no row is theirs") {
  int without = 0;
  for (const std::string& name : device_names()) {
    CAPTURE(name);
    const DeviceType d = load_device(name, {});
    const Source* efficiency = find_source(d.sources, "efficiency");
    REQUIRE(efficiency);
    if (efficiency->text.find("scripts/calibrate") == std::string::npos) continue;  // assumed: mobile GPUs
    if (d.evidence_rows == 0) ++without;
    CHECK(d.evidence_spread > 0.01);
    CHECK(d.evidence_spread < 0.5);
    CHECK(d.issue_factor ==
          (d.kind->in_process ? 0 : 1));  // what is slow to issue is a host, and in no device's file
  }
  CHECK(without >= 10);
  // Two Turing GPUs with chips of their own that nobody measured, and nearly the same watts a multiprocessor:
  // these decide how fast a multiprocessor computes under load, not the boost clocks of their data sheets,
  // which are 6 % apart.
  const DeviceType a = load_device("rtx-2080", {}), b = load_device("quadro-rtx-5000", {});
  const auto of_multiprocessor = [](const DeviceType& d, std::size_t c) {
    return d.efficiency[0].compute[c] * d.peak_flops.at(Precision::fp32) / d.sms;
  };
  CHECK(b.clock_hz / a.clock_hz > 1.05);
  const auto watts = [](const DeviceType& d) { return (d.peak_power_w - d.idle_power_w) / d.sms; };
  const double more_watts =
      watts(b) / watts(a);  // the clock goes with its cube root, where voltage follows, up to itself
  CHECK(more_watts < 1.03);
  for (std::size_t c = 0; c <= static_cast<std::size_t>(KernelClass::matmul); ++c) {
    if (static_cast<KernelClass>(c) == KernelClass::convolution_grouped) continue;  // of convolution_other's
    const double faster = of_multiprocessor(b, c) / of_multiprocessor(a, c), rounded = 0.005;
    CHECK(faster >= std::cbrt(more_watts) - rounded);
    CHECK(faster <= more_watts + rounded);
  }
  CHECK(a.efficiency[0].half_rows / a.sms == approx(b.efficiency[0].half_rows / b.sms).epsilon(0.01));
}

TEST_CASE("the fewer watts a multiprocessor has, the less of its stated peak a board reaches") {
  const DeviceType l4 = load_device("l4", {}), ada = load_device("rtx-4090", {});
  const DeviceType a10g = load_device("a10g", {}), a40 = load_device("a40", {});
  const auto share = [](const DeviceType& d) {
    return d.efficiency[0].compute[static_cast<std::size_t>(KernelClass::convolution_1x1)];
  };
  CHECK(share(l4) < 0.9 * share(ada));
  CHECK(share(a10g) < share(a40));
  // With fewer watts a multiprocessor's rate under load falls by their cube root, where voltage follows the clock,
  // or by more.
  const auto rate = [&](const DeviceType& d) { return share(d) * d.peak_flops.at(Precision::fp32) / d.sms; };
  const auto watts = [](const DeviceType& d) { return (d.peak_power_w - d.idle_power_w) / d.sms; };
  const double rounded = 0.005;
  CHECK(rate(l4) / rate(ada) <= std::cbrt(watts(l4) / watts(ada)) + rounded);
  CHECK(rate(a10g) / rate(a40) <= std::cbrt(watts(a10g) / watts(a40)) + rounded);
}

TEST_CASE("rows with role test do not move a fit") {
  const std::string head = "device,model,batch,step,images_per_s,role\nk80,resnet18,16,train,100,fit\n";
  const Profile with(head + "k80,resnet18,32,train,5,test\n"), without(head);
  const CalibrationReport a = calibrate({with.path()}, "k80"), b = calibrate({without.path()}, "k80");
  CHECK(a.yaml == b.yaml);
  CHECK(a.mean_error == b.mean_error);
  REQUIRE(a.rows.size() == 2);
  CHECK(a.rows[1].role == "test");
  CHECK(a.rows[1].error > 10);
}

TEST_CASE("layers and kernels of a profile are fitted like networks") {
  const Profile profile(
      "device,model,layer,kernel,batch,step,images_per_s\n"
      "k80,vgg11,,,32,forward,100\n"
      "k80,resnet18,stem.conv,,32,forward,1000\n"
      "k80,,,convolution 64>128 3x3/1 28x28,32,weight_gradient,2000\n"
      "k80,,,matmul 4096>1000,256,forward,300000\n");
  const CalibrationReport report = calibrate({profile.path()}, "k80");
  REQUIRE(report.rows.size() == 4);
  CHECK(report.rows[1].model == "resnet18 stem.conv");
  // 2 x 28 x 28 x 64 x 128 x 9 = 115,605,504 FLOPs an image
  const std::vector<Work> works = measured_work(read_measurements(profile.path())[2]);
  REQUIRE(works.size() == 1);
  CHECK(works[0].phase == Phase::weight_gradient);
  CHECK(works[0].flops_per_image == 115605504);
  // (64 + 128) x 28 x 28 x 4 B of activations, 64 x 128 x 9 x 4 B of weights
  CHECK(works[0].bytes_per_image == 602112);
  CHECK(works[0].bytes_fixed == 294912);
  // 2 x 4096 x 1000
  CHECK(measured_work(read_measurements(profile.path())[3])[0].flops_per_image == 8192000);
}

TEST_CASE("kernels are fitted first, networks move the result") {
  const std::string kernels =
      "k80,,convolution 256>256 3x3/1 14x14,32,forward,9000\n"
      "k80,,convolution 64>64 3x3/1 56x56,32,forward,9000\n";
  const std::string network = "k80,resnet18,,16,train,100\n";
  const std::string head = "device,model,kernel,batch,step,images_per_s\n";
  const Profile both(head + kernels + network), alone(head + network);
  const CalibrationReport with = calibrate({both.path()}, "k80"), without = calibrate({alone.path()}, "k80");
  // Nothing in the network's speed tells of Winograd's algorithm what the kernels do.
  CHECK(with.device.efficiency[0] != without.device.efficiency[0]);
  CHECK(std::abs(with.rows.back().error) < 0.05);
  // The same from two files.
  const Profile first(head + kernels), second(head + network);
  CHECK(calibrate({first.path(), second.path()}, "k80").yaml == with.yaml);
}

TEST_CASE("times without launches tell nothing of the launch overhead") {
  const Profile profile("device,kernel,batch,step,time_ms\nk80,relu 200704,64,forward,1\n");
  std::vector<Measurement> rows = read_measurements(profile.path());
  rows[0].without_launch = true;
  CHECK(calibrate(rows, load_device("k80", {}), {}).device.launch_overhead_s == approx(10e-6).epsilon(1e-6));
  CHECK(calibrate(rows, load_device("k80", {}), {}, 42e-6).device.launch_overhead_s ==
        approx(42e-6).epsilon(1e-6));
}

TEST_CASE("a slow host is found from steps that wait for it, and is no part of the device") {
  // What the catalogue's V100 does in a host that takes 1.4 times as long as the typical one.
  constexpr double slow = 1.4;
  DeviceType v100 = load_device("v100-sxm2-16gb", {});
  v100.issue_factor *= slow;
  const auto profile_of = [&](const std::vector<int>& batches) {
    std::string text = "device,model,batch,precision,step,software,images_per_s\n";
    for (const char* model : {"resnet50", "mobilenet_v2", "densenet121"})
      for (const int batch : batches) {
        const TrainingGraph graph =
            build_training_graph(read_model(parse_yaml(fmt::format("name: {}", model), "m.yaml")), {});
        const CostModel cost{Software(TrainingOptions())};
        text += fmt::format("v100-sxm2-16gb,{},{},fp32,train,pytorch,{}\n", model, batch,
                            batch / step_time_s(graph, batch, cost, v100));
      }
    return text;
  };
  const Profile small(profile_of({1, 2, 8, 64})), large(profile_of({128, 256}));
  const CalibrationReport found = calibrate({small.path()}, "v100-sxm2-16gb");
  CHECK(found.host_issue_factor == approx(slow).epsilon(0.05));
  CHECK(found.device.issue_factor == load_device("v100-sxm2-16gb", {}).issue_factor);
  CHECK(found.mean_error < 0.03);
  // Steps that no host holds up say nothing of it.
  CHECK(calibrate({large.path()}, "v100-sxm2-16gb").host_issue_factor == approx(1).epsilon(0.02));
}
