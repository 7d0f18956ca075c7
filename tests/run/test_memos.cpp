// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/base/memo.h"
#include "sim/results/field_text.h"
#include "sim/run/prepared_memo.h"
#include "sim/run/preparer.h"
#include "sim/run/simulate.h"
#include "sim/run/sweep.h"
#include "sim/run/wire.h"
#include "tests/laws/random_experiment.h"

using namespace convoy;

namespace {

/// Keys of a mapping: what is drawn for it, with one of the keys drawn anew for the second value. An empty
/// value leaves the key out.
struct DrawnKey {
  std::string name;
  std::vector<std::string> values;
};

std::string flow(const std::string& fixed, const std::vector<DrawnKey>& keys,
                 const std::vector<std::string>& of) {
  std::string text = fixed;
  for (std::size_t k = 0; k < keys.size(); ++k)
    if (!of[k].empty()) text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", keys[k].name, of[k]);
  return "{" + text + "}";
}

/// "[{...}, {...}]": two mappings that differ in one key, or not at all.
std::string two_of(lab::Dice& dice, const std::string& fixed, const std::vector<DrawnKey>& keys) {
  std::vector<std::string> values;
  for (const DrawnKey& key : keys) values.push_back(dice.one_of(key.values));
  const std::string first = flow(fixed, keys, values);
  const auto k = static_cast<std::size_t>(dice.between(0, static_cast<int>(keys.size()) - 1));
  values[k] = dice.one_of(keys[k].values);
  return fmt::format("[{}, {}]", first, flow(fixed, keys, values));
}

std::string drawn_trainings(lab::Dice& dice) {
  return two_of(dice, "",
                {{"batch_per_device", {"4", "8", "32"}},
                 {"precision", {"", "fp32", "fp16", "tf32"}},
                 {"optimizer", {"sgd", "momentum", "adam"}},
                 {"framework", {"pytorch", "pytorch1", "tensorflow", "tensorflow1", "mxnet"}},
                 {"execution", {"", "eager", "compiled"}},
                 {"layout", {"", "nchw", "nhwc"}},
                 {"recompute", {"", "", "sqrt"}},
                 {"anchor", {"", "", "", "{images_per_s: 300, batch: 16, device: v100-sxm2-16gb}"}},
                 {"input",
                  {"", "", "{kind: jpeg, library: pil, workers_per_device: 2}",
                   "{kind: jpeg, library: dali_gpu, workers_per_device: 2}"}}});
}

std::string drawn_clusters(lab::Dice& dice) {
  const auto cluster = [](const std::string& nodes, const std::string& fabric, const std::string& count,
                          const std::string& device, const std::string& links) {
    return fmt::format(
        "{{name: lab, nodes: {}, fabric: {{latency: 10us, {}}}, servers: {{box: {{devices: [{{device: {}, "
        "count: {}}}], interconnect: {}}}}}}}",
        nodes, fabric, device, count, links);
  };
  const std::vector<DrawnKey> keys{
      {"nodes",
       {"[{name: n, count: 1, server: box}]", "[{name: n, count: 2, server: box}]",
        "[{name: n, count: 2, server: box, speed_spread: 0.2}]",
        "[{name: n, count: 1, server: box}, {name: slow, count: 1, server: box, speed: 0.7}]"}},
      {"fabric",
       {"kind: switch, bandwidth: 10Gbps", "kind: switch, bandwidth: 25Gbps, protocol: tcp",
        "kind: switch, bandwidth: 10Gbps, protocol: ideal", "kind: ring, bandwidth: 10Gbps, protocol: rdma"}},
      {"count", {"1", "2", "4"}},
      {"device", {"v100-sxm2-16gb", "v100-sxm2-32gb", "k80", "rtx-2080-ti"}},
      {"links",
       {"{kind: pcie, bandwidth: 12GB/s, latency: 5us}", "{kind: pcie, bandwidth: 3GB/s, latency: 5us}",
        "{kind: nvlink, bandwidth: 25GB/s, latency: 2us}"}}};
  std::vector<std::string> of;
  for (const DrawnKey& key : keys) of.push_back(dice.one_of(key.values));
  const std::string first = cluster(of[0], of[1], of[2], of[3], of[4]);
  const auto k = static_cast<std::size_t>(dice.between(0, static_cast<int>(keys.size()) - 1));
  of[k] = dice.one_of(keys[k].values);
  return fmt::format("[{}, {}]", first, cluster(of[0], of[1], of[2], of[3], of[4]));
}

std::string drawn_strategies(lab::Dice& dice) {
  switch (dice.between(0, 5)) {
    case 0:
      return two_of(dice, "kind: data_parallel, sync: parameter_server",
                    {{"servers", {"1", "2"}},
                     {"placement", {"dedicated", "colocated"}},
                     {"sharding", {"tensor", "even"}},
                     {"mode", {"sync", "sync", "async"}},
                     {"transport", {"", "grpc", "zmq"}}});
    case 1:
      return two_of(dice, "kind: pipeline, stages: 2",
                    {{"micro_batches", {"2", "4"}}, {"schedule", {"gpipe", "1f1b"}}});
    default:
      return two_of(dice, "kind: data_parallel, sync: all_reduce",
                    {{"algorithm", {"ring", "tree", "halving_doubling", "hierarchical", "nccl", "auto"}},
                     {"bucket", {"", "10kB", "300kB", "1MB"}},
                     {"overlap", {"true", "true", "false"}},
                     {"zero", {"", "", "", "1", "2", "3"}},
                     {"compression",
                      {"", "", "", "fp16", "{kind: top_k, ratio: 0.01}", "{kind: quantised, bits: 1}",
                       "{kind: quantised, bits: 8}"}},
                     {"micro_batches", {"", "", "2", "4"}},
                     {"launches", {"", "together", "apart", "per_process"}},
                     {"rings", {"", "in_order"}},
                     {"shares", {"", "speed"}},
                     {"fidelity", {"", "chunk", "fluid"}},
                     {"transport", {"", "gloo", "nccl"}}});
  }
}

/// What points of one experiment come to.
struct Contents {
  Preparer preparer;
  PreparedMemo<std::string> known{};
  std::size_t simulated = 0;
};

/// A point's output as stores keep it, its check, or what is wrong with it.
std::string content(Contents& of, std::size_t index) {
  try {
    const auto text = [&](const PreparedRun& run) {
      ++of.simulated;
      const PlannedPoint planned = planned_point(run);
      return fmt::format("{} {} {}", planned.device, planned.process_bytes,
                         encode(stored_form(simulate(run, true), true)));
    };
    return of.known.of(std::make_shared<const PreparedRun>(of.preparer.prepare(index)), text);
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE(
    "memos: points that have something in common are the same to the last bit, with and without them [law]") {
  std::size_t simulated = 0;
  for (unsigned seed = 1; seed <= 24; ++seed) {
    CAPTURE(seed);
    lab::Dice dice(seed);
    const std::string model = lab::random_model(dice);
    const std::string text = fmt::format(
        "experiment: memos\nmodel: {}\ntraining: {{}}\ncluster: {{}}\nstrategy: {{}}\nsweep:\n  cluster: "
        "{}\n  "
        "training: {}\n  strategy: {}\n",
        model, drawn_clusters(dice), drawn_trainings(dice), drawn_strategies(dice));
    CAPTURE(text);
    const Experiment experiment = Experiment::parse(text, "memos.yaml", {});
    std::vector<std::string> alone;
    for (std::size_t i = 0; i < experiment.size(); ++i) {
      const WithoutMemos without;
      Contents of{Preparer(experiment)};
      alone.push_back(content(of, i));
      simulated += of.simulated;
    }
    for (const bool backwards : {false, true}) {
      CAPTURE(backwards);
      Contents of{Preparer(experiment)};
      for (std::size_t k = 0; k < experiment.size(); ++k) {
        const std::size_t i = backwards ? experiment.size() - 1 - k : k;
        CAPTURE(i);
        CHECK(content(of, i) == alone[i]);
      }
    }
  }
  CHECK(simulated > 35);  // of 192: what cannot be run is the same error
}

TEST_CASE("memos: points whose plans are equal are simulated once, and are what they are alone [law]") {
  std::size_t different = 0;
  for (unsigned seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    lab::Dice dice(seed);
    const std::string text = fmt::format(
        "experiment: equal\nmodel: {}\ntraining: {{batch_per_device: 32, optimizer: sgd}}\ncluster: {{}}\n"
        "strategy: {{kind: data_parallel, sync: all_reduce}}\nsweep:\n  cluster: {}\n"
        "  strategy.bucket: [1kB, 300kB, 1GB, 2GB]\n  strategy.algorithm: [ring, auto]\n",
        lab::random_model(dice), drawn_clusters(dice));
    CAPTURE(text);
    const Experiment experiment = Experiment::parse(text, "equal.yaml", {});
    const auto results_without_memos = [&] {
      const WithoutMemos without;
      return simulate_sweep(experiment, 1, false);
    };
    const Results alone = results_without_memos(), together = simulate_sweep(experiment, 2, false);
    Contents of{Preparer(experiment)};
    std::vector<std::string> contents;
    for (std::size_t i = 0; i < experiment.size(); ++i) {
      CAPTURE(i);
      CHECK(to_text(together.runs[i], run_body_fields) == to_text(alone.runs[i], run_body_fields));
      contents.push_back(content(of, i));
      const WithoutMemos without;
      Contents anew{Preparer(experiment)};
      CHECK(content(anew, i) == contents.back());
    }
    CHECK(of.simulated <= experiment.size() * 3 / 4);  // buckets of 1 and 2 GB hold everything
    std::ranges::sort(contents);
    different += contents.size() - std::ranges::unique(contents).size();
  }
  CHECK(different > 30);
}

TEST_CASE("memos: what is kept is bounded, and counts what points to weigh") {
  struct Heavy {
    std::size_t size;
    std::size_t weight() const { return size; }
  };
  struct Key {
    int number;
    bool operator==(const Key&) const = default;
    std::size_t hash() const { return static_cast<std::size_t>(number % 2); }  // collides
  };
  int made = 0;
  Memo<Key, int> numbers(3);
  const auto square = [&](const Key& key) { return ++made, key.number * key.number; };
  for (const int number : {1, 2, 3, 1, 2, 3}) CHECK(numbers.of({number}, square) == number * number);
  CHECK(made == 3);
  CHECK(numbers.of({4}, square) == 16);  // begins anew
  CHECK(numbers.size() == 1);
  {
    const WithoutMemos without;
    CHECK(numbers.of({4}, square) == 16);
    CHECK(made == 5);
  }
  Memo<Key, std::shared_ptr<const Heavy>> heavy(100);
  const auto make = [&](const Key& key) {
    return std::make_shared<const Heavy>(static_cast<std::size_t>(key.number));
  };
  heavy.of({60}, make);
  heavy.of({101}, make);  // heavier than all: not kept, and nothing goes for it
  CHECK(heavy.size() == 1);
  heavy.of({39}, make);
  CHECK(heavy.size() == 2);
  heavy.of({2}, make);
  CHECK(heavy.size() == 1);
}
