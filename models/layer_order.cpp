// SPDX-License-Identifier: MIT
#include "models/layer_order.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>
#include <boost/graph/topological_sort.hpp>
#include <iterator>

namespace convoy::inline models {
namespace {

/// Edges lead from a layer to what it reads, so that depth-first search from the layers in their given order
/// finishes them in that order where it is topological.
using ReadGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

/// Walks from reader to read within one strongly connected component until a layer comes again.
std::vector<LayerIndex> find_cycle(const ReadGraph& graph) {
  std::vector<int> component(num_vertices(graph));
  boost::strong_components(
      graph, boost::make_iterator_property_map(component.begin(), get(boost::vertex_index, graph)));
  const auto next_in_component = [&](std::size_t v) {
    const auto [begin, end] = adjacent_vertices(v, graph);
    const auto it = std::find_if(begin, end, [&](std::size_t u) { return component[u] == component[v]; });
    return it == end ? graph.null_vertex() : *it;
  };
  for (std::size_t start = 0; start < component.size(); ++start) {
    std::vector<LayerIndex> walk;
    std::vector<bool> seen(component.size());
    std::size_t at = start;
    for (; at != graph.null_vertex() && !seen[at]; at = next_in_component(at)) {
      seen[at] = true;
      walk.push_back(static_cast<LayerIndex>(at));
    }
    if (at == graph.null_vertex()) continue;  // alone in its component and not reading itself
    walk.erase(walk.begin(), std::find(walk.begin(), walk.end(), static_cast<LayerIndex>(at)));
    std::reverse(walk.begin(), walk.end());
    return walk;
  }
  return {};
}

}  // namespace

LayerOrder order_layers(const std::vector<std::vector<LayerIndex>>& inputs) {
  ReadGraph graph(inputs.size());
  for (std::size_t reader = 0; reader < inputs.size(); ++reader)
    for (const LayerIndex read : inputs[reader])
      if (read != image_input) add_edge(reader, static_cast<std::size_t>(read), graph);
  LayerOrder result;
  try {
    boost::topological_sort(graph, std::back_inserter(result.order));
  } catch (const boost::not_a_dag&) {
    result.order.clear();
    result.cycle = find_cycle(graph);
  }
  return result;
}

}  // namespace convoy::models
