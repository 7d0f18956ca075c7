// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/run/preparer.h"
#include "sim/run/sweep_hint.h"

using namespace convoy;

namespace {

const std::string hint_experiment = R"(experiment: hint
model: lenet5
training: {batch_per_device: 8, precision: fp32, optimizer: sgd, framework: pytorch, recompute: none}
cluster:
  devices:
    my.gpu: {kind: gpu, peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 0.5}
  servers:
    box:
      devices: [{device: my.gpu, count: 2}]
      interconnect: {kind: nvlink, bandwidth: 20GB/s, latency: 2us}
  server: box
  nodes: 2
  fabric: {kind: switch, bandwidth: 10Gbps, latency: 25us}
strategy: {kind: data_parallel, sync: all_reduce, algorithm: ring, bucket: 1MiB, overlap: true}
variability: {jitter: 5%, runs: 2}
)";

/// What the experiment's first point is refused for; "" if it is not.
std::string refusal_of(const std::vector<std::string>& settings) {
  try {
    const convoy::Experiment experiment = convoy::Experiment::parse(hint_experiment, "e.yaml", settings);
    Preparer(experiment).prepare(0);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

/// Dotted paths of all scalars and mappings below a value, which is at `path`.
void append_paths(const YamlNode& node, const std::string& path, std::vector<std::string>& paths) {
  if (node.kind != YamlNode::Kind::sequence) paths.push_back(path);
  for (std::size_t i = 0; i < node.items.size(); ++i)
    append_paths(node.items[i], fmt::format("{}.{}", path, i), paths);
  for (const auto& [key, value] : node.entries)
    append_paths(value, path + '.' + (key.find('.') == std::string::npos ? key : '"' + key + '"'), paths);
}

}  // namespace

TEST_CASE(
    "sweep hint: a list in place of any one value of the experiment names the sweep that tries several "
    "[law]") {
  REQUIRE(refusal_of({}) == "");
  const YamlNode tree = convoy::Experiment::parse(hint_experiment, "e.yaml", {}).resolved(0);
  std::vector<std::string> paths;
  for (const std::string& part : sweepable_parts())
    if (const YamlNode* node = tree.find(part)) append_paths(*node, part, paths);
  REQUIRE(paths.size() > 30);
  for (const std::string& path : paths) {
    CAPTURE(path);
    const std::string list = fmt::format("[{0}, {0}]", to_flow(*find_path(tree, path)));
    if (refusal_of({path + '=' + list}).empty()) continue;  // takes lists
    const std::string hint =
        fmt::format("found a list; a sweep tries several values: sweep: {{{}: [...]}}", path);
    CHECK(refusal_of({path + '=' + list}).ends_with(hint));
    CHECK(refusal_of({fmt::format("sweep.{}={}", path, list)}) == "");  // as the hint says
  }
}

TEST_CASE("sweep hint: none where a sweep sets nothing") {
  const std::string message = refusal_of({"spread={cluster.fabric.bandwidth: [10%, 20%]}"});
  CHECK(message.find("found a list") != std::string::npos);
  CHECK(message.find("sweep") == std::string::npos);
}
