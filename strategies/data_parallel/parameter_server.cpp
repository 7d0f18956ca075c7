// SPDX-License-Identifier: MIT
#include "strategies/data_parallel/parameter_server.h"

#include <fmt/format.h>

#include <limits>

#include "strategies/data_parallel/server_plan.h"

namespace convoy {
namespace {

class ParameterServer : public Strategy {
 public:
  explicit ParameterServer(const ServerOptions& options) : options_(options) {}

  std::string label() const override {
    return fmt::format("{} {} parameter server{}{}{}{}{}", options_.servers,
                       options_.dedicated ? "dedicated" : "colocated", options_.servers == 1 ? "" : "s",
                       mode_label(), local_label(), label_of(options_.compression),
                       options_.overlap ? "" : ", no overlap");
  }
  bool uses_servers() const override { return true; }
  std::uint32_t dedicated_hosts(std::uint32_t) const override {
    return options_.dedicated ? options_.servers : 0;
  }
  std::string_view refuses_recomputation() const override { return {}; }
  Plan steady_plan(const StrategyInput& input) const override {
    return plan_parameter_server(options_, input);
  }

 private:
  const char* local_label() const {
    switch (options_.local_aggregation) {
      case LocalAggregation::host:
        return ", local aggregation";
      case LocalAggregation::owner:
        return ", local aggregation on owners";
      case LocalAggregation::ring:
        return ", local aggregation by ring";
      case LocalAggregation::none:
        break;
    }
    return "";
  }

  std::string mode_label() const {
    switch (options_.mode) {
      case ServerMode::async:
        return ", asynchronous";
      case ServerMode::ssp:
        return fmt::format(", staleness {}", options_.staleness);
      case ServerMode::sync:
        break;
    }
    if (options_.backup_workers == 0) return "";
    return fmt::format(", {} backup worker{}", options_.backup_workers,
                       options_.backup_workers == 1 ? "" : "s");
  }

  ServerOptions options_;
};

/// `mode`, `staleness` and `backup_workers`, and that they go with the rest.
void read_mode(YamlMap& map, ServerOptions& options) {
  constexpr std::int64_t most = 1'000'000;
  options.mode = static_cast<ServerMode>(map.choice_or("mode", server_mode_names, 0));
  const std::string& mode = server_mode_names[static_cast<std::size_t>(options.mode)];
  if (options.mode == ServerMode::ssp)
    options.staleness = static_cast<std::uint32_t>(map.integer("staleness", 0, most));
  else if (map.has("staleness"))
    map.fail("staleness", fmt::format("has no meaning with mode: {}; it is the bound of mode: ssp", mode));
  if (options.mode != ServerMode::sync && map.has("backup_workers"))
    map.fail("backup_workers",
             fmt::format("has no meaning with mode: {}, which does not wait for all; use mode: sync", mode));
  options.backup_workers = static_cast<std::uint32_t>(map.integer_or("backup_workers", 0, 0, most));
  options.backup_workers_pos = map.pos("backup_workers");
  if (!options.one_by_one()) return;
  const std::string whose = options.backup_workers > 0 ? "backup_workers" : "mode: " + mode;
  if (options.local_aggregation != LocalAggregation::none)
    map.fail(
        "local_aggregation",
        fmt::format(
            "devices of a node would wait for each other, which {} spares them; leave out one of the two",
            whose));
  if (options.pull != PullMode::as_ready)
    map.fail("pull",
             fmt::format("with {} servers answer each message as it comes; use pull: as_ready", whose));
  if (options.backup_workers > 0 && options.shares != Shares::equal)
    map.fail("shares",
             "with backup_workers any of the workers may be left out, so that all need equal shares");
}

}  // namespace

std::unique_ptr<Strategy> read_parameter_server(YamlMap& map) {
  ServerOptions options;
  options.servers = static_cast<std::uint32_t>(map.integer_or("servers", 1, 1, 100'000));
  options.servers_pos = map.pos("servers");
  options.dedicated = map.choice_or("placement", {"dedicated", "colocated"}, 0) == 0;
  options.sharding = static_cast<Sharding>(map.choice_or("sharding", {"tensor", "even"}, 0));
  options.overlap = map.flag_or("overlap", true);
  constexpr LocalAggregation local[] = {LocalAggregation::none, LocalAggregation::host,
                                        LocalAggregation::host, LocalAggregation::owner,
                                        LocalAggregation::ring};
  options.local_aggregation =
      local[map.choice_or("local_aggregation", {"false", "true", "host", "owner", "ring"}, 0)];
  options.pull = static_cast<PullMode>(map.choice_or("pull", pull_mode_names, 0));
  const double bucket_bytes =
      map.quantity_or("bucket", Dimension::bytes,
                      options.overlap ? default_bucket_bytes : std::numeric_limits<double>::infinity(), true);
  if (map.has("bucket") && options.sharding == Sharding::tensor)
    map.fail("bucket",
             "has no meaning with sharding: tensor, which sends tensor by tensor; use sharding: even");
  options.bucket_bytes = bucket_bytes;
  options.shares = static_cast<Shares>(map.choice_or("shares", shares_names, 0));
  options.compression = read_compression(map);
  if (options.compression.kind == Compression::Kind::top_k &&
      options.local_aggregation != LocalAggregation::none)
    map.fail("compression",
             "top_k with local_aggregation: how many of a node's gradients differ in index is not known; "
             "leave out one of the two");
  if (options.compression.kind != Compression::Kind::none && options.sums_on_devices())
    map.fail("compression",
             "goes with sums in the host's memory or on the servers; use local_aggregation: false or host");
  read_mode(map, options);
  return std::make_unique<ParameterServer>(options);
}

}  // namespace convoy
