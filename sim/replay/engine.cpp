// SPDX-License-Identifier: MIT
#include "sim/replay/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <limits>
#include <unordered_map>

// s4u.hpp comes first: the others do not stand alone in SimGrid 3.32.
// clang-format off
#include <simgrid/s4u.hpp>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/version.h>
#include <xbt/log.h>
// clang-format on

namespace convoy {
namespace {

namespace sg4 = simgrid::s4u;
namespace kernel = simgrid::kernel;

/// A zone in which the way of the next flow is whatever the engine says: routes are convoy's (topologies/),
/// and SimGrid needs one pair of hosts and the links, not the platform.
class ScriptedZone : public kernel::routing::NetZoneImpl {
 public:
  explicit ScriptedZone(const std::string& name) : NetZoneImpl(name) {}

  std::vector<kernel::resource::StandardLinkImpl*> next_route;

  void get_graph(const s_xbt_graph_t*, std::map<std::string, xbt_node_t, std::less<>>*,
                 std::map<std::string, xbt_edge_t, std::less<>>*) override {}

 protected:
  void get_local_route(const kernel::routing::NetPoint*, const kernel::routing::NetPoint*,
                       kernel::routing::Route* into, double*) override {
    into->link_list_ = next_route;
  }
};

/// Exact alpha-beta behaviour; each line undoes a default that bends it (TCP's windows, slow start, cross
/// traffic), and the precisions are those at which 1 ns events and 1e-9 shares of a link are still told
/// apart.
void configure_simgrid() {
  static const bool once = [] {
    xbt_log_control_set("root.thresh:critical");
    for (const char* setting : {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0",
                                "network/latency-factor:1", "network/bandwidth-factor:1",
                                "network/weight-S:0", "surf/precision:1e-12", "maxmin/precision:1e-9"})
      sg4::Engine::set_config(setting);
    return true;
  }();
  (void)once;
}

}  // namespace

struct Engine::Impl {
  virtual ~Impl() = default;
  virtual double now_s() const = 0;
  virtual void after(double delay_s, Callback done) = 0;
  virtual void start_flow(double bytes, const std::vector<LinkUse>& route, Callback done) = 0;
  virtual void run() = 0;
};

struct Engine::SharedLinks final : Engine::Impl {
  std::unique_ptr<sg4::Engine> engine;
  ScriptedZone* zone = nullptr;
  sg4::Host* from = nullptr;
  sg4::Host* to = nullptr;
  std::vector<kernel::resource::StandardLinkImpl*> links;
  double scale = 1;    ///< SimGrid's "bytes" per byte
  double start_s = 0;  ///< SimGrid's clock when this engine was made
  std::unordered_map<const sg4::Activity*, std::pair<sg4::CommPtr, Callback>> flows;
  std::vector<sg4::CommPtr> ended;  ///< SimGrid still touches a Comm after its completion callback

  SharedLinks(const std::vector<double>& link_bandwidth_Bps, double largest_flow_bytes) {
    assert(current() == nullptr && "one engine at a time");
    static int argc = 1;
    static char name[] = "convoy";
    static char* argv[] = {name, nullptr};
    engine = std::make_unique<sg4::Engine>(&argc, argv);
    configure_simgrid();

    int bits = 20;
    while (bits > -20 && std::ldexp(largest_flow_bytes, bits) > 9e18) --bits;  // what llround can give
    scale = std::ldexp(1.0, bits);

    zone = new ScriptedZone("convoy");  // the first zone is the root: SimGrid owns it from here
    from = zone->create_host("from", {1.0})->seal();
    to = zone->create_host("to", {1.0})->seal();
    links.reserve(link_bandwidth_Bps.size());
    for (std::size_t i = 0; i < link_bandwidth_Bps.size(); ++i) {
      sg4::Link* link = zone->create_link(fmt::format("{}", i), {link_bandwidth_Bps[i] * scale});
      link->set_latency(0.0)->seal();
      links.push_back(link->get_impl());
    }
    zone->seal();

    static const bool callback_registered = [] {
      sg4::Activity::on_completion_cb([](const sg4::Activity& activity) {
        if (current()) current()->on_completion(activity);
      });
      return true;
    }();
    (void)callback_registered;
    current() = this;
    start_s = sg4::Engine::get_clock();
  }
  ~SharedLinks() override { current() = nullptr; }

  double now_s() const override { return sg4::Engine::get_clock() - start_s; }

  void after(double delay_s, Callback done) override {
    kernel::timer::Timer::set(sg4::Engine::get_clock() + delay_s, std::move(done));
  }

  void start_flow(double bytes, const std::vector<LinkUse>& route, Callback done) override {
    zone->next_route.clear();
    for (const LinkUse& use : route)
      zone->next_route.insert(zone->next_route.end(), use.multiplicity, links[use.link]);
    const auto payload = static_cast<std::uint64_t>(std::llround(std::max(1.0, bytes * scale)));
    sg4::CommPtr comm = sg4::Comm::sendto_init(from, to)->set_payload_size(payload);
    flows.emplace(comm.get(), std::pair{comm, std::move(done)});
    comm->start();
  }

  void run() override {
    engine->run();
    ended.clear();
  }

  void on_completion(const sg4::Activity& activity) {
    const auto it = flows.find(&activity);
    if (it == flows.end()) return;
    auto [comm, done] = std::move(it->second);
    flows.erase(it);
    ended.clear();  // not in start_flow, which may be called from here
    ended.push_back(std::move(comm));
    done();
  }

  static SharedLinks*& current() {
    static SharedLinks* engine = nullptr;
    return engine;
  }
};

/// Events of one moment come in the order in which they were asked for.
struct Engine::FreeLinks final : Engine::Impl {
  struct Event {
    double at_s;
    std::uint64_t number;
    Callback done;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.at_s != b.at_s ? a.at_s > b.at_s : a.number > b.number;
    }
  };
  std::vector<double> bandwidth_Bps;
  std::vector<Event> events;  ///< a heap, the next in front
  std::uint64_t asked = 0;
  double clock_s = 0;

  explicit FreeLinks(const std::vector<double>& link_bandwidth_Bps) : bandwidth_Bps(link_bandwidth_Bps) {}

  double now_s() const override { return clock_s; }

  void after(double delay_s, Callback done) override {
    events.push_back({clock_s + delay_s, asked++, std::move(done)});
    std::push_heap(events.begin(), events.end(), Later{});
  }

  void start_flow(double bytes, const std::vector<LinkUse>& route, Callback done) override {
    double rate_Bps = std::numeric_limits<double>::infinity();
    for (const LinkUse& use : route)
      rate_Bps = std::min(rate_Bps, bandwidth_Bps[use.link] / use.multiplicity);
    after(bytes / rate_Bps, std::move(done));
  }

  void run() override {
    while (!events.empty()) {
      std::pop_heap(events.begin(), events.end(), Later{});
      Event event = std::move(events.back());
      events.pop_back();
      clock_s = event.at_s;
      event.done();
    }
  }
};

Engine::Engine(const std::vector<double>& link_bandwidth_Bps, double largest_flow_bytes,
               Contention contention) {
  if (contention == Contention::shared)
    impl_ = std::make_unique<SharedLinks>(link_bandwidth_Bps, largest_flow_bytes);
  else
    impl_ = std::make_unique<FreeLinks>(link_bandwidth_Bps);
}

Engine::~Engine() = default;

double Engine::now_s() const { return impl_->now_s(); }

void Engine::after(double delay_s, Callback done) { impl_->after(delay_s, std::move(done)); }

void Engine::start_flow(double bytes, const std::vector<LinkUse>& route, Callback done) {
  impl_->start_flow(bytes, route, std::move(done));
}

void Engine::run() { impl_->run(); }

std::string Engine::simgrid_version() {
  int major = 0, minor = 0, patch = 0;
  sg_version_get(&major, &minor, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

}  // namespace convoy
