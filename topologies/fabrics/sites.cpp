// SPDX-License-Identifier: MIT
#include "topologies/fabrics/sites.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/key_parts.h"

namespace convoy::inline topologies {
namespace {

constexpr std::size_t max_sites = 64;

struct Site {
  std::uint32_t hosts = 0;
  std::shared_ptr<const Fabric> fabric;
};

class SitesRoutes final : public FabricRoutes {
 public:
  struct BuiltSite {
    std::uint32_t first_host = 0, gateway = 0;  ///< the gateway's number within the site
    std::unique_ptr<const FabricRoutes> routes;
  };

  SitesRoutes(std::vector<BuiltSite> sites, LinkId first_wan_link)
      : sites_(std::move(sites)), first_(first_wan_link) {}

  void append(FabricPort from, FabricPort to, std::vector<LinkId>& links) const override {
    const std::uint32_t a = site_of(from.host), b = site_of(to.host);
    const FabricPort start{from.host - sites_[a].first_host, from.nic},
        end{to.host - sites_[b].first_host, to.nic};
    if (a == b) return sites_[a].routes->append(start, end, links);
    sites_[a].routes->append(start, {sites_[a].gateway, 0}, links);
    // Cables between a site and those after it, in that order; up is from the earlier one.
    const std::uint32_t low = std::min(a, b), high = std::max(a, b);
    const auto count = static_cast<std::uint32_t>(sites_.size());
    const std::uint32_t cable = low * count - low * (low + 1) / 2 + high - low - 1;
    links.push_back(first_ + 2 * cable + (a < b ? 0 : 1));
    sites_[b].routes->append({sites_[b].gateway, 0}, end, links);
  }

 private:
  std::uint32_t site_of(std::uint32_t host) const {
    std::uint32_t site = 0;
    while (site + 1 < sites_.size() && host >= sites_[site + 1].first_host) ++site;
    return site;
  }

  std::vector<BuiltSite> sites_;
  LinkId first_;
};

class SitesFabric final : public Fabric {
 public:
  SitesFabric(const YamlMap& map, std::vector<Site> sites, double wan_Bps, double wan_latency_s)
      : Fabric(map, sites.front().fabric->nic()),
        sites_(std::move(sites)),
        wan_Bps_(wan_Bps),
        wan_latency_s_(wan_latency_s) {}

  bool has_nics() const override { return sites_.front().fabric->has_nics(); }

  std::unique_ptr<const FabricRoutes> build(std::span<const FabricHost> hosts,
                                            LinkTable& links) const override {
    std::vector<SitesRoutes::BuiltSite> built;
    std::uint32_t first = 0;
    for (std::size_t s = 0; s < sites_.size(); ++s) {
      const bool last =
          s + 1 == sites_.size();  // dedicated servers come after the nodes: they are in the last site
      if (first + sites_[s].hosts > hosts.size())
        fail(fmt::format("the sites have places for {} hosts, the cluster has {}", place_count(),
                         hosts.size()));
      const std::uint32_t count = last ? static_cast<std::uint32_t>(hosts.size()) - first : sites_[s].hosts;
      std::vector<FabricHost> of_site(hosts.begin() + first, hosts.begin() + first + count);
      for (FabricHost& host : of_site)
        if (host.nic.bandwidth_Bps == nic().bandwidth_Bps) host.nic = sites_[s].fabric->nic();
      FabricHost gateway{fmt::format("site{}.gateway", s), sites_[s].fabric->nic(), false, Link::no_host};
      gateway.nic.bandwidth_Bps =
          std::max(gateway.nic.bandwidth_Bps, wan_Bps_ * static_cast<double>(sites_.size() - 1));
      of_site.push_back(gateway);
      built.push_back({first, count, sites_[s].fabric->build(of_site, links)});
      first += count;
    }
    const auto first_wan = static_cast<LinkId>(links.links().size());
    for (std::size_t a = 0; a < sites_.size(); ++a)
      for (std::size_t b = a + 1; b < sites_.size(); ++b)
        links.add_cable(fmt::format("wan{}-{}", a, b), wan_Bps_, wan_latency_s_);
    return std::make_unique<SitesRoutes>(std::move(built), first_wan);
  }

  std::string text() const override {
    return fmt::format("{} sites ({}) joined by {}, {}", sites_.size(), sites_.front().fabric->text(),
                       format_bandwidth(wan_Bps_), format_time(wan_latency_s_));
  }

 private:
  std::uint32_t place_count() const {
    std::uint32_t places = 0;
    for (const Site& site : sites_) places += site.hosts;
    return places;
  }

  std::vector<Site> sites_;
  double wan_Bps_, wan_latency_s_;
};

struct SitesDraft {
  std::vector<Site> sites;
  NicSpec wan;
};

const Keys<Site>& site_keys() {
  static const Keys<Site> keys{
      optional_integer_key<Site>("hosts", "", 1, 100'000, "of the site, in the cluster's order", &Site::hosts)
          .required(),
      custom_key<Site>("fabric", "", forms::section("fabric", "{kind, ...}"), "that joins them",
                       [](YamlMap& map, Site& site) {
                         site.fabric = read_fabric(map.node("fabric"), map.path_of("fabric"));
                       })
          .told_required()};
  return keys;
}

void read_sites(YamlMap& map, SitesDraft& draft) {
  for (YamlMap& entry : map.maps("sites")) {
    Site site;
    read_part(site_keys(), entry, site);
    if (!draft.sites.empty() && (site.fabric->nic().count != draft.sites.front().fabric->nic().count ||
                                 site.fabric->has_nics() != draft.sites.front().fabric->has_nics()))
      entry.fail("fabric", "hosts must have as many NICs as those of the first site");
    draft.sites.push_back(std::move(site));
  }
  if (draft.sites.size() < 2 || draft.sites.size() > max_sites)
    map.fail("sites", fmt::format("{} sites; 2 to {} are allowed", draft.sites.size(), max_sites));
}

Keys<NicSpec> wan_keys() {
  Keys<NicSpec> keys = cable_keys();
  std::erase_if(keys, [](const Key<NicSpec>& key) {
    return key.text.name != "efficiency" && key.text.name != "bandwidth" && key.text.name != "latency";
  });
  return keys;
}

const Keys<SitesDraft>& sites_table() {
  static const Keys<SitesDraft> keys{
      list_key<SitesDraft>("sites", "", keys_detail::list_of_parts(texts_of(site_keys())), "two or more",
                           &read_sites)
          .told_required()
          .with_parts(texts_of(site_keys())),
      mapping_key<SitesDraft>("wan", "", "the cable between every two sites", wan_keys(), &SitesDraft::wan)
          .required()};
  return keys;
}

}  // namespace

std::vector<KeyText> sites_keys() { return texts_of(sites_table()); }

std::shared_ptr<const Fabric> read_sites_fabric(YamlMap& map) {
  SitesDraft draft;
  read_keys(sites_table(), map, draft);
  return std::make_shared<SitesFabric>(map, std::move(draft.sites), draft.wan.bandwidth_Bps,
                                       draft.wan.latency_s);
}

}  // namespace convoy::topologies
