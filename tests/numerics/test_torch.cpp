// SPDX-License-Identifier: MIT
// The learner against PyTorch: torch_losses.csv is made by make_reference.py.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "models/model.h"
#include "sim/base/yaml_map.h"
#include "sim/numerics/data.h"
#include "sim/numerics/learner.h"
#include "tests/numerics/networks.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

constexpr int torch_steps = 50;
constexpr std::int64_t torch_batch = 16;

struct TorchCase {
  const char* network;
  const char* optimizer;
  double rate;
};
constexpr TorchCase torch_cases[] = {{"lenet", "sgd", 0.1},        {"lenet", "momentum", 0.02},
                                     {"resnet", "momentum", 0.02}, {"resnet", "adam", 0.002},
                                     {"mobile", "momentum", 0.02}, {"mobile", "adam", 0.002}};

TrainingGraph torch_graph(const TorchCase& of) {
  TrainingOptions options;
  options.optimizer = of.optimizer == std::string("sgd")        ? Optimizer::sgd
                      : of.optimizer == std::string("momentum") ? Optimizer::momentum
                                                                : Optimizer::adam;
  return build_training_graph(read_model(parse_yaml(learning_network(of.network), "network")), options);
}

LearningData torch_digits() { return load_data({}, {1, 8, 8}, 10, 1); }

}  // namespace

TEST_CASE("numerics: losses of 50 steps are PyTorch's to 1e-5, with the same weights and batches") {
  std::ifstream file(CONVOY_SOURCE "/tests/numerics/torch_losses.csv");
  std::string line;
  REQUIRE(std::getline(file, line));
  REQUIRE(line == "network,optimizer,step,loss");
  std::map<std::string, std::vector<double>> losses;
  while (std::getline(file, line)) {
    std::istringstream row(line);
    std::string network, optimizer, step, loss;
    std::getline(row, network, ','), std::getline(row, optimizer, ','), std::getline(row, step, ',');
    std::getline(row, loss, ',');
    losses[network + " " + optimizer].push_back(std::stod(loss));
  }
  const LearningData data = torch_digits();
  for (const TorchCase& of : torch_cases) {
    CAPTURE(of.network);
    CAPTURE(of.optimizer);
    const std::vector<double>& wanted = losses[fmt::format("{} {}", of.network, of.optimizer)];
    REQUIRE(wanted.size() == torch_steps);
    const TrainingGraph graph = torch_graph(of);
    Learner<double> learner(graph, data, 1, of.rate);
    Learner<float> in_single(graph, data, 1, of.rate);
    for (int step = 0; step < torch_steps; ++step) {
      CAPTURE(step);
      CHECK(learner.step(torch_batch, {{0, torch_batch}}) == doctest::Approx(wanted[step]).epsilon(1e-5));
      if (step < 10)
        CHECK(in_single.step(torch_batch, {{0, torch_batch}}) == doctest::Approx(wanted[step]).epsilon(1e-3));
    }
    if (of.network != std::string("mobile")) CHECK(wanted.back() < wanted.front());
  }
}

TEST_CASE("numerics: what PyTorch is given" * doctest::skip(std::getenv("CONVOY_TORCH") == nullptr)) {
  const LearningData data = torch_digits();
  for (const TorchCase& of : torch_cases) {
    const TrainingGraph graph = torch_graph(of);
    const auto list = [](const auto& values) { return fmt::format("[{:.17g}]", fmt::join(values, ",")); };
    std::vector<std::string> parameters, batches;
    for (const std::vector<double>& values : first_parameters<double>(graph, 1))
      parameters.push_back(list(values));
    BatchOrder order(1, data.train.count());
    for (int step = 0; step < torch_steps; ++step) {
      std::vector<std::int64_t> batch;
      for (std::int64_t i = 0; i < torch_batch; ++i) batch.push_back(order.image(step * torch_batch + i));
      batches.push_back(fmt::format("[{}]", fmt::join(batch, ",")));
    }
    fmt::print(
        "{{\"network\":\"{}\",\"optimizer\":\"{}\",\"learning_rate\":{},\"parameters\":[{}],\"images\":{},"
        "\"labels\":[{}],\"batches\":[{}]}}\n",
        of.network, of.optimizer, of.rate, fmt::join(parameters, ","), list(data.train.values),
        fmt::join(data.train.labels, ","), fmt::join(batches, ","));
  }
}

TEST_CASE("numerics: LeNet and a residual network learn the digits to their usual accuracy on one device") {
  // Small convolutional networks tell 97 of 100 of these digits apart and more.
  const LearningData data = torch_digits();
  CHECK(data.train.count() == 1438);
  CHECK(data.held_out.count() == 359);
  for (const TorchCase& of : {TorchCase{"lenet", "momentum", 0.05}, TorchCase{"resnet", "momentum", 0.05}}) {
    CAPTURE(of.network);
    const TrainingGraph graph = torch_graph(of);
    Learner<float> learner(graph, data, 1, of.rate);
    CHECK(learner.judged().accuracy < 0.3);
    for (int step = 0; step < 300; ++step) learner.step(32, {{0, 32}});
    CHECK(learner.judged().accuracy > 0.97);
  }
}
