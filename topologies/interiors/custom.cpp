// SPDX-License-Identifier: MIT
#include "topologies/interiors/custom.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/base/names.h"
#include "topologies/cable_list.h"

namespace convoy::inline topologies {
namespace {

/// Vertices: devices, the host, switches.
class CustomInterior final : public Interior {
 public:
  CustomInterior(std::vector<Cable> cables, std::uint32_t devices, std::size_t vertices,
                 std::vector<std::uint32_t> nics_at)
      : cables_(std::move(cables)), devices_(devices), vertices_(vertices), nics_at_(std::move(nics_at)) {}

  InteriorGraph graph(std::uint32_t devices, std::uint32_t nics) const override {
    InteriorGraph graph;
    graph.cables = cables_;
    graph.transit = transit();
    for (std::uint32_t d = 0; d < devices; ++d) graph.devices_at.push_back(d);
    graph.memory_at = devices_;
    for (std::uint32_t n = 0; n < nics; ++n) graph.nics_at.push_back(nics_at_[n * nics_at_.size() / nics]);
    return graph;
  }

  std::vector<bool> transit() const {
    std::vector<bool> transit(vertices_, true);
    std::fill_n(transit.begin(), devices_, false);
    return transit;
  }

  std::string text() const override { return fmt::format("custom, {} cables", cables_.size()); }

 private:
  std::vector<Cable> cables_;
  std::uint32_t devices_;
  std::size_t vertices_;
  std::vector<std::uint32_t> nics_at_;
};

struct CustomInteriorDraft {
  double efficiency = 1;
  std::vector<PlaceEntry> switches;
  std::vector<std::string> nics_at;
  std::vector<CableEntry> cables;
};

const Keys<CustomInteriorDraft>& custom_interior_table() {
  using D = CustomInteriorDraft;
  static const Keys<D> keys{
      custom_key<D>("efficiency", "100%", forms::share(true), "of the nominal bandwidth that payload can use",
                    [](YamlMap& map, D& draft) { draft.efficiency = read_payload_share(map); }),
      list_key<D>("switches", "none", place_list_form(), "places beside gpu0, gpu1, ... and host",
                  [](YamlMap& map, D& draft) { draft.switches = read_places(map); })
          .with_parts(place_keys()),
      list_key<D>("links", "", cable_list_form(CablePlace::server), "cables between them",
                  [](YamlMap& map, D& draft) {
                    draft.cables = read_cable_list(map, draft.efficiency, CablePlace::server);
                  })
          .told_required()
          .with_parts(cable_entry_keys(CablePlace::server)),
      list_key<D>("nics_at", "the host", name_list_form(), "where NICs are, in turn",
                  [](YamlMap& map, D& draft) { draft.nics_at = read_name_list(map, "nics_at"); })};
  return keys;
}

}  // namespace

std::vector<KeyText> custom_interior_keys() { return texts_of(custom_interior_table()); }

std::shared_ptr<const Interior> read_custom_interior(YamlMap& map, std::uint32_t devices) {
  CustomInteriorDraft draft;
  read_keys(custom_interior_table(), map, draft);
  std::map<std::string, std::uint32_t> vertices;
  std::vector<std::string> places;
  const auto add = [&](const std::string& name) {
    if (!vertices.emplace(name, places.size()).second)
      map.fail("switches", fmt::format("'{}' has a meaning already", name));
    places.push_back(name);
  };
  for (std::uint32_t d = 0; d < devices; ++d) add(fmt::format("gpu{}", d));
  add("host");
  const RuleNames names{{"devices", devices}};
  for (const std::string& name : written_out(draft.switches, names)) add(name);

  std::vector<Cable> cables = resolve_cables(written_out(draft.cables, names), vertices);
  std::vector<std::uint32_t> nics_at;
  for (const std::string& name : draft.nics_at) {
    const auto place = vertices.find(name);
    if (place == vertices.end())
      map.fail("nics_at", fmt::format("there is no '{}'{}; there are: {}", name, suggestion(name, places),
                                      list_of(places)));
    nics_at.push_back(place->second);
  }
  if (nics_at.empty()) nics_at.push_back(devices);

  auto interior =
      std::make_shared<CustomInterior>(std::move(cables), devices, places.size(), std::move(nics_at));
  const InteriorGraph graph = interior->graph(devices, 1);
  for (std::uint32_t from = 0; from <= devices; ++from) {
    const PathTree tree = shortest_paths(graph.cables, graph.transit, from);
    for (std::uint32_t to = 0; to < places.size(); ++to)
      if (!std::isfinite(tree.cost[to]))
        map.fail("links", fmt::format("no route from '{}' to '{}'", places[from], places[to]));
  }
  return interior;
}

}  // namespace convoy::topologies
