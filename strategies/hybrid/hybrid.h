// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "strategies/annotator.h"
#include "strategies/hybrid/layouts.h"

namespace convoy::inline strategies {

/// `kind: hybrid`: one program for all devices, in which each layer has a layout (LayerLayout): its images,
/// output channels, input channels, rows or columns shared out, or everything done by everyone. Where a layer
/// needs its input otherwise than the layer before leaves it, the tensor is exchanged, and its gradient the
/// other way round in backward. On n devices and a tensor of S bytes, over all devices:
///   split to whole            all-gather      (n - 1) S
///   sum of parts to split     reduce-scatter  (n - 1) S
///   sum of parts to whole     all-reduce      2 (n - 1) S (ring)
///   split to another split    all-to-all      (n - 1)/n S
///   whole to split            nothing
///   rows of neighbours        halo exchange   one message for each pair, the rows that it needs
/// Source: Krizhevsky, arXiv:1404.5997 (batch, filter and what lies between them); Shoeybi et al.,
/// arXiv:1909.08053, section 3 (filter and channel in turn); Hewett & Grady, arXiv:2006.03108 (halo exchange
/// and its adjoint). docs/hybrid.md has the rules.
///
/// `micro_batches: M` accumulates gradients over M parts of the batch, one after the other. Gradients are
/// summed, and states kept (`zero`), as GradientSync says: of weights that all devices of a group have over
/// all devices, of shares of weights over the replicas.
StrategyEntry hybrid_entry();
std::unique_ptr<Strategy> read_hybrid(YamlMap& map);

/// Krizhevsky, arXiv:1404.5997, section 4: how the layers behind the batch-split ones get their input.
enum class HybridScheme : std::uint8_t { all_at_once, one_device_a_part, all_devices_a_part };

/// What a mapping of `kind: hybrid` says.
struct HybridOptions {
  std::string path;  ///< of the mapping, for errors: "strategy", "strategy.inner"
  std::vector<LayoutRule> rules;
  std::int64_t replicas = 1;  ///< groups of devices that share the batch; of a stage, where it is nested
  SourcePos replicas_pos;
  std::int64_t micro_batches = 1;
  HybridScheme scheme = HybridScheme::all_at_once;
  SourcePos scheme_pos;
  GradientSync sync;  ///< of what devices have replicas of; activations are summed with its algorithm, too
  SourcePos pos;      ///< of the mapping
};
/// @throws InputError
HybridOptions read_hybrid_options(YamlMap& map);
std::string label_of(const HybridOptions& options);

/// A pipeline whose stages' devices work as `options` say: tensor parallelism in groups, data parallelism
/// over replicas of these.
struct HybridPipeline {
  std::vector<std::uint32_t> stage_of_layer;     ///< by layer
  std::vector<std::vector<EndpointId>> devices;  ///< of each stage, equally many
  std::vector<std::vector<Pass>> passes;         ///< of each stage, in order
  std::int64_t micro_batches;
  std::int64_t images;      ///< of a micro-batch, over all devices of a stage
  bool recomputes = false;  ///< stages keep what they get from each other, and run forward again
};
/// @throws InputError where devices or images do not divide, or a group is too large for its exchanges
Annotation annotate_hybrid(const StrategyInput& input, const HybridOptions& options,
                           const HybridPipeline& pipeline);

}  // namespace convoy::strategies
