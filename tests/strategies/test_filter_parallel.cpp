// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>

#include "sim/base/input_error.h"
#include "strategies/filter_parallel/filter_shares.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

/// Hosts of one device each, of the given speeds in MFLOPS, on a switch of 1 MB/s and 1 ms: times of tiny
/// models are milliseconds, and memory is so fast that only FLOPs count.
std::string slow_star(const std::vector<double>& mflops, const std::string& kind = "switch") {
  std::string nodes, servers, devices;
  for (std::size_t i = 0; i < mflops.size(); ++i) {
    nodes += fmt::format("{{name: n{0}-, count: 1, server: s{0}}},", i);
    servers +=
        fmt::format("s{0}: {{devices: [{{device: d{0}, count: 1}}], interconnect: {{kind: none}}}},", i);
    devices += fmt::format(
        "d{}: {{peak: {{fp32: {}MFLOPS}}, memory: 1GB, memory_bandwidth: 1000TB/s, efficiency: 1.0, "
        "launch_overhead: 0us}},",
        i, mflops[i]);
  }
  return fmt::format(
      "{{name: lab, nodes: [{}], fabric: {{kind: {}, bandwidth: 1MB/s, latency: 1ms}}, servers: {{{}}}, "
      "devices: "
      "{{{}}}}}",
      nodes, kind, servers, devices);
}

const std::string two_convolutions =
    "{name: toy, input: [2, 4, 4], layers: [{name: conv1, kind: conv2d, out_channels: 4, kernel: 1, bias: "
    "false}, {name: conv2, kind: conv2d, out_channels: 4, kernel: 1, bias: false}]}";

std::string filters_of(int k1, int k2) {
  return fmt::format("{{name: cifar_two_conv, filters: [{}, {}]}}", k1, k2);
}

std::string error_of(const std::string& strategy, int devices) {
  try {
    lab::Experiment(two_convolutions, slow_star(std::vector<double>(static_cast<std::size_t>(devices), 1.0)),
                    strategy, 4);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a step of two devices by hand") {
  // 20 images, 2 of 4 filters each. At 1 MB/s, 1 ms:
  // conv1 forward   inputs 20 * 2*16*4 = 2560 B and filters 2*2*4 = 16 B: 3.576 ms; 2 * (2*2*16) FLOPs an
  //                 image: 2.56 ms; outputs 20 * 2*16*4 = 2560 B: 3.56 ms
  // conv2 forward   inputs 5120 B, filters 2*4*4 = 32 B: 6.152 ms; 2 * (4*2*16) FLOPs an image: 5.12 ms;
  //                 outputs 3.56 ms
  // conv2 backward  output gradients 3.56 ms; data and weight gradient 10.24 ms; partial data gradient 5120 B
  //                 and weight gradient 32 B: 6.152 ms; one addition of 20*4*16 values: 1.28 ms
  // conv1 backward  output gradients 3.56 ms; weight gradient 2.56 ms; its 16 B: 1.016 ms
  // update          2 FLOPs for each of 24 weights: 0.048 ms
  const lab::Experiment experiment(two_convolutions, slow_star({1, 1}), "{kind: filter_parallel}", 10);
  const ReplayResult result = experiment.run();
  const double forward = 3.576 + 2.56 + 3.56 + 6.152 + 5.12 + 3.56;
  const double backward = 3.56 + 10.24 + 6.152 + 1.28 + 3.56 + 2.56 + 1.016;
  CHECK(result.step_time_s == approx(1e-3 * (forward + backward + 0.048)).epsilon(1e-9));
  // The worker holds at most: inputs of both layers 2560 + 5120, filters 16 + 32, in conv2's backward also
  // its output gradient 2560, weight gradient 32 and partial data gradient 5120.
  CHECK(result.endpoints[1].peak_memory_bytes == 2560 + 5120 + 16 + 32 + 2560 + 32 + 5120);
}

TEST_CASE("the same on a shared medium: both directions share it, but never meet") {
  const auto step_s = [](const std::string& kind) {
    return lab::Experiment(two_convolutions, slow_star({1, 1}, kind), "{kind: filter_parallel}", 10)
        .run()
        .step_time_s;
  };
  CHECK(step_s("shared") == approx(step_s("switch")).epsilon(1e-9));
  // Four devices: three messages at a time share the air as they share the master's NIC.
  const auto four = [](const std::string& kind) {
    return lab::Experiment(two_convolutions, slow_star({1, 1, 1, 1}, kind), "{kind: filter_parallel}", 10)
        .run()
        .step_time_s;
  };
  CHECK(four("shared") == approx(four("switch")).epsilon(1e-9));
}

TEST_CASE("volume is the closed form, whatever the devices, batch and filters") {
  for (const int n : {2, 3, 4, 7}) {
    for (const int batch : {1, 5}) {
      for (const auto& [k1, k2] : {std::pair{50, 500}, std::pair{11, 13}}) {
        for (const std::string shares : {"equal", "probed"}) {
          CAPTURE(n);
          CAPTURE(batch);
          CAPTURE(k1);
          CAPTURE(shares);
          std::vector<double> speeds;
          for (int i = 0; i < n; ++i) speeds.push_back(shares == "equal" ? 1.0 : 1.0 + i % 3);
          const lab::Experiment experiment(filters_of(k1, k2), slow_star(speeds),
                                           "{kind: filter_parallel, shares: " + shares + "}", batch);
          const ReplayResult result = experiment.run();
          // 5x5 valid convolutions, 2x2 pooling: 3x32x32 -> k1 x 28x28 -> k1 x 14x14 -> k2 x 10x10.
          const double images = n * batch, others = n - 1;
          const std::vector<SharedConvolution> convolutions = share_filters(
              {experiment.graph(), experiment.machine(), experiment.cost(), {batch, std::nullopt, {}}},
              shares == "equal" ? FilterShares::equal : FilterShares::probed, 0, images);
          const double sent1 = k1 - static_cast<double>(convolutions[0].filters[0]),
                       sent2 = k2 - static_cast<double>(convolutions[1].filters[0]);
          const double inputs = images * (3 * 32 * 32 + k1 * 14.0 * 14) * others;
          const double filters = sent1 * 3 * 25 + sent2 * k1 * 25;
          const double outputs = images * (sent1 * 28 * 28 + sent2 * 10 * 10);
          const double partial = images * k1 * 14.0 * 14 * others;  // the first layer has no data gradient
          CHECK(result.comm_bytes ==
                approx(4 * (inputs + 2 * filters + 2 * outputs + partial)).epsilon(1e-12));
          CHECK(experiment.report().partition->connectivity_bytes ==
                approx(result.comm_bytes).epsilon(1e-12));
          // Counted once for all devices that get them, inputs and partial gradients are cut once.
          CHECK(experiment.report().partition->cut_bytes ==
                approx(4 * ((inputs + partial) / others + 2 * filters + 2 * outputs)).epsilon(1e-12));
        }
      }
    }
  }
}

TEST_CASE("inputs by parts: a step of three devices by hand") {
  // 30 images; 2 filters of 4 on the master, 1 on each worker, which takes the inputs of 15 images from it. At
  // 1 MB/s, 1 ms, the master's messages to both share its NIC; the workers' messages to each other have theirs.
  // conv1 forward   inputs 15 * 2*16*4 = 1920 B and filters 8 B, twice: 4.856 ms; passed on, 1920 B: 2.92 ms;
  //                 2 * (2*16) FLOPs an image: 1.92 ms; outputs 1920 B, twice: 4.84 ms
  // conv2 forward   inputs 3840 B and filters 16 B, twice: 8.712 ms; passed on 4.84 ms; 3.84 ms; outputs 4.84 ms
  // conv2 backward  output gradients 1920 B, twice: 4.84 ms; data and weight gradient 7.68 ms; partial gradients
  //                 of 15 images, 3840 B: 4.84 ms; one addition of 15*4*16 values: 0.96 ms; their sum and 16 B,
  //                 twice: 8.712 ms; the master's addition of 30*4*16 values: 1.92 ms
  // conv1 backward  output gradients 4.84 ms; the master's weight gradient, of two filters, 3.84 ms, is the last
  // update          0.048 ms
  const lab::Experiment experiment(two_convolutions, slow_star({1, 1, 1}),
                                   "{kind: filter_parallel, broadcast: scatter_allgather}", 10);
  const double forward = 4.856 + 2.92 + 1.92 + 4.84 + 8.712 + 4.84 + 3.84 + 4.84;
  const double backward = 4.84 + 7.68 + 4.84 + 0.96 + 8.712 + 1.92 + 4.84 + 3.84;
  CHECK(experiment.run().step_time_s == approx(1e-3 * (forward + backward + 0.048)).epsilon(1e-9));
}

TEST_CASE("inputs by parts: as many bytes, of which the master sends the inputs once, however many workers") {
  for (const int n : {2, 3, 4, 7})
    for (const std::string shares : {"equal", "probed"}) {
      CAPTURE(n);
      CAPTURE(shares);
      std::vector<double> speeds;
      for (int i = 0; i < n; ++i) speeds.push_back(shares == "equal" ? 1.0 : 1.0 + i % 3);
      const auto run = [&](const std::string& broadcast) {
        return lab::Experiment(
                   filters_of(50, 500), slow_star(speeds),
                   fmt::format("{{kind: filter_parallel, shares: {}, broadcast: {}}}", shares, broadcast), 5)
            .run();
      };
      const ReplayResult direct = run("direct"), by_parts = run("scatter_allgather");
      const double images = n * 5.0, inputs = 4 * images * (3 * 32 * 32 + 50 * 14.0 * 14);
      const double partial = 4 * images * 50 * 14.0 * 14;  // the first layer has no data gradient
      CHECK(by_parts.comm_bytes == approx(direct.comm_bytes).epsilon(1e-12));
      CHECK(by_parts.endpoints[0].sent_bytes ==
            approx(direct.endpoints[0].sent_bytes - (n - 2) * inputs).epsilon(1e-12));
      CHECK(by_parts.endpoints[0].received_bytes ==
            approx(direct.endpoints[0].received_bytes - (n - 2) * partial).epsilon(1e-12));
    }
}

TEST_CASE("all filters are computed once, and the step is never shorter than work over devices") {
  for (const std::string& model :
       {filters_of(50, 500), std::string("squeezenet1_1"), std::string("resnet18")}) {
    CAPTURE(model);
    const lab::Experiment experiment(model, slow_star({1e6, 2e6, 3e6}), "{kind: filter_parallel}", 2);
    std::map<std::string, double> done_flops;
    for (const Role& role : experiment.plan().roles)
      for (const Task& task : role.program)
        for (const PlanOp& op : task.ops)
          done_flops[op.name] += op.work.flops_per_image * op.images + op.work.flops_fixed;
    double work_flops = 0;
    for (const Operation& operation : experiment.graph().operations) {
      CAPTURE(operation.name);
      const double images = operation.phase == Phase::update ? 1 : 6;
      const double expected = operation.work.flops_per_image * images + operation.work.flops_fixed;
      CHECK(done_flops.at(operation.name) == approx(expected).epsilon(1e-12));
      work_flops += expected;
    }
    CHECK(experiment.run().step_time_s >= work_flops / 6e12);
  }
}

TEST_CASE("one device is exactly the single strategy") {
  for (const std::string model : {"resnet18", "cifar_two_conv"}) {
    const lab::Experiment filter(model, slow_star({1e6}), "{kind: filter_parallel}", 4);
    const lab::Experiment single(model, slow_star({1e6}), "{kind: single}", 4);
    const ReplayResult a = filter.run(), b = single.run();
    CHECK(a.step_time_s == approx(b.step_time_s).epsilon(1e-9));
    CHECK(a.endpoints[0].peak_memory_bytes == b.endpoints[0].peak_memory_bytes);
    CHECK(a.comm_bytes == 0);
  }
}

TEST_CASE("probed shares follow the speed of devices and equal ones begin with the master") {
  const lab::Experiment experiment(filters_of(8, 9), slow_star({1, 1, 2}), "{kind: single}", 1);
  const StrategyInput input{
      experiment.graph(), experiment.machine(), experiment.cost(), {1, std::nullopt, {}}};
  const auto probed = share_filters(input, FilterShares::probed, 0, 3);
  CHECK(probed[0].filters == std::vector<std::int64_t>{2, 2, 4});
  // Twice the filters at twice the speed: forward and weight gradient of 3 images, 3 x 25 weights a filter.
  for (const double time_s : probed[0].time_s)
    CHECK(time_s == approx(2 * 3 * 2 * (2 * 28 * 28 * 3 * 25) / 1e6).epsilon(1e-9));
  // 9 filters: 2.25, 2.25 and 4.5 round to 2, 2 and 5.
  CHECK(probed[1].filters == std::vector<std::int64_t>{2, 2, 5});
  // What does not divide goes to the master first, and then to the others from device 0 on.
  const auto equal = [&](EndpointId master) {
    return share_filters(input, FilterShares::equal, master, 3)[0].filters;
  };
  CHECK(equal(0) == std::vector<std::int64_t>{3, 3, 2});
  CHECK(equal(1) == std::vector<std::int64_t>{3, 3, 2});
  CHECK(equal(2) == std::vector<std::int64_t>{3, 2, 3});
  CHECK(share_filters(input, FilterShares::equal, 2, 3)[1].filters == std::vector<std::int64_t>{3, 3, 3});
}

TEST_CASE("equal shares of filters that do not divide: one more each, the master first, then by number") {
  for (const std::int64_t filters : {1, 2, 5, 7, 11, 13, 30})
    for (const std::size_t devices : {2, 3, 4, 7})
      for (EndpointId master = 0; master < devices; ++master) {
        CAPTURE(filters);
        CAPTURE(devices);
        CAPTURE(master);
        const lab::Experiment experiment(filters_of(static_cast<int>(filters), 5),
                                         slow_star(std::vector<double>(devices, 1)), "{kind: single}", 1);
        const StrategyInput input{
            experiment.graph(), experiment.machine(), experiment.cost(), {1, std::nullopt, {}}};
        const auto shares = share_filters(input, FilterShares::equal, master, 3)[0].filters;
        const auto n = static_cast<std::int64_t>(devices);
        for (EndpointId d = 0; d < devices; ++d) {
          const std::int64_t place = d == master ? 0 : d < master ? d + 1 : d;  // in the queue for one more
          CHECK(shares[d] == filters / n + (place < filters % n ? 1 : 0));
        }
      }
}

TEST_CASE("the step of a master that has one filter more, by hand") {
  // 2 images, devices of 4 and 0.01 MFLOPS; the slow one is the master. conv of 3 filters 1x1 over 2 channels
  // of 4x4: the master has 2 of them. Forward: inputs 2 * 2*16*4 = 256 B and 1 filter of 8 B: 1.264 ms; then
  // 2 filters at 2*2*16 FLOPs an image: 25.6 ms (the other's output is there long before). Backward: its
  // output gradient, 128 B: 1.128 ms; weight gradients as long as forward. The update: 2 FLOPs for each of 6
  // weights: 1.2 ms.
  const std::string one_convolution =
      "{name: toy, input: [2, 4, 4], layers: [{name: conv, kind: conv2d, out_channels: 3, kernel: 1, bias: "
      "false}]}";
  const lab::Experiment experiment(one_convolution, slow_star({4, 0.01}),
                                   "{kind: filter_parallel, shares: equal, master: 1}", 1);
  CHECK(experiment.run().step_time_s == approx(1e-3 * (1.264 + 25.6 + 1.128 + 25.6 + 1.2)).epsilon(1e-9));
}

TEST_CASE("devices in another order, the master with them: the same filters, times and step") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return random() % n; };
    const std::size_t n = 2 + below(4);
    std::vector<double> speeds;
    std::vector<std::size_t> place;  // of each device in the other order
    for (std::size_t d = 0; d < n; ++d)
      speeds.push_back(1 + 1.37 * static_cast<double>(d)), place.push_back(d);
    for (std::size_t d = n; d > 1; --d) {
      std::swap(speeds[d - 1], speeds[below(d)]);
      std::swap(place[d - 1], place[below(d)]);
    }
    std::vector<double> moved(n);
    for (std::size_t d = 0; d < n; ++d) moved[place[d]] = speeds[d];
    const std::size_t master = below(n);
    const std::string model = filters_of(20 + static_cast<int>(below(60)), 20 + static_cast<int>(below(60)));
    const auto trial = [&](const std::vector<double>& of, std::size_t master_at) {
      return lab::Experiment(model, slow_star(of),
                             fmt::format("{{kind: filter_parallel, shares: probed, master: {}}}", master_at),
                             1);
    };
    const ReplayResult a = trial(speeds, master).run(), b = trial(moved, place[master]).run();
    CHECK(a.step_time_s == approx(b.step_time_s).epsilon(1e-9));
    for (std::size_t d = 0; d < n; ++d) {
      CHECK(a.endpoints[d].compute_s == approx(b.endpoints[place[d]].compute_s).epsilon(1e-9));
      CHECK(a.endpoints[d].sent_bytes == approx(b.endpoints[place[d]].sent_bytes).epsilon(1e-9));
      CHECK(a.endpoints[d].peak_memory_bytes ==
            approx(b.endpoints[place[d]].peak_memory_bytes).epsilon(1e-9));
    }
  }
}

TEST_CASE("probed shares count what devices wait for their hosts") {
  // Devices of one speed; the second one's host takes so long to issue an operation that its device waits.
  lab::Experiment experiment(filters_of(64, 64), slow_star({1e6, 1e6}), "{kind: single}", 1);
  Machine machine = experiment.machine();
  const CostModel cost{Software(TrainingOptions{})};
  const auto filters = [&](double issue_factor) {
    machine.device_types[1].issue_factor = issue_factor;
    return share_filters({experiment.graph(), machine, cost, {1, std::nullopt, {}}}, FilterShares::probed, 0,
                         3)[0]
        .filters[1];
  };
  CHECK(filters(0) == 32);
  CHECK(filters(1000) < 16);
}

TEST_CASE("probed shares are faster than equal ones where the devices differ, and the same where not") {
  const auto step_s = [](const std::vector<double>& speeds, const std::string& shares) {
    return lab::Experiment(filters_of(60, 120), slow_star(speeds),
                           "{kind: filter_parallel, shares: " + shares + "}", 1)
        .run()
        .step_time_s;
  };
  CHECK(step_s({1, 3, 1, 1}, "probed") < 0.9 * step_s({1, 3, 1, 1}, "equal"));
  CHECK(step_s({2, 2, 2, 2}, "probed") == approx(step_s({2, 2, 2, 2}, "equal")).epsilon(1e-9));
}

TEST_CASE("with overlap a slow master computes while its messages are under way") {
  const auto step_s = [](const std::string& overlap) {
    return lab::Experiment(two_convolutions, slow_star({0.1, 1}),
                           "{kind: filter_parallel, shares: equal, overlap: " + overlap + "}", 10)
        .run()
        .step_time_s;
  };
  // A tenth of the speed: its own share takes 25.6, 51.2, 102.4 and 25.6 ms, longer than each exchange, so
  // that overlap saves just the sending: 3.576 + 6.152 + 3.56 + 3.56 ms.
  CHECK(step_s("false") - step_s("true") == approx(16.848e-3).epsilon(1e-9));
}

TEST_CASE("any device can be the master, and all bytes pass it") {
  const lab::Experiment experiment(two_convolutions, slow_star({1, 1, 1}),
                                   "{kind: filter_parallel, master: 2}", 10);
  CHECK(experiment.plan().roles[0].members == std::vector<EndpointId>{2});
  const ReplayResult result = experiment.run();
  CHECK(result.endpoints[2].sent_bytes + result.endpoints[2].received_bytes ==
        approx(result.comm_bytes).epsilon(1e-12));
}

TEST_CASE("folded and unfolded agree, and 64 devices run") {
  const lab::Experiment experiment(filters_of(500, 1500), slow_star(std::vector<double>(64, 1e6)),
                                   "{kind: filter_parallel}", 1);
  CHECK(experiment.run(true).step_time_s == approx(experiment.run(false).step_time_s).epsilon(1e-9));
}

TEST_CASE("a master that is not there, unknown shares and keys are errors that say what is allowed") {
  CHECK(error_of("{kind: filter_parallel, master: 2}", 2) ==
        "strategy:1:33: strategy.master: there is no device 2; the cluster has 2, 0 to 1");
  CHECK(error_of("{kind: filter_parallel, shares: speed}", 2) ==
        "strategy:1:33: strategy.shares: unknown value 'speed'; allowed: equal, probed");
  CHECK(error_of("{kind: filter_parallel, stages: 2}", 2) ==
        "strategy:1:25: strategy.stages: unknown key (did you mean 'shares'?); known here: broadcast, "
        "inner, kind, master, micro_batches, overlap, replicas, shares, transport");
}
