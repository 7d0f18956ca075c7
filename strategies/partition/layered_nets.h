// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/partition/hypergraph_partition.h"

namespace convoy::inline partition {

/// A layered hypergraph in short: a net with all vertices of a layer names the layer instead of them. Every
/// channel of a dense convolution reads all channels before it, so that ResNet-50 by channels has some ten
/// thousand pins and names instead of 15 million.
struct LayeredNets {
  struct Net {
    double cost;
    std::vector<std::uint32_t> pins;    ///< vertices, each once, of no layer in `layers`
    std::vector<std::uint32_t> layers;  ///< each once: all of its vertices are pins, too
  };
  std::vector<double> weight;                       ///< by vertex
  std::vector<std::uint32_t> layer;                 ///< by vertex
  std::vector<std::vector<std::uint32_t>> members;  ///< by layer: its vertices
  std::vector<Net> nets;
};

LayeredNets shorten(const LayeredHypergraph& graph);

/// Vertices joined to `count` groups, each inside a layer; nets with the same pins are one, and nets inside
/// a group go. @param group of every vertex
LayeredNets coarsen(const LayeredNets& nets, const std::vector<std::uint32_t>& group, std::uint32_t count);

/// As of the hypergraph that it is short for.
double connectivity(const LayeredNets& nets, const Placement& parts, Part count);

}  // namespace convoy::partition
