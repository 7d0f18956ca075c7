// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace convoy::inline strategies {

/// `kind: pipeline`: the network cut into consecutive stages on devices of their own, through which
/// micro-batches pass; `replicas` such pipelines side by side, or stages of several devices
/// (docs/pipelines.md).
StrategyEntry pipeline_entry();
std::unique_ptr<Strategy> read_pipeline(YamlMap& map);

}  // namespace convoy::strategies
