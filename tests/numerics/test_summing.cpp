// SPDX-License-Identifier: MIT
// Ways of summing that do not compute what one device does: each against a second implementation, which has
// the devices' gradients from a learner that knows no plan and follows the papers' algorithms with loops.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/low_rank_shape.h"
#include "sim/numerics/draw.h"
#include "sim/numerics/kernels.h"
#include "sim/numerics/learn.h"
#include "sim/numerics/learner.h"
#include "sim/numerics/peer_twin.h"
#include "sim/numerics/twin.h"
#include "tests/numerics/networks.h"
#include "tests/prove/covered.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

using Values = ParameterValues<double>;

constexpr double learning_rate = 0.05;
constexpr std::uint64_t class_seed = 11;

/// Four devices that learn digits' size of images, 3 images a device and step.
struct FourDevices {
  explicit FourDevices(const std::string& strategy, const std::string& cluster = star(4, "1GB/s", "1us"))
      : it(learning_network("lenet"), cluster, strategy, {3, std::nullopt, {"test", 1, 1}}),
        plan(plan_with_meaning(it)),
        data(load_data(spec(), it.graph().model.input, 10, class_seed)),
        index(it.graph()),
        order(class_seed, data.train.count()),
        lesson{it.graph(), data, index, class_seed, order} {
    REQUIRE(refuses_plan(plan, it.graph()) == "");
  }
  static DataSpec spec() {
    DataSpec drawn;
    drawn.kind = DataSpec::Kind::drawn;
    drawn.train = 200, drawn.held_out = 10;
    return drawn;
  }

  /// Mean gradient of a device's images in a step, which come in one or in three micro-batches.
  Values gradient(const Values& parameters, std::int64_t step, std::int64_t device, int parts = 1) const {
    Learner<double> learner(it.graph(), data, class_seed, learning_rate);
    learner.set_parameters(parameters);
    if (parts == 1) return learner.gradients(3, {{step * 12 + device * 3, 3}});
    std::vector<ImageShare> shares;  // every micro-batch goes to one device after the other
    for (std::int64_t part = 0; part < 3; ++part) shares.push_back({step * 12 + part * 4 + device, 1});
    return learner.gradients(3, shares);
  }
  Values first() const { return first_parameters<double>(it.graph(), class_seed); }

  /// The twin's parameters (of averages the mean of the devices') after so many runs of its programs.
  Values learnt(int runs) const {
    const ReplayResult replayed = replay(plan, it.machine(), it.cost(), {});
    Twin<double> twin(lesson, plan, it.machine(), replayed, learning_rate);
    for (int run = 0; run < runs; ++run) twin.step();
    return twin.classroom().parameters();
  }

  lab::Experiment it;
  Plan plan;
  LearningData data;
  NetworkIndex index;
  BatchOrder order;
  Lesson lesson;
};

double apart(const Values& a, const Values& b) {
  double most = 0;
  for (std::size_t p = 0; p < a.size(); ++p)
    for (std::size_t e = 0; e < a[p].size(); ++e) {
      const double off = std::abs(a[p][e] - b[p][e]);
      if (!(off <= most)) most = off;
    }
  return most;
}

void step_down(Values& x, const Values& gradient) {
  for (std::size_t p = 0; p < x.size(); ++p)
    for (std::size_t e = 0; e < x[p].size(); ++e) x[p][e] -= learning_rate * gradient[p][e];
}

Values mean_of(const std::vector<Values>& all) {
  Values mean = all[0];
  for (std::size_t p = 0; p < mean.size(); ++p)
    for (std::size_t e = 0; e < mean[p].size(); ++e) {
      double sum = 0;
      for (const Values& each : all) sum += each[p][e];
      mean[p][e] = sum / static_cast<double>(all.size());
    }
  return mean;
}

/// Synchronous training where gradients of all devices become one by `combine`, which may keep what it likes.
using Combine = std::function<Values(std::vector<Values> of_devices)>;
Values trained(const FourDevices& of, int steps, const Combine& combine) {
  Values x = of.first();
  for (int step = 0; step < steps; ++step) {
    std::vector<Values> gradients;
    for (int d = 0; d < 4; ++d) {
      gradients.push_back(of.gradient(x, step, d));
      for (auto& tensor : gradients.back())  // the plan adds up parts of the batch's mean
        for (double& value : tensor) value /= 4;
    }
    step_down(x, combine(std::move(gradients)));
  }
  return x;
}

std::string sums(const std::string& compression) {
  return "{kind: data_parallel, sync: all_reduce, overlap: false, compression: " + compression + "}";
}

/// Every value of the one message.
template <class Visit>
void for_each_value(Values& values, Visit visit) {
  for (auto& tensor : values)
    for (double& value : tensor) visit(value);
}

/// Error feedback: what `round` makes of gradients and residual is sent, the difference stays.
Combine with_feedback(const std::function<void(Values&)>& round) {
  return [round, residuals = std::vector<Values>()](std::vector<Values> gradients) mutable {
    if (residuals.empty()) {
      residuals = gradients;
      for (Values& residual : residuals) for_each_value(residual, [](double& value) { value = 0; });
    }
    Values sum = gradients[0];
    for_each_value(sum, [](double& value) { value = 0; });
    for (std::size_t d = 0; d < gradients.size(); ++d) {
      Values sent = gradients[d];
      for (std::size_t p = 0; p < sent.size(); ++p)
        for (std::size_t e = 0; e < sent[p].size(); ++e) sent[p][e] += residuals[d][p][e];
      residuals[d] = sent;
      round(sent);
      for (std::size_t p = 0; p < sent.size(); ++p)
        for (std::size_t e = 0; e < sent[p].size(); ++e) {
          residuals[d][p][e] -= sent[p][e];
          sum[p][e] += sent[p][e];
        }
    }
    return sum;
  };
}

}  // namespace

TEST_CASE("numerics: signs and one-bit gradients with error feedback learn what a second program does") {
  const FourDevices signs(sums("sign")), bits(sums("{kind: quantised, bits: 1}")),
      votes(sums("{kind: sign, combine: majority}"));
  const auto by_mean = [](Values& values) {
    double sum = 0, count = 0;
    for_each_value(values, [&](double& value) { sum += std::abs(value), ++count; });
    for_each_value(values, [&](double& value) { value = value < 0 ? -sum / count : sum / count; });
  };
  const auto by_two_means = [](Values& values) {
    double below = 0, above = 0, count_below = 0, count_above = 0;
    for_each_value(values, [&](double& value) {
      value < 0 ? (below += value, ++count_below) : (above += value, ++count_above);
    });
    for_each_value(values,
                   [&](double& value) { value = value < 0 ? below / count_below : above / count_above; });
  };
  CHECK(apart(signs.learnt(4), trained(signs, 4, with_feedback(by_mean))) < 1e-12);
  CHECK(apart(bits.learnt(4), trained(bits, 4, with_feedback(by_two_means))) < 1e-12);
  const auto by_vote = [](const std::vector<Values>& gradients) {
    Values all = gradients[0];
    for (std::size_t p = 0; p < all.size(); ++p)
      for (std::size_t e = 0; e < all[p].size(); ++e) {
        int balance = 0;
        for (const Values& each : gradients) balance += each[p][e] < 0 ? -1 : 1;
        all[p][e] = balance == 0 ? 0 : balance / std::abs(balance);
      }
    return all;
  };
  CHECK(apart(votes.learnt(3), trained(votes, 3, by_vote)) < 1e-12);
  // They are not the sum of gradients.
  const FourDevices plain("{kind: data_parallel, sync: all_reduce}");
  for (const FourDevices* of : {&signs, &bits, &votes}) CHECK(apart(of->learnt(3), plain.learnt(3)) > 1e-4);
}

TEST_CASE(
    "numerics: gradients in several bits are rounded at random, by less than a level and right in the mean") {
  const FourDevices plain("{kind: data_parallel, sync: all_reduce}"),
      eight(sums("{kind: quantised, bits: 8}")), two(sums("{kind: quantised, bits: 2}"));
  const Values exact = plain.learnt(1), first = plain.first();
  double range = 0;
  for (std::size_t p = 0; p < exact.size(); ++p)
    for (std::size_t e = 0; e < exact[p].size(); ++e)
      range = std::max(range, std::abs(exact[p][e] - first[p][e]) / learning_rate);
  CHECK(apart(eight.learnt(1), exact) < learning_rate * 4 * 4 * range / 255);
  CHECK(apart(two.learnt(1), exact) > apart(eight.learnt(1), exact));
  CHECK(apart(eight.learnt(2), eight.learnt(2)) == 0);  // chance is drawn from a seed
  // Over its 5,000 values, the mean error of the roughest code is a small part of its largest.
  double sum = 0, largest = 0, count = 0;
  const Values rough = two.learnt(1);
  for (std::size_t p = 0; p < exact.size(); ++p)
    for (std::size_t e = 0; e < exact[p].size(); ++e) {
      sum += rough[p][e] - exact[p][e], ++count;
      largest = std::max(largest, std::abs(rough[p][e] - exact[p][e]));
    }
  CHECK(std::abs(sum / count) < largest * 4 / std::sqrt(count));
}

TEST_CASE("numerics: PowerSGD learns what a second program of its algorithm does, at any rank") {
  for (const int rank : {1, 2, 5}) {
    CAPTURE(rank);
    const FourDevices of(sums(fmt::format("{{kind: powersgd, rank: {}}}", rank)));
    const TrainingGraph& graph = of.it.graph();
    using Matrix = std::vector<std::vector<double>>;
    std::vector<Matrix> right(graph.parameters.size());  // Q of each parameter
    std::vector<Values> residuals;
    int matrices = 0;
    const auto combine = [&](std::vector<Values> gradients) {
      if (residuals.empty()) {
        residuals = gradients;
        for (Values& residual : residuals) for_each_value(residual, [](double& value) { value = 0; });
      }
      Values sum = gradients[0];
      for (std::size_t p = 0; p < sum.size(); ++p) {
        const Parameter& parameter = graph.parameters[p];
        const auto shape =
            low_rank_shape(graph.model, parameter, static_cast<double>(parameter.elements), rank);
        if (!shape) {
          for (std::size_t e = 0; e < sum[p].size(); ++e) {
            sum[p][e] = 0;
            for (const Values& each : gradients) sum[p][e] += each[p][e];
          }
          continue;
        }
        ++matrices;
        const auto n = static_cast<std::size_t>(shape->rows), m = static_cast<std::size_t>(shape->columns),
                   r = static_cast<std::size_t>(shape->rank);
        if (right[p].empty()) {
          right[p].assign(m, std::vector<double>(r));
          for (std::size_t j = 0; j < m; ++j)
            for (std::size_t c = 0; c < r; ++c)
              right[p][j][c] = drawn_normal(class_seed, drawn_stream(DrawnFor::factors, p), j * r + c);
        }
        Matrix left(n, std::vector<double>(r, 0.0));
        for (std::size_t d = 0; d < 4; ++d)
          for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < m; ++j) {
              if (double& value = residuals[d][p][i * m + j]; true) value += gradients[d][p][i * m + j];
              for (std::size_t c = 0; c < r; ++c) left[i][c] += residuals[d][p][i * m + j] * right[p][j][c];
            }
        for (std::size_t c = 0; c < r; ++c) {
          for (std::size_t before = 0; before < c; ++before) {
            double along = 0;
            for (std::size_t i = 0; i < n; ++i) along += left[i][before] * left[i][c];
            for (std::size_t i = 0; i < n; ++i) left[i][c] -= along * left[i][before];
          }
          double norm = 0;
          for (std::size_t i = 0; i < n; ++i) norm += left[i][c] * left[i][c];
          for (std::size_t i = 0; i < n; ++i) left[i][c] /= std::sqrt(norm) + 1e-8;
        }
        for (std::size_t j = 0; j < m; ++j)
          for (std::size_t c = 0; c < r; ++c) {
            right[p][j][c] = 0;
            for (std::size_t d = 0; d < 4; ++d)
              for (std::size_t i = 0; i < n; ++i) right[p][j][c] += residuals[d][p][i * m + j] * left[i][c];
          }
        for (std::size_t i = 0; i < n; ++i)
          for (std::size_t j = 0; j < m; ++j) {
            double& value = sum[p][i * m + j];
            value = 0;
            for (std::size_t c = 0; c < r; ++c) value += left[i][c] * right[p][j][c];
            for (std::size_t d = 0; d < 4; ++d) residuals[d][p][i * m + j] -= value / 4;
          }
      }
      return sum;
    };
    CHECK(apart(of.learnt(4), trained(of, 4, combine)) < 1e-9);
    CHECK(matrices >= 8);
    // Buckets and overlap change when, not what.
    const FourDevices cut(
        "{kind: data_parallel, sync: all_reduce, bucket: 1kB, compression: {kind: powersgd, rank: " +
        std::to_string(rank) + "}}");
    CHECK(apart(of.learnt(4), cut.learnt(4)) < 1e-12);
  }
  // With factors no smaller than their matrices all goes whole.
  const FourDevices whole(sums("{kind: powersgd, rank: 1000}")),
      plain("{kind: data_parallel, sync: all_reduce}");
  CHECK(apart(whole.learnt(3), plain.learnt(3)) < 1e-12);
}

TEST_CASE("numerics: local SGD, with slow momentum and sums in hosts, learns what a second program does") {
  const std::string hosts =
      "{name: lab, nodes: [{name: n, count: 2, server: box}], fabric: {kind: switch, bandwidth: 1GB/s, "
      "latency: "
      "1us}, servers: {box: {devices: [{device: ideal, count: 2}], interconnect: {kind: pcie, bandwidth: "
      "10GB/s, latency: 0us}}}, devices: {ideal: {peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: "
      "500GB/s, efficiency: 1.0, launch_overhead: 0us}}}";
  for (const double momentum : {0.0, 0.6})
    for (const std::size_t together : {1U, 2U})
      for (const int every : {2, 3}) {
        CAPTURE(momentum);
        CAPTURE(together);
        CAPTURE(every);
        const FourDevices of(
            fmt::format("{{kind: data_parallel, sync: all_reduce, bucket: 3kB, sync_every: {}{}{}}}", every,
                        momentum > 0 ? fmt::format(", slow_momentum: {}", momentum) : "",
                        together > 1 ? ", sum_in_hosts: true" : ""),
            hosts);
        std::vector<Values> x(4, of.first());
        Values before = of.first(), slow = of.first();
        for_each_value(slow, [](double& value) { value = 0; });
        for (int step = 0; step < 3 * every; ++step) {
          std::vector<Values> gradients;
          for (int d = 0; d < 4; ++d)
            gradients.push_back(of.gradient(x[static_cast<std::size_t>(d)], step, d));
          for (std::size_t d = 0; d < 4; ++d) {
            std::vector<Values> group;
            for (std::size_t other = d / together * together; group.size() < together; ++other)
              group.push_back(gradients[other]);
            step_down(x[d], mean_of(group));
          }
          if ((step + 1) % every > 0) continue;
          const Values mean = mean_of(x);
          for (std::size_t p = 0; p < mean.size(); ++p)
            for (std::size_t e = 0; e < mean[p].size(); ++e) {
              slow[p][e] = momentum * slow[p][e] + before[p][e] - mean[p][e];
              before[p][e] -= slow[p][e];
            }
          x.assign(4, before);
        }
        CHECK(apart(of.learnt(3), x[0]) < 1e-11);
      }
}

TEST_CASE("numerics: gossip learns what a second program does, on every graph, while computing or after it") {
  for (const std::string graph : {"ring", "exponential", "one_peer"})
    for (const bool overlap : {true, false}) {
      CAPTURE(graph);
      CAPTURE(overlap);
      const FourDevices of(fmt::format(
          "{{kind: data_parallel, sync: gossip, neighbours: {}, overlap: {}, bucket: 3kB, micro_batches: 3}}",
          graph, overlap));
      const int steps = 4;
      std::vector<Values> x(4, of.first());
      for (int step = 0; step < steps; ++step) {
        const std::vector<Values> began = x;
        std::vector<Values> gradients;
        for (int d = 0; d < 4; ++d)
          gradients.push_back(of.gradient(x[static_cast<std::size_t>(d)], step, d, 3));
        const auto mix = [&] {
          const std::vector<Values> sent = x;
          for (std::size_t d = 0; d < 4; ++d) {
            std::vector<Values> group{sent[d]};
            if (graph == "ring") group.insert(group.end(), {sent[(d + 1) % 4], sent[(d + 3) % 4]});
            if (graph == "exponential") group.insert(group.end(), {sent[(d + 3) % 4], sent[(d + 2) % 4]});
            if (graph == "one_peer") group.push_back(sent[(d + (step % 2 == 0 ? 3U : 2U)) % 4]);
            x[d] = mean_of(group);
          }
        };
        if (overlap) mix();
        for (std::size_t d = 0; d < 4; ++d) step_down(x[d], gradients[d]);
        if (!overlap) mix();
      }
      CHECK(apart(of.learnt(graph == "one_peer" ? steps / 2 : steps), mean_of(x)) < 1e-11);
    }
}

TEST_CASE("numerics: gossip between hosts learns what a second program does") {
  const std::string hosts =
      "{name: lab, nodes: [{name: n, count: 2, server: box}], fabric: {kind: switch, bandwidth: 1GB/s, "
      "latency: 1us}, "
      "servers: {box: {devices: [{device: ideal, count: 2}], interconnect: {kind: pcie, bandwidth: 10GB/s, "
      "latency: "
      "0us}}}, devices: {ideal: {peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, "
      "efficiency: 1.0, "
      "launch_overhead: 0us}}}";
  for (const std::string graph : {"ring", "exponential", "one_peer"})
    for (const bool overlap : {true, false}) {
      CAPTURE(graph);
      CAPTURE(overlap);
      const FourDevices of(fmt::format("{{kind: data_parallel, sync: gossip, neighbours: {}, overlap: {}, "
                                       "sum_in_hosts: true, bucket: 3kB}}",
                                       graph, overlap),
                           hosts);
      // Two hosts: each is the other's only neighbour.
      std::vector<Values> x(2, of.first());
      for (int step = 0; step < 4; ++step) {
        std::vector<Values> gradients;
        for (int h = 0; h < 2; ++h)
          gradients.push_back(mean_of({of.gradient(x[static_cast<std::size_t>(h)], step, 2 * h),
                                       of.gradient(x[static_cast<std::size_t>(h)], step, 2 * h + 1)}));
        const auto mix = [&] { x.assign(2, mean_of(x)); };
        if (overlap) mix();
        for (std::size_t h = 0; h < 2; ++h) step_down(x[h], gradients[h]);
        if (!overlap) mix();
      }
      CHECK(apart(of.learnt(4), mean_of(x)) < 1e-11);
    }
}

TEST_CASE("numerics: asynchronous gossip learns what a second program does from the log of the replay") {
  for (const std::string speeds : {"", ", speed_spread: 0.5"}) {
    CAPTURE(speeds);
    const FourDevices of("{kind: data_parallel, sync: gossip, asynchronous: true, bucket: 3kB}",
                         star(4, "1GB/s", "1us", speeds));
    ServiceLog log;
    log.steps_wanted = 240;
    ReplayOptions options;
    options.fold = false;
    options.service_log = &log;
    replay(of.plan, of.it.machine(), of.it.cost(), options);
    PeerTwin<double> twin(of.lesson, of.plan, of.it.machine(), learning_rate);
    std::vector<Values> x(4, of.first()), gradient(4);
    std::vector<std::int64_t> steps(4, 0);
    // By device and bucket: what it has sent, and what has come for it. Parameters of a bucket are whole
    // tensors.
    std::map<std::pair<std::size_t, std::uint32_t>, std::pair<Values, Values>> met;
    std::vector<EndpointId> begun;  // who has begun a step, in order
    for (const ServiceLog::Event& event : log.events) {
      if (begun.size() == 240) break;  // the log goes on to the end of the measurement
      twin.happen(event);
      const auto bucket_of = [&](std::uint32_t exchange) {
        const CommId push = of.plan.service()->exchanges[exchange].push;
        return of.plan.meaning->communications[of.plan.communications[push].meaning].bucket;
      };
      if (event.kind == ServiceLog::Event::Kind::update) {
        auto& [sent, came] = met.at({event.client, event.exchange});
        came = x[event.server];
        for (const std::size_t p : of.plan.meaning->buckets[bucket_of(event.exchange)].parameters)
          for (std::size_t e = 0; e < came[p].size(); ++e)
            x[event.server][p][e] = 0.5 * came[p][e] + 0.5 * sent[p][e];
      }
      if (event.kind != ServiceLog::Event::Kind::begin) continue;
      const std::size_t d = event.client;
      if (steps[d] > 0) {
        for (std::uint32_t k = 0; k < of.plan.service()->exchanges.size(); ++k) {
          const auto& [sent, came] = met.at({d, k});
          for (const std::size_t p : of.plan.meaning->buckets[bucket_of(k)].parameters)
            for (std::size_t e = 0; e < x[d][p].size(); ++e) x[d][p][e] += (came[p][e] - sent[p][e]) / 2;
        }
        step_down(x[d], gradient[d]);
      }
      for (std::uint32_t k = 0; k < of.plan.service()->exchanges.size(); ++k) met[{d, k}] = {x[d], {}};
      gradient[d] = of.gradient(x[d], steps[d]++, static_cast<std::int64_t>(d));
      begun.push_back(event.client);
    }
    CHECK(apart(twin.classroom().parameters(), mean_of(x)) < 1e-11);
    REQUIRE(begun.size() == 240);
    CHECK(twin.images() > 60);
    std::set<std::vector<EndpointId>> rounds;
    for (auto at = begun.begin(); at != begun.end(); at += 4) rounds.insert({at, at + 4});
    if (!speeds.empty()) CHECK(rounds.size() > 1);  // devices that are not equally fast overtake one another
  }
}

TEST_CASE("numerics: a plan of averages that forgets a wait misses a value") {
  for (const std::string strategy :
       {"{kind: data_parallel, sync: all_reduce, sync_every: 2}", "{kind: data_parallel, sync: gossip}"}) {
    CAPTURE(strategy);
    const FourDevices of(strategy);
    Plan plan = of.plan;
    for (Role& role : plan.roles)
      for (Task& task : role.program)
        if (task.kind == Task::Kind::compute)
          std::erase_if(task.after,
                        [&](TaskId before) { return role.program[before].kind == Task::Kind::collective; });
    const ReplayResult replayed = replay(plan, of.it.machine(), of.it.cost(), {});
    Twin<double> twin(of.lesson, plan, of.it.machine(), replayed, learning_rate);
    CHECK_THROWS_AS(twin.step(), MissingValue);
  }
}
