// SPDX-License-Identifier: MIT
// Networks in which layers use the parameters of others.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "sim/numerics/learn.h"
#include "tests/numerics/course.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

/// Two maps of different sizes go through one head of a convolution and a scale; or through two heads.
std::string pyramid(bool shares) {
  const auto head = [&](int level) {
    const std::string of = shares && level > 0 ? ", weights_of: {0}0" : "";
    const auto weights = [&](const std::string& name) { return fmt::format(fmt::runtime(of), name); };
    return fmt::format(
        "{{name: map{0}, kind: max_pool, inputs: [{1}], kernel: 2}}, "
        "{{name: head{0}, kind: conv2d, inputs: [map{0}], out_channels: 6, kernel: 3, padding: 1{2}}}, "
        "{{name: scale{0}, kind: scale{3}}}, {{name: norm{0}, kind: group_norm, groups: 2{4}}}, "
        "{{name: flat{0}, kind: flatten}}, ",
        level, level > 0 ? "map0" : "relu", weights("head"), weights("scale"), weights("norm"));
  };
  return "{name: pyramid, input: [1, 8, 8], loss: cross_entropy, layers: [{name: in, kind: conv2d, "
         "out_channels: "
         "8, kernel: 3, padding: 1}, {name: relu, kind: relu}, " +
         head(0) + head(1) +
         "{name: all, kind: concat, inputs: [flat0, flat1]}, {name: fc, kind: linear, out_features: 10}]}";
}

Course course_of(const std::string& model, const std::string& strategy) {
  return {model, star(4, "1GB/s", "1us"), strategy, {std::nullopt, 16, {"test", 1, 1}}, Optimizer::momentum};
}

}  // namespace

TEST_CASE("numerics: the gradient of shared parameters is the sum of those of copies with the same values") {
  const Course shared = course_of(pyramid(true), "{kind: single}");
  const Course apart = course_of(pyramid(false), "{kind: single}");
  const std::vector<Parameter>& parameters = shared.it.graph().parameters;
  ParameterValues<double> values = first_parameters<double>(shared.it.graph(), twin_seed);
  for (std::size_t p = 0; p < values.size(); ++p)  // the first scales are too small to be seen
    if (parameters[p].name.rfind("scale", 0) == 0) std::fill(values[p].begin(), values[p].end(), 0.5);
  const auto source_of = [&](std::string name) {
    for (const std::string layer : {"head1", "scale1", "norm1"})
      if (name.rfind(layer, 0) == 0) name[layer.size() - 1] = '0';
    const auto found = std::find_if(parameters.begin(), parameters.end(),
                                    [&](const Parameter& parameter) { return parameter.name == name; });
    REQUIRE(found != parameters.end());
    return static_cast<std::size_t>(found - parameters.begin());
  };
  const std::vector<Parameter>& copies = apart.it.graph().parameters;
  REQUIRE(copies.size() == parameters.size() + 5);
  ParameterValues<double> copied;
  for (const Parameter& copy : copies) copied.push_back(values[source_of(copy.name)]);
  const auto gradients = [](const Course& course, const ParameterValues<double>& of) {
    Learner<double> learner(course.it.graph(), course.data, twin_seed, rate);
    learner.set_parameters(of);
    return learner.gradients(16, {{0, 16}});
  };
  ParameterValues<double> sums;
  for (const std::vector<double>& of : values) sums.emplace_back(of.size(), 0.0);
  const ParameterValues<double> of_copies = gradients(apart, copied);
  for (std::size_t c = 0; c < copies.size(); ++c)
    for (std::size_t e = 0; e < of_copies[c].size(); ++e)
      sums[source_of(copies[c].name)][e] += of_copies[c][e];
  CHECK(distance(gradients(shared, values), sums) < 1e-13);
}

TEST_CASE("numerics: plans of networks with shared parameters have one device's after three steps") {
  for (const std::string strategy :
       {"{kind: single}", "{kind: single, micro_batches: 4}",
        "{kind: data_parallel, sync: all_reduce, algorithm: ring}",
        "{kind: data_parallel, sync: all_reduce, bucket: 1KiB}",
        "{kind: data_parallel, sync: all_reduce, zero: 1}",
        "{kind: data_parallel, sync: all_reduce, zero: 2, bucket: 1KiB}",
        "{kind: data_parallel, sync: all_reduce, zero: 3, bucket: 1KiB}",
        "{kind: data_parallel, sync: parameter_server, servers: 2}",
        "{kind: data_parallel, sync: parameter_server, servers: 2, pull: at_first_use, micro_batches: 2}",
        "{kind: pipeline, stages: 2, replicas: 2, micro_batches: 2}",
        "{kind: pipeline, stages: 2, replicas: 2, micro_batches: 4, recompute: always}",
        "{kind: hybrid, conv: batch, fc: filter}", "{kind: hybrid, conv: height, fc: filter, replicas: 2}"}) {
    CAPTURE(strategy);
    const Course course = course_of(pyramid(true), strategy);
    REQUIRE(refuses_plan(course.plan, course.it.graph()) == "");
    CHECK(distance_after_three_steps(course, course.plan) < 1e-10);
  }
}
