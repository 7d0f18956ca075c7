// SPDX-License-Identifier: MIT
#include "topologies/catalog.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/data_path.h"
#include "sim/base/names.h"

namespace convoy {
namespace {

constexpr const char* server_folder = "topologies/catalog/servers";
constexpr const char* cluster_folder = "topologies/catalog/clusters";

YamlNode load_entry(const char* folder, const char* what, const std::string& name, const SourcePos& pos) {
  const std::vector<std::string> names = data_names(folder);
  if (!std::binary_search(names.begin(), names.end(), name))
    throw InputError(pos, fmt::format("unknown {} '{}'{}; `convoy show {}s` lists them", what, name,
                                      suggestion(name, names), what));
  return load_yaml(fmt::format("{}/{}.yaml", data_path(folder), name));
}

}  // namespace

std::vector<std::string> server_names() { return data_names(server_folder); }
std::vector<std::string> cluster_names() { return data_names(cluster_folder); }

ServerSpec load_server(const std::string& name, const SourcePos& pos) {
  return read_server(load_entry(server_folder, "server", name, pos), "", name, load_device);
}

ClusterSpec load_cluster(const std::string& name, const SourcePos& pos) {
  const YamlNode node = load_entry(cluster_folder, "cluster", name, pos);
  if (node.kind != YamlNode::Kind::mapping)
    throw InputError(node.pos, fmt::format("expected a mapping (key: value), found {}", describe(node)));
  ClusterSpec cluster = read_cluster(node);
  cluster.name = name;
  return cluster;
}

}  // namespace convoy
