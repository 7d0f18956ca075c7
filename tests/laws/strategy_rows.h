// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/laws/laws.h"
#include "tests/laws/random_experiment.h"

namespace convoy::lab {

/// What a row's random options may depend on.
struct StrategySetting {
  int hosts, devices;  ///< in the cluster
  int layers;          ///< of the model
};

/// What a worker computes alone.
enum class Alone : std::uint8_t {
  single,          ///< exactly what `single` does, and sends nothing
  without_update,  ///< the same without the optimizer's step, which a server does
};

/// A strategy with what is particular about it.
struct StrategyRow {
  std::string name;
  std::function<std::string(Dice&, const StrategySetting&)> strategy;
  OperationCounts (*counts)(const Trial&);
  Alone alone;
  bool global_batch = false;  ///< needs global_batch
  /// Bytes sent in a step, by a formula that does not look at the plan's messages; none, or none known here.
  std::function<std::optional<double>(const Trial&)> volume = nullptr;
};

/// One row a strategy, several where it has ways to work that differ in what the laws say of them.
const std::vector<StrategyRow>& strategy_rows();

}  // namespace convoy::lab
