// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <cmath>
#include <set>
#include <string>

#include "sim/numerics/kernels.h"
#include "sim/numerics/learn.h"
#include "sim/numerics/learner.h"
#include "sim/numerics/service_twin.h"
#include "sim/numerics/twin.h"
#include "tests/numerics/course.h"
#include "tests/numerics/networks.h"
#include "tests/prove/covered.h"
#include "tests/prove/plan_mutants.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

/// Covered experiments on small images, with a loss.
std::string learning_model(const std::string& model) {
  return boost::replace_all_copy(model, "input: [3, 8, 8],", "input: [3, 4, 4], loss: cross_entropy,");
}

/// In front of batch normalization a bias has no gradient that could be lost.
std::string without_normalization(const std::string& model) {
  return boost::replace_all_copy(model, "kind: batch_norm", "kind: tanh");
}

}  // namespace

TEST_CASE("numerics: random replicas and pipelines have one device's parameters after three steps") {
  int equal = 0, own = 0, endless = 0;
  for (unsigned seed = 1; seed <= 24; ++seed) {
    Dice dice(seed + 700);
    const CoveredExperiment of(dice);
    const Optimizer optimizer = dice.one_of<Optimizer>({Optimizer::sgd, Optimizer::momentum});
    CAPTURE(seed);
    CAPTURE(of.model);
    CAPTURE(of.cluster);
    CAPTURE(of.strategy);
    if (of.batch == 48) {
      ++endless;
      const Course course(learning_model(of.model), of.cluster, of.strategy,
                          {of.batch, std::nullopt, {"test", 1, 1}}, optimizer);
      CHECK(refuses_plan(course.plan, course.it.graph()) == "");
      continue;
    }
    const Course course(learning_model(of.model), of.cluster, of.strategy, {4, std::nullopt, {"test", 1, 1}},
                        optimizer);
    REQUIRE(refuses_plan(course.plan, course.it.graph()) == "");
    REQUIRE(refuses_numerics(course.it.graph().model) == "");
    const double off = distance_after_three_steps(course, course.plan);
    const bool alone = course.it.machine().devices.size() == 1;
    if (of.strategy.find("compression") == std::string::npos || alone) {
      CHECK(off < 1e-10);
      ++equal;
    } else {
      // Of its own way: rounded to half precision, or with most gradients left for later.
      CHECK(off < (of.strategy.find("fp16") != std::string::npos ? 0.02 : 5.0));
      ++own;
    }
  }
  CHECK(equal >= 10);
  CHECK(own >= 2);
  MESSAGE(equal << " plans equal to one device, " << own << " with compression, " << endless
                << " never flushed");
}

TEST_CASE("numerics: shares by speed, Adam, dropout and parameter servers have one device's parameters") {
  const std::string five = star(5, "1GB/s", "1us", ", speed_spread: 0.4"), four = star(4, "1GB/s", "1us");
  const std::string model = boost::replace_first_copy(learning_network("resnet"), "{name: f,",
                                                      "{name: d, kind: dropout, rate: 0.3}, {name: f,");
  for (const auto& [cluster, strategy] :
       {std::pair<std::string, std::string>{five, "{kind: data_parallel, sync: all_reduce, shares: speed}"},
        {four, "{kind: data_parallel, sync: all_reduce, algorithm: ring, zero: 3, bucket: 3kB}"},
        {four, "{kind: data_parallel, sync: parameter_server, servers: 1}"},
        {four, "{kind: data_parallel, sync: parameter_server, servers: 3, sharding: even, bucket: 2kB}"},
        {four, "{kind: data_parallel, sync: parameter_server, servers: 2, pull: at_first_use}"},
        {four,
         "{kind: data_parallel, sync: parameter_server, servers: 2, placement: dedicated, pull: after_all, "
         "micro_batches: 2, overlap: false}"}})
    for (const Optimizer optimizer : {Optimizer::adam, Optimizer::momentum}) {
      CAPTURE(strategy);
      const Course course(model, cluster, strategy, {4, std::nullopt, {"test", 1, 1}}, optimizer);
      REQUIRE(refuses_plan(course.plan, course.it.graph()) == "");
      // Adam divides by gradients' roots, which magnifies how sums are rounded.
      CHECK(distance_after_three_steps(course, course.plan) < (optimizer == Optimizer::adam ? 1e-7 : 1e-10));
    }
}

namespace {

/// Machines with several devices each.
std::string nodes_of(const std::string& nodes) {
  return fmt::format(
      "{{name: lab, nodes: [{}], fabric: {{kind: switch, bandwidth: 1GB/s, latency: 1us}}, servers: {{"
      "two: {{devices: [{{device: ideal, count: 2}}], interconnect: {{kind: pcie, bandwidth: 12GB/s, "
      "latency: 1us}}}}, "
      "three: {{devices: [{{device: ideal, count: 3}}], interconnect: {{kind: pcie, bandwidth: 12GB/s, "
      "latency: 1us}}}}}}, "
      "devices: {{ideal: {{peak: {{fp32: 10TFLOPS}}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: "
      "1.0, "
      "launch_overhead: 0us}}}}}}",
      nodes);
}

/// Leaves out the first receipt of gradients or parameters from the own node.
bool lose_message_in_node(Plan& plan) {
  for (Role& role : plan.roles)
    for (Task& task : role.program) {
      if (task.kind != Task::Kind::receive) continue;
      const CommMeaning& means = plan.meaning->communications[plan.communications[task.comm].meaning];
      if (means.kind != CommMeaning::Kind::collect && means.kind != CommMeaning::Kind::hand_out) continue;
      task.kind = Task::Kind::compute;
      task.stream = 0;
      return true;
    }
  return false;
}

}  // namespace

TEST_CASE("numerics: gradients that are added up in nodes first make one device's parameters") {
  const std::string model = learning_network("resnet");
  int mistakes = 0, silent = 0;
  for (const char* nodes : {"{name: a, count: 2, server: three}",
                            "{name: a, count: 1, server: three}, {name: b, count: 2, server: two}",
                            "{name: a, count: 1, server: three}"})
    for (const char* where : {"host", "owner", "ring"})
      for (const char* more : {"servers: 1", "servers: 2, sharding: even, bucket: 3kB, placement: dedicated",
                               "servers: 1, pull: at_first_use, micro_batches: 2"}) {
        const std::string strategy = fmt::format(
            "{{kind: data_parallel, sync: parameter_server, local_aggregation: {}, {}}}", where, more);
        CAPTURE(nodes);
        CAPTURE(strategy);
        const Course course(model, nodes_of(nodes), strategy, {4, std::nullopt, {"test", 1, 1}},
                            Optimizer::momentum);
        REQUIRE(refuses_plan(course.plan, course.it.graph()) == "");
        CHECK(distance_after_three_steps(course, course.plan) < 1e-10);
        Plan plan = course.plan;
        if (!lose_message_in_node(plan)) continue;  // a ring
        ++mistakes;
        try {
          silent += distance_after_three_steps(course, plan) < 1e-10;
        } catch (const MissingValue& missing) {
          CHECK_FALSE(std::string(missing.what()).empty());
        }
      }
  CHECK(mistakes >= 15);
  CHECK(silent == 0);
}

TEST_CASE("numerics: a plan with a mistake misses a value or learns otherwise than one device") {
  int made = 0, missed = 0, wrong = 0;
  std::string silent;
  for (unsigned seed = 1; made < 24; ++seed) {
    Dice dice(seed + 30'000);
    const CoveredExperiment of(dice);
    if (of.batch == 48 || of.strategy.find("compression") != std::string::npos) continue;
    const Course course(without_normalization(learning_model(of.model)), of.cluster, of.strategy,
                        {4, std::nullopt, {"test", 1, 1}}, Optimizer::sgd);
    if (course.it.machine().devices.size() < 2) continue;
    Plan plan = course.plan;
    plan.meaning = std::make_shared<Meaning>(*plan.meaning);
    const auto mutant = dice.one_of<PlanMutant>(
        {PlanMutant::gradient_lost, PlanMutant::result_lost, PlanMutant::operation_dropped,
         PlanMutant::update_dropped, PlanMutant::border_off_by_one, PlanMutant::micro_batch_twice});
    const std::string what = change(plan, course.it.graph(), mutant, dice);
    if (what.empty()) continue;
    ++made;
    CAPTURE(seed);
    CAPTURE(what);
    try {
      if (distance_after_three_steps(course, plan) > 1e-10)
        ++wrong;
      else
        silent += fmt::format("seed {}: {}: {}\n", seed, what, of.strategy);
    } catch (const std::exception& error) {
      CHECK_FALSE(std::string(error.what()).empty());
      ++missed;
    }
  }
  MESSAGE(missed << " miss a value, " << wrong << " learn otherwise, of " << made);
  CHECK_MESSAGE(silent.empty(), silent);
  CHECK(missed > 0);
  CHECK(wrong > 0);
}

namespace {

/// A second way to train with servers that update at once: whole gradients from a learner with the client's
/// parameters, plain SGD, everything kept by hand.
ParameterValues<double> by_hand(const Course& course, const ServiceLog& log) {
  const TrainingGraph& graph = course.it.graph();
  ParameterValues<double> server = first_parameters<double>(graph, twin_seed);
  std::map<EndpointId, ParameterValues<double>> client, gradient;
  std::map<EndpointId, std::int64_t> steps;
  const Service& service = *course.plan.service();
  const auto images = static_cast<std::int64_t>(service.clients.front().images);
  std::map<std::uint32_t, std::vector<EndpointId>> waiting;
  for (const ServiceLog::Event& event : log.events) {
    if (event.kind == ServiceLog::Event::Kind::begin) {
      auto& own = client.try_emplace(event.client, server).first->second;
      if (steps[event.client] == 0) own = first_parameters<double>(graph, twin_seed);
      Learner<double> learner(graph, course.data, twin_seed, rate);
      learner.set_parameters(own);
      const std::int64_t first =
          steps[event.client]++ * course.batch() + course.plan.meaning->lanes[event.client] * images;
      gradient[event.client] = learner.gradients(images, {{first, images}});
      continue;
    }
    const Communication& push = course.plan.communications[service.exchanges[event.exchange].push];
    const std::uint32_t bucket = course.plan.meaning->communications[push.meaning].bucket;
    for (const std::size_t p : course.plan.meaning->buckets[bucket].parameters) {
      if (event.kind == ServiceLog::Event::Kind::answer) client[event.client][p] = server[p];
      if (event.kind != ServiceLog::Event::Kind::update) continue;
      for (const EndpointId e : waiting[event.exchange])
        for (std::size_t i = 0; i < server[p].size(); ++i)
          server[p][i] -= rate * gradient[e][p][i] / static_cast<double>(waiting[event.exchange].size());
    }
    if (event.kind == ServiceLog::Event::Kind::add) waiting[event.exchange].push_back(event.client);
    if (event.kind == ServiceLog::Event::Kind::update) waiting[event.exchange].clear();
  }
  return server;
}

}  // namespace

TEST_CASE("numerics: workers one by one learn as a second program does from the log of the replay") {
  for (const std::string more : {"mode: async", "mode: async, servers: 3", "mode: ssp, staleness: 2",
                                 "backup_workers: 1", "backup_workers: 1, servers: 2"}) {
    CAPTURE(more);
    const std::string strategy = "{kind: data_parallel, sync: parameter_server, " + more + "}";
    const Course course(learning_network("lenet"), star(4, "20MB/s", "10us", ", speed_spread: 0.3"), strategy,
                        {4, std::nullopt, {"test", 1, 1}}, Optimizer::sgd);
    REQUIRE(refuses_plan(course.plan, course.it.graph()) == "");
    ServiceLog log;
    log.steps_wanted = 60;
    ReplayOptions options;
    options.fold = false;
    options.service_log = &log;
    const ReplayResult logged = replay(course.plan, course.it.machine(), course.it.cost(), options);
    CHECK(std::is_sorted(log.events.begin(), log.events.end(),
                         [](const auto& a, const auto& b) { return a.time_s < b.time_s; }));
    CHECK(logged.step_time_s ==
          doctest::Approx(replay(course.plan, course.it.machine(), course.it.cost(), {}).step_time_s)
              .epsilon(1e-9));
    log.events.resize(std::min<std::size_t>(log.events.size(), 600));
    ServiceTwin<double> twin(course.lesson, course.plan, course.it.machine(), rate);
    for (const ServiceLog::Event& event : log.events) twin.happen(event);
    CHECK(distance(twin.classroom().parameters(), by_hand(course, log)) < 1e-10);
    CHECK(twin.images() > 0);
  }
}

namespace {

/// A second way to learn as PipeDream does: stage s of S begins micro-batch m when max(0, m - (S - s) + 1) have
/// been backward there, keeps the version of that moment for it, and updates with the mean gradient of every
/// `share` micro-batches. Doubled, as PipeDream-2BW: micro-batches of update u have, in every stage, the version
/// of max(0, u - 1) updates. @param updates of each stage
ParameterValues<double> kept_by_hand(const Course& course, std::int64_t images, std::int64_t share,
                                     std::size_t updates, bool doubled) {
  const TrainingGraph& graph = course.it.graph();
  const std::vector<PipelineStage>& stages = course.it.report().stages;
  std::vector<std::size_t> stage_of;  // by parameter
  for (const Parameter& parameter : graph.parameters)
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const std::vector<std::string>& layers = stages[s].layers;
      if (std::find(layers.begin(), layers.end(), graph.model.layers[parameter.layer].name) != layers.end())
        stage_of.push_back(s);
    }
  REQUIRE(stage_of.size() == graph.parameters.size());
  std::vector<ParameterValues<double>> versions{first_parameters<double>(graph, twin_seed)};
  ParameterValues<double> sum;
  for (std::int64_t m = 0; versions.size() <= updates; ++m) {
    ParameterValues<double> own = versions.front();
    for (std::size_t p = 0; p < own.size(); ++p) {
      const auto ahead = static_cast<std::int64_t>(stages.size() - stage_of[p]);
      const std::int64_t done = std::max<std::int64_t>(0, m - ahead + 1);
      const std::int64_t version = doubled ? std::max<std::int64_t>(0, m / share - 1) : done / share;
      own[p] = versions.at(static_cast<std::size_t>(version))[p];
    }
    Learner<double> learner(graph, course.data, twin_seed, rate);
    learner.set_parameters(own);
    const ParameterValues<double> gradient = learner.gradients(images, {{m * images, images}});
    if (m % share == 0) sum = gradient;
    for (std::size_t p = 0; p < sum.size() && m % share > 0; ++p)
      for (std::size_t e = 0; e < sum[p].size(); ++e) sum[p][e] += gradient[p][e];
    if ((m + 1) % share > 0) continue;
    versions.push_back(versions.back());
    for (std::size_t p = 0; p < sum.size(); ++p)
      for (std::size_t e = 0; e < sum[p].size(); ++e)
        versions.back()[p][e] -= rate * sum[p][e] / static_cast<double>(share);
  }
  return versions.at(updates);
}

}  // namespace

TEST_CASE("numerics: pipelines that stash or double weights learn as a second program does by hand") {
  const std::string shared = "replicas: 2, inner: {kind: data_parallel, sync: all_reduce, zero: 1}, ";
  for (const auto& [weights, stages, micro_batches, replicas] : {std::tuple("stash", 2, 1, std::string()),
                                                                 {"stash", 2, 2, ""},
                                                                 {"stash", 3, 1, ""},
                                                                 {"stash", 3, 2, ""},
                                                                 {"stash", 2, 1, shared},
                                                                 {"stash", 3, 2, shared},
                                                                 {"double_buffered", 2, 2, ""},
                                                                 {"double_buffered", 2, 3, ""},
                                                                 {"double_buffered", 3, 3, ""},
                                                                 {"double_buffered", 3, 4, ""},
                                                                 {"double_buffered", 2, 2, shared},
                                                                 {"double_buffered", 3, 3, shared}}) {
    CAPTURE(replicas);
    CAPTURE(weights);
    CAPTURE(stages);
    CAPTURE(micro_batches);
    const Course course(learning_network("lenet"),
                        star(replicas.empty() ? stages : 2 * stages, "1GB/s", "1us"),
                        fmt::format("{{kind: pipeline, stages: {}, {}micro_batches: {}, weights: {}}}",
                                    stages, replicas, micro_batches, weights),
                        {std::nullopt, 12, {"test", 1, 1}}, Optimizer::sgd);
    REQUIRE(refuses_plan(course.plan, course.it.graph()) == "");
    const ReplayResult replayed = replay(course.plan, course.it.machine(), course.it.cost(), {});
    Twin<double> twin(course.lesson, course.plan, course.it.machine(), replayed, rate);
    const double first = twin.next_step();
    double last = first;
    for (std::size_t step = 1; step < course.plan.endless()->steady_steps; ++step) last = twin.next_step();
    CHECK(first == doctest::Approx(std::log(10.0)).epsilon(0.2));
    CHECK(last < first);
    twin.finish();
    std::size_t updates = 0;
    for (const Task& task : course.plan.roles.front().program)
      updates += task.name.rfind("update", 0) == 0 ? 1 : 0;
    CHECK(updates > 40);
    const std::int64_t images = course.batch() / micro_batches;
    const ParameterValues<double> by_hand =
        kept_by_hand(course, images, micro_batches, updates, std::string(weights) == "double_buffered");
    CHECK(distance(twin.classroom().parameters(), by_hand) < 1e-10);
    // Without the versions that are kept it would be another way to learn.
    CHECK(distance(by_hand, first_parameters<double>(course.it.graph(), twin_seed)) > 1e-3);
  }
}

TEST_CASE(
    "numerics: what a pipeline that is never flushed learns, with replicas, at the times of its replay") {
  const Course course(learning_network("lenet"), star(4, "1GB/s", "1us"),
                      "{kind: pipeline, stages: 2, replicas: 2, micro_batches: 4, weights: stash}",
                      {4, std::nullopt, {"test", 1, 1}}, Optimizer::momentum);
  NumericsSpec spec;
  spec.data = drawn(300);
  spec.seed = twin_seed, spec.steps = 40, spec.learning_rate = rate;
  REQUIRE(refuses_plan(course.plan, course.it.graph()) == "");
  REQUIRE(refuses_steps(spec, course.plan) == "");
  const std::vector<LearntPoint> points =
      learn(spec, course.data, course.plan, course.it.graph(), course.it.machine(), course.it.cost());
  REQUIRE(points.size() == 20);
  for (std::size_t i = 1; i < points.size(); ++i) CHECK(points[i].time_s > points[i - 1].time_s);
  const double step_s = replay(course.plan, course.it.machine(), course.it.cost(), {}).step_time_s;
  CHECK((points.back().time_s - points[10].time_s) /
            static_cast<double>(points.back().step - points[10].step) ==
        doctest::Approx(step_s).epsilon(0.1));
  CHECK(points.back().loss < points.front().loss);
  CHECK(points.back().accuracy > points.front().accuracy);
  spec.steps = 100'000;
  CHECK(refuses_steps(spec, course.plan).find("steps are simulated") != std::string::npos);
}

TEST_CASE("numerics: one asynchronous worker is one device, and single precision is close to double") {
  const Course course(learning_network("lenet"), star(1, "1GB/s", "1us"),
                      "{kind: data_parallel, sync: parameter_server, mode: async}",
                      {8, std::nullopt, {"test", 1, 1}}, Optimizer::momentum);
  NumericsSpec spec;
  spec.data = drawn(300);
  spec.seed = twin_seed, spec.steps = 12, spec.learning_rate = rate;
  const auto points = [&] {
    return learn(spec, course.data, course.plan, course.it.graph(), course.it.machine(), course.it.cost());
  };
  const std::vector<LearntPoint> in_double = points();
  spec.precision = NumericsSpec::Real::in_single;
  const std::vector<LearntPoint> in_single = points();
  REQUIRE(in_double.size() == 12);
  Learner<double> learner(course.it.graph(), course.data, twin_seed, rate);
  for (std::size_t i = 0; i < in_double.size(); ++i) {
    CHECK(in_double[i].step == static_cast<std::int64_t>(i) + 1);
    CHECK(in_double[i].time_s > (i == 0 ? 0 : in_double[i - 1].time_s));
    CHECK(in_double[i].loss == doctest::Approx(learner.step(8, {{0, 8}})).epsilon(1e-9));
    CHECK(in_double[i].accuracy == learner.judged().accuracy);
    CHECK(in_single[i].loss == doctest::Approx(in_double[i].loss).epsilon(1e-4));
    CHECK(in_single[i].time_s == in_double[i].time_s);
  }
}
