// SPDX-License-Identifier: MIT
#include "sim/studies/theses/qararyah2020.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "sim/base/data_path.h"
#include "sim/plan/ledger.h"
#include "sim/results/json_writer.h"
#include "sim/run/experiment.h"
#include "sim/run/simulate.h"
#include "sim/run/workers.h"
#include "strategies/pardnn/operation_dag.h"
#include "strategies/partition/report.h"

namespace convoy {
namespace {

constexpr std::array<int, 4> part_counts{2, 4, 8, 16};
constexpr std::array<const char*, 3> compared_models{"resnet50", "inception_v3", "densenet121"};
constexpr std::array<const char*, 3> rivals{"linear_clustering", "metis", "random"};

/// The thesis's experiment with so many parts and images.
PreparedRun prepare(int parts, long batch) {
  const Experiment experiment = Experiment::load(
      data_path("configs/papers") + "/qararyah2020.yaml",
      {fmt::format("sweep={{strategy.parts: [{}]}}", parts), fmt::format("training.global_batch={}", batch)});
  return Preparer(experiment).prepare(0);
}

/// Peak of the fullest device over its memory.
double fullest_share(int parts, long batch) {
  const PreparedRun run = prepare(parts, batch);
  double share = 0;
  for (const Role& role : run.plan.roles) {
    const DeviceType& type = run.machine.device_types[run.machine.devices[role.members[0]].type];
    share = std::max(share, peak_memory(role).bytes / type.memory_bytes);
  }
  return share;
}

/// The largest of `low`, ..., `high` images that fits, to a precision of `steps` halvings; 0 where `low` does
/// not fit.
long largest_batch(int parts, long low, long high, int steps) {
  if (fullest_share(parts, low) > 1) return 0;
  for (int step = 0; step < steps && high - low > 1; ++step) {
    const long middle = low + (high - low) / 2;
    (fullest_share(parts, middle) <= 1 ? low : high) = middle;
  }
  return low;
}

/// Makespans of pardnn and its rivals on a model's training graph, one V100's times.
std::string compare(const char* model, int parts) {
  const Experiment experiment = Experiment::load(
      data_path("configs/papers") + "/qararyah2020.yaml",
      {fmt::format("model={}", model), "training.global_batch=32", "sweep={strategy.parts: [1]}"});
  const PreparedRun run = Preparer(experiment).prepare(0);
  const OperationDag graph = operation_dag({*run.graph, run.machine, run.cost, {}}, run.plan.images, 1);
  const auto count = static_cast<std::uint32_t>(parts);
  const PartitionTask task{graph.dag, count, part_link(run.machine, count), std::nullopt, 1, true};
  ReadyOrder judge(task.dag, task.link, task.parts);
  const double ours = judge.makespan_us(partition_pardnn(task).placement);
  std::string logs;
  for (const char* rival : rivals)
    logs +=
        shortest(std::log(ours / judge.makespan_us(find_partition_method(rival)->run(task).placement))) + " ";
  return logs;
}

/// All answers of forked workers, in order.
std::vector<std::string> answers(std::size_t count, std::size_t jobs,
                                 const std::function<std::string(std::size_t)>& work) {
  std::vector<std::string> texts(count);
  std::string failure;
  run_in_workers(
      count, jobs, [&](std::size_t i) -> SecondHalf { return [&work, i] { return work(i); }; },
      [&](std::size_t i, WorkerAnswer answer) {
        (answer.kind == WorkerAnswer::Kind::done ? texts[i] : failure) = std::move(answer.bytes);
      });
  if (!failure.empty()) throw std::runtime_error(failure);
  return texts;
}

void add_batches(ThesisReproduction& result, std::size_t jobs) {
  constexpr long most = 4096;
  const long alone = largest_batch(1, 1, most, 12);
  const auto found = answers(part_counts.size(), jobs, [&](std::size_t i) {
    const int parts = part_counts[i];
    const long batch = largest_batch(parts, parts * alone, 2 * parts * alone, 2);
    return fmt::format("{} {}", batch, batch > 0 ? shortest(fullest_share(parts, batch)) : "0");
  });
  result.claims.push_back(shown("largest batch that fits", "1 device", "", static_cast<double>(alone)));
  for (std::size_t i = 0; i < part_counts.size(); ++i) {
    const std::string setup = fmt::format("{} devices", part_counts[i]);
    const double batch = std::stod(found[i]);
    const double share = std::stod(found[i].substr(found[i].find(' ')));
    result.claims.push_back(shown("a batch that fits", setup, "", batch));
    result.claims.push_back(shown("growth of the batch", setup, "x", batch / static_cast<double>(alone)));
    result.claims.push_back(expected_at_most("growth of devices over that of the batch", setup, "x",
                                             part_counts[i] * static_cast<double>(alone) / batch, 1,
                                             abstract));
    result.claims.push_back(
        expected_at_most("peak of the fullest device over its memory", setup, "x", share, 1));
  }
}

void add_makespans(ThesisReproduction& result, std::size_t jobs) {
  const auto logs = answers(compared_models.size() * part_counts.size(), jobs, [](std::size_t i) {
    return compare(compared_models[i / part_counts.size()], part_counts[i % part_counts.size()]);
  });
  std::array<double, rivals.size()> sums{};
  for (const std::string& text : logs) {
    std::size_t at = 0;
    for (double& sum : sums) {
      std::size_t read = 0;
      sum += std::stod(text.substr(at), &read);
      at += read;
    }
  }
  for (std::size_t r = 0; r < rivals.size(); ++r)
    result.claims.push_back(
        expected_at_most(fmt::format("makespan over that of {}, geometric mean", rivals[r]),
                         "resnet50, inception_v3, densenet121; 2, 4, 8, 16 parts", "x",
                         std::exp(sums[r] / static_cast<double>(logs.size())), 1));
}

}  // namespace

ThesisReproduction reproduce_qararyah2020(std::size_t jobs) {
  ThesisReproduction result = make_thesis(
      "qararyah2020", "Qararyah 2020: operations placed by ParDNN",
      "Published is that the batch grows superlinearly with devices; sizes were not to be read. The model (a "
      "wide ResNet-101 whose parameters fill half a V100), its batches and the graphs that methods are "
      "compared "
      "on are ours. The throughput that the paper gains with them comes from wide graphs; this one is a "
      "chain.",
      "thesis, Koc University 2020; Parallel Computing 104-105, 2021 (arXiv:2008.08636)");
  add_batches(result, jobs);
  add_makespans(result, jobs);
  return result;
}

}  // namespace convoy
