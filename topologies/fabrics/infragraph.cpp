// SPDX-License-Identifier: MIT
#include "topologies/fabrics/infragraph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "sim/base/key_parts.h"
#include "sim/base/named_file.h"
#include "topologies/fabrics/cable_graph.h"
#include "topologies/fabrics/infragraph_file.h"

namespace convoy::inline topologies {
namespace {

struct InfraGraphDraft {
  NicSpec nic;
  std::string file;
  std::optional<double> bandwidth_Bps, latency_s;
};

const Keys<InfraGraphDraft>& infragraph_table() {
  using D = InfraGraphDraft;
  static const Keys<D> keys = [] {
    Keys<D> table = keys_of_part<D>(payload_keys(), &D::nic);
    append_keys(table, keys_of_part<D>(protocol_keys(), &D::nic));
    append_keys(table,
                Keys<D>{custom_key<D>("file", "", forms::text("a file"),
                                      "of InfraGraph (YAML or JSON), beside the experiment",
                                      [](YamlMap& map, D& draft) { draft.file = named_file(map, "file"); })
                            .told_required(),
                        optional_quantity_key<D>("bandwidth", "", Dimension::bandwidth, true,
                                                 "of links of which the file tells none", &D::bandwidth_Bps),
                        optional_quantity_key<D>("latency", "", Dimension::time, false,
                                                 "of links of which the file tells none", &D::latency_s)});
    return table;
  }();
  return keys;
}

/// Numbers the places of a file, and joins them.
class GraphOfFile {
 public:
  GraphOfFile(const InfraGraphFile& file, const InfraGraphDraft& draft, const YamlMap& map)
      : file_(file), draft_(draft), map_(map) {}

  CableGraph graph() {
    number_hosts();
    number_nics();
    for (const InfraGraphFile::Instance& instance : file_.instances) {
      first_switch_.push_back(graph_.switches.size());
      for (std::uint32_t i = 0; !instance.is_host && i < instance.count; ++i)
        graph_.switches.push_back(fmt::format("{}.{}", instance.name, i));
    }
    for (const InfraGraphFile::Edge& edge : file_.edges) join(edge);
    for (const auto& [ends, cable] : cables_) graph_.cables.push_back(cable);
    graph_.text = fmt::format("InfraGraph{} of {} hosts, {} switches and {} cables",
                              file_.name.empty() ? "" : " '" + file_.name + "'", graph_.hosts,
                              graph_.switches.size(), graph_.cables.size());
    return std::move(graph_);
  }

 private:
  void number_hosts() {
    for (const InfraGraphFile::Instance& instance : file_.instances) {
      first_host_.push_back(graph_.hosts);
      if (instance.is_host) graph_.hosts += instance.count;
    }
    if (graph_.hosts == 0)
      map_.fail("file", "no instance of the file is of a device with xpus, which would be a host");
    if (graph_.hosts > most_graph_nics)
      map_.fail("file", fmt::format("has {} hosts; at most {} are read", graph_.hosts, most_graph_nics));
  }

  std::uint32_t host(const InfraGraphFile::Endpoint& end) const {
    return static_cast<std::uint32_t>(first_host_[end.instance] + end.index);
  }

  /// A host's NICs are the components that edges name, by name and number.
  void number_nics() {
    std::vector<std::set<std::pair<std::string, std::uint32_t>>> nics(graph_.hosts);
    for (const InfraGraphFile::Edge& edge : file_.edges)
      for (const InfraGraphFile::Endpoint* end : {&edge.a, &edge.b})
        if (file_.instances[end->instance].is_host)
          nics[host(*end)].emplace(end->component, end->component_index);
    graph_.nics = nics.front().size();
    for (std::size_t h = 0; h < nics.size(); ++h) {
      if (nics[h].size() != graph_.nics || nics[h].empty())
        map_.fail("file",
                  fmt::format("edges name {} components of its host {} and {} of host 0; every host needs as "
                              "many NICs, and at least one",
                              nics[h].size(), h, graph_.nics));
      std::uint32_t n = 0;
      for (const auto& [component, index] : nics[h]) nic_[{h, component, index}] = n++;
    }
  }

  std::uint32_t place(const InfraGraphFile::Endpoint& end) const {
    if (!file_.instances[end.instance].is_host)
      return static_cast<std::uint32_t>(graph_.hosts * graph_.nics + first_switch_[end.instance] + end.index);
    const std::uint32_t h = host(end);
    return static_cast<std::uint32_t>(h * graph_.nics) + nic_.at({h, end.component, end.component_index});
  }

  void join(const InfraGraphFile::Edge& edge) {
    const auto [a, b] = std::minmax({place(edge.a), place(edge.b)});
    if (a == b) throw InputError(edge.pos, "edges: joins a device with itself");
    const InfraGraphFile::Link& link = file_.links.at(edge.link);
    const auto told = [&](const std::optional<double>& value, const std::optional<double>& otherwise,
                          const char* key) {
      if (value) return *value;
      if (otherwise) return *otherwise;
      throw InputError(link.pos,
                       fmt::format("links: '{}' tells no {}; give cluster.fabric.{} for links that tell "
                                   "none",
                                   edge.link, key, key));
    };
    const double bandwidth_Bps =
        told(link.bandwidth_Bps, draft_.bandwidth_Bps, "bandwidth") * draft_.nic.efficiency;
    const double latency_s = told(link.latency_s, draft_.latency_s, "latency");
    if (bandwidth_Bps <= 0)
      throw InputError(link.pos, fmt::format("links: '{}' has no bandwidth", edge.link));
    CableGraph::Cable& cable = cables_.try_emplace({a, b}, CableGraph::Cable{a, b, 0, 0}).first->second;
    cable.bandwidth_Bps += bandwidth_Bps;
    cable.latency_s = std::max(cable.latency_s, latency_s);
  }

  const InfraGraphFile& file_;
  const InfraGraphDraft& draft_;
  const YamlMap& map_;
  CableGraph graph_;
  std::vector<std::size_t> first_host_, first_switch_;  ///< by instance
  std::map<std::tuple<std::size_t, std::string, std::uint32_t>, std::uint32_t>
      nic_;                                                                      ///< by host and component
  std::map<std::pair<std::uint32_t, std::uint32_t>, CableGraph::Cable> cables_;  ///< by its ends
};

}  // namespace

std::vector<KeyText> infragraph_keys() { return texts_of(infragraph_table()); }

std::shared_ptr<const Fabric> read_infragraph_fabric(YamlMap& map) {
  InfraGraphDraft draft;
  read_keys(infragraph_table(), map, draft);
  const InfraGraphFile file = read_infragraph_file(draft.file);
  return make_cable_graph_fabric(map, draft.nic, GraphOfFile(file, draft, map).graph());
}

}  // namespace convoy::topologies
