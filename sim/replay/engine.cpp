// SPDX-License-Identifier: MIT
#include "sim/replay/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <deque>
#include <exception>
#include <limits>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "sim/replay/flow_model.h"

// s4u.hpp comes first: the other headers do not compile on their own in SimGrid 3.32.
// clang-format off
#include <simgrid/s4u.hpp>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/version.h>
#include <xbt/log.h>
// clang-format on

namespace convoy::inline replays {
namespace {

namespace sg4 = simgrid::s4u;
namespace kernel = simgrid::kernel;

/// A zone in which the route of the next flow is whatever the engine says. Routes are convoy's (topologies/),
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

/// Exact alpha-beta behaviour. Each line turns off a default that distorts it (TCP's windows, slow start,
/// cross traffic); the precisions still distinguish 1 ns events and shares of 1e-9 of a link.
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

/// Presents a flow model as one of SimGrid's: SimGrid's engine asks for the time of the next event, and says
/// when that time has come. Since nothing else happens in this engine, the model then processes several
/// following moments at once: one round of the engine's loop through all of its models takes a third as long
/// as a moment. The engine's clock is at the first of these moments.
class FlowModelInEngine final : public kernel::resource::Model {
 public:
  FlowModelInEngine() : Model("convoy") {}

  /// The flow model that is presented from now on, until it has ended.
  void present(FlowModel& flows) {
    flows_ = &flows;
    next_s_ = told_s_ = 0;
    failure = nullptr;
  }

  double next_occurring_event(double /*now*/) override {
    if (failure) return -1;
    next_s_ = flows_->next_event_s();
    return next_s_ < never ? std::max(0.0, next_s_ - told_s_) : -1;
  }
  /// @param delta what next_occurring_event returned, since nothing else happens in this engine
  void update_actions_state(double /*now*/, double /*delta*/) override {
    told_s_ = next_s_;
    try {
      for (int moment = 0; moment < moments_a_round && flows_->advance(); ++moment) continue;
    } catch (...) {  // must not pass through SimGrid
      failure = std::current_exception();
    }
  }

  std::exception_ptr failure;

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  static constexpr int moments_a_round = 256;

  FlowModel* flows_ = nullptr;
  double next_s_ = 0, told_s_ = 0;  ///< when the engine is to be next; when it is
};

/// SimGrid's engine, with its own models either unused or configured by configure_simgrid.
std::unique_ptr<sg4::Engine> make_simgrid_engine() {
  assert(!sg4::Engine::is_initialized() && "one engine at a time");
  static int argc = 1;
  static char name[] = "convoy";
  static char* argv[] = {name, nullptr};
  auto engine = std::make_unique<sg4::Engine>(&argc, argv);
  configure_simgrid();
  return engine;
}

/// SimGrid's engine as flow models use it, one after the other. It stays for the next one: in SimGrid 3.32, each engine that goes
/// leaves a kilobyte behind, of which a sweep of a million points would fill a gigabyte. Its clock goes on, and a flow
/// model has a clock of its own.
class EngineOfFlows {
 public:
  static void run(FlowModel& flows) {
    if (!kept()) kept() = new EngineOfFlows;  // NOLINT: at the end of the program, SimGrid clears itself away
    FlowModelInEngine& model = *kept()->model_;
    model.present(flows);
    kept()->engine_->run();
    if (model.failure) std::rethrow_exception(std::exchange(model.failure, nullptr));
  }
  /// For an engine of another kind: there can be one at a time.
  static void make_room() { delete std::exchange(kept(), nullptr); }

 private:
  EngineOfFlows() : engine_(make_simgrid_engine()), model_(std::make_shared<FlowModelInEngine>()) {
    (new ScriptedZone("convoy"))->seal();  // SimGrid has no engine without a zone, and owns it
    engine_->add_model(model_);
  }
  static EngineOfFlows*& kept() {
    static EngineOfFlows* engine = nullptr;
    return engine;
  }

  std::unique_ptr<sg4::Engine> engine_;
  std::shared_ptr<FlowModelInEngine> model_;
};

}  // namespace

struct Engine::Impl {
  virtual ~Impl() = default;
  virtual double now_s() const { return *clock_s; }
  virtual Callback& after(double delay_s) = 0;
  virtual Callback& after_latency(double latency_s) { return after(latency_s); }
  virtual std::uint32_t add_route(std::span<const LinkUse> uses, double flow_limit_Bps) = 0;
  virtual Callback& start_message(double latency_s, double bytes, std::uint32_t route) = 0;
  virtual void fetch_route(std::uint32_t) const {}
  virtual void fetch_links(std::uint32_t) const {}
  virtual void set_bandwidth(std::uint32_t, double) {
    throw std::logic_error("links keep their bandwidth in this engine");
  }
  virtual void run() = 0;

  const double* clock_s = nullptr;  ///< of a flow model
};

struct Engine::OwnLinks final : Engine::Impl {
  FlowModel flows;

  explicit OwnLinks(const std::vector<double>& link_bandwidth_Bps) : flows(link_bandwidth_Bps) {
    clock_s = &flows.clock_s();
  }

  Callback& after(double delay_s) override { return flows.after(delay_s); }
  Callback& after_latency(double latency_s) override { return flows.after_latency(latency_s); }
  std::uint32_t add_route(std::span<const LinkUse> uses, double flow_limit_Bps) override {
    return flows.add_route(uses, flow_limit_Bps);
  }
  Callback& start_message(double latency_s, double bytes, std::uint32_t route) override {
    return flows.start_message(latency_s, bytes, route);
  }
  void fetch_route(std::uint32_t route) const override { flows.fetch_route(route); }
  void fetch_links(std::uint32_t route) const override { flows.fetch_links(route); }
  void set_bandwidth(std::uint32_t link, double bandwidth_Bps) override {
    flows.set_bandwidth(link, bandwidth_Bps);
  }
  void run() override { EngineOfFlows::run(flows); }
};

struct Engine::SimgridLinks final : Engine::Impl {
  std::unique_ptr<sg4::Engine> engine;
  ScriptedZone* zone = nullptr;
  sg4::Host* from = nullptr;
  sg4::Host* to = nullptr;
  std::vector<kernel::resource::StandardLinkImpl*> links;
  std::vector<std::vector<kernel::resource::StandardLinkImpl*>> routes;
  double scale = 1;    ///< SimGrid's "bytes" per byte
  double start_s = 0;  ///< SimGrid's clock when this engine was made
  std::deque<Callback> callbacks;  ///< of what is under way, and places that are free
  std::vector<Callback*> free_callbacks;
  std::unordered_map<const sg4::Activity*, std::pair<sg4::CommPtr, Callback*>> flows;
  std::vector<sg4::CommPtr> ended;  ///< SimGrid still touches a Comm after its completion callback

  SimgridLinks(const std::vector<double>& link_bandwidth_Bps, double largest_flow_bytes)
      : engine(make_simgrid_engine()) {
    int bits = 20;
    while (bits > -20 && std::ldexp(largest_flow_bytes, bits) > 9e18) --bits;  // the limit of llround
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
  ~SimgridLinks() override { current() = nullptr; }

  double now_s() const override { return sg4::Engine::get_clock() - start_s; }

  Callback& new_callback() {
    if (free_callbacks.empty()) return callbacks.emplace_back();
    Callback& place = *free_callbacks.back();
    free_callbacks.pop_back();
    return place;
  }
  void call(Callback& place) {
    Callback done = place;
    free_callbacks.push_back(&place);
    done();
  }

  Callback& after(double delay_s) override {
    Callback& done = new_callback();
    kernel::timer::Timer::set(sg4::Engine::get_clock() + delay_s, [this, &done] { call(done); });
    return done;
  }

  std::uint32_t add_route(std::span<const LinkUse> uses, double flow_limit_Bps) override {
    if (flow_limit_Bps < no_limit) throw std::logic_error("flows have no limit of their own in this engine");
    auto& way = routes.emplace_back();
    for (const LinkUse& use : uses) way.insert(way.end(), use.multiplicity, links[use.link]);
    return static_cast<std::uint32_t>(routes.size() - 1);
  }

  Callback& start_message(double latency_s, double bytes, std::uint32_t route) override {
    Callback& done = new_callback();
    if (latency_s == 0)
      start_now(bytes, route, done);
    else
      kernel::timer::Timer::set(sg4::Engine::get_clock() + latency_s,
                                [this, bytes, route, &done] { start_now(bytes, route, done); });
    return done;
  }

  void start_now(double bytes, std::uint32_t route, Callback& done) {
    zone->next_route = routes[route];
    const auto payload = static_cast<std::uint64_t>(std::llround(std::max(1.0, bytes * scale)));
    sg4::CommPtr comm = sg4::Comm::sendto_init(from, to)->set_payload_size(payload);
    flows.emplace(comm.get(), std::pair{comm, &done});
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
    call(*done);
  }

  static SimgridLinks*& current() {
    static SimgridLinks* engine = nullptr;
    return engine;
  }
};

/// An engine that is only asked for delays, without SimGrid.
struct Engine::FreeLinks final : Engine::Impl {
  std::vector<double> bandwidth_Bps;
  std::vector<double> route_Bps;
  FlowModel delays{{}};

  explicit FreeLinks(const std::vector<double>& link_bandwidth_Bps) : bandwidth_Bps(link_bandwidth_Bps) {
    clock_s = &delays.clock_s();
  }

  Callback& after(double delay_s) override { return delays.after(delay_s); }
  std::uint32_t add_route(std::span<const LinkUse> uses, double flow_limit_Bps) override {
    double rate_Bps = flow_limit_Bps;
    for (const LinkUse& use : uses) rate_Bps = std::min(rate_Bps, bandwidth_Bps[use.link] / use.multiplicity);
    route_Bps.push_back(rate_Bps);
    return static_cast<std::uint32_t>(route_Bps.size() - 1);
  }
  Callback& start_message(double latency_s, double bytes, std::uint32_t route) override {
    return delays.after(latency_s + bytes / route_Bps[route]);
  }
  void run() override {
    while (delays.advance()) continue;
  }
};

Engine::Engine(const std::vector<double>& link_bandwidth_Bps, double largest_flow_bytes,
               Contention contention, NetworkModel model) {
  if (contention == Contention::none)
    impl_ = std::make_unique<FreeLinks>(link_bandwidth_Bps);
  else if (model == NetworkModel::convoy)
    impl_ = std::make_unique<OwnLinks>(link_bandwidth_Bps);
  else {
    EngineOfFlows::make_room();
    impl_ = std::make_unique<SimgridLinks>(link_bandwidth_Bps, largest_flow_bytes);
  }
  clock_s_ = impl_->clock_s;
}

Engine::~Engine() = default;

double Engine::simgrid_now_s() const { return impl_->now_s(); }

Callback& Engine::after(double delay_s) { return impl_->after(delay_s); }

Callback& Engine::after_latency(double latency_s) { return impl_->after_latency(latency_s); }

std::uint32_t Engine::add_route(std::span<const LinkUse> uses, double flow_limit_Bps) {
  return impl_->add_route(uses, flow_limit_Bps);
}

Callback& Engine::start_flow(double bytes, std::uint32_t route) {
  return impl_->start_message(0, bytes, route);
}

void Engine::fetch_route(std::uint32_t route) const { impl_->fetch_route(route); }

void Engine::fetch_links(std::uint32_t route) const { impl_->fetch_links(route); }

Callback& Engine::start_message(double latency_s, double bytes, std::uint32_t route) {
  return impl_->start_message(latency_s, bytes, route);
}

void Engine::set_bandwidth(std::uint32_t link, double bandwidth_Bps) {
  impl_->set_bandwidth(link, bandwidth_Bps);
}

void Engine::run() { impl_->run(); }

std::string Engine::simgrid_version() {
  int major = 0, minor = 0, patch = 0;
  sg_version_get(&major, &minor, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

}  // namespace convoy::replays
