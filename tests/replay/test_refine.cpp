// SPDX-License-Identifier: MIT
// Classes of a folding, beside a refinement of everything, round after round, from the definition.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/replay/fidelity.h"
#include "sim/replay/fold.h"
#include "sim/replay/refine.h"
#include "sim/replay/splitting_classes.h"
#include "tests/laws/random_experiment.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

/// Things with what tells them apart by themselves, and what they see of each other.
struct Sights {
  using Seen = std::pair<int, std::uint32_t>;  ///< as what, and which thing
  std::vector<std::vector<double>> own;        ///< by thing
  std::vector<std::vector<Seen>> sees;

  std::uint32_t add(std::vector<double> what) {
    own.push_back(std::move(what));
    sees.emplace_back();
    return static_cast<std::uint32_t>(own.size() - 1);
  }
};

/// Things are of one class while they are of one class in the round before and see equally many of each class
/// as the same, until a round changes nothing.
std::vector<std::uint32_t> plainly_refined(const Sights& sights) {
  std::map<std::vector<double>, std::uint32_t> first;
  std::vector<std::uint32_t> classes;
  for (const std::vector<double>& own : sights.own)
    classes.push_back(first.try_emplace(own, static_cast<std::uint32_t>(first.size())).first->second);
  for (std::size_t count = first.size(), last = 0; count != last;) {
    std::map<std::pair<std::uint32_t, std::multiset<Sights::Seen>>, std::uint32_t> known;
    std::vector<std::uint32_t> next;
    for (std::size_t i = 0; i < classes.size(); ++i) {
      std::multiset<Sights::Seen> seen;
      for (const auto& [as, thing] : sights.sees[i]) seen.emplace(as, classes[thing]);
      next.push_back(
          known.try_emplace({classes[i], std::move(seen)}, static_cast<std::uint32_t>(known.size()))
              .first->second);
    }
    classes = std::move(next);
    last = std::exchange(count, known.size());
  }
  return classes;
}

/// What a plan's things are and see, as Folding tells it; every message of an all-to-all is a thing of its
/// own.
class PlanSights {
 public:
  PlanSights(const Plan& plan, const Machine& machine, const FlowTable& table,
             const std::vector<bool>& one_by_one, const Disturbances& disturbances)
      : plan_(plan),
        machine_(machine),
        table_(table),
        one_by_one_(one_by_one),
        disturbances_(disturbances),
        at_(machine, table) {
    for (const Flow& f : table_.flows) paths_[ends_of(f)].push_back(f);
    // Numbered by their first flows.
    std::map<Ends, std::uint32_t> known;
    for (const Flow& f : table_.flows)
      path_of_.push_back(known.try_emplace(ends_of(f), known.size()).first->second);
  }

  Sights find() {
    for (EndpointId e = 0; e < machine_.endpoint_count(); ++e) sights_.add(own_of_endpoint(e));
    for (std::uint32_t f = 0, paths = 0; f < path_of_.size(); ++f)
      if (path_of_[f] == paths) {
        sights_.add(own_of_path(table_.flows[f]));
        ++paths;
      }
    for (const FlowGroup& g : table_.groups) sights_.add({group, double(g.pattern)});
    for (LinkId l = 0; l < at_.ends - at_.links; ++l) sights_.add(own_of_link(l));
    for (std::uint32_t f = 0, paths = 0; f < path_of_.size(); ++f)
      if (path_of_[f] == paths) {
        add_sights_of_path(f);
        ++paths;
      }
    for (std::uint32_t g = 0; g < table_.groups.size(); ++g)
      for (const EndpointId e : plan_.patterns[table_.groups[g].pattern].groups[table_.groups[g].index])
        see_each_other(e, of_group, at_.groups + g, member);
    for (const AllToAllFlows& flows : table_.all_to_all) add_all_to_all(flows);
    add_peers();
    return std::move(sights_);
  }

  static bool is_message(const std::vector<double>& own) { return own[0] == double(message); }

 private:
  using Ends = std::tuple<std::uint32_t, EndpointId, EndpointId, double>;  ///< group, from, to, latency
  enum Kind { endpoint, path, group, link, sender, receiver, message, peer };
  enum As { member, of_group, sends, receives, on, crosses, answers_it, has_end, of_peer };

  Ends ends_of(const Flow& flow) const {
    const FlowPath& own = table_.path(flow);
    return {own.group, own.from, own.to, own.latency_s};
  }

  void see_each_other(std::uint32_t a, As a_sees, std::uint32_t b, As b_sees) {
    sights_.sees[a].emplace_back(a_sees, b);
    sights_.sees[b].emplace_back(b_sees, a);
  }

  std::vector<double> own_of_endpoint(EndpointId e) const {
    std::vector<double> own{endpoint};
    for (std::size_t r = 0; r < plan_.roles.size(); ++r)
      if (std::ranges::count(plan_.roles[r].members, e) > 0) own.push_back(static_cast<double>(r));
    if (own.size() > 1 && e < machine_.devices.size()) {
      own.insert(own.end(), {double(machine_.devices[e].type), machine_.devices[e].speed});
      if (plan_.input) own.push_back(plan_.input->interval_s[machine_.devices[e].host]);
    }
    if (plan_.service())
      for (const Service::Client& c : plan_.service()->clients)
        if (c.device == e)
          own.insert(own.end(), {c.start_s, double(c.head_start), c.images, double(c.sequence)});
    for (const Disturbances::Stop& stop : disturbances_.stops)
      if (stop.endpoint == e) own.insert(own.end(), {-1, stop.at_s, stop.until_s});
    return own;
  }

  std::vector<double> own_of_link(LinkId l) const {
    std::vector<double> own{link, bandwidth_Bps(machine_, table_, l)};
    for (const Disturbances::LinkChange& change : disturbances_.link_changes)
      if (change.link == l) own.insert(own.end(), {change.at_s, change.bandwidth_Bps});
    return own;
  }

  /// With all of its flows.
  std::vector<double> own_of_path(const Flow& first) const {
    std::vector<std::pair<double, double>> flows;
    for (const Flow& f : paths_.at(ends_of(first))) flows.emplace_back(f.round, f.fraction);
    std::ranges::sort(flows);
    std::vector<double> own{path, double(table_.groups[table_.path(first).group].pattern),
                            table_.path(first).latency_s};
    for (const auto& [round, fraction] : flows) own.insert(own.end(), {round, fraction});
    return own;
  }

  /// @param f its first flow
  void add_sights_of_path(std::uint32_t f) {
    const FlowPath& it = table_.path(table_.flows[f]);
    const std::uint32_t own = at_.paths + path_of_[f];
    see_each_other(own, of_group, at_.groups + it.group, crosses);
    for (const LinkId l : table_.route(it)) see_each_other(own, crosses, at_.links + l, on);
    if (plan_.service())
      sights_.sees[own].emplace_back(answers_it, at_.paths + path_of_[answers(plan_, table_)[f]]);
    if (!one_by_one_[table_.groups[it.group].pattern]) return;
    see_each_other(own, sends, it.from, sends);
    see_each_other(own, receives, it.to, receives);
  }

  std::vector<std::uint32_t> add_ends(const AllToAllFlows& flows, Kind kind,
                                      const std::vector<AllToAllFlows::End>& ends) {
    const std::uint32_t pattern = table_.groups[flows.group].pattern;
    std::vector<std::uint32_t> numbers;
    for (const AllToAllFlows::End& end : ends) {
      numbers.push_back(
          sights_.add({double(kind), double(pattern), double(flows.round), end.share, end.latency_s}));
      std::vector<Sights::Seen>& sees = sights_.sees[numbers.back()];
      sees.emplace_back(of_group, at_.groups + flows.group);
      for (const LinkId l : table_.half(end)) sees.emplace_back(crosses, at_.links + l);
      if (one_by_one_[pattern]) sees.emplace_back(member, end.endpoint);
      ends_.push_back({numbers.back(), end.peer + (kind == sender ? 0 : table_.peers)});
    }
    return numbers;
  }

  /// Peers see their ends, and these them.
  void add_peers() {
    if (table_.peers == 0) return;
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t p = 0; p < 2 * table_.peers; ++p)
      numbers.push_back(sights_.add({peer, double(p < table_.peers)}));
    for (const auto& [end, its_peer] : ends_) see_each_other(end, of_peer, numbers[its_peer], has_end);
  }

  void add_all_to_all(const AllToAllFlows& flows) {
    const std::vector<std::uint32_t> from = add_ends(flows, sender, flows.senders),
                                     to = add_ends(flows, receiver, flows.receivers);
    const std::set<std::pair<std::uint32_t, std::uint32_t>> apart(flows.apart.begin(), flows.apart.end());
    for (std::uint32_t s = 0; s < from.size(); ++s)
      for (std::uint32_t r = 0; r < to.size(); ++r) {
        if (apart.contains({s, r})) continue;
        const std::uint32_t own = sights_.add({message});
        sights_.sees[own] = {{sends, from[s]}, {receives, to[r]}};
        sights_.sees[at_.groups + flows.group].emplace_back(crosses, own);
        for (const auto* end : {&flows.senders[s], &flows.receivers[r]})
          for (const LinkId l : table_.half(*end)) sights_.sees[at_.links + l].emplace_back(on, own);
        if (!one_by_one_[table_.groups[flows.group].pattern]) continue;
        sights_.sees[flows.senders[s].endpoint].emplace_back(sends, own);
        sights_.sees[flows.receivers[r].endpoint].emplace_back(receives, own);
      }
  }

  const Plan& plan_;
  const Machine& machine_;
  const FlowTable& table_;
  const std::vector<bool>& one_by_one_;
  const Disturbances& disturbances_;
  const NodeIds at_;
  Sights sights_;
  std::map<Ends, std::vector<Flow>> paths_;
  std::vector<std::uint32_t> path_of_;  ///< by flow
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ends_;  ///< with their peers as senders or receivers
};

/// Numbers by first appearance.
std::vector<std::uint32_t> in_order(std::span<const std::uint32_t> classes) {
  std::map<std::uint32_t, std::uint32_t> known;
  std::vector<std::uint32_t> result;
  for (const std::uint32_t c : classes)
    result.push_back(known.try_emplace(c, static_cast<std::uint32_t>(known.size())).first->second);
  return result;
}

/// Flows are of one class where their paths, rounds and fractions are.
void check_flows(const FlowTable& table, NodeClasses::Span paths) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, double>, std::uint32_t> known;
  std::vector<std::uint32_t> expected;
  for (const Flow& f : table.flows)
    expected.push_back(known.try_emplace({paths[f.path], f.round, f.fraction}, known.size()).first->second);
  CHECK(flow_classes(table, paths) == expected);
}

/// Returns the number of classes and of things.
std::pair<std::size_t, std::size_t> check_as_plainly(const Plan& plan, const Machine& machine,
                                                     const Disturbances& disturbances = {},
                                                     std::optional<bool> ranks = std::nullopt) {
  const FlowTable table =
      expand_flows(plan, machine, plan.service() ? Listing::always : Listing::where_needed);
  const std::vector<bool> one_by_one =
      ranks ? std::vector<bool>(plan.patterns.size(), *ranks) : ranks_go_one_by_one(plan, machine, table);
  const NodeClasses found = refined_classes(plan, machine, table, one_by_one, disturbances);
  check_flows(table, found.paths());
  const std::vector<std::uint32_t> classes = in_order(found.class_of);
  const Sights sights = PlanSights(plan, machine, table, one_by_one, disturbances).find();
  const std::vector<std::uint32_t> plain = plainly_refined(sights);
  std::vector<std::uint32_t> expected;  // of what is numbered: all but messages of all-to-alls
  for (std::size_t i = 0; i < plain.size(); ++i)
    if (!PlanSights::is_message(sights.own[i])) expected.push_back(plain[i]);
  REQUIRE(expected.size() == classes.size());
  CHECK(classes == in_order(expected));
  return {*std::max_element(classes.begin(), classes.end()) + 1, classes.size()};
}

std::string random_cluster(lab::Dice& dice, int hosts, int devices) {
  const std::string tcp = "switch, protocol: tcp, stream_bandwidth: 0.2GB/s";
  const std::string fabric = dice.one_of<std::string>({"switch", tcp, tcp, "shared", "ring", "full_mesh"});
  const bool nics = fabric.starts_with("switch");
  const auto odd = [&] {
    return dice.one_of<std::string>({"", "", nics ? ", nic_spread: 0.2" : "", ", speed_spread: 0.2",
                                     nics ? ", nic_bandwidth: 0.7GB/s" : "", ", speed: 0.5"});
  };
  return fmt::format(
      "{{name: lab, nodes: [{{name: n, count: {}, server: box{}}}, {{name: odd, count: 1, server: box{}}}], "
      "fabric: {{kind: {}, bandwidth: 1GB/s, latency: {}us}}, servers: {{box: {{devices: [{{device: ideal, "
      "count: {}}}], interconnect: {}}}}}, devices: {{ideal: {{peak: {{fp32: 10TFLOPS}}, memory: 16GiB, "
      "memory_bandwidth: 500GB/s, efficiency: 1.0, launch_overhead: 0us}}}}}}",
      hosts - 1, odd(), odd(), fabric, dice.between(0, 30), devices,
      devices == 1 ? "{kind: none}" : dice.one_of(lab::interconnects()));
}

std::string drawn_strategy(lab::Dice& dice, int hosts) {
  const auto servers = [&](const std::string& sharding) {
    return fmt::format(
        "{{kind: data_parallel, sync: parameter_server, servers: {}, placement: {}, sharding: {}",
        dice.between(1, hosts), dice.coin() ? "dedicated" : "colocated", sharding);
  };
  const std::string reduced = "{kind: data_parallel, sync: all_reduce, algorithm: ",
                    hybrid = "{kind: hybrid, conv: batch, fc: filter}";
  return dice.one_of<std::string>({reduced + "ring}", reduced + "ring, fidelity: chunk}", reduced + "tree}",
                                   reduced + "double_binary_tree}",
                                   reduced + "double_binary_tree, fidelity: chunk}",
                                   reduced + "ring, fidelity: chunk, zero: 2}", hybrid, hybrid,
                                   servers("even") + "}", servers("even") + "}", servers("tensor") + "}",
                                   servers("even") + ", mode: async}", servers("tensor") + ", mode: async}",
                                   servers("tensor") + ", mode: ssp, staleness: 2}"});
}

/// In one of three plans members of a role differ in one thing that strategies give all of them alike: device
/// types, the rates at which hosts make images ready, or what clients of a service begin with, who are alike
/// in all else.
/// @return whether they do
bool differ_in_one(lab::Dice& dice, Plan& plan, Machine& machine) {
  if (dice.between(0, 2) > 0) return false;
  const auto other = [&] { return dice.between(0, 3) == 0; };
  Service* const service = plan.service();
  const int what = service ? dice.between(0, 5) : dice.between(0, 1);
  if (what == 0) {
    machine.device_types.push_back(machine.device_types.front());
    for (Device& device : machine.devices)
      if (other()) device.type = static_cast<std::uint32_t>(machine.device_types.size() - 1);
  } else if (what == 1) {
    plan.input.emplace();
    for (std::size_t h = 0; h < machine.hosts.size(); ++h)
      plan.input->interval_s.push_back(other() ? 2e-3 : 1e-3);
  } else {
    const double images = service->clients.front().images;
    for (Service::Client& client : service->clients) {
      client = {client.device, images};
      if (!other()) continue;
      if (what == 2) client.images *= 2;
      if (what == 3) client.start_s += 1e-3;
      if (what == 4) client.head_start += 1;
      if (what == 5) client.sequence += 1;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("refining what has changed gives the classes of refining everything [random]") {
  int folded = 0, apart = 0, all_to_alls = 0, services = 0, peers = 0, of_two_rates = 0, one_by_itself = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    lab::Dice dice(seed);
    const int devices = dice.one_of<int>({1, 1, 4}), hosts = devices == 1 ? dice.between(2, 8) : 2;
    const std::string cluster = random_cluster(dice, hosts, devices), strategy = drawn_strategy(dice, hosts);
    CAPTURE(cluster);
    CAPTURE(strategy);
    lab::Experiment experiment(lab::random_model(dice), cluster, strategy, 24);
    Disturbances disturbances;
    const auto last_link = static_cast<int>(experiment.machine().links.size()) - 1;
    const auto last_device = static_cast<int>(experiment.machine().devices.size()) - 1;
    for (int changes = dice.between(0, 3); changes > 0; --changes)
      disturbances.link_changes.push_back({dice.coin() ? 1e-3 : 2e-3,
                                           static_cast<LinkId>(dice.between(0, last_link)),
                                           dice.coin() ? 5e8 : 2.5e8});
    for (int stops = dice.between(0, 2); stops > 0; --stops)
      disturbances.stops.push_back({dice.coin() ? 1e-3 : 1.5e-3,
                                    static_cast<EndpointId>(dice.between(0, last_device)),
                                    dice.coin() ? 2e-3 : 3e-3});
    for (const Disturbances::LinkChange& one : disturbances.link_changes)
      for (const Disturbances::LinkChange& other : disturbances.link_changes)
        of_two_rates +=
            one.link < other.link && one.at_s == other.at_s && one.bandwidth_Bps != other.bandwidth_Bps;
    std::optional<bool> ranks;
    if (dice.coin()) ranks = dice.coin();
    Machine machine = experiment.machine();
    one_by_itself += differ_in_one(dice, experiment.plan(), machine);
    const auto [found, of] = check_as_plainly(experiment.plan(), machine, disturbances, ranks);
    ++(2 * found < of ? folded : apart);
    services += experiment.plan().service() != nullptr;
    const FlowTable table = expand_flows(experiment.plan(), experiment.machine(), Listing::where_needed);
    all_to_alls += !table.all_to_all.empty();
    peers += table.peers > 0;
  }
  CHECK(std::min({folded, apart, all_to_alls, services}) > 20);
  CHECK(peers > 10);
  CHECK(one_by_itself > 100);
  CHECK(of_two_rates > 20);  // links that change at one moment, each to a rate of its own
}

TEST_CASE("a change that goes round a ring, rank by rank, comes to both ends of it") {
  // 64 ranks whose messages go one by one, one of them slow: classes by distance to it, either way.
  lab::Experiment experiment(
      lab::custom_model(1, 1000),
      "{name: lab, nodes: [{name: n, count: 63, server: box}, {name: odd, count: 1, server: box, "
      "speed: 0.5}], fabric: {kind: switch, bandwidth: 1GB/s, latency: 1us}, " +
          lab::ideal_servers() + "}",
      "{kind: data_parallel, sync: all_reduce, algorithm: ring, fidelity: chunk}", 1);
  const auto [classes, things] = check_as_plainly(experiment.plan(), experiment.machine(), {}, true);
  CHECK(classes >= 2 * 64);  // devices and messages
  CHECK(things >= 4 * 64);
}

TEST_CASE("classes split by what their things are shown, and the largest part keeps the number") {
  const std::vector<Colour> colours{7, 7, 7, 7, 7, 9, 9};
  SplittingClasses classes(colours);
  CHECK(classes.is_new(classes.of(0)));
  CHECK(classes.split().empty());
  const auto of_all = [&] {
    std::vector<std::uint32_t> result;
    for (std::uint32_t thing = 0; thing < colours.size(); ++thing) result.push_back(classes.of(thing));
    return result;
  };
  classes.show(1, 5), classes.show(4, 3), classes.show(4, 2);  // sums: 1 and 4 saw the same
  const auto split = classes.split();
  CHECK(std::set<std::uint32_t>(split.begin(), split.end()) == std::set<std::uint32_t>{1, 4});
  CHECK(of_all() == std::vector<std::uint32_t>{0, 2, 0, 0, 2, 1, 1});
  CHECK(classes.is_new(2));
  CHECK_FALSE(classes.is_new(0));
  for (const std::uint32_t thing : {0u, 2u}) classes.show(thing, 1);  // two of three: they keep the number
  classes.show(5, 1), classes.show(6, 1);                             // all of a class
  const auto rest = classes.split();
  CHECK(std::vector<std::uint32_t>(rest.begin(), rest.end()) == std::vector<std::uint32_t>{3});
  CHECK(of_all() == std::vector<std::uint32_t>{0, 2, 0, 3, 2, 1, 1});
  classes.show(5, 1), classes.show(6, 2), classes.show(3, 1);
  CHECK(classes.split().size() == 1);  // 3 is alone already
  CHECK(classes.of(5) != classes.of(6));
  CHECK(classes.take().size() == 7);
}

TEST_CASE("where hundreds of links differ, classes are those of plain refinement, too [law]") {
  const std::string cluster =
      "{name: lab, nodes: [{name: n, count: 280, server: box, nic_spread: 0.2}, {name: m, count: 9, server: "
      "box}], "
      "fabric: {kind: switch, bandwidth: 1GB/s, latency: 5us}, servers: {box: {devices: [{device: ideal, "
      "count: 1}], "
      "interconnect: {kind: none}}}, devices: {ideal: {peak: {fp32: 10TFLOPS}, memory: 16GiB, "
      "memory_bandwidth: 500GB/s, efficiency: 1.0, launch_overhead: 0us}}}";
  for (const std::string algorithm : {"ring", "tree", "ring, fidelity: chunk"}) {
    CAPTURE(algorithm);
    const lab::Experiment experiment(lab::custom_model(1, 1'000'000), cluster,
                                     "{kind: data_parallel, sync: all_reduce, algorithm: " + algorithm + "}",
                                     1);
    const auto [classes, things] = check_as_plainly(experiment.plan(), experiment.machine());
    CHECK(classes > 280 * 2);
    CHECK(classes < things);
  }
}
