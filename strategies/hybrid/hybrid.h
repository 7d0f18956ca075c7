// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace convoy {

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
std::unique_ptr<Strategy> read_hybrid(YamlMap& map);

}  // namespace convoy
