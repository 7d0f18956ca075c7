// SPDX-License-Identifier: MIT
#include "strategies/partition/read_dag.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>

#include "sim/base/input_error.h"
#include "sim/base/input_file.h"
#include "strategies/partition/dag_events.h"

namespace convoy::inline partition {
namespace {

/// NodeId of each id, by search; where ids follow one another without gaps, at once.
class Ids {
 public:
  explicit Ids(const std::vector<DagFileNode>& nodes) : nodes_(nodes), by_id_(nodes.size()) {
    std::iota(by_id_.begin(), by_id_.end(), 0);
    std::stable_sort(by_id_.begin(), by_id_.end(),
                     [&](NodeId a, NodeId b) { return nodes[a].id < nodes[b].id; });
  }
  const std::vector<NodeId>& by_id() const { return by_id_; }
  std::optional<NodeId> find(std::int64_t id) const {
    if (nodes_.empty()) return std::nullopt;
    const std::uint64_t place =
        static_cast<std::uint64_t>(id) - static_cast<std::uint64_t>(nodes_[by_id_.front()].id);
    if (place < nodes_.size() && nodes_[by_id_[place]].id == id) return static_cast<NodeId>(place);
    const auto at = std::lower_bound(by_id_.begin(), by_id_.end(), id, [&](NodeId node, std::int64_t wanted) {
      return nodes_[node].id < wanted;
    });
    if (at == by_id_.end() || nodes_[*at].id != id) return std::nullopt;
    return static_cast<NodeId>(at - by_id_.begin());
  }

 private:
  const std::vector<DagFileNode>& nodes_;
  std::vector<NodeId> by_id_;
};

/// The place in the file of an edge that is there already: of the first such pair, the second of its edges.
std::optional<std::size_t> edge_there_twice(const std::vector<std::pair<NodeId, NodeId>>& edges,
                                            NodeId nodes) {
  struct Reader {
    NodeId node;
    std::uint32_t edge;
    auto operator<=>(const Reader&) const = default;
  };
  std::vector<std::uint32_t> end(nodes + 1);  // of the readers of each node
  for (const auto& [from, to] : edges) ++end[from + 1];
  std::partial_sum(end.begin(), end.end(), end.begin());
  std::vector<Reader> readers(edges.size());
  for (std::uint32_t i = 0; i < edges.size(); ++i) readers[end[edges[i].first]++] = {edges[i].second, i};
  auto first = readers.begin();
  for (NodeId v = 0; v < nodes; ++v) {
    const auto last = readers.begin() + end[v];
    std::sort(first, last);
    const auto twice =
        std::adjacent_find(first, last, [](const Reader& a, const Reader& b) { return a.node == b.node; });
    if (twice != last) return (twice + 1)->edge;
    first = last;
  }
  return std::nullopt;
}

}  // namespace

DagFile parse_dag(const std::string& text, const std::string& file) {
  DagEvents handler(text, file);
  nlohmann::json::sax_parse(CountedText(text.data(), &handler.read),
                            CountedText(text.data() + text.size(), &handler.read), &handler);
  const Ids ids(handler.nodes);
  std::vector<Dag::Node> nodes;
  std::vector<std::string> names;
  std::vector<NodeId> listed(handler.nodes.size());
  std::vector<std::pair<NodeId, NodeId>> edges, together;
  for (NodeId v = 0; v < ids.by_id().size(); ++v) {
    DagFileNode& node = handler.nodes[ids.by_id()[v]];
    if (v > 0 && handler.nodes[ids.by_id()[v - 1]].id == node.id)
      handler.fail(node.offset, fmt::format("id {} is there twice", node.id));
    nodes.push_back(node.figures);
    names.push_back(std::move(node.name));
    listed[ids.by_id()[v]] = v;
    if (!node.colocate_with) continue;
    const std::optional<NodeId> other = ids.find(*node.colocate_with);
    if (!other)
      handler.fail(node.offset, fmt::format("'colocate_with': no node has id {}", *node.colocate_with));
    together.emplace_back(v, *other);
  }
  edges.reserve(handler.edges.size());
  for (const DagFileEdge& edge : handler.edges) {
    NodeId ends[2];
    for (int end = 0; end < 2; ++end) {
      const std::optional<NodeId> node = ids.find(edge.ends[end]);
      if (!node) handler.fail(edge.offset, fmt::format("no node has id {}", edge.ends[end]));
      ends[end] = *node;
    }
    edges.emplace_back(ends[0], ends[1]);
  }
  if (const std::optional<std::size_t> again = edge_there_twice(edges, static_cast<NodeId>(nodes.size()))) {
    const DagFileEdge& twice = handler.edges[*again];
    handler.fail(twice.offset, fmt::format("edge [{}, {}] is there twice", twice.ends[0], twice.ends[1]));
  }
  try {
    return {handler.name, Dag(std::move(nodes), edges, together), std::move(names), std::move(listed)};
  } catch (const CycleError& error) {
    const DagFileNode& node = handler.nodes[ids.by_id()[error.node]];
    handler.fail(node.offset, fmt::format("the graph has a cycle through node {}", node.id));
  }
}

DagFile read_dag(const std::string& file) {
  if (std::filesystem::is_directory(file)) throw InputError({file, 0, 0}, "is a folder, not a graph");
  std::ifstream in = open_input(file);
  if (!in) throw InputError({file, 0, 0}, "cannot be read");
  constexpr std::size_t largest_file = std::size_t{1} << 30;
  std::string text;
  std::vector<char> buffer(std::size_t{1} << 20);
  while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || in.gcount() > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(in.gcount()));
    // Devices such as /dev/zero never end.
    if (std::find(buffer.begin(), buffer.begin() + in.gcount(), '\0') != buffer.begin() + in.gcount())
      throw InputError({file, 0, 0}, "is not JSON: it has a zero byte");
    if (text.size() > largest_file)
      throw InputError({file, 0, 0},
                       fmt::format("is larger than {} MiB, more than any graph needs", largest_file >> 20));
  }
  if (in.bad()) throw InputError({file, 0, 0}, "cannot be read");
  return parse_dag(text, file);
}

}  // namespace convoy::partition
