// SPDX-License-Identifier: MIT
#include "sim/studies/theses/krizhevsky2014.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace convoy {
namespace {

const RunResult& find(const std::vector<RunResult>& runs, std::string_view strategy, std::int64_t devices,
                      double batch) {
  const auto it = std::find_if(runs.begin(), runs.end(), [&](const RunResult& run) {
    return run.strategy == strategy && run.devices == devices &&
           run.global_batch == batch * static_cast<double>(devices);
  });
  if (it == runs.end())
    throw std::runtime_error(fmt::format(
        "configs/papers/krizhevsky2014.yaml has no run of '{}' on {} devices", strategy, devices));
  return *it;
}

constexpr std::string_view data = "ring all-reduce", trick = "hybrid: conv batch, fc filter",
                           blocking = "ring all-reduce, no overlap";

}  // namespace

ThesisReproduction reproduce_krizhevsky2014(std::size_t jobs) {
  const std::vector<RunResult> runs = run_paper("krizhevsky2014", jobs);
  ThesisReproduction result = make_thesis(
      "krizhevsky2014", "Krizhevsky 2014: one weird trick, AlexNet on 8 GPUs behind PCIe",
      "The fully connected layers have 96 % of the weights. Data parallelism sums their gradients "
      "and updates them on every GPU; split by neurons, each GPU updates an eighth of them, and "
      "their inputs are sent instead, which grow with the batch.",
      "arXiv:1404.5997");
  for (const double batch : {32.0, 128.0}) {
    const RunResult& replicas = find(runs, data, 8, batch);
    const RunResult& hybrid = find(runs, trick, 8, batch);
    const std::string setup = fmt::format("8 {}, {} images each", hybrid.device_type, batch);
    const double gained_s = replicas.step_time_s - hybrid.step_time_s;
    const auto add = [&](Claim claim) { result.claims.push_back(std::move(claim)); };
    add(expected_at_most("step over data parallelism's", setup, "x",
                         hybrid.step_time_s / replicas.step_time_s, 1));
    add(expected_at_most("step over that of data parallelism that does not overlap", setup, "x",
                         hybrid.step_time_s / find(runs, blocking, 8, batch).step_time_s, 1));
    add(expected_at_most("bytes sent over data parallelism's", setup, "x",
                         hybrid.comm_bytes / replicas.comm_bytes, 1));
    add(shown("time gained, a step", setup, "ms", 1e3 * gained_s));
    add(shown("of it: computing less", setup, "ms", 1e3 * (replicas.compute_s - hybrid.compute_s)));
    add(shown("of it: waiting less for messages", setup, "ms",
              1e3 * (replicas.exposed_comm_s - hybrid.exposed_comm_s)));
    for (const std::string_view strategy : {data, trick})
      add(shown(fmt::format("speedup over one GPU: {}", strategy), setup, "x",
                find(runs, strategy, 8, batch).throughput_images_per_s /
                    find(runs, strategy, 1, batch).throughput_images_per_s));
  }
  return result;
}

}  // namespace convoy
