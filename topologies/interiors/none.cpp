// SPDX-License-Identifier: MIT
#include "topologies/interiors/none.h"

namespace convoy::inline topologies {
namespace {

class NoInterior final : public Interior {
 public:
  InteriorGraph graph(std::uint32_t devices, std::uint32_t nics) const override {
    InteriorGraph graph;
    const std::uint32_t place = graph.add_vertex(false);
    graph.devices_at.assign(devices, place);
    graph.memory_at = place;
    graph.nics_at.assign(nics, place);
    return graph;
  }
  std::string text() const override { return "no limit inside a server"; }
};

}  // namespace

std::shared_ptr<const Interior> read_no_interior(YamlMap&, std::uint32_t) {
  return std::make_shared<NoInterior>();
}

}  // namespace convoy::topologies
