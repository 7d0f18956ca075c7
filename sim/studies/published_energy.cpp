// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <map>
#include <utility>

#include "sim/base/csv.h"
#include "sim/base/data_path.h"
#include "sim/run/experiment.h"
#include "sim/run/preparer.h"
#include "sim/run/simulate.h"
#include "sim/studies/reproduce.h"

namespace convoy::inline studies {
namespace {

/// A measured training of results/published/energy.csv.
struct EnergyRow {
  std::string device, model, precision, source;
  double batch = 0, limit_w = 0, epoch_s = 0, joules = 0;  ///< joules of an image
  bool fitted = false;
};

std::vector<EnergyRow> read_energy() {
  const std::vector<std::string> columns{"device",  "model",        "precision",   "batch", "power_limit_w",
                                         "epoch_s", "mean_power_w", "j_per_image", "role",  "source"};
  const CsvTable table(data_path("results/published") + "/energy.csv", columns, columns);
  std::vector<EnergyRow> rows;
  for (const CsvRow& row : table.rows())
    rows.push_back({table.text(row, "device"), table.text(row, "model"), table.text(row, "precision"),
                    table.text(row, "source"), table.number(row, "batch", true),
                    table.number(row, "power_limit_w", true), table.number(row, "epoch_s", true),
                    table.number(row, "j_per_image", true), table.text(row, "role") == "fit"});
  return rows;
}

RunResult run_at(const EnergyRow& row, double limit_w, Preparer& preparer) {
  const Experiment experiment =
      Experiment::load(data_path("configs/published") + "/energy.yaml",
                       {"model=" + row.model, "training.precision=" + row.precision,
                        fmt::format("training.batch_per_device={:g}", row.batch),
                        fmt::format("cluster.servers.box.devices=[{{device: {}, count: 1}}]", row.device),
                        fmt::format("cluster.power_limit={:g}W", limit_w)});
  return simulate(preparer.prepare(experiment.point(0), nullptr), false).result;
}

/// Joules per image if a step at the limit of `full` takes as long as was measured there.
Prediction predict_joules(const EnergyRow& row, const EnergyRow& full, double images_an_epoch,
                          Preparer& preparer) {
  const double measured_s = full.epoch_s * row.batch / images_an_epoch;
  const double full_step_s = run_at(row, full.limit_w, preparer).step_time_s;
  const RunResult limited = run_at(row, row.limit_w, preparer);
  const double joules_by_energy = measured_s / full_step_s / row.batch;
  Prediction prediction(limited.energy_j * joules_by_energy);
  if (limited.interval)
    prediction.interval = {limited.interval->energy_j[0] * joules_by_energy,
                           limited.interval->energy_j[1] * joules_by_energy};
  return prediction;
}

}  // namespace

Reproduction reproduce_energy(std::size_t jobs) {
  constexpr double imagenet = 1281167;
  Reproduction result{"energy", "Energy of training on one device, from its throughput at full power", "j"};
  const std::vector<EnergyRow> rows = read_energy();
  std::map<std::pair<std::string, double>, const EnergyRow*> full;
  for (const EnergyRow& row : rows) {
    const EnergyRow*& most = full[{row.device, row.batch}];
    if (!most || row.limit_w > most->limit_w) most = &row;
  }
  for (const EnergyRow& row : rows)
    result.rows.push_back({row.device, row.model, fmt::format("batch {:g}, {:g} W", row.batch, row.limit_w),
                           row.joules, 0, 0, false, row.source, row.fitted});
  predict_rows(result, jobs, [&](std::size_t i, Preparer& preparer) {
    return predict_joules(rows[i], *full.at({rows[i].device, rows[i].batch}), imagenet, preparer);
  });
  return result;
}

}  // namespace convoy::studies
