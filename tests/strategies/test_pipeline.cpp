// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "strategies/pipeline/pipeline.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

/// The message of the InputError that planning 3 equal layers on 4 devices, 6 images each, ends with.
std::string pipeline_error(const std::string& strategy, int layers = 3) {
  try {
    lab::Experiment(lab::custom_model(layers, 1000), lab::star(4, "1GB/s", "10us"), strategy, 6);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::vector<std::vector<std::string>> stages_of(const StrategyReport& report) {
  std::vector<std::vector<std::string>> result;
  for (const PipelineStage& stage : report.stages) result.push_back(stage.layers);
  return result;
}

std::vector<std::vector<EndpointId>> devices_of(const StrategyReport& report) {
  std::vector<std::vector<EndpointId>> result;
  for (const PipelineStage& stage : report.stages) result.push_back(stage.devices);
  return result;
}

/// Names of a role's compute tasks, in order.
std::vector<std::string> order_of(const Role& role) {
  std::vector<std::string> result;
  for (const Task& task : role.program)
    if (task.kind == Task::Kind::compute) result.push_back(task.name);
  return result;
}

/// "F0 F1 B0": forward and backward passes in short, without the update.
std::string passes(const Role& role) {
  std::string text;
  for (const std::string& name : order_of(role))
    if (name != "update")
      text += fmt::format("{}{}{}", text.empty() ? "" : " ", name[0] == 'f' ? 'F' : 'B',
                          name.substr(name.find('#') + 1));
  return text;
}

lab::Experiment line_of_layers(int layers, int devices, const std::string& strategy, std::int64_t batch) {
  return {lab::custom_model(layers, 1000), lab::star(devices, "1GB/s", "10us"), strategy, batch};
}

Plan plan_of(int layers, int devices, const std::string& strategy, std::int64_t batch = 4) {
  return line_of_layers(layers, devices, strategy, batch).plan();
}

}  // namespace

TEST_CASE("pipelines that do not fit the cluster, the model or the batch are errors") {
  CHECK(pipeline_error("{kind: pipeline, stages: 3, replicas: 2}") ==
        "strategy:1:26: strategy.stages: 3 stages of 2 replicas take 6 devices, and the cluster has 4, all "
        "of which must be used; use stages: 2, replicas: 2");
  CHECK(pipeline_error("{kind: pipeline, stages: 3, partition: even}") ==
        "strategy:1:26: strategy.stages: 3 stages of 1 replica take 3 devices, and the cluster has 4, all of "
        "which must be used; use stages: 2, replicas: 2");
  CHECK(pipeline_error("{kind: pipeline, replicas: 3}") ==
        "strategy:1:28: strategy.replicas: 3 pipelines cannot have equally many of 4 devices; use one of 1, "
        "2, 4");
  CHECK(pipeline_error("{kind: pipeline, stages: 4, micro_batches: 4}") ==
        "strategy:1:26: strategy.stages: the model has 3 layers that run a kernel, too few for 4 stages");
  CHECK(
      pipeline_error("{kind: pipeline, stages: 2}") ==
      "strategy:1:26: strategy.stages: 2 stages cannot use 4 devices with 1 micro-batch: a stage's replicas "
      "take them in turn; use micro_batches: 2");
  CHECK(pipeline_error("{kind: pipeline, stages: 2, micro_batches: 2}") == "no error");
  CHECK(pipeline_error("{kind: pipeline, stages: 2, replicas: 2, micro_batches: 5}") ==
        "test:1:1: training.batch_per_device: 6 on each of 4 devices, 24 images in all, cannot be divided "
        "into 2 pipelines of 5 micro-batches; 5 or 10 can");
  CHECK(pipeline_error("{kind: pipeline, stages: 4, micro_batches: 7}", 4) ==
        "test:1:1: training.batch_per_device: 6 on each of 4 devices, 24 images in all, cannot be divided "
        "into 7 micro-batches; 7 can");
}

TEST_CASE("replicas and versions of weights that cannot be are errors") {
  const auto pipeline = [](const std::string& keys) { return fmt::format("{{kind: pipeline, {}}}", keys); };
  CHECK(
      pipeline_error(pipeline("replicas: [2, 1]")) ==
      "strategy:1:28: strategy.replicas: the stages have 3 replicas together, and the cluster has 4 devices");
  CHECK(pipeline_error(pipeline("stages: 3, replicas: [3, 1]")) ==
        "strategy:1:39: strategy.replicas: gives replicas of 2 stages, and there are 3");
  CHECK(pipeline_error(pipeline("replicas: []")) ==
        "strategy:1:28: strategy.replicas: expected a number for each stage, found an empty list");
  CHECK(pipeline_error(pipeline("replicas: [3, 1]")) ==
        "strategy:1:28: strategy.replicas: 3 replicas of a stage take 1 micro-batch in turn: there must be "
        "one "
        "for each of them");
  CHECK(pipeline_error(pipeline("replicas: [3, 1], weights: stash, micro_batches: 4")) ==
        "strategy:1:28: strategy.replicas: 3 replicas of a stage take 4 micro-batches in turn: without flush "
        "all "
        "need equally many (or micro_batches: 1, an update of one from each)");
  CHECK(pipeline_error(pipeline("schedule: gpipe, weights: stash")) ==
        "strategy:1:44: strategy.weights: stash needs schedule: 1f1b; the others run the pipeline empty for "
        "each "
        "update");
  CHECK(pipeline_error(pipeline("stages: 2, weights: double_buffered, micro_batches: 2")) ==
        "strategy:1:38: strategy.weights: double_buffered needs as many micro_batches as a pipeline has "
        "devices, "
        "at least 4, and there are 2: else more than two versions would be in use; stash keeps as many as "
        "needed");
  // Three stages of 4 devices have 2, 1 and 1 in some order, and 2 does not divide 3.
  CHECK(pipeline_error(pipeline("stages: 3, weights: stash, micro_batches: 3")) ==
        "strategy:1:26: strategy.stages: 4 devices cannot be shared out to 3 stages so that each stage's "
        "replicas "
        "have equally many of 3 micro-batches");
}

TEST_CASE("where stages begin can be given, and wrong places are errors") {
  const auto pipeline = [](const std::string& begins) {
    return fmt::format("{{kind: pipeline, replicas: 1, begins: {}}}", begins);
  };
  CHECK(stages_of(line_of_layers(5, 3, pipeline("[body1, body4]"), 4).report()) ==
        std::vector<std::vector<std::string>>{{"body0"}, {"body1", "body2", "body3"}, {"body4"}});
  CHECK(pipeline_error(pipeline("[body1, body9, body2]"), 4) ==
        "strategy:1:47: strategy.begins: the model has no layer 'body9' that runs a kernel");
  CHECK(pipeline_error(pipeline("[body2, body1, body0]"), 4) ==
        "strategy:1:47: strategy.begins: 'body1' does not come after the layer that the stage before begins "
        "with");
  CHECK(pipeline_error("{kind: pipeline, stages: 3, begins: [body1]}") ==
        "strategy:1:37: strategy.begins: 3 stages begin at 2 layers beside the model's first");
  CHECK(pipeline_error("{kind: pipeline, partition: even, begins: [body1]}") ==
        "strategy:1:43: strategy.begins: says where stages begin, and so does partition: give one of them");
  CHECK(
      pipeline_error("{kind: pipeline, schedule: 1f1b, recompute: except_last}") ==
      "strategy:1:45: strategy.recompute: except_last needs schedule: gpipe, where the last micro-batch goes "
      "back as soon as it has come; use always or never");
  CHECK(pipeline_error("{kind: pipeline, begins: body1}") ==
        "strategy:1:26: strategy.begins: expected a list of layer names");
}

TEST_CASE("labels name schedule, stages, replicas and micro-batches") {
  const auto label = [](const std::string& text) { return read_strategy(parse_yaml(text, "s"))->label(); };
  CHECK(label("{kind: pipeline}") == "pipeline 1f1b");
  CHECK(label("{kind: pipeline, stages: 4, replicas: 2, micro_batches: 8, schedule: gpipe}") ==
        "pipeline gpipe, 4 stages x 2, 8 micro-batches");
  CHECK(label("{kind: pipeline, replicas: [15, 1], weights: stash}") == "pipeline 1f1b stash, 2 stages 15-1");
}

TEST_CASE("orders of passes: one after the other, all forward first, forward and backward in turn") {
  const auto of_stages = [](const std::string& schedule) {
    const Plan plan =
        plan_of(3, 3, fmt::format("{{kind: pipeline, micro_batches: 4, schedule: {}}}", schedule));
    return std::vector<std::string>{passes(plan.roles[0]), passes(plan.roles[1]), passes(plan.roles[2])};
  };
  const std::string in_turn = "F0 B0 F1 B1 F2 B2 F3 B3", all_first = "F0 F1 F2 F3 B3 B2 B1 B0";
  // Naive puts all layers where nothing is sent; with no more layers than stages there is one cut.
  CHECK(of_stages("naive") == std::vector<std::string>{in_turn, in_turn, in_turn});
  CHECK(of_stages("gpipe") == std::vector<std::string>{all_first, all_first, all_first});
  // Three under way in the first of three stages, two in the second, one in the last.
  CHECK(of_stages("1f1b") ==
        std::vector<std::string>{"F0 F1 F2 B0 F3 B1 B2 B3", "F0 F1 B0 F2 B1 F3 B2 B3", in_turn});
}

TEST_CASE("1F1B without flush: passes go on as they came, with an update after each backward pass") {
  const auto order = [](const Role& role) {
    std::string text;
    for (const std::string& name : order_of(role)) text += static_cast<char>(std::toupper(name[0]));
    return text.substr(0, 16);
  };
  const auto of_stages = [&](const std::string& keys) {
    const Plan plan = plan_of(3, 3, fmt::format("{{kind: pipeline, partition: even, {}}}", keys), 3);
    return std::vector<std::string>{order(plan.roles[0]), order(plan.roles[1]), order(plan.roles[2])};
  };
  CHECK(of_stages("weights: stash") ==
        std::vector<std::string>{"FFFBUFBUFBUFBUFB", "FFBUFBUFBUFBUFBU", "FBUFBUFBUFBUFBUF"});
  // Three backward passes make an update, which comes before the fourth.
  CHECK(of_stages("weights: stash, micro_batches: 3") ==
        std::vector<std::string>{"FFFBFBFBUFBFBFBU", "FFBFBFBUFBFBFBUF", "FBFBFBUFBFBFBUFB"});
  CHECK(of_stages("weights: double_buffered, micro_batches: 3") ==
        std::vector<std::string>{"FFFBFBFBFUBFBFBF", "FFBFBFBFUBFBFBFU", "FBFBFBFUBFBFBFUB"});
}

TEST_CASE("a single stage keeps one micro-batch's activations under any schedule") {
  for (const std::string schedule : {"naive", "gpipe", "1f1b"})
    CHECK(passes(plan_of(3, 1, fmt::format("{{kind: pipeline, micro_batches: 4, schedule: {}}}", schedule))
                     .roles[0]) == "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST_CASE("a slow first stage gets the devices that are left over, which take its micro-batches in turn") {
  // The first layer costs three times as much as the second: 3 devices and 1.
  const std::string model =
      "{name: toy, input: [3, 32, 32], layers: ["
      "{name: slow, kind: custom, forward_flops: 3e9, backward_flops: 6e9, parameters: 10, output: [10]}, "
      "{name: fast, kind: custom, forward_flops: 1e9, backward_flops: 2e9, parameters: 10, output: [10]}]}";
  const lab::Experiment experiment(model, lab::star(4, "1GB/s", "1us"),
                                   "{kind: pipeline, stages: 2, micro_batches: 12}", 6);
  const Plan& plan = experiment.plan();
  CHECK(devices_of(experiment.report()) == std::vector<std::vector<EndpointId>>{{0, 1, 2}, {3}});
  REQUIRE(plan.roles.size() == 4);
  // 4 devices for 3 replicas: 2 under way in each.
  CHECK(passes(plan.roles[0]) == "F0 F3 B0 F6 B3 F9 B6 B9");
  CHECK(passes(plan.roles[1]) == "F1 F4 B1 F7 B4 F10 B7 B10");
  CHECK(passes(plan.roles[2]) == "F2 F5 B2 F8 B5 F11 B8 B11");
  CHECK(passes(plan.roles[3]) ==
        "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7 F8 B8 F9 B9 F10 B10 F11 B11");
}

TEST_CASE("neighbours: a pipeline's stages or a stage's replicas, and auto takes the faster way") {
  const auto devices = [](const std::string& model, const std::string& neighbours) {
    const std::string cluster =
        "{name: lab, nodes: [{name: n, count: 2, server: box}], fabric: {kind: switch, bandwidth: 1GB/s, "
        "latency: "
        "10us}, servers: {box: {devices: [{device: ideal, count: 2}], interconnect: {kind: nvswitch, "
        "bandwidth: "
        "100GB/s, latency: 1us}}}, devices: {ideal: {peak: {fp32: 10TFLOPS}, memory: 16GiB, "
        "memory_bandwidth: "
        "500GB/s, efficiency: 1.0}}}";
    return devices_of(
        lab::Experiment(model, cluster,
                        fmt::format("{{kind: pipeline, stages: 2, replicas: 2, micro_batches: 4, "
                                    "neighbours: {}}}",
                                    neighbours),
                        8)
            .report());
  };
  using Devices = std::vector<std::vector<EndpointId>>;
  const Devices stages{{0, 2}, {1, 3}}, replicas{{0, 1}, {2, 3}};
  const std::string many_parameters = lab::custom_model(2, 50'000'000), none = lab::custom_model(2, 0);
  CHECK(devices(none, "stages") == stages);
  CHECK(devices(none, "replicas") == replicas);
  CHECK(devices(none, "auto") == stages);  // only activations are sent
  CHECK(devices(many_parameters, "auto") == replicas);
}

TEST_CASE(
    "without flush: a steady stretch has 12 steps, and 96 micro-batches after it has been filled 4 times") {
  for (const int devices : {2, 5})
    for (const int micro_batches : {1, 3, 16, 64}) {
      CAPTURE(devices);
      CAPTURE(micro_batches);
      const Plan plan =
          plan_of(5, devices,
                  fmt::format("{{kind: pipeline, weights: stash, micro_batches: {}}}", micro_batches), 192);
      REQUIRE(plan.endless() != nullptr);
      const auto steps = static_cast<int>(plan.endless()->steady_steps);
      CHECK(steps >= 12);
      CHECK(steps * micro_batches >= 4 * devices + 96);
    }
}

TEST_CASE("pipelines: the counts of stages, replicas and images that a refusal offers are accepted") {
  // What is offered stands behind "use stages: S, replicas: R" or "use one of A, B, ...", and of batches
  // before "can".
  const auto after = [](const std::string& text, const std::string& what) {
    const std::size_t at = text.find(what);
    return at == std::string::npos ? 0 : std::stoi(text.substr(at + what.size()));
  };
  std::size_t offers = 0, limits = 0;
  for (const int devices : {4, 6, 12})
    for (int stages = 1; stages <= 14; ++stages)
      for (int replicas = 0; replicas <= 5; ++replicas)
        for (const char* partition : {"even", "optimal"}) {
          const auto text = [&](int s, int r) {
            return fmt::format("{{kind: pipeline, micro_batches: 2, partition: {}, stages: {}{}}}", partition,
                               s, r > 0 ? fmt::format(", replicas: {}", r) : "");
          };
          const auto refusal = [&](const std::string& strategy, std::int64_t batch) -> std::string {
            try {
              lab::Experiment(lab::custom_model(8, 10), lab::star(devices, "1GB/s", "0us"), strategy, batch);
            } catch (const InputError& error) {
              return error.what();
            }
            return "";
          };
          const std::string why = refusal(text(stages, replicas), 60);
          if (const int most = after(why, "use at most "); most > 0) {
            CHECK(most == std::min(devices, 8));  // of 8 layers
            ++limits;
          }
          if (!why.starts_with("strategy:") || why.find("use stages: ") == std::string::npos) continue;
          CAPTURE(why);
          CHECK(refusal(text(after(why, "use stages: "), after(why, "replicas: ")), 60) == "");
          ++offers;
        }
  CHECK(offers > 50);
  CHECK(limits > 10);
}
