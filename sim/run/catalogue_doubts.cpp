// SPDX-License-Identifier: MIT
#include "sim/run/catalogue_doubts.h"

#include <fmt/format.h>

#include <utility>

namespace convoy::inline runs {

std::optional<Doubt> doubt_of_bandwidth(const ClusterSpec& cluster) {
  const auto doubted = [](const Sources& sources, const Fabric& fabric) -> std::optional<Doubt> {
    const Source* source = find_source(sources, "fabric.bandwidth");
    if (source == nullptr || (!is_guess(source->grade) && !source->spread)) return std::nullopt;
    Doubt doubt{Doubt::Moves::network, "cluster.fabric.bandwidth",
                fmt::format("{:.4g}Gbps", 8e-9 * fabric.nic().bandwidth_Bps), *source};
    if (!doubt.source.spread) doubt.source.spread = assumed_bandwidth_spread;
    return doubt;
  };
  if (cluster.fabric) return doubted(cluster.sources, *cluster.fabric);
  std::optional<Doubt> most;
  for (const ServerSpec& server : cluster.servers)
    if (std::optional<Doubt> doubt = server.fabric ? doubted(server.sources, *server.fabric) : std::nullopt;
        doubt && (!most || *most->source.spread < *doubt->source.spread))
      most = std::move(doubt);
  return most;
}

std::optional<Doubt> doubt_of_loader(const InputSpec& input) {
  if (input.synthetic || input.rate_given) return std::nullopt;
  const Source* source = find_source(input.library.sources, "core_images_per_s");
  Doubt doubt{Doubt::Moves::loader, "training.input.core_images_per_s",
              fmt::format("{:.4g} images/s of a core", input.library.core_images_per_s),
              Source{source ? source->grade : Grade::assumed, loader_spread(),
                     fmt::format("'{}', measured on another host{}", input.library.name,
                                 source ? ": " + source->text : "")}};
  doubt.library = input.library.name;
  return doubt;
}

}  // namespace convoy::runs
