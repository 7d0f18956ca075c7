// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/keys.h"
#include "sim/lowering/gradient_sync.h"
#include "strategies/hybrid/hybrid.h"
#include "strategies/pipeline/pipeline_partition.h"
#include "strategies/pipeline/pipeline_shape.h"

namespace convoy::inline strategies {

inline const std::vector<std::string> schedule_names{"naive", "gpipe", "1f1b"};
inline const std::vector<std::string> weights_names{"flush", "stash", "double_buffered"};

/// Who is on neighbouring devices.
enum class Neighbours : std::uint8_t { automatic, stages, replicas };

/// What a mapping of `kind: pipeline` says.
struct PipelineOptions {
  std::string path = "strategy";  ///< of the mapping, for errors
  std::optional<std::int64_t> stages;
  std::optional<std::int64_t> replicas;       ///< pipelines side by side
  std::vector<std::uint32_t> stage_replicas;  ///< of each stage, where given
  std::int64_t micro_batches = 1;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  Weights weights = Weights::flush;
  StageCut partition = StageCut::optimal;
  std::vector<std::pair<std::string, SourcePos>>
      begins;  ///< `begins`: first layer of each stage but the first
  Recompute recompute = Recompute::never;
  Neighbours neighbours = Neighbours::automatic;
  /// Of a stage's replicas: as `inner` says it, or one all-reduce after the stage's last backward pass.
  GradientSync sync = summed_after_backward();
  bool nested = false;                  ///< there is an `inner`
  std::optional<HybridOptions> hybrid;  ///< what a stage's devices do, where it is that
  bool auto_stages = false;             ///< as many as give the shortest estimate
  SourcePos stages_pos, replicas_pos, weights_pos;
};

const Keys<PipelineOptions>& pipeline_keys();
/// @throws InputError
PipelineOptions read_pipeline_options(YamlMap& map);

}  // namespace convoy::strategies
