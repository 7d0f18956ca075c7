// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "sim/base/input_error.h"
#include "sim/base/median.h"
#include "sim/calibration/calibration.h"
#include "sim/calibration/kineto_trace.h"
#include "tests/calibration/written_file.h"
#include "tests/support/approx.h"
#include "tests/support/gzipped.h"
#include "topologies/catalogue_files.h"

using namespace convoy;

namespace {

std::string op(int id, const std::string& name, const std::string& dims, const std::string& values = "",
               const std::string& type = "float") {
  return fmt::format(
      "{{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"{}\", \"pid\": 7, \"tid\": 7, \"ts\": {}, \"dur\": "
      "5,\n"
      "  \"args\": {{\"External id\": {}, \"Input Dims\": {}, \"Input type\": [\"{}\", \"\"]{}}}}}",
      name, 100 * id, id, dims, type, values.empty() ? "" : ", \"Concrete Inputs\": " + values);
}

std::string gpu(int id, double start, double duration, const std::string& name = "volta_scudnn_128x64_relu") {
  return fmt::format(
      "{{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"{}\", \"pid\": 0, \"tid\": 7, \"ts\": {}, \"dur\": "
      "{},\n"
      "  \"args\": {{\"External id\": {}, \"correlation\": {}, \"device\": 0, \"stream\": 7}}}}",
      name, start, duration, id, 1000 + id);
}

/// An operation of the CPU with its time; `name` may be of anything that the profiler marks.
std::string span(const std::string& name, double start, double duration, const std::string& dims = "[]",
                 const std::string& values = "", int thread = 1, const std::string& category = "cpu_op") {
  static int id = 0;
  return fmt::format(
      "{{\"ph\": \"X\", \"cat\": \"{}\", \"name\": \"{}\", \"pid\": 7, \"tid\": {}, \"ts\": {}, \"dur\": "
      "{},\n"
      "  \"args\": {{\"External id\": {}, \"Input Dims\": {}{}}}}}",
      category, name, thread, start, duration, ++id, dims,
      values.empty() ? "" : ", \"Concrete Inputs\": " + values);
}

std::string trace(const std::vector<std::string>& events) {
  std::string text =
      "{\n\"schemaVersion\": 1,\n\"deviceProperties\": [{\"id\": 0, \"name\": \"Tesla V100\"}],\n"
      "\"traceEvents\": [\n{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 7}";
  for (const std::string& event : events) text += ",\n" + event;
  return text + "\n]}\n";
}

KinetoTrace read(const std::string& text) {
  const WrittenFile file(text, ".json");
  return read_kineto_trace(file.path(), "v100-sxm2-16gb");
}

std::string error_of(const std::string& text) {
  const WrittenFile file(text, ".json");
  try {
    read_kineto_trace(file.path(), "v100-sxm2-16gb");
  } catch (const InputError& e) {
    const std::string message = e.what();
    return message.starts_with(file.path()) ? message.substr(file.path().size()) : message;
  }
  return "no error";
}

const Measurement* find(const KinetoTrace& t, const std::string& kernel, MeasuredStep step) {
  for (const Measurement& m : t.measurements)
    if (m.kernel == kernel && m.step == step) return &m;
  return nullptr;
}

const std::string convolution_dims = "[[32, 64, 56, 56], [128, 64, 3, 3], [], [], [], []]";
const std::string convolution_values = "[\"\", \"\", \"[1, 1]\", \"[2, 2]\", \"[1, 1]\", \"1\"]";
const std::string backward_dims = "[[32, 128, 28, 28], [32, 64, 56, 56], [128, 64, 3, 3], [], [], [], []]";

}  // namespace

TEST_CASE("convolutions, products, normalization and ReLU of a trace become kernels with their GPU time") {
  const KinetoTrace t =
      read(trace({op(1, "aten::cudnn_convolution", convolution_dims, convolution_values), gpu(1, 10, 400),
                  gpu(1, 415, 100), op(2, "aten::cudnn_batch_norm", "[[32, 128, 28, 28], [128], [128]]"),
                  gpu(2, 520, 90), op(3, "aten::clamp_min_", "[[32, 128, 28, 28], []]"), gpu(3, 615, 30),
                  op(4, "aten::addmm", "[[1000], [32, 2048], [2048, 1000], [], []]"), gpu(4, 650, 50),
                  op(5, "aten::convolution_backward", backward_dims), gpu(5, 705, 1000),
                  op(6, "aten::copy_", "[[32, 128, 28, 28], [32, 128, 28, 28]]"), gpu(6, 1710, 200)}));
  REQUIRE(t.measurements.size() == 5);
  const Measurement* forward = find(t, "convolution 64>128 3x3/2 28x28", MeasuredStep::forward);
  REQUIRE(forward);
  CHECK(forward->device == "v100-sxm2-16gb");
  CHECK(forward->batch == 32);
  CHECK(forward->precision == Precision::fp32);
  CHECK(forward->without_launch);
  CHECK(forward->seconds() == approx(500e-6).epsilon(1e-12));  // both kernels of the operation
  const Measurement* backward = find(t, "convolution 64>128 3x3/2 28x28", MeasuredStep::backward);
  REQUIRE(backward);
  CHECK(backward->seconds() == approx(1e-3).epsilon(1e-12));
  CHECK(find(t, "batch_norm 128 28x28", MeasuredStep::forward));
  CHECK(find(t, "relu 100352", MeasuredStep::forward));
  REQUIRE(find(t, "matmul 2048>1000", MeasuredStep::forward));
  CHECK(find(t, "matmul 2048>1000", MeasuredStep::forward)->batch == 32);
  CHECK(t.kernel_s == approx(1870e-6).epsilon(1e-12));
  CHECK(t.matched_s == approx(1670e-6).epsilon(1e-12));
  REQUIRE(t.others.size() == 1);
  CHECK(t.others[0].first == "aten::copy_");
  // pauses of 5 us between the kernels of the stream (10 + 400 to 415, 515 to 520, ...)
  CHECK(t.launch_s == approx(5e-6).epsilon(1e-9));
}

TEST_CASE("without a GPU the operations' own times count, of each that no other is around") {
  const std::string forward_dims = "[[8, 64, 8, 8], [128, 64, 3, 3], [], [], [], [], [], [], []]";
  const std::string plain = "[[8, 64, 8, 8], [128, 64, 3, 3], [], [], [], [], []]";
  const KinetoTrace t = read(trace(
      {span("aten::conv2d", 100, 900, plain), span("aten::convolution", 103, 890, forward_dims),
       span("aten::mkldnn_convolution", 120, 800, plain), span("aten::empty", 130, 5),
       span("aten::add_", 1010, 4, "[[], [], []]"),  // counts batches: 2 us before and after it, 4 in it
       span("aten::batch_norm", 1016, 84, "[[8, 128, 4, 4], [128]]"),
       span("aten::native_batch_norm", 1020, 70, "[[8, 128, 4, 4], [128]]"),
       span("aten::relu_", 1116, 20, "[[8, 128, 4, 4]]"),
       span("aten::clamp_min_", 1120, 10, "[[8, 128, 4, 4], []]"),
       span("aten::add_", 1152, 30, "[[8, 128, 4, 4], [8, 128, 4, 4], []]"),
       span("aten::max_pool2d", 1198, 60, "[[8, 128, 4, 4], [], []]"),
       span("aten::max_pool2d_with_indices", 1199, 58, "[[8, 128, 4, 4], [], []]"),
       span("aten::linear", 1274, 50, "[[8, 512], [10, 512], [10]]"), span("aten::t", 1275, 4, "[[10, 512]]"),
       span("aten::addmm", 1280, 40, "[[10], [8, 512], [512, 10], [], []]"),
       // another thread computes beside
       span("aten::relu_", 300, 11, "[[4, 3, 2, 2]]", "", 2),
       span("autograd::engine::evaluate_function: MaxPool2DWithIndicesBackward0", 1330, 90),
       span("MaxPool2DWithIndicesBackward0", 1332, 86),
       span("aten::max_pool2d_with_indices_backward", 1340, 70,
            "[[8, 128, 2, 2], [8, 128, 4, 4], [], [], []]"),
       span("autograd::engine::evaluate_function: ConvolutionBackward0", 1420, 2010),
       span("aten::convolution_backward", 1426, 2000,
            "[[8, 128, 4, 4], [8, 64, 8, 8], [128, 64, 3, 3], [], []]"),
       span("aten::empty", 1500, 20),
       span("Optimizer.step#SGD.step", 3442, 300, "[]", "", 1, "user_annotation"),
       span("aten::mul_", 3450, 80, "[[128, 64, 3, 3], []]"),
       span("aten::add_", 3540, 80, "[[128, 64, 3, 3], [128, 64, 3, 3], []]"),
       span("aten::add_", 3630, 80, "[[128, 64, 3, 3], [128, 64, 3, 3], []]"),
       span("aten::mul_", 3711, 2, "[[128], []]"), span("aten::add_", 3715, 2, "[[128], [128], []]")}));
  CHECK(t.on_cpu);
  const auto us = [&](const std::string& kernel, MeasuredStep step) {
    const Measurement* m = find(t, kernel, step);
    REQUIRE_MESSAGE(m, kernel);
    CHECK(m->precision == Precision::fp32);
    CHECK(m->without_launch);
    return m->seconds() * 1e6;
  };
  CHECK(us("convolution 64>128 3x3/2 4x4", MeasuredStep::forward) == approx(900));
  CHECK(us("batch_norm 128 4x4", MeasuredStep::forward) == approx(84));
  CHECK(us("relu 2048", MeasuredStep::forward) == approx(20));
  CHECK(us("add 2048", MeasuredStep::forward) == approx(30));
  CHECK(us("max_pool 128 4x4>2x2", MeasuredStep::forward) == approx(60));
  CHECK(us("matmul 512>10", MeasuredStep::forward) == approx(50));
  CHECK(us("relu 12", MeasuredStep::forward) == approx(11));
  CHECK(us("max_pool 128 4x4>2x2", MeasuredStep::backward) == approx(70));
  CHECK(us("convolution 64>128 3x3/2 4x4", MeasuredStep::backward) == approx(2000));
  CHECK(us("update 73856", MeasuredStep::train) == approx(300));  // 128 x 64 x 9 + 128
  CHECK(find(t, "update 73856", MeasuredStep::train)->optimizer == Optimizer::momentum);
  CHECK(t.measurements.size() == 10);
  CHECK(t.kernel_s == approx(1e-6 * (900 + 4 + 84 + 20 + 30 + 60 + 50 + 11 + 70 + 2000 + 300)));
  CHECK(t.matched_s == approx(t.kernel_s - 4e-6));
  REQUIRE(t.others.size() == 1);
  CHECK(t.others[0].first == "aten::add_");
  CHECK(t.launch_s == approx(16e-6));  // 12, then 16 four times, 16 to the gradient, 16, 16
}

TEST_CASE("on a CPU every outermost operation is counted once, in whatever order events come") {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    CAPTURE(round);
    std::vector<std::string> events;
    double now = 0, all = 0;
    struct Run {
      double us, nested;
    };
    std::map<std::int64_t, std::vector<Run>> by_channels;
    std::vector<double> beside;  // what an operation takes beside the only one in it, of 100 us or more
    for (std::size_t i = random() % 40 + 1; i > 0; --i) {
      const auto channels = static_cast<std::int64_t>(random() % 4 + 1);
      const double time = 20 + random() % 500, pause = random() % 50;
      const std::string dims = fmt::format("[[2, {}, 3, 3]]", channels);
      const bool wrapped = random() % 2;
      double nested = 0;
      if (random() % 2) {  // no operation: around, as long as it
        events.push_back(span("ReluNode", now, time));
        if (time >= 100) beside.push_back(0);
      }
      events.push_back(span("aten::relu", now, time, dims));
      if (wrapped) {
        events.push_back(span("aten::clamp_min", now + 1, time - 2, dims));
        if (time - 2 >= 100) beside.push_back(2);
        ++nested;
      }
      for (double at = now + 2; at + 4 < now + time; at += 3 + random() % 90, ++nested)
        events.push_back(span("aten::empty", at, 2));
      by_channels[channels].push_back({time, nested});
      now += time + pause;
    }
    double recording = 0;  // of one operation
    if (beside.size() >= 10) {
      for (const double each : beside) recording += each / static_cast<double>(beside.size());
    }
    const auto net = [&](const Run& run) { return run.us - std::min(run.us / 2, recording * run.nested); };
    for (const auto& [channels, runs] : by_channels)
      for (const Run& run : runs) all += net(run);
    std::shuffle(events.begin(), events.end(), random);
    const KinetoTrace t = read(trace(events));
    CHECK(t.kernel_s == approx(1e-6 * all));
    CHECK(t.matched_s == approx(1e-6 * all));
    CHECK(t.others.empty());
    REQUIRE(t.measurements.size() == by_channels.size());
    for (const auto& [channels, runs] : by_channels) {
      std::vector<double> times;
      for (const Run& run : runs) times.push_back(net(run));
      const Measurement* m = find(t, fmt::format("relu {}", 9 * channels), MeasuredStep::forward);
      REQUIRE(m);
      CHECK(m->seconds() == approx(1e-6 * median(times)));
    }
  }
}

TEST_CASE("activations of a trace are kernels by their names, in place and backward too") {
  struct Named {
    const char *aten, *kernel;
    MeasuredStep step;
  };
  constexpr MeasuredStep forward = MeasuredStep::forward, backward = MeasuredStep::backward;
  for (const auto& [aten, kernel, step] :
       {Named{"relu_", "relu", forward}, Named{"threshold_backward", "relu", backward},
        Named{"hardtanh_", "relu6", forward}, Named{"hardtanh_backward", "relu6", backward},
        Named{"leaky_relu", "leaky_relu", forward}, Named{"hardswish", "hardswish", forward},
        Named{"hardsigmoid_backward", "hardsigmoid", backward}, Named{"silu", "silu", forward},
        Named{"silu_backward", "silu", backward}, Named{"gelu_backward", "gelu", backward},
        Named{"sigmoid", "sigmoid", forward}, Named{"tanh_backward", "tanh", backward}}) {
    CAPTURE(aten);
    const KinetoTrace t =
        read(trace({op(1, fmt::format("aten::{}", aten), "[[8, 64, 4, 4], [8, 64, 4, 4]]"), gpu(1, 0, 10)}));
    REQUIRE(t.measurements.size() == 1);
    CHECK(t.measurements[0].kernel == fmt::format("{} 1024", kernel));
    CHECK(t.measurements[0].step == step);
    CHECK(measured_work(t.measurements[0]).size() == 1);
  }
  for (const char* other : {"aten::silu_like", "silu", "aten::_backward"}) {
    CAPTURE(other);
    CHECK(read(trace({op(1, other, "[[8, 64, 4, 4]]"), gpu(1, 0, 10), op(2, "aten::relu", "[[8, 64, 4, 4]]"),
                      gpu(2, 20, 90)}))
              .measurements.size() == 1);
  }
}

TEST_CASE("several runs of a kernel count as their median, precisions stay apart") {
  const KinetoTrace t = read(
      trace({op(1, "aten::relu", "[[8, 64, 4, 4]]"), gpu(1, 0, 10), op(2, "aten::relu", "[[8, 64, 4, 4]]"),
             gpu(2, 20, 90), op(3, "aten::relu", "[[8, 64, 4, 4]]"), gpu(3, 120, 12),
             op(4, "aten::relu", "[[8, 64, 4, 4]]", "", "c10::Half"), gpu(4, 140, 7)}));
  REQUIRE(t.measurements.size() == 2);
  CHECK(t.measurements[0].seconds() == approx(12e-6).epsilon(1e-12));
  CHECK(t.measurements[1].precision == Precision::fp16);
}

TEST_CASE("kernels without an External id are found over the launch, tf32 by the kernel's name") {
  std::string kernel = gpu(1, 10, 400, "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc");
  kernel.replace(kernel.find("\"External id\": 1, "), 18, "");
  const std::string launch =
      "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 7, \"tid\": 7, "
      "\"ts\": 3, \"dur\": 2, \"args\": {\"External id\": 1, \"correlation\": 1001}}";
  const KinetoTrace t =
      read(trace({op(1, "aten::cudnn_convolution", convolution_dims, convolution_values), launch, kernel}));
  REQUIRE(t.measurements.size() == 1);
  CHECK(t.measurements[0].precision == Precision::tf32);
}

TEST_CASE("a stride that was not recorded comes from the gradient, without it the operation is passed over") {
  const std::string forward = op(1, "aten::cudnn_convolution", convolution_dims);
  const KinetoTrace t = read(
      trace({forward, gpu(1, 0, 400), op(2, "aten::convolution_backward", backward_dims), gpu(2, 500, 900)}));
  CHECK(find(t, "convolution 64>128 3x3/2 28x28", MeasuredStep::forward));
  CHECK(error_of(trace({forward, gpu(1, 0, 400)})) ==
        ": no GPU kernel belongs to a convolution, linear layer, batch normalization or ReLU whose shapes "
        "are known");
}

TEST_CASE("a gradient's mask tells which gradients were computed") {
  const auto with_mask = [](const std::string& mask) {
    const std::string values =
        fmt::format(R"(["", "", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", "{}"])", mask);
    return read(trace({op(1, "aten::convolution_backward", backward_dims, values), gpu(1, 0, 400)}))
        .measurements.at(0)
        .step;
  };
  CHECK(with_mask("[True, True, False]") == MeasuredStep::backward);
  CHECK(with_mask("[False, True, False]") == MeasuredStep::weight_gradient);
  CHECK(with_mask("[True, False, False]") == MeasuredStep::data_gradient);
}

TEST_CASE("grouped and depthwise convolutions keep their groups, a list of events alone is a trace too") {
  const std::string values = R"(["", "", "[1, 1]", "[1, 1]", "[1, 1]", "32"])";
  const std::string events = fmt::format(
      "[{},{}]", op(1, "aten::cudnn_convolution", "[[8, 32, 14, 14], [32, 1, 3, 3]]", values), gpu(1, 0, 40));
  const KinetoTrace t = read(events);
  CHECK(t.measurements.at(0).kernel == "convolution 32>32 3x3/1 14x14 groups 32");
  CHECK(measured_work(t.measurements[0]).at(0).kind == KernelKind::depthwise_convolution);
}

TEST_CASE("a trace calibrates a device") {
  // 600 us for 2 x 32 x 56 x 56 x 64 x 64 x 9 = 7.4 GFLOPs: 12.3 TFLOP/s, 0.79 of the peak
  const WrittenFile file(trace({op(1, "aten::cudnn_convolution", "[[32, 64, 56, 56], [64, 64, 3, 3]]",
                                   "[\"\", \"\", \"[1, 1]\", \"[1, 1]\", \"[1, 1]\", \"1\"]"),
                                gpu(1, 0, 600), op(2, "aten::relu", "[[32, 64, 56, 56]]"), gpu(2, 607, 68)}),
                         ".json");
  const KinetoTrace t = read_kineto_trace(file.path(), "v100-sxm2-16gb");
  const CalibrationReport report =
      calibrate(t.measurements, load_device("v100-sxm2-16gb", {}), {file.path(), 0, 0}, t.launch_s);
  CHECK(report.device.launch_overhead_s == approx(7e-6).epsilon(1e-6));
  CHECK(report.mean_error < 0.1);
}

TEST_CASE(
    "a real trace of a CPU predicts its own steps, and those of another size, batch and network, within a "
    "tenth") {
  const std::string folder = std::string(CONVOY_SOURCE) + "/tests/calibration/traces/";
  const KinetoTrace t = read_kineto_trace(folder + "resnet18_batch8_32x32_cpu.json.gz", "lab-cpu");
  CHECK(t.on_cpu);
  CHECK(t.matched_s > 0.98 * t.kernel_s);
  const auto distinct = [&](const std::string& kind, MeasuredStep step) {
    return std::count_if(t.measurements.begin(), t.measurements.end(),
                         [&](const Measurement& m) { return m.kernel.starts_with(kind) && m.step == step; });
  };
  CHECK(distinct("convolution", MeasuredStep::forward) == 11);
  CHECK(distinct("convolution", MeasuredStep::backward) == 10);
  CHECK(distinct("convolution", MeasuredStep::weight_gradient) == 1);  // of the images
  CHECK(distinct("batch_norm", MeasuredStep::forward) == 5);
  CHECK(distinct("max_pool", MeasuredStep::backward) == 1);
  CHECK(find(t, "update 11689512", MeasuredStep::train));  // all parameters of ResNet-18

  // A core with two AVX2 multiply-adds a cycle at 2.45 GHz, and about what one core reads of the memory.
  const YamlNode lab = parse_yaml(
      "{base: epyc-7763, peak: {fp32: 78.4GFLOPS}, memory_bandwidth: 20GB/s, sms: 1, l2: 32MiB, memory: "
      "4GiB}",
      "lab");
  const DeviceType device =
      read_device(derive_entry(CatalogueKind::device, "lab-cpu", lab, {}).node, "lab-cpu");
  std::vector<Measurement> measurements = t.measurements;
  for (Measurement& step : read_measurements(folder + "steps.csv")) measurements.push_back(std::move(step));
  // The profiler records 1,671 operations a step, of which 525 are in no other one of PyTorch's (some more where
  // its times, in whole microseconds, seem to end after those of the one around them).
  const auto steps_in_trace = static_cast<double>(t.steps);
  CHECK(t.recording_between_s / steps_in_trace / 525 == approx(11.7e-6).epsilon(0.03));
  CHECK(t.recording_between_s < t.waiting_s);
  CHECK(t.recording_inside_s / steps_in_trace < (1671 - 525) * 11.8e-6);
  Measurement own = measurements.back();
  own.model = "resnet18@32";
  own.batch = 8;
  own.images_per_s = own.batch * steps_in_trace / (t.whole_s - t.recording_s());
  measurements.push_back(own);
  const CalibrationReport report = calibrate(measurements, device, {"trace", 0, 0}, t.launch_s);
  CHECK(report.device.evidence_rows == static_cast<int>(t.measurements.size()));
  int steps = 0;
  for (const AccuracyRow& row : report.rows) {
    if (!row.kind.empty()) continue;
    CAPTURE(row.model);
    CAPTURE(row.batch);
    const double error = row.published / row.predicted - 1;  // of the step's time
    CAPTURE(error);
    CHECK(std::abs(error) < 0.1);
    ++steps;
  }
  CHECK(steps == 4);
}

TEST_CASE("wrong, cut and hostile traces are refused with their place") {
  CHECK(error_of("") == ":1:1: the file ends too early: it is no whole JSON document");
  CHECK(error_of("{\"a\": 1}") == ": is no Chrome trace: it has no list \"traceEvents\"");
  CHECK(error_of("{\"traceEvents\": []}") == ": holds no operation (category cpu_op)");
  CHECK(
      error_of("[{\"name\": \"aten::relu_\", \"ph\": \"X\", \"ts\": 2, \"dur\": 4, \"tid\": 1, "
               "\"pid\": \"CPU functions\", \"args\": {}}]") ==
      ": has operations without category and shapes, as a PyTorch without Kineto exports them: write it with "
      "convoy.save_trace(profiler, file) in Python");
  CHECK(error_of(std::string(200, '[')) == ":1:101: lists and objects are nested more than 100 deep");
  CHECK(error_of("{\"traceEvents\": [\n  {\"ph\": \"X\" \"cat\": 1}]}") == ":2:18: not JSON");
  CHECK(error_of("{\"traceEvents\": [\n  {\"ph\": \"X\", \"ts\": 1e400}]}").find(": a number is too large") !=
        std::string::npos);
  CHECK(error_of("\x1f\x8b\x08") == ": is cut: its gzip data end too early");
  const std::string whole =
      trace({op(1, "aten::cudnn_convolution", convolution_dims, convolution_values), gpu(1, 10, 400)});
  CHECK(error_of(whole) == "no error");
  CHECK(error_of(whole.substr(0, 40)) == ":3:19: the file ends too early: it is no whole JSON document");
  CHECK(error_of(trace({gpu(1, 10, 400)})) == ": holds no operation (category cpu_op)");
  std::string nameless = whole;
  nameless.replace(nameless.find("\"External id\": 1"), 16, "\"id\": 1");
  CHECK(error_of(nameless) == ": holds no operation with its External id (category cpu_op)");
  std::string shapeless = whole;
  shapeless.replace(shapeless.find("Input Dims"), 10, "Input Dimz");
  CHECK(error_of(shapeless) == ": has no \"Input Dims\": profile with record_shapes=True");
  CHECK(error_of(trace({op(1, "aten::relu", "[[1, \"two\", 3, 4]]"), gpu(1, 0, 4)})) ==
        ": event 2 (aten::relu): \"Input Dims\" holds what is no whole number");
  CHECK(error_of(trace({op(1, "aten::relu", "7"), gpu(1, 0, 4)})) ==
        ": event 2 (aten::relu): \"Input Dims\" is no list");
  std::string timeless = whole;
  timeless.replace(timeless.find("\"dur\": 400"), 10, "\"dur\": \"a\"");
  CHECK(error_of(timeless) == ": event 3 (volta_scudnn_128x64_relu): \"dur\" is no number");
  timeless.replace(timeless.find("\"dur\": \"a\""), 10, "\"dur\": -4 ");
  CHECK(error_of(timeless) == ": event 3 (volta_scudnn_128x64_relu): \"dur\" is below zero");
  // Sizes nobody has: zero, negative, or a product beyond whole numbers.
  for (const char* dims : {"[[0, 64, 56, 56], [128, 64, 3, 3]]", "[[1, 64, 56, 56], [128, 0, 3, 3]]",
                           "[[1, -64, 56, 56], [128, 64, 3, 3]]", "[[1, 64], [128]]", "[]", "[[[1]], [2]]",
                           "[[1, 900000000, 900000000, 900000000], [900000000, 900000000, 3, 3]]"}) {
    CAPTURE(dims);
    CHECK(error_of(trace({op(1, "aten::cudnn_convolution", dims, convolution_values), gpu(1, 0, 4)}))
              .starts_with(": no GPU kernel belongs to"));
  }
}

TEST_CASE("a packed trace is read as it is unpacked, and refused at the same place") {
  const std::string whole =
      trace({op(1, "aten::cudnn_convolution", convolution_dims, convolution_values), gpu(1, 10, 400)});
  const KinetoTrace plain = read(whole), packed = read(gzipped(whole));
  REQUIRE(packed.measurements.size() == 1);
  CHECK(packed.measurements[0].kernel == plain.measurements[0].kernel);
  CHECK(packed.measurements[0].images_per_s == plain.measurements[0].images_per_s);
  const std::string cut = whole.substr(0, 40);
  CHECK(error_of(gzipped(cut)) == error_of(cut));
  CHECK(error_of(gzipped("{\"traceEvents\": [\n  {\"ph\": \"X\" \"cat\": 1}]}")) == ":2:18: not JSON");
  // What is not JSON because it is damaged is damaged.
  std::string broken = gzipped("{" + whole);
  broken.back() = static_cast<char>(broken.back() ^ 1);
  CHECK(error_of(broken) == ": holds damaged gzip data (incorrect length check)");
}

TEST_CASE("a trace cut or turned at any byte is read or refused, never anything else") {
  const std::string whole =
      trace({op(1, "aten::cudnn_convolution", convolution_dims, convolution_values), gpu(1, 10, 400)});
  const std::string on_cpu = trace(
      {span("aten::convolution", 0, 500, "[[8, 64, 8, 8], [64, 64, 3, 3], []]", "[\"\", \"\", \"\", 1, 1]"),
       span("aten::relu_", 510, 20, "[[8, 64, 8, 8]]")});
  REQUIRE(error_of(on_cpu) == "no error");
  for (std::size_t at = 0; at < on_cpu.size(); at += 3) {
    error_of(on_cpu.substr(0, at));
    std::string turned = on_cpu;
    turned[at] = static_cast<char>(turned[at] ^ 0x15);
    error_of(turned);
  }
  for (std::size_t cut = 0; cut < whole.size(); cut += 5) error_of(whole.substr(0, cut));
  for (std::size_t at = 0; at < whole.size(); at += 3) {
    std::string turned = whole;
    turned[at] = static_cast<char>(turned[at] ^ 0x15);
    error_of(turned);
  }
}
