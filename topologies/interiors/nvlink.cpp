// SPDX-License-Identifier: MIT
#include "topologies/interiors/nvlink.h"

#include <fmt/format.h>

#include <algorithm>

#include "topologies/interiors/pcie.h"
#include "topologies/interiors/rate_keys.h"

namespace convoy::inline topologies {
namespace {

constexpr std::int64_t max_pair_links = 64;  ///< of a pair

struct NvlinkPair {
  std::uint32_t a = 0, b = 0, links = 0;
};

class NvlinkInterior final : public Interior {
 public:
  NvlinkInterior(std::vector<NvlinkPair> pairs, double link_Bps, double latency_s,
                 std::optional<PcieTree> pcie)
      : pairs_(std::move(pairs)), link_Bps_(link_Bps), latency_s_(latency_s), pcie_(std::move(pcie)) {}

  InteriorGraph graph(std::uint32_t devices, std::uint32_t nics) const override {
    InteriorGraph graph;
    for (std::uint32_t d = 0; d < devices; ++d) graph.devices_at.push_back(graph.add_vertex(false));
    for (const NvlinkPair& pair : pairs_)
      if (pair.a < devices && pair.b < devices)
        graph.cables.push_back({pair.a, pair.b, pair.links * link_Bps_, latency_s_, nvlink_way_cost,
                                LinkKind::nvlink, fmt::format("gpu{}-gpu{}.nvlink", pair.a, pair.b)});
    add_host_side(graph, pcie_, nics);
    return graph;
  }

  std::string text() const override {
    std::uint32_t links = 0;
    for (const NvlinkPair& pair : pairs_) links += pair.links;
    return fmt::format("{} NVLinks of {} between {} pairs{}", links, format_bandwidth(link_Bps_),
                       pairs_.size(), pcie_ ? "; " + pcie_->text() : "");
  }

 private:
  std::vector<NvlinkPair> pairs_;
  double link_Bps_, latency_s_;
  std::optional<PcieTree> pcie_;
};

std::vector<std::vector<std::int64_t>> read_rows(YamlMap& map, std::string_view key,
                                                 std::string_view expected, std::int64_t max) {
  const YamlNode& list = map.node(key);
  const std::string path = map.path_of(key);
  if (list.kind != YamlNode::Kind::sequence)
    map.fail(key, fmt::format("expected {}, found {}", expected, describe(list)));
  std::vector<std::vector<std::int64_t>> rows;
  for (std::size_t r = 0; r < list.items.size(); ++r) {
    const YamlNode& row = list.items[r];
    if (row.kind != YamlNode::Kind::sequence)
      throw InputError(row.pos,
                       fmt::format("{}[{}]: expected {}, found {}", path, r, expected, describe(row)));
    rows.emplace_back();
    for (std::size_t c = 0; c < row.items.size(); ++c)
      rows.back().push_back(read_integer(row.items[c], fmt::format("{}[{}][{}]", path, r, c), 0, max));
  }
  return rows;
}

std::vector<NvlinkPair> pairs_of_matrix(YamlMap& map, std::uint32_t devices) {
  const auto rows = read_rows(map, "matrix", "a square of link counts", max_pair_links);
  for (const auto& row : rows)
    if (rows.size() != devices || row.size() != devices)
      map.fail("matrix", fmt::format("must have {0} rows of {0} link counts, one for each device", devices));
  std::vector<NvlinkPair> pairs;
  for (std::uint32_t a = 0; a < devices; ++a)
    for (std::uint32_t b = 0; b <= a; ++b) {
      if (a == b && rows[a][a] != 0) map.fail("matrix", fmt::format("device {} has links to itself", a));
      if (rows[a][b] != rows[b][a])
        map.fail("matrix", fmt::format("is not symmetric: {} links from {} to {}, but {} back", rows[b][a], b,
                                       a, rows[a][b]));
      if (rows[a][b] > 0) pairs.push_back({b, a, static_cast<std::uint32_t>(rows[a][b])});
    }
  return pairs;
}

std::vector<NvlinkPair> pairs_of_list(YamlMap& map, std::uint32_t devices) {
  std::vector<NvlinkPair> pairs;
  std::vector<bool> seen(std::size_t{devices} * devices, false);
  for (const auto& row :
       read_rows(map, "pairs", "a list of pairs [device, device] or [device, device, links]", 1024)) {
    if (row.size() < 2 || row.size() > 3 || row[0] == row[1] || row[0] >= devices || row[1] >= devices)
      map.fail(
          "pairs",
          fmt::format("each must be [a, b] or [a, b, links] with two different devices below {}", devices));
    if (row.size() == 3 && (row[2] < 1 || row[2] > max_pair_links))
      map.fail("pairs", fmt::format("{} links between {} and {}; 1 to {} are allowed", row[2], row[0], row[1],
                                    max_pair_links));
    const auto [low, high] = std::minmax(row[0], row[1]);
    if (seen[static_cast<std::size_t>(low * devices + high)])
      map.fail("pairs", fmt::format("{} and {} are listed twice", low, high));
    seen[static_cast<std::size_t>(low * devices + high)] = true;
    pairs.push_back({static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(high),
                     row.size() == 3 ? static_cast<std::uint32_t>(row[2]) : 1});
  }
  return pairs;
}

std::vector<NvlinkPair> all_pairs(std::uint32_t devices) {
  std::vector<NvlinkPair> pairs;
  for (std::uint32_t b = 1; b < devices; ++b)
    for (std::uint32_t a = 0; a < b; ++a) pairs.push_back({a, b, 1});
  return pairs;
}

struct NvlinkDraft {
  std::uint32_t devices = 0;
  double efficiency = 1, bandwidth_Bps = 0, latency_s = 0;
  bool has_matrix = false;
  std::vector<NvlinkPair> pairs;
  std::optional<PcieTree> pcie;
};

void read_matrix(YamlMap& map, NvlinkDraft& draft) {
  draft.has_matrix = map.find("matrix") != nullptr;
  draft.pairs = draft.has_matrix ? pairs_of_matrix(map, draft.devices) : all_pairs(draft.devices);
}

const Keys<NvlinkDraft>& nvlink_table() {
  using D = NvlinkDraft;
  static const Keys<D> keys = [] {
    Keys<D> table = rate_keys<D>("of one link");
    table.push_back(list_key<D>(
        "matrix", "one link between any two",
        forms::list(forms::list(forms::whole(0, YamlMap::max_integer), "a row"), "a list of rows"),
        "links of every pair", &read_matrix));
    table.push_back(list_key<D>("pairs", "all of them",
                                forms::list(forms::list(forms::whole(0, YamlMap::max_integer), "a pair"),
                                            "a list such as [[0, 1], [0, 3, 2]]"),
                                "those that are linked, and by how many links",
                                [](YamlMap& map, D& draft) {
                                  if (map.find("pairs")) draft.pairs = pairs_of_list(map, draft.devices);
                                })
                        .only("no matrix", [](const D& draft) { return !draft.has_matrix; }));
    table.push_back(pcie_key<D>());
    return table;
  }();
  return keys;
}

}  // namespace

std::vector<KeyText> nvlink_keys() { return texts_of(nvlink_table()); }

std::shared_ptr<const Interior> read_nvlink_interior(YamlMap& map, std::uint32_t devices) {
  NvlinkDraft draft{.devices = devices, .pairs = {}, .pcie = {}};
  read_keys(nvlink_table(), map, draft);
  if (!draft.pcie && draft.pairs.size() < std::size_t{devices} * (devices - 1) / 2)
    map.fail("key 'pcie' is missing: some pairs of devices have no NVLink, and PCIe is their way");
  return std::make_shared<NvlinkInterior>(std::move(draft.pairs), draft.bandwidth_Bps, draft.latency_s,
                                          std::move(draft.pcie));
}

}  // namespace convoy::topologies
