// SPDX-License-Identifier: MIT
#include "sim/studies/theses/eserol2019.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace convoy {
namespace {

constexpr double tolerance = 1.10;  ///< 1 + epsilon of the experiment

/// The run of a network on so many devices with so many images; `method` of the partition, "" for data
/// parallelism.
const RunResult& find(const std::vector<RunResult>& runs, std::string_view model, std::int64_t devices,
                      double batch, std::string_view method) {
  const auto it = std::find_if(runs.begin(), runs.end(), [&](const RunResult& run) {
    return run.model == model && run.devices == devices && run.global_batch == batch &&
           (run.partition ? run.partition->method : "") == method;
  });
  if (it == runs.end())
    throw std::runtime_error("configs/papers/eserol2019.yaml has no run of what is compared");
  return *it;
}

}  // namespace

ThesisReproduction reproduce_eserol2019(std::size_t jobs) {
  const std::vector<RunResult> runs = run_paper("eserol2019", jobs);
  ThesisReproduction result =
      make_thesis("eserol2019", "Eserol 2019: layer nodes partitioned as a hypergraph",
                  "Published is the 93 % alone; at which network, batch and number of parts was "
                  "not to be read. It comes out "
                  "at batches near 64 of these networks, and falls as the batch grows.",
                  "M.Sc. thesis, Bilkent University 2019: "
                  "repository.bilkent.edu.tr/items/6a722421-5ad8-490d-a319-56ce820fe2f6, and the abstract of "
                  "its seminar of 5 March 2018");
  for (const std::string model : {"vgg16_cifar10", "alexnet"})
    for (const std::int64_t parts : {2, 4, 8}) {
      const double data_parallel = find(runs, model, parts, 64, "").comm_bytes;
      const double ours = find(runs, model, parts, 64, "hypergraph").comm_bytes;
      result.claims.push_back(published_within("volume against data parallelism",
                                               fmt::format("{}, {} parts, batch 64", model, parts), "%", -93,
                                               100 * (ours / data_parallel - 1), 4, false));
    }
  for (const double batch : {32.0, 128.0, 256.0}) {
    const double data_parallel = find(runs, "vgg16_cifar10", 4, batch, "").comm_bytes;
    const double ours = find(runs, "vgg16_cifar10", 4, batch, "hypergraph").comm_bytes;
    result.claims.push_back(shown("volume against data parallelism",
                                  fmt::format("vgg16_cifar10, 4 parts, batch {:.0f}", batch), "%",
                                  100 * (ours / data_parallel - 1)));
  }
  for (const std::string model : {"vgg16_cifar10", "alexnet"})
    for (const std::int64_t parts : {4, 8}) {
      const std::string setup = fmt::format("{}, {} parts, batch 64", model, parts);
      const RunResult& ours = find(runs, model, parts, 64, "hypergraph");
      const RunResult& layers = find(runs, model, parts, 64, "layerwise");
      const RunResult& even = find(runs, model, parts, 64, "even");
      const RunResult& random = find(runs, model, parts, 64, "random");
      result.claims.push_back(
          expected_at_most("imbalance of work", setup, "", ours.partition->load_imbalance, tolerance + 1e-9));
      result.claims.push_back(
          expected_at_most("imbalance over that of whole layers", setup, "x",
                           ours.partition->load_imbalance / layers.partition->load_imbalance, 1, abstract));
      result.claims.push_back(expected_at_most("volume over that of an even filter split", setup, "x",
                                               ours.comm_bytes / even.comm_bytes, 1));
      result.claims.push_back(expected_at_most("volume over that of random nodes", setup, "x",
                                               ours.comm_bytes / random.comm_bytes, 1));
      result.claims.push_back(
          shown("volume over that of whole layers", setup, "x", ours.comm_bytes / layers.comm_bytes));
      result.claims.push_back(
          shown("step time over that of whole layers", setup, "x", ours.step_time_s / layers.step_time_s));
      result.claims.push_back(shown("step time over data parallelism", setup, "x",
                                    ours.step_time_s / find(runs, model, parts, 64, "").step_time_s));
    }
  return result;
}

}  // namespace convoy
