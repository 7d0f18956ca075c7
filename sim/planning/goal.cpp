// SPDX-License-Identifier: MIT
#include "sim/planning/goal.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/base/named_file.h"
#include "sim/base/yaml_map.h"

namespace convoy {
namespace {

constexpr double most_epochs = 1e9, most_samples = 1e15;

std::string kind_of_goal(YamlMap& map) {
  std::string found;
  for (const char* key : {"target", "table", "noise_scale", "samples", "epochs"}) {
    if (!map.find(key)) continue;
    if (found == "noise_scale" && std::string_view(key) == "epochs") continue;
    if (!found.empty()) map.fail(key, fmt::format("'{}' is given too; give one of the two", found));
    found = key;
  }
  if (found.empty()) {
    for (const char* key : {"extrapolate", "start_up", "evaluation", "checkpoint"}) map.find(key);
    map.finish();
    map.fail(
        "says nothing to reach: give target: NAME, table: FILE, epochs, samples, or noise_scale with epochs");
  }
  return found;
}

}  // namespace

Goal Goal::read(const YamlNode& node, std::optional<double> samples) {
  YamlMap map(node, "goal");
  Goal goal;
  goal.pos_ = map.pos();
  const std::string kind = kind_of_goal(map);
  if (kind == "target" || kind == "table") {
    ConvergenceTable table = kind == "target" ? load_goal(map.text("target"), map.pos("target"))
                                              : read_convergence(named_file(map, "table"));
    if (!samples) samples = table.samples;
    goal.text_ = table.text;
    goal.network_ = table.network;
    goal.table_samples_ = table.samples;
    goal.length_ = std::move(table);
    goal.extrapolate_ = map.flag_or("extrapolate", false);
  } else if (map.has("extrapolate")) {
    map.fail("extrapolate",
             fmt::format("goes with target or table only; '{}' has no end to go beyond", kind));
  }
  if (!samples) map.fail("an epoch's number of images is not known: give training.dataset: {samples: N}");
  goal.samples_ = *samples;
  if (kind == "epochs") {
    goal.length_ = map.number("epochs", 1e-9, most_epochs);
    goal.text_ = fmt::format("{:g} epochs", std::get<double>(goal.length_));
  } else if (kind == "samples") {
    const double all = map.number("samples", 1, most_samples);
    goal.length_ = all / *samples;
    goal.text_ = fmt::format("{:g} images", all);
  } else if (kind == "noise_scale") {
    const double images = map.number("noise_scale", 1e-3, most_samples);
    const double epochs = map.number("epochs", 1e-9, most_epochs);
    goal.length_ = NoiseScale{epochs, images};
    goal.text_ = fmt::format("{:g} epochs at small batches, noise scale of {:g} images", epochs, images);
  }
  goal.start_up_s_ = map.quantity_or("start_up", Dimension::time, 0);
  for (const auto& [key, pause] :
       {std::pair{"evaluation", &goal.evaluation_}, {"checkpoint", &goal.checkpoint_}}) {
    if (!map.find(key)) continue;
    YamlMap inner = map.map(key);
    pause->time_s = inner.quantity("time", Dimension::time);
    pause->every_epochs = inner.number_or("every", 1, 1e-6, most_epochs);
    inner.finish();
  }
  map.finish();
  return goal;
}

std::optional<EpochsNeeded> Goal::epochs(double global_batch) const {
  if (const double* fixed = std::get_if<double>(&length_)) return EpochsNeeded{*fixed, *fixed, *fixed};
  if (const NoiseScale* noise = std::get_if<NoiseScale>(&length_)) {
    const double epochs = noise->at(global_batch);
    return EpochsNeeded{epochs, epochs, epochs};
  }
  return std::get<ConvergenceTable>(length_).at(global_batch, extrapolate_);
}

std::vector<std::string> Goal::doubts(const std::string& network) const {
  std::vector<std::string> doubts;
  if (!network_.empty() && !network.empty() && network != network_)
    doubts.push_back(fmt::format("the epochs are those of {}, trained is {}", network_, network));
  if (table_samples_ && *table_samples_ != samples_)
    doubts.push_back(fmt::format("the epochs are of {:.0f} images each, the data set has {:.0f}",
                                 *table_samples_, samples_));
  return doubts;
}

double Goal::Pause::all_s(double epochs) const { return time_s * std::ceil(epochs / every_epochs - 1e-9); }

double Goal::beside_s(double epochs) const {
  return start_up_s_ + evaluation_.all_s(epochs) + checkpoint_.all_s(epochs);
}

std::optional<std::pair<double, double>> Goal::range() const {
  const ConvergenceTable* table = std::get_if<ConvergenceTable>(&length_);
  if (!table || extrapolate_) return std::nullopt;
  return std::pair{table->smallest(), table->largest()};
}

}  // namespace convoy
