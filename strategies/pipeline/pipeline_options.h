// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/yaml_map.h"
#include "sim/lowering/gradient_sync.h"
#include "strategies/hybrid/hybrid.h"
#include "strategies/pipeline/pipeline_partition.h"
#include "strategies/pipeline/pipeline_shape.h"

namespace convoy {

inline const std::vector<std::string> schedule_names{"naive", "gpipe", "1f1b"};
inline const std::vector<std::string> weights_names{"flush", "stash", "double_buffered"};

/// Who is on neighbouring devices.
enum class Neighbours : std::uint8_t { automatic, stages, replicas };

/// What a mapping of `kind: pipeline` says.
struct PipelineOptions {
  std::optional<std::int64_t> stages;
  std::optional<std::int64_t> replicas;       ///< pipelines side by side
  std::vector<std::uint32_t> stage_replicas;  ///< of each stage, where given
  std::int64_t micro_batches;
  PipelineSchedule schedule;
  Weights weights;
  StageCut partition;
  std::vector<std::pair<std::string, SourcePos>>
      begins;  ///< `begins`: first layer of each stage but the first
  Recompute recompute;
  Neighbours neighbours;
  GradientSync sync;                    ///< of a stage's replicas
  bool nested;                          ///< as `inner` says it
  std::optional<HybridOptions> hybrid;  ///< what a stage's devices do, where it is that
  bool auto_stages;                     ///< as many as give the shortest estimate
  SourcePos stages_pos, replicas_pos, weights_pos;
};

PipelineOptions read_pipeline_options(YamlMap& map);

}  // namespace convoy
