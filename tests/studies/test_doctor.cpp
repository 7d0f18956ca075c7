// SPDX-License-Identifier: MIT
// What convoy doctor says: laws on random experiments, held against experiments that are changed by hand.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <random>
#include <set>
#include <sstream>

#include "sim/page/text.h"
#include "tests/planning/plan_text.h"
#include "tests/studies/doctors.h"
#include "tests/support/approx.h"

using namespace convoy;
using lab::Dice;

TEST_CASE("doctor: shares are sorted and add up to 1, and the interval is the run's") {
  for (unsigned seed = 1; seed <= 16; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    const std::string text = random_hosts(dice).text();
    CAPTURE(text);
    const Experiment experiment = experiment_of(text);
    const Results results = simulate_sweep(experiment, 1);
    const Diagnosis diagnosis = diagnose(experiment, 1, [](std::size_t, std::size_t) {});
    REQUIRE(diagnosis.runs.size() == 1);
    const DoctorRun& run = diagnosis.runs[0];
    CHECK(run.step_time_s == results.runs[0].step_time_s);
    CHECK(run.interval == results.runs[0].interval);
    double sum = 0, variance = 0;
    for (std::size_t i = 0; i < run.inputs.size(); ++i) {
      const DoctorInput& input = run.inputs[i];
      sum += input.variance_share;
      const double spread = std::log(input.step_time_s[1] / input.step_time_s[0]) / (2 * quantile_80);
      variance += spread * spread;
      if (i > 0) CHECK(input.variance_share <= run.inputs[i - 1].variance_share);
      CHECK(input.narrows_to <= 1 + 1e-12);
      CHECK_FALSE(input.measure.empty());
      CHECK_FALSE(input.source.empty());
    }
    CHECK(sum == approx(1.0));
    CHECK(run.spread == approx(std::sqrt(variance)));
  }
}

TEST_CASE("doctor: a number moved by hand in the experiment gives the step that doctor used") {
  for (unsigned seed = 21; seed <= 26; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    DoctorHosts hosts = random_hosts(dice);
    hosts.device = "v100-sxm2-16gb";
    hosts.strategy = "{kind: data_parallel, sync: all_reduce, algorithm: ring}";
    hosts.node = ", speed: 1.0";
    hosts.more = "spread: {cluster.fabric.bandwidth: 30%, cluster.fabric.latency: 50%}\n";
    const std::string text = hosts.text();
    const DoctorRun run = diagnosed(text);
    const std::string alone = text.substr(0, text.find("spread:"));
    const auto step_with = [&](const std::vector<std::string>& settings) {
      return result_of(alone, settings).step_time_s;
    };
    const double bandwidth = std::stod(hosts.fabric.substr(hosts.fabric.find(' ') + 1));
    for (const int end : {0, 1}) {
      CAPTURE(end);
      const double sign = end == 0 ? -1 : 1;
      const auto factor = [&](double spread) { return std::exp(sign * quantile_80 * spread); };
      CHECK(input_of(run, "cluster.fabric.bandwidth").step_time_s[end] ==
            approx(step_with(
                {fmt::format("cluster.fabric.bandwidth={}Gbps", bandwidth * factor(std::log(1.3)))})));
      CHECK(input_of(run, "cluster.fabric.latency").step_time_s[end] ==
            approx(step_with({fmt::format("cluster.fabric.latency={}us", 20 * factor(std::log(1.5)))})));
      const DoctorInput& host = input_of(run, "cluster.servers.box.host.issue_factor");
      CHECK(host.step_time_s[end] == approx(step_with({fmt::format("cluster.servers.box.host.issue_factor={}",
                                                                   factor(*host.spread))})));
      // A fit's errors are of whole steps of a device, with its host.
      const DoctorInput& kernels = input_of(run, "training.anchor");
      CHECK(kernels.step_time_s[end] ==
            approx(step_with(
                {fmt::format("cluster.nodes.0.speed={}", 1 / factor(*kernels.spread)),
                 fmt::format("cluster.servers.box.host.issue_factor={}", factor(*kernels.spread))})));
    }
  }
}

TEST_CASE("doctor: messages that take longer are waited for as long as the closed form says") {
  // One tensor of 100 MB over four hosts, after the backward pass: a ring's 6 parts of 25 MB.
  DoctorHosts hosts;
  hosts.nodes = 4;
  hosts.device = "ideal";
  hosts.model =
      "{name: toy, input: [3, 32, 32], layers: [{name: body, kind: custom, forward_flops: 1e9, "
      "backward_flops: 2e9, "
      "parameters: 25000000, output: [10], memory_bytes: 0}]}";
  hosts.training = "batch_per_device: 4, precision: fp32";
  // NCCL's steps have times of their own instead of their routes' (Round::latency_s).
  for (const std::string algorithm : {"ring", "nccl"})
    for (const std::string latency : {"0us", "500us"}) {
      CAPTURE(algorithm);
      CAPTURE(latency);
      hosts.fabric = "bandwidth: 10Gbps, latency: " + latency + ", protocol: tcp";
      hosts.strategy = "{kind: data_parallel, sync: all_reduce, algorithm: " + algorithm +
                       ", overlap: false, bucket: 1GB}";
      const RunResult run = result_of(hosts.text());
      const DoctorInput messages = input_of(diagnosed(hosts.text()), "cluster.fabric");
      REQUIRE(run.exposed_comm_s > 0.01);
      for (const int end : {0, 1}) {
        const double factor = std::exp((end == 0 ? -1 : 1) * quantile_80 * comm_spread(CommKind::tcp));
        CHECK(messages.step_time_s[end] == approx(run.step_time_s + (factor - 1) * run.exposed_comm_s));
      }
    }
}

TEST_CASE("doctor: the variances that it sums up are those of the run's interval") {
  for (unsigned seed = 31; seed <= 46; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    DoctorHosts hosts = random_hosts(dice);
    hosts.more.clear();
    hosts.strategy = "{kind: data_parallel, sync: all_reduce, algorithm: ring}";
    if (hosts.fabric.find("protocol") == std::string::npos) hosts.fabric += ", protocol: tcp";
    const std::string text = hosts.text();
    CAPTURE(text);
    const DoctorRun run = diagnosed(text);
    // The run's interval goes by shares of its step, doctor by steps simulated again.
    CHECK(std::abs(run.spread / spread_of(run.interval) - 1) < 0.15);
  }
}

TEST_CASE(
    "doctor: so they are where devices wait for parameter servers, for sums inside their hosts, or for the "
    "stages of a pipeline before theirs") {
  // The step waits for computing or for messages, so that what the two are off by does not add up.
  struct Case {
    const char *device, *model;
    int nodes;
    const char *network, *strategy;
  };
  const char* const tcp = "bandwidth: 10Gbps, latency: 20us, protocol: tcp";
  const char* const rdma = "bandwidth: 100Gbps, latency: 20us, protocol: rdma";
  for (const Case& each :
       {Case{"k80", "resnet18", 4, tcp, "kind: data_parallel, sync: parameter_server"},
        Case{"k80", "resnet18", 4, tcp,
             "kind: data_parallel, sync: parameter_server, placement: colocated, sharding: even"},
        Case{"v100-sxm2-16gb", "resnet18", 4, tcp,
             "kind: data_parallel, sync: parameter_server, overlap: false, pull: after_all"},
        Case{"v100-sxm2-16gb", "mobilenet_v2", 4, tcp,
             "kind: data_parallel, sync: parameter_server, overlap: false, local_aggregation: true"},
        Case{"b200-sxm-180gb", "resnet18", 4, tcp,
             "kind: data_parallel, sync: parameter_server, sharding: even, overlap: false, "
             "local_aggregation: true"},
        Case{"k80", "resnet18", 2, rdma, "kind: pipeline, stages: 2, micro_batches: 1"},
        Case{"v100-sxm2-16gb", "resnet18", 4, rdma, "kind: pipeline, stages: 4, micro_batches: 4"}}) {
    DoctorHosts hosts;
    hosts.device = each.device;
    hosts.model = each.model;
    hosts.nodes = each.nodes;
    hosts.fabric = each.network;
    hosts.training = "global_batch: 128";
    hosts.strategy = fmt::format("{{{}}}", each.strategy);
    const std::string text = hosts.text();
    CAPTURE(text);
    const DoctorRun run = diagnosed(text);
    CAPTURE(run.spread);
    CHECK(std::abs(run.spread / spread_of(run.interval) - 1) < 0.15);
  }
}

TEST_CASE("doctor: where its advice is followed, the spread is as narrow as it says") {
  for (unsigned seed = 51; seed <= 58; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    DoctorHosts hosts = random_hosts(dice);
    hosts.device = dice.one_of<std::string>({"v100-sxm2-16gb", "k80", "b200-sxm-180gb"});
    hosts.strategy = "{kind: data_parallel, sync: all_reduce, algorithm: ring}";
    hosts.fabric = "bandwidth: 100Gbps, latency: 20us, protocol: rdma";
    hosts.training = "batch_per_device: 64";
    hosts.more.clear();
    const std::string text = hosts.text();
    CAPTURE(text);
    const DoctorRun run = diagnosed(text);
    const DoctorInput& kernels = input_of(run, "training.anchor");
    const std::string images_per_s = kernels.value.substr(0, kernels.value.find(' '));
    const DoctorRun anchored =
        diagnosed(text, {fmt::format("training.anchor={{images_per_s: {}, batch: 64}}", images_per_s)});
    CHECK(std::abs(anchored.spread / run.spread / kernels.narrows_to - 1) < 0.05);
    const DoctorRun told = diagnosed(text, {"cluster.servers.box.host.issue_factor=1"});
    CHECK(std::abs(told.spread / run.spread /
                       input_of(run, "cluster.servers.box.host.issue_factor").narrows_to -
                   1) < 0.05);
  }
}

TEST_CASE("doctor: an anchor tells the less of a step, the less alike their batches are") {
  DoctorHosts hosts;
  hosts.nodes = 1;
  const auto interval = [&](int batch, const std::string& anchor) {
    hosts.training = fmt::format("batch_per_device: {}{}", batch, anchor);
    return spread_of(result_of(hosts.text()).interval);
  };
  const std::string anchor = ", anchor: {images_per_s: 1000, batch: 64}";
  // Repeated measurements differ by 3 %; steps of the same set-up with other batches by more (anchors.yaml).
  CHECK(interval(64, anchor) == doctest::Approx(0.03).epsilon(0.01));
  CHECK(interval(32, anchor) == doctest::Approx(anchored_spread(32, 64)).epsilon(0.01));
  CHECK(interval(32, anchor) == doctest::Approx(interval(128, anchor)).epsilon(0.01));
  CHECK(interval(16, anchor) > 1.3 * interval(32, anchor));
  CHECK(interval(1, anchor) <= interval(1, "") * (1 + 1e-9));  // never less sure than without
}

TEST_CASE("doctor: the chance that a choice flips is that of normal errors of logarithms") {
  const auto below = [](double z) { return std::erfc(-z / std::sqrt(2.0)) / 2; };
  CHECK(chance_of_flip({100, 0.1}, {}) == approx(0.0));
  for (const double rival : {80.0, 100.0, 150.0})
    for (const double spread : {0.0, 0.05, 0.3})
      CHECK(std::abs(chance_of_flip({100, 0.1}, {{rival, spread}}) -
                     below(std::log(100 / rival) / std::hypot(0.1, spread))) < 1e-3);
  std::mt19937 engine(3);
  std::normal_distribution<double> normal;
  const std::vector<UncertainValue> rivals{{110, 0.1}, {120, 0.2}, {200, 0.05}};
  int flips = 0;
  constexpr int draws = 40'000;
  for (int i = 0; i < draws; ++i) {
    const double choice = 100 * std::exp(0.15 * normal(engine));
    bool flipped = false;
    for (const UncertainValue& rival : rivals)
      flipped = rival.value * std::exp(rival.spread * normal(engine)) < choice || flipped;
    flips += flipped;
  }
  CHECK(std::abs(chance_of_flip({100, 0.15}, rivals) - static_cast<double>(flips) / draws) < 0.01);
}

TEST_CASE("doctor: a value of nothing is the least for sure, and time x cost errs twice as the time does") {
  CHECK(chance_of_flip({0, 0.1}, {{100, 0.1}, {0, 0.1}}) == 0);
  CHECK(chance_of_flip({100, 0.1}, {{200, 0.1}, {0, 0.1}}) == 1);
  const auto spec = [](const std::string& plan) {
    return plans::spec_of("{epochs: 3}", "{batch_per_device: [64], " + plan + "}");
  };
  const auto silent = [](std::size_t, std::size_t) {};
  const std::string own = "{name: mine, base: workstation-2-rtx-3090, price: 0USD/h}";
  const Diagnosis free = diagnose_plan(spec("servers: [" + own + ", aws-p3.2xlarge]"), 1, silent);
  CHECK(free.flip->chance == 0);
  std::ostringstream out;
  write_doctor(free, out);  // no number is NaN
  const PlanSpec both = spec("objective: front, servers: [gcp-n1-standard-8-k80, aws-p3.2xlarge]");
  const PlanAnswer answer = plans::answer_of(both, false);
  const auto uncertain = [](const CandidateResultOfPlan& candidate) {
    const auto& [low, high] = candidate.time_interval;
    return UncertainValue{candidate.figures.time_s * candidate.figures.cost_usd,
                          2 * std::log(high / low) / (2 * quantile_80)};
  };
  REQUIRE(answer.runners_up.size() == 1);
  const Diagnosis of_both = diagnose_plan(both, 1, silent);
  CHECK(of_both.flip->chance ==
        approx(chance_of_flip(uncertain(*answer.choice), {uncertain(answer.runners_up[0])})));
  // The text for people ends with every rival and its chance.
  REQUIRE(of_both.flip->rivals.size() == 1);
  const FlipRival& rival = of_both.flip->rivals.front();
  CHECK(rival.servers == text_of(answer.runners_up[0].order));
  CHECK(rival.chance == approx(of_both.flip->chance));  // there is no other one
  CHECK(doctor_text(of_both).ends_with(
      fmt::format("\nchance that other servers are the best: {0}\n{0:>7}  {1}\n", percent_text(rival.chance),
                  rival.servers)));
}

TEST_CASE("doctor: scenarios of a plan are not simulated, and a price table is for plans only") {
  const std::string plan = "servers: [aws-p3.2xlarge], batch_per_device: [64]";
  // This one cannot be planned.
  const PlanSpec spec = plans::spec_of(
      "{epochs: 3}", "{" + plan + ", scenarios: [{name: none, set: {plan.servers: [dgx1-v100]}}]}");
  CHECK(diagnose_plan(spec, 1, [](std::size_t, std::size_t) {}).runs.size() == 1);
  CHECK_THROWS_AS(
      diagnose_file(experiment_of(DoctorHosts().text()), "prices.csv", 1, [](std::size_t, std::size_t) {}),
      InputError);
}

TEST_CASE("doctor: lines to paste train what the experiment trains, where they can") {
  const auto measured = [](const std::string& model, const std::string& training,
                           const std::string& device = "v100-sxm2-16gb") {
    DoctorHosts hosts;
    hosts.nodes = 1;
    hosts.model = model;
    hosts.training = "batch_per_device: 8" + training;
    hosts.device = device;
    return input_of(diagnosed(hosts.text()), "training.anchor").measure;
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  const std::string plain = measured("resnet18", "");
  CHECK(has(plain, "get_model('resnet18').cuda().to(memory_format=torch.contiguous_format)"));
  CHECK(has(plain, "torch.optim.SGD(net.parameters(), lr=0.01)\n"));
  CHECK_FALSE(has(plain, "torch.compile"));
  CHECK(has(measured("resnet18", ", execution: compiled"), "\nnet = torch.compile(net)\n"));
  CHECK(has(measured("resnet18", ", layout: nhwc"), "torch.channels_last)"));
  CHECK(has(measured("resnet18", ", optimizer: momentum"), "SGD(net.parameters(), lr=0.01, momentum=0.9)"));
  CHECK(has(measured("resnet18", ", optimizer: adam"), "Adam(net.parameters())"));
  CHECK(has(measured("googlenet", ""), "getattr(out, 'logits', out)"));
  for (const char* model :
       {"lenet5", "inception_v4", "wrn_28_10",
        "{name: toy, input: [3, 32, 32], layers: [{name: c, kind: conv2d, out_channels: 8, kernel: 3}]}"})
    CHECK_FALSE(has(measured(model, ""), "python3"));
  CHECK_FALSE(has(measured("resnet18", "", "xeon-platinum-8480"), "python3"));
}

TEST_CASE("doctor: a loader is measured by lines of its own library only") {
  const auto measured = [](const std::string& library) {
    DoctorHosts hosts;
    hosts.nodes = 1;
    hosts.vcpus = ", vcpus: 4";
    hosts.training =
        fmt::format("batch_per_device: 8, input: {{kind: jpeg, library: {}, cached: true}}", library);
    return input_of(diagnosed(hosts.text()), "training.input.core_images_per_s").measure;
  };
  for (const char* library : {"pil", "pillow_simd"})
    CHECK(measured(library).starts_with("DATA is a folder of images by class:\npython3"));
  for (const char* library : {"dali_cpu", "dali_gpu", "tf_data"})
    CHECK(measured(library).find("python3") == std::string::npos);
}

TEST_CASE("doctor: its text tells every run and all that is open of it, each measurement once") {
  DoctorHosts hosts;
  hosts.more = "sweep: {training.batch_per_device: [8, 16, 32]}\n";
  const Diagnosis diagnosis = diagnose(experiment_of(hosts.text()), 1, [](std::size_t, std::size_t) {});
  REQUIRE(diagnosis.runs.size() == 3);
  const std::string text = doctor_text(diagnosis);
  std::set<std::string> measurements;
  std::size_t at = 0;
  for (const DoctorRun& run : diagnosis.runs) {
    at = text.find(
        fmt::format("\nrun {}: training.batch_per_device: {}, a step takes {}, {} to {} at 80 %\n", run.id,
                    run.point.front().second.scalar, format_time(run.step_time_s),
                    format_time(run.interval->step_time_s[0]), format_time(run.interval->step_time_s[1])),
        at);
    REQUIRE(at != std::string::npos);
    REQUIRE(run.inputs.size() > 1);
    for (const DoctorInput& input : run.inputs) {
      at = text.find(fmt::format("  {}: {} (", input.key, input.value), at);
      REQUIRE(at != std::string::npos);
      if (input.variance_share >= 0.01) measurements.insert(input.measure);
    }
  }
  for (const std::string& measurement : measurements) {
    const std::size_t first = text.find("\n" + measurement + "\n");
    REQUIRE(first != std::string::npos);
    CHECK(text.find("\n" + measurement + "\n", first + 1) == std::string::npos);
  }
}

TEST_CASE("doctor: an anchor has the images that a device works on") {
  const auto batch = [](const std::string& strategy, const std::string& training, const std::string& images) {
    DoctorHosts hosts;
    hosts.nodes = 4;
    hosts.strategy = strategy;
    hosts.training = training;
    const std::string measure = input_of(diagnosed(hosts.text()), "training.anchor").measure;
    return measure.find("batch: " + images + "}") != std::string::npos;
  };
  CHECK(batch("{kind: single}", "batch_per_device: 64", "64"));
  CHECK(batch("{kind: data_parallel, sync: all_reduce, algorithm: ring}", "batch_per_device: 64", "64"));
  CHECK(batch("{kind: pipeline, stages: 4, micro_batches: 4, schedule: gpipe, partition: balanced}",
              "global_batch: 64", "64"));
}

TEST_CASE("doctor: of several kinds it names the host that does not say how fast it issues") {
  const std::string text =
      "experiment: e\nmodel: resnet18\ntraining: {batch_per_device: 8}\n"
      "strategy: {kind: data_parallel, sync: all_reduce, algorithm: ring}\ncluster:\n"
      "  nodes: [{name: a, count: 1, server: told}, {name: b, count: 1, server: untold}]\n"
      "  fabric: {kind: switch, bandwidth: 10Gbps, latency: 20us, protocol: tcp}\n"
      "  servers:\n"
      "    told: {devices: [{device: v100-sxm2-16gb, count: 1}], interconnect: {kind: none}, host: "
      "{issue_factor: 1}}\n"
      "    untold: {devices: [{device: k80, count: 1}], interconnect: {kind: none}}\n";
  const DoctorRun run = diagnosed(text);
  CHECK(input_of(run, "cluster.servers.untold.host.issue_factor").variance_share >= 0);
}
