// SPDX-License-Identifier: MIT
// Strategies that say the same in other words: equal in everything that a run tells, on machines of the
// catalogue with their transports, whatever the software. The seed of a random case is printed when it fails.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/run/preparer.h"
#include "sim/run/simulate.h"
#include "tests/run/searches.h"

using namespace convoy;
using namespace convoy::searches;

namespace {

bool same(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

struct CatalogueServer {
  const char* name;
  int devices;
  bool half;  ///< has half precision's tensor cores
};

/// PCIe with and without peer-to-peer, NVLink, NVSwitch; TCP and RDMA between hosts.
const std::vector<CatalogueServer>& servers() {
  static const std::vector<CatalogueServer> table{
      {"dgx1-v100", 8, true},
      {"dgx-a100", 8, true},
      {"dgx2", 16, true},
      {"aws-p2.8xlarge", 8, false},
      {"aws-p3.2xlarge", 1, true},
      {"aws-p3.8xlarge", 4, true},
      {"aws-g4dn.12xlarge", 4, true},
      {"gcp-n1-standard-8-k80", 1, false},
      {"workstation-4-rtx-2080-ti", 4, true},
      {"workstation-4-rtx-2080-ti-nvlink", 4, true},
  };
  return table;
}

/// A model of the zoo on a machine of the catalogue under some framework.
struct CatalogueCase {
  std::string text;  ///< of the experiment
  int devices = 1, micro_batches = 1;

  CatalogueCase(lab::Dice& dice, bool may_recompute) {
    const CatalogueServer server = dice.one_of(servers());
    const int nodes = server.devices > 4 ? dice.between(1, 2) : dice.between(1, 4);
    const int of_node = server.devices == 1 ? 1 : dice.one_of<int>({2, 4});
    devices = nodes * of_node;
    micro_batches = dice.one_of<int>({1, 1, 2, 4});
    const std::string framework =
        dice.one_of<std::string>({"pytorch", "pytorch1", "tensorflow", "tensorflow1", "mxnet"});
    const std::string precision = server.half && dice.coin() ? "fp16" : "fp32";
    std::string training =
        fmt::format("{{batch_per_device: {}, framework: {}, precision: {}, optimizer: {}, layout: {}",
                    micro_batches * dice.between(1, 12), framework, precision,
                    dice.one_of<std::string>({"sgd", "momentum", "adam"}), dice.coin() ? "nchw" : "nhwc");
    if (framework.starts_with("tensorflow")) training += dice.coin() ? ", execution: compiled" : "";
    if (may_recompute && dice.between(0, 3) == 0)
      training += fmt::format(", recompute: {}", dice.coin() ? "blocks" : "sqrt");
    if (dice.between(0, 2) == 0 && !std::string(server.name).starts_with("workstation"))
      training += fmt::format(", input: {{kind: jpeg, library: {}}}",
                              dice.one_of<std::string>({"pil", "tf_data", "dali_gpu"}));
    text = experiment(
        dice.one_of<std::string>({"resnet18", "alexnet", "squeezenet1_0", "vgg11_bn", "mobilenet_v2"}),
        fmt::format("{{server: {}, nodes: {}, devices_per_node: {}}}", server.name, nodes, of_node),
        "{kind: single}", training + "}");
  }
};

/// How gradients are summed: keys that data_parallel, hybrid and a pipeline's inner strategy all have.
std::string random_sums(lab::Dice& dice) {
  const int zero = std::max(0, dice.between(-4, 3));
  const bool largest = zero == 0 && dice.between(0, 5) == 0;
  std::string keys = fmt::format("overlap: {}, zero: {}", dice.coin(), zero);
  if (largest) keys += ", compression: {kind: top_k, ratio: 0.01}";
  keys += fmt::format(", algorithm: {}", zero > 0 || largest
                                             ? "ring"
                                             : dice.one_of<std::string>({"ring", "tree", "hierarchical",
                                                                         "halving_doubling", "auto"}));
  if (dice.coin())
    keys += fmt::format(", bucket: {}", dice.one_of<std::string>({"1kB", "1MB", "10MB", "1GB"}));
  if (dice.between(0, 3) == 0) keys += ", rings: in_order";
  return keys;
}

/// Everything but its names and what is told of the strategy itself.
void check_equal(const RunResult& a, const RunResult& b) {
  CHECK(a.devices == b.devices);
  CHECK(a.global_batch == b.global_batch);
  CHECK(same(a.step_time_s, b.step_time_s));
  CHECK(same(a.compute_s, b.compute_s));
  CHECK(std::abs(a.exposed_comm_s - b.exposed_comm_s) <= 1e-9 * a.step_time_s);
  CHECK(std::abs(a.idle_s - b.idle_s) <= 1e-9 * a.step_time_s);
  CHECK(std::abs(a.issue_wait_s - b.issue_wait_s) <= 1e-9 * a.step_time_s);
  CHECK(same(a.comm_bytes, b.comm_bytes));
  CHECK(same(a.energy_j, b.energy_j));
  CHECK(same(a.load_imbalance, b.load_imbalance));
  CHECK(same(a.peak_memory_bytes, b.peak_memory_bytes));
  CHECK(same(a.process_memory_bytes, b.process_memory_bytes));
  CHECK(a.fits == b.fits);
  CHECK(a.software == b.software);
  CHECK(a.warnings == b.warnings);
  CHECK(a.bottleneck.kind == b.bottleneck.kind);
  CHECK(a.bottleneck.name == b.bottleneck.name);
  CHECK(a.interval.has_value() == b.interval.has_value());
  if (a.interval && b.interval)
    for (const std::size_t end : {0, 1}) {
      CHECK(same(a.interval->step_time_s[end], b.interval->step_time_s[end]));
      CHECK(same(a.interval->peak_memory_bytes[end], b.interval->peak_memory_bytes[end]));
    }
  REQUIRE(a.per_device.size() == b.per_device.size());
  for (std::size_t d = 0; d < a.per_device.size(); ++d) {
    CHECK(same(a.per_device[d].busy_s, b.per_device[d].busy_s));
    CHECK(same(a.per_device[d].sent_bytes, b.per_device[d].sent_bytes));
    CHECK(same(a.per_device[d].energy_j, b.per_device[d].energy_j));
    for (std::size_t c = 0; c < memory_class_count; ++c) {
      CAPTURE(memory_class_names[c]);
      CHECK(same(a.per_device[d].memory[c], b.per_device[d].memory[c]));
    }
  }
  REQUIRE(a.per_link.size() == b.per_link.size());
  for (std::size_t l = 0; l < a.per_link.size(); ++l) CHECK(same(a.per_link[l].bytes, b.per_link[l].bytes));
}

/// Simulates an experiment with other strategies in place of its own.
class Alternatives {
 public:
  explicit Alternatives(const std::string& text) : written_(text), preparer_(*written_) {}
  RunResult run(const std::string& strategy) {
    const YamlNode node = parse_yaml(strategy, "strategy");
    return simulate(preparer_.prepare(0, &node), false).result;
  }

 private:
  Written written_;
  Preparer preparer_;
};

constexpr unsigned cases = 40;

}  // namespace

TEST_CASE("catalogue: a hybrid whose layers are all split by images is data parallelism, in groups or not") {
  for (unsigned seed = 1; seed <= cases; ++seed) {
    lab::Dice dice(seed);
    const CatalogueCase it(dice, true);
    const std::string sums = fmt::format("{}, micro_batches: {}", random_sums(dice), it.micro_batches);
    const int replicas = dice.coin() ? it.devices : 1;
    CAPTURE(seed);
    CAPTURE(it.text);
    CAPTURE(sums);
    CAPTURE(replicas);
    Alternatives alternatives(it.text);
    const RunResult data = alternatives.run("{kind: data_parallel, sync: all_reduce, " + sums + "}");
    check_equal(data, alternatives.run("{kind: hybrid, conv: batch, fc: batch, " + sums + "}"));
    check_equal(data, alternatives.run(fmt::format(
                          "{{kind: hybrid, conv: batch, fc: batch, replicas: {}, {}}}", replicas, sums)));
  }
}

TEST_CASE("catalogue: a pipeline of one stage does what its inner strategy does") {
  for (unsigned seed = 1; seed <= cases; ++seed) {
    lab::Dice dice(seed + 1000);
    const CatalogueCase it(dice, false);
    const std::string sums = random_sums(dice);
    CAPTURE(seed);
    CAPTURE(it.text);
    CAPTURE(sums);
    CAPTURE(it.micro_batches);
    Alternatives alternatives(it.text);
    for (const std::string inner :
         {"{kind: data_parallel, sync: all_reduce, ", "{kind: hybrid, conv: batch, fc: batch, "}) {
      CAPTURE(inner);
      check_equal(
          alternatives.run(fmt::format("{}{}, micro_batches: {}}}", inner, sums, it.micro_batches)),
          alternatives.run(fmt::format("{{kind: pipeline, stages: 1, micro_batches: {}, inner: {}{}}}}}",
                                       it.micro_batches, inner, sums)));
    }
  }
}

TEST_CASE("catalogue: replicas of a pipeline of one stage are data parallelism that sums after backward") {
  for (unsigned seed = 1; seed <= cases; ++seed) {
    lab::Dice dice(seed + 2000);
    const CatalogueCase it(dice, false);
    const std::string algorithm =
        dice.one_of<std::string>({"ring", "tree", "hierarchical", "halving_doubling", "auto"});
    CAPTURE(seed);
    CAPTURE(it.text);
    CAPTURE(algorithm);
    CAPTURE(it.micro_batches);
    Alternatives alternatives(it.text);
    check_equal(
        alternatives.run(fmt::format("{{kind: data_parallel, sync: all_reduce, overlap: false, algorithm: "
                                     "{}, micro_batches: {}}}",
                                     algorithm, it.micro_batches)),
        alternatives.run(fmt::format("{{kind: pipeline, stages: 1, replicas: {}, algorithm: {}, "
                                     "micro_batches: {}}}",
                                     it.devices, algorithm, it.micro_batches)));
  }
}

TEST_CASE("catalogue: on one device every strategy does what single does") {
  for (unsigned seed = 1; seed <= cases; ++seed) {
    lab::Dice dice(seed + 3000);
    CatalogueCase it(dice, false);
    const std::size_t at = it.text.find("nodes: ");
    it.text.replace(at, it.text.find('}', at) - at, "nodes: 1, devices_per_node: 1");
    const std::string sums = random_sums(dice);
    CAPTURE(seed);
    CAPTURE(it.text);
    CAPTURE(sums);
    Alternatives alternatives(it.text);
    const RunResult alone =
        alternatives.run(fmt::format("{{kind: single, micro_batches: {}}}", it.micro_batches));
    const std::string parts = fmt::format(", micro_batches: {}}}", it.micro_batches);
    check_equal(alone, alternatives.run("{kind: data_parallel, sync: all_reduce, " + sums + parts));
    check_equal(alone, alternatives.run("{kind: hybrid, conv: batch, fc: filter, " + sums + parts));
    check_equal(alone, alternatives.run("{kind: pipeline, stages: 1" + parts));
  }
}
