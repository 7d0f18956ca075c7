// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <map>
#include <utility>

#include "sim/base/data_path.h"
#include "sim/calibration/calibration.h"
#include "sim/calibration/measurements.h"
#include "sim/costs/residuals.h"
#include "sim/costs/software_evidence.h"
#include "tests/calibration/written_file.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& e) {
    return e.what();
  }
  return "no error";
}

/// The message of reading `text`, without the file's name.
std::string profile_error(const std::string& text) {
  const WrittenFile profile(text);
  const std::string message = message_of([&] { calibrate({profile.path()}, "k80"); });
  return message.starts_with(profile.path()) ? message.substr(profile.path().size()) : message;
}

}  // namespace

TEST_CASE("a kernel's time may stand in milliseconds, and kernels of other kinds have their bytes") {
  const WrittenFile profile(
      "device,kernel,batch,step,time_ms\n"
      "k80,convolution 128>128 3x3/2 14x14 groups 32,16,forward,2.5\n"
      "k80,convolution 64>64 1x1/2 28x28,16,forward,2.5\n"
      "k80,batch_norm 64 56x56,16,forward,2.5\n"
      "k80,relu 200704,16,forward,2.5\n");
  const std::vector<Measurement> rows = read_measurements(profile.path());
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].seconds() == approx(2.5e-3).epsilon(1e-15));
  const auto work = [&](std::size_t i) { return measured_work(rows[i]).at(0); };
  // 2 x 14 x 14 x 128 x (128/32) x 9
  CHECK(work(0).flops_per_image == 1806336);
  CHECK(work(0).groups == 32);
  // A 1x1 kernel with stride 2 reads a quarter of 64 x 56 x 56 values, and writes 64 x 28 x 28
  CHECK(work(1).bytes_per_image == 4 * 2 * 64 * 28 * 28);
  // reads and writes 64 x 56 x 56 values of 4 B
  CHECK(work(2).bytes_per_image == 2 * 4 * 200704);
  CHECK(work(3).bytes_per_image == 2 * 4 * 200704);
}

TEST_CASE("steps cover the phases they name") {
  const auto count = [](const char* step) {
    const WrittenFile profile(fmt::format("device,model,batch,step,images_per_s\nk80,vgg11,8,{},10\n", step));
    return measured_work(read_measurements(profile.path())[0]).size();
  };
  CHECK(count("forward_backward") == count("forward") + count("backward"));
  CHECK(count("backward") == count("data_gradient") + count("weight_gradient"));
  CHECK(count("train") > count("forward_backward"));
}

TEST_CASE("wrong profiles are refused with line and column") {
  CHECK(profile_error("device,model,batch,step\nk80,vgg11,8,train\n") ==
        ":1:1: a column 'images_per_s' or 'time_ms' is missing");
  CHECK(profile_error("device,batch,step,images_per_s\nk80,8,train,1\n") ==
        ":1:1: a column 'model' or 'kernel' is missing");
  CHECK(
      profile_error("device,model,bacth,step,images_per_s\n") ==
      ":1:14: unknown column 'bacth' (did you mean 'batch'?); there are device, model, layer, kernel, batch, "
      "precision, step, framework, software, execution, layout, images_per_s, time_ms, role, source, note, "
      "operations_after, input, optimizer, weights_in_turn");
  CHECK(profile_error("device,model,batch,step,images_per_s,time_ms\nk80,vgg11,8,train,10,20\n") ==
        ":2:1: give either images_per_s or time_ms, and not both");
  CHECK(profile_error("device,model,batch,step,time_ms\nk80,vgg11,8,train,fast\n") ==
        ":2:19: time_ms: expected a number above zero, found 'fast'");
  CHECK(profile_error("device,model,batch,step,step,images_per_s\n") ==
        ":1:25: column 'step' is there twice");
  const std::string head = "device,model,batch,step,images_per_s\n";
  CHECK(profile_error(head) == ": holds no measurement");
  CHECK(profile_error(head + "k80,vgg11,8,train\n") == ":2:1: 4 cells where the header has 5");
  CHECK(profile_error(head + "k80,vgg11,0,train,10\n") ==
        ":2:11: batch: expected a number above zero, found '0'");
  CHECK(profile_error(head + "k80,vgg11,8,train,nan\n") ==
        ":2:19: images_per_s: expected a number above zero, found 'nan'");
  CHECK(profile_error(head + "k80,vgg11,8,trian,10\n") ==
        ":2:13: step: 'trian' is not one of train, forward_backward, forward, backward, data_gradient, "
        "weight_gradient (did you mean 'train'?)");
  CHECK(profile_error(head + "k80,,8,train,10\n") == ":2:1: give either a model or a kernel, and not both");
  CHECK(profile_error(head + ",vgg11,8,train,10\n") == ":2:1: device: expected a name, found nothing");
  CHECK(profile_error(head + "k80,\"vgg11,8,train,10\n") == ":2:5: a quoted cell does not end on its line");
  CHECK(profile_error(head + "k80,\"vgg11\"x,8,train,10\n") ==
        ":2:5: expected a comma after the closing quote");
  CHECK(profile_error(head + "t4,vgg11,8,train,10\n") == ": holds no row with device k80 and role fit");
  CHECK(profile_error("device,model,precision,batch,step,images_per_s\nk80,vgg11,tf32,8,train,10\n") ==
        ":2:1: k80 has no peak for tf32");
  CHECK(profile_error("device,model,layer,batch,step,images_per_s\nk80,vgg11,nosuch,8,train,10\n") ==
        ":2:1: layer: vgg11 has no layer 'nosuch'");
  CHECK(
      profile_error("device,kernel,batch,step,images_per_s\nk80,convolution 3x3,8,forward,10\n") ==
      ":2:1: kernel: expected 'convolution IN>OUT KHxKW/STRIDE HxW' (of the output; 'groups G' may follow), "
      "'matmul IN>OUT', 'batch_norm CHANNELS HxW', 'relu VALUES' (or relu6, leaky_relu, hardswish, "
      "hardsigmoid, silu, gelu, sigmoid, tanh), 'add VALUES', 'max_pool CHANNELS HxW>HxW' or 'update "
      "PARAMETERS', found 'convolution 3x3'");
  // Sizes whose product no whole number holds
  CHECK(profile_error(
            "device,kernel,batch,step,images_per_s\nk80,matmul 999999999999>999999999999,8,forward,10\n")
            .starts_with(":2:1: kernel: expected 'convolution IN>OUT"));
  CHECK(profile_error("device,model,layer,batch,step,images_per_s\nk80,vgg11,classifier.dropout6,8,weight_"
                      "gradient,10\n") == ":2:1: what was measured computes and moves nothing");
  CHECK(message_of([] { read_measurements("/nowhere/profile.csv"); }) ==
        "/nowhere/profile.csv: cannot be read");
}

TEST_CASE("speeds no device can have are refused, not fitted") {
  // A K80 does 4.4 TFLOP/s; VGG-16's forward pass is 31 GFLOPs an image.
  const std::string message =
      profile_error("device,model,batch,step,images_per_s\nk80,vgg16,256,forward,1e9\n");
  CAPTURE(message);
  CHECK(message.starts_with(": k80 would have to run convolution_"));
  CHECK(message.ends_with(": check images_per_s, batch and device of its rows"));
}

TEST_CASE("cells may be quoted") {
  const WrittenFile profile(
      "device,model,batch,step,images_per_s,note\r\nk80,\"vgg11\",8,train,10,\"a, \"\"b\"\"\"\r\n");
  const std::vector<Measurement> rows = read_measurements(profile.path());
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].model == "vgg11");
  CHECK(rows[0].note == "a, \"b\"");
}

TEST_CASE("operations after the step take an issue each, and nobody's time where none are told") {
  const WrittenFile profile(
      "device,model,batch,step,images_per_s,operations_after\n"
      "t4,resnet18,16,train,100,1000\n"
      "t4,resnet18,16,train,100,\n");
  const std::vector<Measurement> rows = read_measurements(profile.path());
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].operations_after == 1000);
  CHECK(rows[1].operations_after == 0);
  DeviceType device;
  device.launch_overhead_s = 6e-6;
  device.issue_factor = 1.5;
  Software software;
  software.costs.issue_update_s = 20e-6;
  CHECK(beside_step_s({1000, 0}, software, device) == approx(30e-3));
  software.costs.issue_update_s = 1e-6;  // a host that is faster than the device
  CHECK(beside_step_s({1000, 0}, software, device) == approx(6e-3));
  CHECK(beside_step_s({0, 0}, software, device) == 0);
  const std::vector<AccuracyRow> predicted = calibrate(rows, load_device("t4", {}), {}).rows;
  const double longer_s = 16 / predicted[0].predicted - 16 / predicted[1].predicted;
  CHECK(longer_s > 1e-3);
}

TEST_CASE("a batch that is fed from an array is copied before the step, whatever its software issues") {
  const WrittenFile profile(
      "device,model,batch,step,images_per_s,software,input,optimizer\n"
      "t4,resnet18@64,16,train,100,tensorflow,arrays,sgd\n"
      "t4,resnet18@64,16,train,100,tensorflow,,sgd\n"
      "t4,resnet18@64/7,16,train,100,tensorflow,synthetic,adam\n");
  const std::vector<Measurement> rows = read_measurements(profile.path());
  REQUIRE(rows.size() == 3);
  CHECK(beside_step(rows[0]).fed_bytes == 16 * 3 * 64 * 64 * 4);
  CHECK(beside_step(rows[1]).fed_bytes == 0);
  CHECK(beside_step(rows[2]).fed_bytes == 0);
  Software software;
  software.costs.feed_Bps = 1e9;
  CHECK(beside_step_s(beside_step(rows[0]), software, DeviceType()) == approx(786'432e-9));
  const std::vector<AccuracyRow> predicted = calibrate(rows, load_device("t4", {}), {}).rows;
  const double feed_Bps = software_costs(Framework::tensorflow, ExecutionMode::graph, Layout::nchw).feed_Bps;
  CHECK(16 / predicted[0].predicted - 16 / predicted[1].predicted == approx(786'432 / feed_Bps).epsilon(1e-6));
  // The number of classes and the optimizer are the row's own.
  const auto last_product = [](const Measurement& row) {
    std::vector<Work> products;
    for (const Work& work : measured_work(row))
      if (work.kind == KernelKind::matmul) products.push_back(work);
    return products.front().out_channels;
  };
  CHECK(last_product(rows[1]) == 1000);
  CHECK(last_product(rows[2]) == 7);
  const auto updated_bytes = [](const Measurement& row) {
    double bytes = 0;
    for (const Work& work : measured_work(row))
      if (work.phase == Phase::update) bytes += work.bytes_fixed * work.traffic;
    return bytes;
  };
  CHECK(updated_bytes(rows[2]) > updated_bytes(rows[1]));
}

TEST_CASE("a repeated kernel finds in the cache what fits there until it is read again") {
  // 4 bytes a value: weights of 4 MB, input and output of 4 kB an image.
  const auto bytes_of = [](int batch, const char* execution, double cache_bytes, int in_turn) {
    const WrittenFile profile(fmt::format("device,kernel,batch,step,time_ms,execution,weights_in_turn\n"
                                          "t4,matmul 1000>1000,{},forward,1,{},{}\n",
                                          batch, execution, in_turn));
    const Measurement row = read_measurements(profile.path())[0];
    std::vector<Work> works = measured_work(row);
    DeviceType device;
    device.l2_bytes = cache_bytes;
    find_in_cache(row, device, works);
    return std::pair{works[0].bytes_per_image * batch, works[0].bytes_fixed};
  };
  for (const int batch : {1, 100, 1000}) {
    CAPTURE(batch);
    const auto [once, weights] = bytes_of(batch, "eager", 1e9, 1);
    CHECK(weights == approx(4e6).epsilon(0.01));
    CHECK(once == approx(8e3 * batch).epsilon(0.01));
    CHECK(bytes_of(batch, "graph", 0, 1) == std::pair{once, weights});  // no cache is told
    const auto all = bytes_of(batch, "graph", 1e9, 6);
    CHECK(all.first < 0.5 * once);
    CHECK(all.second < 0.5 * weights);
    // As large as one weight with input and output, but not six
    const auto some = bytes_of(batch, "graph", 1.3 * (once + weights), 6);
    CHECK(some.first == all.first);
    CHECK(some.second == weights);
  }
}

TEST_CASE("a kernel is captured in a CUDA graph where its row says so, whatever its software") {
  // Two ReLU rows of an A100 that differ in software only, beside a captured one.
  const auto row_of = [](const std::string& software, const std::string& execution) {
    const WrittenFile profile(
        "device,kernel,batch,step,time_ms,software,execution\na100-sxm4-40gb,relu 200704,8,forward,0.02," +
        software + "," + execution + "\n");
    return read_measurements(profile.path()).at(0);
  };
  const DeviceType a100 = load_device("a100-sxm4-40gb", {});
  const auto works_of = [&](const Measurement& row) {
    std::vector<Work> works = measured_work(row);
    find_in_cache(row, a100, works);
    return works;
  };
  const std::vector<Work> launched = works_of(row_of("pytorch", ""));
  for (const char* software : {"tensorflow", "tensorflow1", "mxnet", "caffe"}) {
    CAPTURE(software);
    CHECK(row_of(software, "").execution == ExecutionMode::eager);  // which launch the catalogue's fit takes
    CHECK(works_of(row_of(software, "")) == launched);
    CHECK(works_of(row_of(software, "graph")) == works_of(row_of("pytorch", "graph")));
  }
  CHECK_FALSE(works_of(row_of("pytorch", "graph")) == launched);
}

TEST_CASE("a network's family is told by its file's name alone, whatever images and classes it has") {
  for (const auto& [model, family] : std::map<std::string, std::string>{
           {"resnet50", "resnet"},
           {"wide_resnet50_2", "resnet"},
           {"se_resnet50", "se_resnet"},
           {"vgg16@32/10", "vgg"},
           {"mobilenet_v2@224", "mobilenet"},
           {"models/alexnet_caffe.yaml", "alexnet"},
           {"models/resnet18_profet.yaml@32/10", "resnet"},
           {"models/wide_resnet50_tf.yaml@64", "resnet"}})
    CHECK_MESSAGE(network_family(model) == family, model);
  // Of all published networks: a family begins like the name of its file, and is not empty.
  for (const Measurement& m : read_measurements(data_path("results/published") + "/single_device.csv"))
    CHECK_MESSAGE(!network_family(m.model).empty(), m.model);
}

TEST_CASE("the catalogue says of each way of execution how many figures its kernels were fitted to") {
  std::map<std::pair<Framework, bool>, int> rows;  // by framework, and whether a compiler makes the kernels
  for (const Measurement& m : read_measurements(data_path("results/published") + "/single_device.csv"))
    if (m.fitted()) ++rows[{m.software, m.execution == ExecutionMode::compiled}];
  REQUIRE(rows.size() >= 8);
  for (std::size_t f = 0; f < framework_count; ++f)
    for (const ExecutionMode execution :
         {ExecutionMode::eager, ExecutionMode::graph, ExecutionMode::compiled}) {
      const auto framework = static_cast<Framework>(f);
      CAPTURE(to_string(framework));
      CAPTURE(to_string(execution));
      const int fitted = rows[{framework, execution == ExecutionMode::compiled}];
      CHECK(software_kernel_rows(framework, execution) == fitted);
      CHECK(software_spread(framework, execution) == (fitted > 0 ? 0 : unknown_spread(Unknown::software)));
    }
}
