// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/partition/hypergraph.h"

namespace convoy::inline partition {

/// A hypergraph whose vertices are blocks of layers.
struct LayeredHypergraph : Hypergraph {
  std::vector<std::uint32_t> layer;  ///< by vertex: what it is a block of; grows along the network
};

using Parts = Placement;  ///< part of each vertex

/// Whole layers in order, contiguous, so that the part that has most for its share has as little as can be.
Parts partition_by_layers(const LayeredHypergraph& graph, const Speeds& speeds);
/// Every layer's blocks to all parts, each its share.
Parts partition_evenly(const LayeredHypergraph& graph, const Speeds& speeds);
/// Vertices in random order (mt19937_64 of `seed`), each to the part that has least for its share so far.
Parts partition_at_random(const LayeredHypergraph& graph, const Speeds& speeds, std::uint64_t seed);
/// Contiguous in the order of the vertices with the least total cost of nets that span a border, no part
/// above (1 + epsilon) of its share where that can be.
Parts partition_in_order(const LayeredHypergraph& graph, const Speeds& speeds, double epsilon);

/// Moves vertices between parts while that lowers the connectivity and keeps every part within (1 + epsilon)
/// of its share (or lowers the excess of those that are above): k-way Fiduccia-Mattheyses passes with
/// exact connectivity gains and roll-back to the best point, first of whole blocks of a layer and then of
/// ever smaller ones. Never returns worse than it was given.
/// Source: Fiduccia & Mattheyses, DAC 1982; Sanchis, IEEE Trans. Comput. 38(1), 1989 (k-way).
Parts refine(const LayeredHypergraph& graph, Parts parts, const Speeds& speeds, double epsilon);

/// The best that the starts above and their refinement find: least excess over (1 + epsilon), then least
/// connectivity, then the best balance.
/// @param from_layers whether whole layers are among the starts: what is found is then never worse than they are
Parts partition_hypergraph(const LayeredHypergraph& graph, const Speeds& speeds, double epsilon,
                           bool from_layers = true);

}  // namespace convoy::partition
