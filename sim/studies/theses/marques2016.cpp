// SPDX-License-Identifier: MIT
#include "sim/studies/theses/marques2016.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace convoy {
namespace {

class Runs {
 public:
  explicit Runs(std::vector<RunResult> runs) : runs_(std::move(runs)) {}

  const RunResult& find(std::string_view device, std::int64_t devices, std::string_view filters) const {
    const auto it = std::find_if(runs_.begin(), runs_.end(), [&](const RunResult& run) {
      return run.device_type == device && run.devices == devices && filters_of(run) == filters;
    });
    if (it == runs_.end())
      throw std::runtime_error("configs/papers/marques2016.yaml has no run of what is compared");
    return *it;
  }

  /// Against one `reference` device: by default of the same kind.
  double speedup(std::string_view device, std::int64_t devices, std::string_view filters,
                 std::string_view reference = {}) const {
    return find(reference.empty() ? device : reference, 1, filters).step_time_s /
           find(device, devices, filters).step_time_s;
  }

 private:
  static std::string filters_of(const RunResult& run) {
    for (const auto& [path, value] : run.point)
      if (path == "model.filters") return to_flow(value);
    return {};
  }
  std::vector<RunResult> runs_;
};

constexpr std::string_view cpu = "xeon-e5-2630-v3-dual", gpu = "k20", newer_gpu = "gtx-980",
                           mobile = "tegra-k1";
constexpr std::array<std::string_view, 4> networks{"[50, 500]", "[150, 800]", "[300, 1000]", "[500, 1500]"};

}  // namespace

ThesisReproduction reproduce_marques2016(std::size_t jobs) {
  const Runs runs(run_paper("marques2016", jobs));
  ThesisReproduction result =
      make_thesis("marques2016", "Marques 2016: convolutions shared out by filters",
                  "Published are the two speedups alone; devices, network and batch were not to be "
                  "read. The bandwidth is set "
                  "on the CPU figure and is no real network's: our CPU is faster than theirs. The "
                  "GPU of the comparison is a "
                  "K20 and the batch 1024; a newer GPU or a smaller batch gives less.",
                  "thesis, University of Coimbra 2016 (hdl.handle.net/10316/81665), and arXiv:1712.02546");
  const std::string_view largest = networks.back();
  const auto setup = [](int devices, std::string_view device, std::string_view filters) {
    return fmt::format("{} {}, filters {}, batch 1024", devices, device, filters);
  };
  Claim calibrated = published_within("speedup", setup(4, cpu, largest), "x", 3.28,
                                      runs.speedup(cpu, 4, largest), 0.01, true);
  calibrated.kind = Claim::Kind::calibrated;
  result.claims.push_back(std::move(calibrated));
  result.claims.push_back(published_within("speedup", setup(3, gpu, largest), "x", 2.45,
                                           runs.speedup(gpu, 3, largest), 0.15, true));
  result.claims.push_back(
      shown("speedup", setup(3, newer_gpu, largest), "x", runs.speedup(newer_gpu, 3, largest)));
  result.claims.push_back(
      shown("speedup over one CPU", setup(3, gpu, largest), "x", runs.speedup(gpu, 3, largest, cpu)));
  for (std::size_t i = 1; i < networks.size(); ++i)
    result.claims.push_back(
        expected_at_most(fmt::format("speedup with filters {} over that with more", networks[i - 1]),
                         setup(4, cpu, networks[i]), "x",
                         runs.speedup(cpu, 4, networks[i - 1]) / runs.speedup(cpu, 4, networks[i]), 1));
  for (const int devices : {16, 64})
    result.claims.push_back(
        shown("speedup", setup(devices, cpu, largest), "x", runs.speedup(cpu, devices, largest)));
  result.claims.push_back(
      expected_at_most("speedup of 64 over that of 16: the master's NIC is full", setup(64, cpu, largest),
                       "x", runs.speedup(cpu, 64, largest) / runs.speedup(cpu, 16, largest), 1));
  for (const auto& [device, devices] : {std::pair{cpu, 4}, {gpu, 3}, {mobile, 3}}) {
    const RunResult& run = runs.find(device, devices, networks.front());
    result.claims.push_back(shown("energy an image", setup(devices, device, networks.front()), "mJ",
                                  1e3 * run.energy_j / run.global_batch));
  }
  return result;
}

}  // namespace convoy
