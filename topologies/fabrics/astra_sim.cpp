// SPDX-License-Identifier: MIT
#include "topologies/fabrics/astra_sim.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/key_parts.h"
#include "sim/base/named_file.h"
#include "sim/base/names.h"
#include "topologies/fabrics/cable_graph.h"

namespace convoy::inline topologies {
namespace {

struct AstraDraft {
  NicSpec nic;
  std::string file;
  SourcePos file_pos;
  std::int64_t inside = 0;
};

const Keys<AstraDraft>& astra_table() {
  using D = AstraDraft;
  static const Keys<D> keys = [] {
    Keys<D> table = keys_of_part<D>(payload_keys(), &D::nic);
    append_keys(table, keys_of_part<D>(protocol_keys(), &D::nic));
    table.push_back(custom_key<D>("file", "", forms::text("a file"),
                                  "a network file of ASTRA-sim, beside the experiment",
                                  [](YamlMap& map, D& draft) {
                                    draft.file = named_file(map, "file");
                                    draft.file_pos = map.pos("file");
                                  })
                        .told_required());
    table.push_back(integer_key<D>(
        "inside", 0, 16, "the first so many of its dimensions are inside hosts, whose servers say how",
        &D::inside));
    return table;
  }();
  return keys;
}

struct AstraDimension {
  enum class Shape : std::uint8_t { ring, fully_connected, a_switch } shape = Shape::ring;
  std::uint32_t npus = 0;
  double bandwidth_Bps = 0, latency_s = 0;
};
const std::array<const char*, 3> shape_names{"Ring", "FullyConnected", "Switch"};

const std::vector<YamlNode>& list_of_dimensions(YamlMap& map, const char* key, const char* example) {
  const YamlNode& node = map.node(key);
  if (node.kind != YamlNode::Kind::sequence || node.items.empty())
    map.fail(key, fmt::format("expected a list by dimension, such as {}", example));
  return node.items;
}

AstraDimension::Shape shape_of(const YamlNode& node) {
  const std::string name = read_text(node, "topology");
  const auto found = std::find(shape_names.begin(), shape_names.end(), name);
  const std::vector<std::string> names(shape_names.begin(), shape_names.end());
  if (found == shape_names.end())
    throw InputError(node.pos, fmt::format("topology: '{}' is not read{}; there are {}", name,
                                           suggestion(name, names), list_of(names)));
  return static_cast<AstraDimension::Shape>(found - shape_names.begin());
}

std::vector<AstraDimension> read_dimensions(const std::string& file) {
  constexpr double gigabyte = 1 << 30, ns = 1e-9;
  const YamlNode tree = load_yaml(file);
  YamlMap map(tree, "");
  const auto& shapes = list_of_dimensions(map, "topology", "[Ring, Switch]");
  const auto& counts = list_of_dimensions(map, "npus_count", "[8, 4]");
  const auto& bandwidths = list_of_dimensions(map, "bandwidth", "[400, 50]");
  const auto& latencies = list_of_dimensions(map, "latency", "[100, 500]");
  map.finish();
  for (const auto& [key, items] : {std::pair{"npus_count", &counts}, std::pair{"bandwidth", &bandwidths},
                                   std::pair{"latency", &latencies}})
    if (items->size() != shapes.size())
      map.fail(key, fmt::format("has {} values for {} dimensions (topology)", items->size(), shapes.size()));
  std::vector<AstraDimension> dimensions;
  constexpr double most = 1e9;
  for (std::size_t d = 0; d < shapes.size(); ++d)
    dimensions.push_back(
        {shape_of(shapes[d]),
         static_cast<std::uint32_t>(read_integer(counts[d], "npus_count", 2, most_graph_nics)),
         gigabyte * read_number(bandwidths[d], "bandwidth", 1e-9, most),
         ns * read_number(latencies[d], "latency", 0, most)});
  return dimensions;
}

/// Adds the cables of one dimension between NPUs that differ in it alone.
class DimensionCables {
 public:
  DimensionCables(CableGraph& graph, std::size_t dimension, const AstraDimension& shape, double efficiency)
      : graph_(graph), dimension_(dimension), of_(shape), bandwidth_Bps_(shape.bandwidth_Bps * efficiency) {}

  /// @param npus in the order of their places in the dimension
  void join(const std::vector<std::uint32_t>& npus) {
    const auto count = static_cast<std::uint32_t>(npus.size());
    switch (of_.shape) {
      case AstraDimension::Shape::ring:
        for (std::uint32_t i = 0; i < (count == 2 ? 1 : count); ++i) add(npus[i], npus[(i + 1) % count]);
        break;
      case AstraDimension::Shape::fully_connected:
        for (std::uint32_t i = 0; i < count; ++i)
          for (std::uint32_t j = i + 1; j < count; ++j) add(npus[i], npus[j]);
        break;
      case AstraDimension::Shape::a_switch: {
        const auto place = static_cast<std::uint32_t>(graph_.hosts + graph_.switches.size());
        graph_.switches.push_back(fmt::format("dim{}.switch{}", dimension_, switches_++));
        for (const std::uint32_t npu : npus) add(npu, place);
        break;
      }
    }
  }

 private:
  void add(std::uint32_t a, std::uint32_t b) {
    graph_.cables.push_back({a, b, bandwidth_Bps_, of_.latency_s});
  }

  CableGraph& graph_;
  std::size_t dimension_;
  const AstraDimension& of_;
  double bandwidth_Bps_;
  std::size_t switches_ = 0;
};

CableGraph graph_of(const std::vector<AstraDimension>& dimensions, const AstraDraft& draft) {
  CableGraph graph;
  graph.hosts_forward = true;
  graph.hosts = 1;
  graph.text = "ASTRA-sim network";
  const auto inside = static_cast<std::size_t>(draft.inside);
  for (std::size_t d = inside; d < dimensions.size(); ++d) {
    graph.hosts *= dimensions[d].npus;
    graph.text += fmt::format("{} {} of {}", d == inside ? "," : " x",
                              shape_names[static_cast<std::size_t>(dimensions[d].shape)], dimensions[d].npus);
    if (graph.hosts > most_graph_nics)
      throw InputError(draft.file_pos, fmt::format("cluster.fabric.file: {} has more than {} hosts",
                                                   draft.file, most_graph_nics));
  }
  std::uint32_t stride = 1;
  for (std::size_t d = inside; d < dimensions.size(); ++d) {
    const std::uint32_t count = dimensions[d].npus;
    DimensionCables cables(graph, d, dimensions[d], draft.nic.efficiency);
    for (std::uint32_t first = 0; first < graph.hosts; ++first) {
      if (first / stride % count != 0) continue;
      std::vector<std::uint32_t> npus;
      for (std::uint32_t i = 0; i < count; ++i) npus.push_back(first + i * stride);
      cables.join(npus);
    }
    stride *= count;
  }
  return graph;
}

}  // namespace

std::vector<KeyText> astra_sim_keys() { return texts_of(astra_table()); }

std::shared_ptr<const Fabric> read_astra_sim_fabric(YamlMap& map) {
  AstraDraft draft;
  read_keys(astra_table(), map, draft);
  const std::vector<AstraDimension> dimensions = read_dimensions(draft.file);
  if (static_cast<std::size_t>(draft.inside) >= dimensions.size())
    map.fail("inside",
             fmt::format("the file has {} dimensions, and at least one joins hosts", dimensions.size()));
  return make_cable_graph_fabric(map, draft.nic, graph_of(dimensions, draft));
}

}  // namespace convoy::topologies
