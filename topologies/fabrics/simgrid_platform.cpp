// SPDX-License-Identifier: MIT
#include "topologies/fabrics/simgrid_platform.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/base/named_file.h"
#include "topologies/cable_list.h"
#include "topologies/fabrics/platform_file.h"

namespace convoy::inline topologies {
namespace {

class PlatformRoutes final : public FabricRoutes {
 public:
  PlatformRoutes(const PlatformFile& platform, std::span<const FabricHost> hosts, double efficiency,
                 double message_overhead_s, LinkTable& links) {
    for (const PlatformLink& link : platform.links()) {
      first_.push_back(static_cast<LinkId>(links.links().size()));
      const double bandwidth_Bps = efficiency * link.bandwidth_Bps;
      link.split ? links.add_cable(link.name, bandwidth_Bps, link.latency_s)
                 : links.add_medium(link.name, bandwidth_Bps, link.latency_s);
      fastest_Bps_ = std::max(fastest_Bps_, bandwidth_Bps);
    }
    stacks_.emplace(hosts,
                    std::vector<double>(hosts.size(), fastest_Bps_ * static_cast<double>(first_.size())),
                    message_overhead_s, links);
    ways_.resize(hosts.size());
    for (std::uint32_t a = 0; a < hosts.size(); ++a)
      for (std::uint32_t b = 0; b < hosts.size(); ++b) {
        ways_[a].emplace_back();
        if (a == b) continue;
        for (const PlatformHop& hop : platform.way(a, b))
          ways_[a][b].push_back(first_[hop.link] + (hop.down ? 1 : 0));
      }
  }

  void append(FabricPort from, FabricPort to, std::vector<LinkId>& links) const override {
    stacks_->append_up(from.host, links);
    const std::vector<LinkId>& way = ways_[from.host][to.host];
    links.insert(links.end(), way.begin(), way.end());
    stacks_->append_down(to.host, links);
  }

 private:
  std::vector<LinkId> first_;  ///< by link of the platform
  double fastest_Bps_ = 0;
  std::optional<StackLinks> stacks_;
  std::vector<std::vector<std::vector<LinkId>>> ways_;  ///< by host and host
};

class PlatformFabric final : public Fabric {
 public:
  PlatformFabric(const YamlMap& map, const NicSpec& nic, PlatformFile platform)
      : Fabric(map, nic), platform_(std::move(platform)) {}
  bool has_nics() const override { return false; }

  std::unique_ptr<const FabricRoutes> build(std::span<const FabricHost> hosts,
                                            LinkTable& links) const override {
    if (hosts.size() > std::min(platform_.hosts().size(), max_hosts))
      fail(fmt::format("{} hosts; the platform has {}, and at most {} are used", hosts.size(),
                       platform_.hosts().size(), max_hosts));
    return std::make_unique<PlatformRoutes>(platform_, hosts, nic().efficiency, nic().message_overhead_s,
                                            links);
  }

  std::string text() const override {
    return fmt::format("SimGrid platform of {} hosts and {} links", platform_.hosts().size(),
                       platform_.links().size());
  }

 private:
  static constexpr std::size_t max_hosts = 1024;  // the ways between all of them are worked out
  PlatformFile platform_;
};

struct PlatformDraft {
  NicSpec nic;
  std::string file;
};

const Keys<PlatformDraft>& platform_table() {
  using D = PlatformDraft;
  static const Keys<D> keys = [] {
    Keys<D> table = keys_of_part<D>(payload_keys(), &D::nic);
    table.push_back(custom_key<D>("file", "", forms::text("a file"),
                                  "of version 4 of the format, beside the experiment",
                                  [](YamlMap& map, D& draft) { draft.file = named_file(map, "file"); })
                        .told_required());
    return table;
  }();
  return keys;
}

}  // namespace

std::vector<KeyText> simgrid_keys() { return texts_of(platform_table()); }

std::shared_ptr<const Fabric> read_simgrid_fabric(YamlMap& map) {
  PlatformDraft draft;
  read_keys(platform_table(), map, draft);
  return std::make_shared<PlatformFabric>(map, draft.nic, PlatformFile(draft.file));
}

}  // namespace convoy::topologies
