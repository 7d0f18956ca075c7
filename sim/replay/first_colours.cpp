// SPDX-License-Identifier: MIT
#include "sim/replay/first_colours.h"

#include <utility>

namespace convoy::inline replays {
namespace {

enum class NodeKind : std::uint8_t { endpoint = 1, path, group, link, sender, receiver, peer };

class FirstColours {
 public:
  FirstColours(const Plan& plan, const Machine& machine, const FlowTable& table, const NodeIds& numbers)
      : plan_(plan), machine_(machine), table_(table), numbers_(numbers) {
    colours_.reserve(numbers.count);
  }

  std::vector<Colour> find(const Disturbances& disturbances) {
    add_endpoints();
    add_paths();
    for (const FlowGroup& group : table_.groups)
      add(NodeKind::group, mix(group.pattern, plan_.patterns[group.pattern].groups[group.index].size()));
    for (const Link& link : machine_.links) add(NodeKind::link, bits(link.bandwidth_Bps));
    for (const double connection_Bps : table_.connections_Bps) add(NodeKind::link, bits(connection_Bps));
    for (const AllToAllFlows& flows : table_.all_to_all) {
      const Colour message = mix(table_.groups[flows.group].pattern, flows.round);
      const auto add_end = [&](NodeKind kind, const AllToAllFlows::End& end) {
        add(kind, mix(message, mix(mix(bits(end.share), bits(end.latency_s)), end.link_count)));
      };
      for (const AllToAllFlows::End& end : flows.senders) add_end(NodeKind::sender, end);
      for (const AllToAllFlows::End& end : flows.receivers) add_end(NodeKind::receiver, end);
    }
    for (std::uint32_t p = 0; p < 2 * table_.peers; ++p) add(NodeKind::peer, p < table_.peers);
    disturb(disturbances);
    if (many_links_differ()) tell_paths_and_links();
    return std::move(colours_);
  }

 private:
  void add(NodeKind kind, Colour colour) { colours_.push_back(mix(colour, static_cast<Colour>(kind))); }

  /// With the rounds and fractions of their flows.
  void add_paths() {
    std::vector<Colour> flows(table_.paths.size(), 0);
    const Flow* before = nullptr;
    Colour colour = 0;
    for (const Flow& flow : table_.flows) {
      const bool is_alike = before != nullptr && before->round == flow.round && before->pair == flow.pair &&
                            before->fraction == flow.fraction;
      if (!is_alike) colour = mix(mix(flow.round, flow.pair), bits(flow.fraction));
      flows[flow.path] += colour;
      before = &flow;
    }
    for (std::size_t p = 0; p < table_.paths.size(); ++p) {
      const FlowPath& path = table_.paths[p];
      add(NodeKind::path, mix(mix(table_.groups[path.group].pattern, flows[p]),
                              mix(bits(path.latency_s), path.link_count)));
    }
  }

  void add_endpoints() {
    colours_.assign(machine_.endpoint_count(), 0);
    for (std::size_t r = 0; r < plan_.roles.size(); ++r)
      for (const EndpointId e : plan_.roles[r].members) {
        const bool device = e < machine_.devices.size();
        const Colour place = device ? mix(machine_.devices[e].type, bits(machine_.devices[e].speed)) : 1;
        colours_[e] = mix(r + 1, place);
        if (device && plan_.input)
          colours_[e] = mix(colours_[e], bits(plan_.input->interval_s[machine_.devices[e].host]));
      }
    if (plan_.service())
      for (const Service::Client& client : plan_.service()->clients)
        colours_[client.device] = mix(mix(colours_[client.device], client.sequence),
                                      mix(mix(bits(client.start_s), client.head_start), bits(client.images)));
  }

  /// Objects to which something happens are equal if the same happens to them; each link of a transfer is of
  /// a kind of its own.
  void disturb(const Disturbances& disturbances) {
    const auto of_link = [&](LinkId link) -> Colour& { return colours_[numbers_.links + link]; };
    for (const Disturbances::LinkChange& change : disturbances.link_changes)
      of_link(change.link) = mix(of_link(change.link), mix(bits(change.at_s), bits(change.bandwidth_Bps)));
    for (const Disturbances::Stop& stop : disturbances.stops)
      colours_[stop.endpoint] = mix(colours_[stop.endpoint], mix(bits(stop.at_s), bits(stop.until_s)));
    Route route;
    Colour number = 1;
    for (const Disturbances::Transfer& transfer : disturbances.transfers) {
      machine_.router->route(transfer.from, transfer.to, route);
      for (const LinkId link : route.links) of_link(link) = mix(of_link(link), ++number);
    }
  }

  bool many_links_differ() const {
    constexpr std::size_t many = 256;
    ColourTable known;
    for (std::uint32_t link = numbers_.links; link < numbers_.ends && known.size() < many; ++link)
      known.number(colours_[link]);
    return known.size() == many;
  }

  /// Tells paths by their links, and then links by their paths, as the refinement would. Where nearly all of them are of a
  /// class of their own, they are so from the beginning, and the refinement need not list what it splits.
  void tell_paths_and_links() {
    for (std::uint32_t p = 0; p < table_.paths.size(); ++p) {
      Colour seen = 0;
      for (const LinkId link : table_.route(table_.paths[p])) seen += mix(colours_[numbers_.links + link]);
      Colour& own = colours_[numbers_.paths + p];
      own = mix(own, seen);
    }
    std::vector<Colour> seen(numbers_.ends - numbers_.links, 0);
    for (std::uint32_t p = 0; p < table_.paths.size(); ++p)
      for (const LinkId link : table_.route(table_.paths[p])) seen[link] += mix(colours_[numbers_.paths + p]);
    for (std::uint32_t link = 0; link < seen.size(); ++link) {
      Colour& own = colours_[numbers_.links + link];
      own = mix(own, seen[link]);
    }
  }

  const Plan& plan_;
  const Machine& machine_;
  const FlowTable& table_;
  const NodeIds& numbers_;
  std::vector<Colour> colours_;
};

}  // namespace

std::vector<Colour> first_colours(const Plan& plan, const Machine& machine, const FlowTable& table,
                                  const NodeIds& numbers, const Disturbances& disturbances) {
  return FirstColours(plan, machine, table, numbers).find(disturbances);
}

}  // namespace convoy::replays
