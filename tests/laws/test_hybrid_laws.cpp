// SPDX-License-Identifier: MIT
// Laws of hybrid parallelism over random networks, layouts and clusters. The seed of a random case is printed
// when it fails.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>

#include "strategies/split_time.h"
#include "tests/laws/laws.h"
#include "tests/laws/random_experiment.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

constexpr std::int64_t hybrid_batch = 4;  ///< a device

/// A random experiment in groups of at most 3 devices, which is as many as some layers have channels.
struct RandomHybrid {
  std::string model, strategy, conv, fc, custom;
  RandomCluster cluster;
  int devices = 1, replicas = 1;

  explicit RandomHybrid(Dice& dice)
      : model(random_model(dice)),
        cluster(random_cluster(dice, dice.one_of<std::string>({"switch", "ring", "full_mesh"}))) {
    const int hosts = cluster.devices == 4 ? dice.between(1, 2) : dice.between(1, 6);
    cluster.nodes = fmt::format("[{{name: n, count: {}, server: box{}}}]", hosts,
                                dice.coin() ? "" : ", speed_spread: 0.2");
    devices = hosts * cluster.devices;
    replicas = devices == 5 ? 5 : devices == 8 ? 4 : devices == 2 || devices > 3 ? 2 : 1;
    if (devices == 2 && dice.coin()) replicas = 1;
    conv = dice.one_of<std::string>({"batch", "filter", "pairs", "height", "width", "grid", "replicated"});
    fc = dice.one_of<std::string>({"batch", "filter", "channel", "replicated"});
    custom = dice.one_of<std::string>({"batch", "filter", "replicated"});
    if (conv == "grid") take_grid();
    // Behind layers that are not split by images none is.
    const bool parts = is_custom() ? custom != "batch" : fc != "batch";
    strategy = fmt::format(
        "{{kind: hybrid, {}, replicas: {}, algorithm: {}, bucket: {}kB, overlap: {}{}}}",
        is_custom() ? fmt::format("groups: [{{kind: custom, layout: {}}}]", custom)
                    : fmt::format("conv: {}, fc: {}", conv, fc),
        replicas, dice.one_of<std::string>({"ring", "tree", "halving_doubling", "hierarchical", "auto"}),
        dice.one_of<int>({10, 300, 100000}), dice.coin(),
        parts ? dice.one_of<std::string>({"", ", scheme: b", ", scheme: c"}) : "");
  }

  /// Rows and columns of groups, which have four devices where that divides the cluster.
  void take_grid() {
    if (devices % 4 == 0) {
      replicas = devices / 4;
      fc = "replicated";
    }
    const int group = devices / replicas, rows = group % 2 == 0 ? 2 : 1;
    conv = fmt::format("{{height: {}, width: {}}}", rows, group / rows);
  }

  bool is_custom() const { return model.find("custom") != std::string::npos; }
};

#define CAPTURE_CASE(hybrid)        \
  CAPTURE(seed);                    \
  CAPTURE((hybrid).model);          \
  CAPTURE((hybrid).cluster.text()); \
  CAPTURE((hybrid).strategy)

struct Done {
  double flops = 0;  ///< over all devices
  double images = 0;
  std::size_t times = 0;
};

std::map<std::string, Done> operations_done(const Plan& plan) {
  std::map<std::string, Done> done;
  for (const Role& role : plan.roles)
    for (const Task& task : role.program)
      for (const PlanOp& op : task.ops) {
        Done& all = done[op.name.substr(0, op.name.find(" #"))];
        const auto members = static_cast<double>(role.members.size());
        all.flops += members * (op.work.flops_per_image * op.images + op.work.flops_fixed);
        all.images += members * op.images;
        ++all.times;
      }
  return done;
}

bool is_deciding(const Layer& layer) {
  return std::holds_alternative<Conv2d>(layer.kind) || std::holds_alternative<Linear>(layer.kind) ||
         std::holds_alternative<Custom>(layer.kind);
}

}  // namespace

TEST_CASE(
    "hybrid: every operation is done once for every image, or by everyone of a group where replicated") {
  for (unsigned seed = 1; seed <= 150; ++seed) {
    Dice dice(seed);
    const RandomHybrid hybrid(dice);
    CAPTURE_CASE(hybrid);
    const Experiment experiment(hybrid.model, hybrid.cluster.text(), hybrid.strategy, hybrid_batch);
    const std::map<std::string, Done> done = operations_done(experiment.plan());
    const double images = static_cast<double>(hybrid_batch * hybrid.devices);
    CHECK(experiment.plan().images == images);
    const double group = hybrid.devices / hybrid.replicas;
    for (const Operation& op : experiment.graph().operations) {
      CAPTURE(op.name);
      REQUIRE(done.count(op.name) == 1);
      const Layer& layer = experiment.graph().model.layers[op.layer];
      if (op.phase == Phase::update) continue;
      const double times = done.at(op.name).flops / (op.work.flops_per_image * images);
      if (op.work.flops_per_image == 0) continue;
      CHECK((same(times, 1) || same(times, group)));
      const std::string& layout = std::holds_alternative<Custom>(layer.kind)   ? hybrid.custom
                                  : std::holds_alternative<Linear>(layer.kind) ? hybrid.fc
                                                                               : hybrid.conv;
      if (is_deciding(layer) && op.reader == Operation::no_reader)
        CHECK(same(times, layout == "replicated" ? group : 1));
    }
  }
}

TEST_CASE("hybrid: the optimizer updates every parameter once, or once a copy of it") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    Dice dice(seed + 500);
    const RandomHybrid hybrid(dice);
    CAPTURE_CASE(hybrid);
    const Experiment experiment(hybrid.model, hybrid.cluster.text(), hybrid.strategy, hybrid_batch);
    const std::map<std::string, Done> done = operations_done(experiment.plan());
    double weights = 0, updated = 0;
    for (const Role& role : experiment.plan().roles)
      weights += role.resident_bytes[0] * static_cast<double>(role.members.size());
    for (const Operation& op : experiment.graph().operations)
      if (op.phase == Phase::update) {
        const Layer& layer = experiment.graph().model.layers[op.layer];
        if (std::holds_alternative<Custom>(layer.kind))
          updated = -1;  // costs nothing
        else if (updated >= 0)
          updated +=
              done.at(op.name).flops / op.work.flops_fixed * static_cast<double>(layer.parameter_elements());
      }
    if (updated >= 0) CHECK(same(updated * 4, weights));  // fp32
  }
}

TEST_CASE("hybrid: bytes, memory, time and bounds of random plans hold, folded and unfolded alike") {
  for (unsigned seed = 1; seed <= 80; ++seed) {
    Dice dice(seed + 1000);
    const RandomHybrid hybrid(dice);
    CAPTURE_CASE(hybrid);
    const Experiment experiment(hybrid.model, hybrid.cluster.text(), hybrid.strategy, hybrid_batch);
    const Trial trial{experiment.graph(), experiment.machine(), experiment.cost(),
                      experiment.plan(),  experiment.report(),  experiment.run()};
    check_bytes(trial);
    check_time(trial);
    check_devices(trial);
    check_roles(trial);
    check_memory(trial);
    check_bounds(trial);
    const ReplayResult unfolded = experiment.run(false);
    CHECK(same(trial.result.step_time_s, unfolded.step_time_s));
    CHECK(same(trial.result.comm_bytes, unfolded.comm_bytes));
  }
}

TEST_CASE(
    "hybrid: the same with fewer images than devices, whatever the scheme, only what images split is "
    "refused") {
  std::map<std::string, int> fewer;  // by scheme: cases with fewer images than a group's devices
  for (unsigned seed = 1; seed <= 150; ++seed) {
    Dice dice(seed + 1500);
    const RandomHybrid hybrid(dice);
    const int group = hybrid.devices / hybrid.replicas, of_group = dice.between(1, 2 * group);
    CAPTURE_CASE(hybrid);
    CAPTURE(of_group);
    std::optional<Experiment> experiment;
    try {
      experiment.emplace(Experiment::with_global_batch(hybrid.model, hybrid.cluster.text(), hybrid.strategy,
                                                       of_group * hybrid.replicas));
    } catch (const InputError& refused) {
      CHECK(of_group < group);
      CHECK(std::string_view(refused.what()).find("without an image") != std::string_view::npos);
      continue;
    }
    const std::size_t at = hybrid.strategy.find("scheme: ");
    if (of_group < group) ++fewer[at == std::string::npos ? "a" : hybrid.strategy.substr(at + 8, 1)];
    const Trial trial{experiment->graph(), experiment->machine(), experiment->cost(),
                      experiment->plan(),  experiment->report(),  experiment->run()};
    check_bytes(trial);
    check_time(trial);
    check_devices(trial);
    check_roles(trial);
    check_memory(trial);
    check_bounds(trial);
    CHECK(experiment->plan().images == of_group * hybrid.replicas);
    const std::map<std::string, Done> done = operations_done(experiment->plan());
    for (const Operation& op : experiment->graph().operations) {
      CAPTURE(op.name);
      REQUIRE(done.count(op.name) == 1);
      if (op.phase == Phase::update || op.work.flops_per_image == 0) continue;
      const double times = done.at(op.name).flops / (op.work.flops_per_image * experiment->plan().images);
      CHECK((same(times, 1) || same(times, group)));
    }
  }
  for (const char* scheme : {"a", "b", "c"}) CHECK(fewer[scheme] >= 3);
}

TEST_CASE("hybrid: one device does exactly what it does alone, whatever the layouts") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    Dice dice(seed + 2000);
    RandomHybrid hybrid(dice);
    hybrid.cluster.nodes = "[{name: n, count: 1, server: box}]";
    hybrid.cluster.devices = 1;
    hybrid.cluster.interconnect = "{kind: none}";
    for (const char* key : {"replicas: ", "height: ", "width: "})
      if (const auto at = hybrid.strategy.find(key); at != std::string::npos)
        hybrid.strategy.replace(at + std::strlen(key), 1, "1");
    CAPTURE_CASE(hybrid);
    const ReplayResult alone =
        Experiment(hybrid.model, hybrid.cluster.text(), "{kind: single}", hybrid_batch).run();
    const ReplayResult one =
        Experiment(hybrid.model, hybrid.cluster.text(), hybrid.strategy, hybrid_batch).run();
    CHECK(same(one.step_time_s, alone.step_time_s));
    CHECK(one.comm_bytes == 0);
    CHECK(one.endpoints[0].peak_memory_bytes == alone.endpoints[0].peak_memory_bytes);
    CHECK(one.endpoints[0].memory_at_peak == alone.endpoints[0].memory_at_peak);
  }
}

TEST_CASE("hybrid: with all layers split by images it is data parallelism, in groups or not") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    Dice dice(seed + 3000);
    RandomHybrid hybrid(dice);
    const std::string how =
        fmt::format("algorithm: {}, bucket: {}kB, overlap: {}",
                    dice.one_of<std::string>({"ring", "tree", "halving_doubling", "hierarchical", "auto"}),
                    dice.one_of<int>({10, 300, 100000}), dice.coin());
    hybrid.strategy =
        fmt::format("{{kind: hybrid, conv: batch, fc: batch, replicas: {}, {}}}", hybrid.replicas, how);
    CAPTURE_CASE(hybrid);
    const ReplayResult replicas =
        Experiment(hybrid.model, hybrid.cluster.text(),
                   "{kind: data_parallel, sync: all_reduce, " + how + "}", hybrid_batch)
            .run();
    const ReplayResult result =
        Experiment(hybrid.model, hybrid.cluster.text(), hybrid.strategy, hybrid_batch).run();
    CHECK(same(result.step_time_s, replicas.step_time_s));
    CHECK(same(result.comm_bytes, replicas.comm_bytes));
    for (std::size_t d = 0; d < replicas.endpoints.size(); ++d) {
      CHECK(result.endpoints[d].peak_memory_bytes == replicas.endpoints[d].peak_memory_bytes);
      CHECK(same(result.endpoints[d].compute_s, replicas.endpoints[d].compute_s));
      CHECK(same(result.endpoints[d].exposed_comm_s, replicas.endpoints[d].exposed_comm_s));
    }
  }
}

TEST_CASE("hybrid: no part of an operation takes less than the least that its bound says, on uneven grids") {
  int compared = 0, near = 0;
  for (unsigned seed = 1; seed <= 120; ++seed) {
    Dice dice(seed);
    const Size2 grid{dice.between(1, 3), dice.between(2, 3)};
    const auto devices = static_cast<int>(grid.h * grid.w);
    // No axis has fewer than devices (see least_split_time_s).
    std::string layers;
    for (int i = dice.between(1, 3); i > 0; --i) {
      layers += fmt::format("{{name: conv{}, kind: conv2d, out_channels: {}, kernel: 3, padding: 1}}, ", i,
                            devices * dice.between(1, 3));
      if (dice.coin()) layers += fmt::format("{{name: relu{}, kind: relu}}, ", i);
    }
    // Some rows and columns more than can be shared out evenly.
    const int height = devices * dice.between(1, 3) + dice.between(0, 2);
    const int width = devices * dice.between(1, 3) + dice.between(0, 2);
    const std::string model =
        fmt::format("{{name: net, input: [{}, {}, {}], layers: [{}]}}", devices, height, width, layers);
    const std::int64_t images = devices * dice.between(1, 2);
    TrainingOptions options;
    if (dice.coin()) options.framework = Framework::tensorflow;  // biases and copies of filters aside
    CAPTURE(seed);
    CAPTURE(model);
    CAPTURE(to_string(options.framework));
    const std::string both = fmt::format("{{height: {}, width: {}}}", grid.h, grid.w);
    for (const std::string& layout :
         {both, std::string("batch"), std::string("filter"), std::string("width")}) {
      CAPTURE(layout);
      const Experiment experiment = Experiment::with_global_batch(
          model, star(devices, "10Gbps", "1us"), "{kind: hybrid, conv: " + layout + "}", images, options);
      const TrainingGraph& graph = experiment.graph();
      // A catalogue's device prices kernels by their geometry, an ideal one by FLOPs and bytes.
      for (const char* name : {"ideal", "v100-sxm2-16gb"}) {
        const DeviceType type =
            name == std::string("ideal") ? experiment.machine().device_types.front() : load_device(name, {});
        for (const Role& role : experiment.plan().roles)
          for (const Task& task : role.program)
            for (const PlanOp& op : task.ops) {
              if (op.operation == PlanOp::of_plan || op.work.phase == Phase::update) continue;
              const Operation& whole = graph.operations[op.operation];
              CAPTURE(whole.name);
              const double part_s = experiment.cost().time_s(op.work, op.images, type),
                           least_s = least_split_time_s(graph, whole, static_cast<double>(images), devices,
                                                        grid, experiment.cost(), type);
              CHECK(no_more(least_s, part_s));
              near += part_s < 1.2 * least_s;
              ++compared;
            }
      }
    }
  }
  CHECK(compared > 10'000);
  CHECK(near > compared / 10);
}
