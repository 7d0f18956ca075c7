// SPDX-License-Identifier: MIT
// Input pipelines: stages, the queue between producer and devices, and what a step makes of them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <random>

#include "sim/base/input_error.h"
#include "sim/costs/input_pipeline.h"
#include "sim/lowering/input_feed.h"
#include "sim/replay/input_queue.h"
#include "sim/replay/lower_bound.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

double relative_gap_of(double a, double b) { return std::abs(a / b - 1); }

InputSpec input(const std::string& text) { return read_input(parse_yaml(text, "x.yaml"), "training.input"); }

HostType host_of(std::uint32_t vcpus) {
  HostType host;
  host.server = "box";
  host.vcpus = vcpus;
  return host;
}

double rate(const std::string& text, std::uint32_t vcpus, std::uint32_t devices = 1) {
  return input_rate(input(text), host_of(vcpus), devices).images_per_s;
}

std::string error_of(const std::string& text, std::uint32_t vcpus = 8) {
  try {
    rate(text, vcpus);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

/// `nodes` hosts of two ideal devices with vCPUs.
std::string hosts_with(std::uint32_t vcpus, int nodes) {
  return fmt::format(
      "{{name: lab, nodes: [{{name: n, count: {}, server: box}}], fabric: {{kind: switch, bandwidth: "
      "1000GB/s, latency: 0us}}, servers: {{box: {{devices: [{{device: ideal, count: 2}}], vcpus: {}, "
      "interconnect: {{kind: pcie, bandwidth: 1000GB/s, latency: 0us}}}}}}, devices: {{ideal: {{peak: "
      "{{fp32: "
      "10TFLOPS}}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 1.0}}}}}}",
      nodes, vcpus);
}

/// On such hosts a step computes 10 images in 3 ms and sums nothing.
ReplayResult run(const std::string& text, std::uint32_t vcpus, const std::string& strategy, int nodes = 2) {
  lab::Experiment experiment(lab::custom_model(1, 1), hosts_with(vcpus, nodes), strategy, 10);
  add_input(experiment.plan(), experiment.graph(), experiment.machine(), input(text));
  const ReplayResult folded = experiment.run(true), whole = experiment.run(false);
  CHECK(relative_gap_of(folded.step_time_s, whole.step_time_s) < 1e-9);
  return folded;
}

constexpr const char* synchronous = "{kind: data_parallel, sync: all_reduce}";

}  // namespace

TEST_CASE("the rate of an input pipeline is the least of its stages'") {
  const double core = load_input_library("pil", {}).core_images_per_s;
  CHECK(rate("{kind: jpeg, library: pil, workers_per_device: 3}", 16) == approx(3 * core));
  CHECK(rate("{kind: jpeg, library: pil, workers_per_device: 3}", 16, 2) == approx(6 * core));
  CHECK(rate("{kind: jpeg, library: pil, workers_per_device: 100}", 16) == approx(8 * core));
  CHECK(rate("{kind: jpeg, library: pil}", 64) == approx(4 * core));  // its default: 4 workers
  CHECK(rate("{kind: jpeg, library: pil, image_bytes: 100kB, storage: {bandwidth: 5MB/s}}", 64) ==
        approx(50));
  CHECK(rate("{kind: jpeg, library: pil, image_bytes: 100kB, storage: {bandwidth: 5MB/s}, cached: true}",
             64) == approx(4 * core));
  for (const std::string& library : input_library_names()) {
    CAPTURE(library);
    double last = 0;
    for (const int workers : {1, 2, 4, 8, 64}) {
      const double now =
          rate(fmt::format("{{kind: jpeg, library: {}, workers_per_device: {}}}", library, workers), 32);
      CHECK(now >= last);
      last = now;
    }
  }
}

TEST_CASE("MXNet's loader leaves a core to others, as its releases do and their logs say") {
  const double thread = load_input_library("mxnet_recordio", {}).core_images_per_s;
  const auto threads = [&](int asked, std::uint32_t vcpus) {
    return rate(fmt::format("{{kind: jpeg, library: mxnet_recordio, workers_per_device: {}}}", asked),
                vcpus) /
           thread;
  };
  CHECK(threads(60, 64) == approx(31));  // "use 31 threads for decoding" on a p3.16xlarge
  CHECK(threads(30, 32) == approx(15));
  CHECK(threads(8, 64) == approx(8));  // fewer than may be
  CHECK(threads(8, 2) == approx(1));   // and at least one, or what there is of one
  CHECK(threads(1, 1) == approx(0.5));
  // Images a second that MXNet's loader gives, to which no constant is fitted: ResNet-18 on a p3.8xlarge
  // (dmlc/web-data, gluoncv/logs), ResNet-50 on a p3.16xlarge (apache/mxnet, issue 14838).
  CHECK(relative_gap_of(threads(30, 32) * thread, 2761) < 0.03);
  CHECK(relative_gap_of(threads(40, 64) * thread, 5800) < 0.03);
}

TEST_CASE("devices have an operation more where they decode, and only there") {
  int decoding = 0;
  for (const std::string& library : input_library_names()) {
    CAPTURE(library);
    const InputSpec spec = input(fmt::format("{{kind: jpeg, library: {}}}", library));
    lab::Experiment experiment(lab::custom_model(1, 1), hosts_with(16, 1), synchronous, 10);
    const auto operations = [&] {
      std::size_t count = 0;
      for (const Role& role : experiment.plan().roles)
        for (const Task& task : role.program) count += task.ops.size();
      return count;
    };
    const std::size_t before = operations();
    add_input(experiment.plan(), experiment.graph(), experiment.machine(), spec);
    const bool decodes = spec.library.device_bytes_per_image > 0;
    CHECK(operations() == before + (decodes ? 1 : 0));
    decoding += decodes ? 1 : 0;
  }
  CHECK(decoding == 1);  // nvJPEG's, of dali_gpu
}

TEST_CASE("smaller files are made ready faster, as decoding was measured to be") {
  const double full = rate("{kind: jpeg, library: pil}", 64);
  CHECK(rate("{kind: jpeg, library: pil, image_pixels: 200000}", 64) == full);
  // A core takes an amount an image and an amount a pixel: one half and one third of the pixels save as much
  // more as they are fewer, and without pixels the amount an image is left.
  const InputLibrary pil = load_input_library("pil", {});
  const auto core_s = [&](double pixels) {
    return 16 / rate(fmt::format("{{kind: jpeg, library: pil, image_pixels: {}, workers_per_device: 16}}", pixels), 64);
  };
  CHECK(pil.image_overhead_s > 0);
  CHECK(core_s(1) == approx(pil.image_overhead_s).epsilon(1e-3));
  CHECK(core_s(200'000) == approx(1 / pil.core_images_per_s));
  CHECK(core_s(150'000) - core_s(100'000) == approx(core_s(100'000) - core_s(50'000)));
  // A host of one's own is quicker or slower for an image and for its pixels alike: with any rate, files of so
  // many pixels are as many times faster as with the library's.
  for (const std::string& library : input_library_names())
    for (const double per_s : {1.0, 90.0, 5000.0})
      for (const int pixels : {1, 50'000, 400'000}) {
        CAPTURE(library);
        const auto faster = [&](const std::string& more) {
          const std::string text = "{kind: jpeg, library: " + library + ", workers_per_device: 1" + more;
          return rate(fmt::format("{}, image_pixels: {}}}", text, pixels), 64) / rate(text + "}", 64);
        };
        const std::string given = fmt::format(", core_images_per_s: {}", per_s);
        CHECK(faster(given) == approx(faster("")).epsilon(1e-12));
        CHECK(rate("{kind: jpeg, library: " + library + ", workers_per_device: 1" + given + "}", 64) ==
              approx(per_s));
      }
  // Storage gives files in proportion to their bytes, and these are in proportion to the pixels.
  const std::string disk = "{kind: jpeg, library: pil, storage: {bandwidth: 1MB/s}";
  CHECK(rate(disk + ", image_pixels: 100000}", 64) == approx(2 * rate(disk + "}", 64)));
  CHECK(rate(disk + ", image_pixels: 100000, image_bytes: 50kB}", 64) == approx(20));
  // Decoding of one JPEG file of so many pixels a side, in ms, with Pillow and with torchvision
  // (https://github.com/huggingface/transformers/pull/45195): no constant comes from these rows.
  const std::vector<std::array<double, 3>> rows{{224, 0.77, 0.64}, {512, 3.19, 2.99}, {1024, 12.29, 11.6}};
  const double largest = rate("{kind: jpeg, library: pil, image_pixels: 1048576}", 64);
  for (const auto& [side, pillow_ms, torchvision_ms] : rows) {
    CAPTURE(side);
    const double faster =
        rate(fmt::format("{{kind: jpeg, library: pil, image_pixels: {}}}", side * side), 64) / largest;
    CHECK(relative_gap_of(faster, rows.back()[1] / pillow_ms) < 0.10);
    CHECK(relative_gap_of(faster, rows.back()[2] / torchvision_ms) < 0.10);
  }
}

TEST_CASE("measured loaders: what the constants were not fitted to") {
  // Images/s of PyTorch loaders on 2x Xeon E5-2698 v4 with so many CPUs given and workers
  // (github:zhengxiawu/pytorch-cls@365e52a498f5:doc/dataload_test.md). Fitted: 2 workers. No more workers
  // than CPUs: beyond that the rows fall, which is not modelled.
  struct Row {
    const char* library;
    std::uint32_t cpus;
    int workers;
    double images_per_s;
  };
  double sum = 0, worst = 0;
  const std::vector<Row> rows{{"pil", 4, 4, 331.3},       {"pil", 8, 4, 333.4},
                              {"pil", 8, 8, 655.7},       {"pil", 12, 4, 326.4},
                              {"pil", 12, 8, 621.7},      {"dali_cpu", 4, 4, 655.5},
                              {"dali_cpu", 8, 4, 760.2},  {"dali_cpu", 8, 8, 1257.9},
                              {"dali_cpu", 12, 4, 764.5}, {"dali_cpu", 12, 8, 1387.9}};
  for (const Row& row : rows) {
    const double predicted =
        rate(fmt::format("{{kind: jpeg, library: {}, workers_per_device: {}}}", row.library, row.workers),
             2 * row.cpus);
    const double off = std::abs(predicted / row.images_per_s - 1);
    sum += off, worst = std::max(worst, off);
  }
  CHECK(sum / static_cast<double>(rows.size()) < 0.10);
  CHECK(worst < 0.27);  // DALI with a thread on every CPU, its own thread beside them
}

TEST_CASE("a queue of batches: an event by event producer takes the same time") {
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    CAPTURE(i);
    const double interval_s = 1e-3 * static_cast<double>(1 + random() % 50);
    const std::uint32_t depth = 1 + random() % 4;
    InputQueue queue(interval_s, depth);
    // Producer: clocks in steps of its own; the consumer takes a batch when there is one.
    std::deque<double> ready_s;
    double producer_s = 0, now_s = 0;
    const auto produce_until_full = [&](double at_s) {
      producer_s = std::max(producer_s, at_s);
      while (ready_s.size() < depth) ready_s.push_back(producer_s += interval_s);
    };
    produce_until_full(0);
    for (int step = 0; step < 30; ++step) {
      const double taken_s = std::max(now_s, ready_s.front());
      ready_s.pop_front();
      // Full until now: the producer stood still since it filled the last place.
      if (ready_s.size() + 1 == depth) produce_until_full(producer_s > taken_s ? producer_s : taken_s);
      CHECK(std::abs(queue.take(now_s) - taken_s) < 1e-12);
      now_s = taken_s + 1e-3 * static_cast<double>(random() % 60);
    }
  }
}

TEST_CASE("the long run of steps that wait for several hosts' queues takes what the closed form says") {
  int waits = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    InputFeed feed;
    feed.prefetch = random() % 4;
    const std::size_t hosts = 1 + random() % 4;
    for (std::size_t h = 0; h < hosts; ++h)
      feed.interval_s.push_back(1e-3 * static_cast<double>(random() % 50));
    const double steps = 1 + random() % 3, own_s = 1e-3 * static_cast<double>(1 + random() % 100);
    std::vector<InputQueue> queues;
    for (const double interval_s : feed.interval_s) queues.emplace_back(steps * interval_s, feed.prefetch);
    constexpr int settling = 32, measured = 32;
    double now_s = 0, from_s = 0;
    for (int step = 0; step < settling + measured; ++step) {
      if (step == settling) from_s = now_s;
      double begin_s = now_s;
      for (InputQueue& queue : queues) begin_s = std::max(begin_s, queue.take(now_s));
      now_s = begin_s + own_s;
    }
    const double mean_s = (now_s - from_s) / measured;
    CHECK(step_with_input_s(feed, steps, own_s) == approx(mean_s).epsilon(1e-12));
    waits += mean_s > 1.01 * own_s;
  }
  CHECK(waits > 50);
}

TEST_CASE("no step is shorter than its plan's bound, which knows what hosts need for their images") {
  int by_input = 0;
  for (const char* strategy :
       {"{kind: single}", synchronous, "{kind: data_parallel, sync: parameter_server}",
        "{kind: data_parallel, sync: all_reduce, micro_batches: 2}",
        "{kind: data_parallel, sync: all_reduce, sync_every: 4}", "{kind: hybrid, conv: batch, fc: filter}",
        "{kind: pipeline, micro_batches: 2}", "{kind: pipeline, weights: stash}",
        "{kind: data_parallel, sync: parameter_server, mode: async}",
        "{kind: data_parallel, sync: parameter_server, backup_workers: 1}"})
    for (const int workers : {1, 4, 16, 200})
      for (const int prefetch : {0, 1, 3}) {
        CAPTURE(strategy);
        CAPTURE(workers);
        CAPTURE(prefetch);
        lab::Experiment experiment(lab::custom_model(4, 1000), hosts_with(800, 2), strategy, 10);
        add_input(experiment.plan(), experiment.graph(), experiment.machine(),
                  input(fmt::format("{{kind: jpeg, library: pil, workers_per_device: {}, prefetch: {}}}",
                                    workers, prefetch)));
        const LowerBound bound = lower_bound(experiment.plan(), experiment.machine(), experiment.cost());
        const ReplayResult result = experiment.run(true);
        CHECK(bound.step_time_s <= result.step_time_s * (1 + 1e-9));
        if (experiment.plan().service() || result.input_wait_s == 0) continue;
        // Nothing but the input is waited for on this network: the bound is what the step takes.
        if (prefetch > 0) CHECK(bound.step_time_s == approx(result.step_time_s).epsilon(1e-12));
        CHECK(bound.input_wait_s > 0);
        ++by_input;
      }
  CHECK(by_input > 30);
}

TEST_CASE("a synchronous step takes the longer of training and input, without prefetch their sum") {
  const double core = load_input_library("pil", {}).core_images_per_s, train_s = 3e-3;
  for (const int workers : {1, 4, 16, 200})
    for (const int prefetch : {0, 1, 3}) {
      CAPTURE(workers);
      CAPTURE(prefetch);
      const ReplayResult result =
          run(fmt::format("{{kind: jpeg, library: pil, workers_per_device: {}, prefetch: {}}}", workers,
                          prefetch),
              800, synchronous);
      const double input_s = 20 / (2 * workers * core);
      const double expected_s = prefetch == 0 ? train_s + input_s : std::max(train_s, input_s);
      CHECK(relative_gap_of(result.step_time_s, expected_s) < 1e-4);
      CHECK(std::abs(result.input_wait_s - std::max(0.0, expected_s - train_s)) < 1e-4 * expected_s);
      CHECK(relative_gap_of(result.endpoints[0].compute_s, train_s) < 1e-6);
    }
  CHECK(relative_gap_of(run("{kind: jpeg, library: tf_data}", 100'000, synchronous).step_time_s,
                        run("synthetic", 8, synchronous).step_time_s) < 1e-9);
}

TEST_CASE("copies of batches take what the busiest link to the devices needs") {
  const auto step_s = [](const std::string& interconnect, const std::string& text) {
    lab::Experiment experiment(
        lab::custom_model(1, 1),
        "{name: lab, nodes: [{name: n, server: box}], fabric: {kind: switch, bandwidth: 1GB/s, latency: "
        "0us}, "
        "servers: {box: {devices: [{device: ideal, count: 2}], vcpus: 100000, interconnect: {kind: pcie, "
        "latency: 0us, " +
            interconnect +
            "}}}, devices: {ideal: {peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, "
            "efficiency: 1.0}}}",
        "{kind: data_parallel, sync: all_reduce}", 10);
    add_input(experiment.plan(), experiment.graph(), experiment.machine(), input(text));
    return experiment.run(true).step_time_s;
  };
  const std::string pixels = "{kind: jpeg, library: tf_data}";
  // Ten images of 3 x 32 x 32 values of 4 bytes a device: 122,880 B; the step computes 3 ms.
  CHECK(relative_gap_of(step_s("bandwidth: 20MB/s", pixels), 122'880 / 20e6) < 1e-3);
  CHECK(relative_gap_of(step_s("bandwidth: 20MB/s, switches: [[0, 1]], uplink: 30MB/s", pixels),
                        2 * 122'880 / 30e6) < 1e-3);
  CHECK(relative_gap_of(step_s("bandwidth: 20GB/s", pixels), 3e-3) < 1e-3);
  // Devices that decode get the files.
  CHECK(relative_gap_of(step_s("bandwidth: 20MB/s", "{kind: jpeg, library: dali_gpu, image_bytes: 20kB}"),
                        200'000 / 20e6) < 1e-3);
}

TEST_CASE("workers that do not wait for each other each wait for their own images") {
  const double core = load_input_library("pil", {}).core_images_per_s;
  const std::string input_text = "{kind: jpeg, library: pil, workers_per_device: 1}";
  for (const char* mode : {"mode: async", "mode: ssp, staleness: 2", "backup_workers: 1"}) {
    CAPTURE(mode);
    const ReplayResult result =
        run(input_text, 64, fmt::format("{{kind: data_parallel, sync: parameter_server, {}}}", mode));
    CHECK(relative_gap_of(result.step_time_s, 10 / core) < 0.02);
    // Of the client that waits longest: some wait for each other too, at the expense of others' images.
    CHECK(relative_gap_of(result.input_wait_s, 10 / core - 3e-3) < 0.15);
  }
}

TEST_CASE("whoever shares the work of a step, all of its images are read, and each once") {
  const std::string text = "{kind: jpeg, library: pil, workers_per_device: 1}";
  const std::string layers =
      "{name: conv1, kind: conv2d, out_channels: 8, kernel: 3, padding: 1}, {name: relu, kind: relu}, {name: "
      "conv2, kind: conv2d, out_channels: 8, kernel: 3, padding: 1}, {name: flat, kind: flatten}, {name: fc, "
      "kind: linear, out_features: 12}]}";
  for (const std::string first : {"", "{name: norm, kind: batch_norm}, "})
    for (const char* strategy :
         {"{kind: single}", synchronous, "{kind: data_parallel, sync: parameter_server}",
          "{kind: filter_parallel}", "{kind: hybrid, conv: batch, fc: filter}", "{kind: hypergraph}",
          "{kind: hypergraph, micro_batches: 2}", "{kind: pardnn}", "{kind: pipeline, micro_batches: 2}"}) {
      CAPTURE(first);
      CAPTURE(strategy);
      lab::Experiment experiment("{name: net, input: [3, 8, 8], layers: [" + first + layers,
                                 hosts_with(16, 2), strategy, 8);
      add_input(experiment.plan(), experiment.graph(), experiment.machine(), input(text));
      REQUIRE(experiment.plan().input);
      double images = 0;
      std::vector<double> of_host;
      for (const double interval_s : experiment.plan().input->interval_s)
        of_host.push_back(interval_s * rate(text, 16, 2)), images += of_host.back();
      CHECK(images == approx(experiment.plan().images).epsilon(1e-9));
      const bool has_master = experiment.strategy().label().starts_with("filter parallel");
      if (has_master) CHECK(of_host[1] == 0);
    }
}

TEST_CASE("dali_gpu's part is the device's work") {
  const ReplayResult cpu =
      run("{kind: jpeg, library: dali_cpu, workers_per_device: 100}", 100'000, synchronous);
  const ReplayResult gpu =
      run("{kind: jpeg, library: dali_gpu, workers_per_device: 100}", 100'000, synchronous);
  const double bytes = load_input_library("dali_gpu", {}).device_bytes_per_image;
  CHECK(relative_gap_of(gpu.endpoints[0].compute_s - cpu.endpoints[0].compute_s, 10 * bytes / 500e9) < 1e-3);
}

TEST_CASE("inputs that cannot be read or run are errors that say what can") {
  CHECK(error_of("{kind: jpeg, library: pil}", 0) ==
        "x.yaml:1:1: training.input: how fast 'box' makes images ready depends on its CPUs: give the server "
        "`vcpus: N`, or training.input: synthetic");
  CHECK(error_of("{kind: jpeg, library: pill}") ==
        "x.yaml:1:23: unknown input library 'pill' (did you mean 'pil'?); known: dali_cpu, dali_gpu, "
        "mxnet_recordio, pil, pillow_simd, tensorpack, tf_data");
  CHECK(
      error_of("{kind: jpeg}") ==
      "x.yaml:1:1: training.input: key 'library' is missing; allowed: dali_cpu, dali_gpu, mxnet_recordio, "
      "pil, pillow_simd, tensorpack, tf_data");
  CHECK(error_of("imagenet-pill").find("unknown input 'imagenet-pill' (did you mean 'imagenet-pil'?)") !=
        std::string::npos);
  CHECK(input("imagenet-pil").label() == "imagenet-pil");
  CHECK(input("{kind: jpeg, library: pil}").label() == "jpeg by pil");
  CHECK(input("synthetic").label() == "synthetic");
}
