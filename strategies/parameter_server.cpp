// SPDX-License-Identifier: MIT
#include "strategies/parameter_server.h"

#include <fmt/format.h>

#include <limits>

#include "strategies/server_plan.h"

namespace convoy {
namespace {

constexpr double default_bucket_bytes = 25.0 * 1024 * 1024;  // as for all-reduce, so that the two compare

class ParameterServer : public Strategy {
 public:
  explicit ParameterServer(const ServerOptions& options) : options_(options) {}

  std::string label() const override {
    return fmt::format("{} {} parameter server{}{}{}", options_.servers,
                       options_.dedicated ? "dedicated" : "colocated", options_.servers == 1 ? "" : "s",
                       options_.local_aggregation ? ", local aggregation" : "",
                       options_.overlap ? "" : ", no overlap");
  }
  std::uint32_t dedicated_hosts(std::uint32_t) const override {
    return options_.dedicated ? options_.servers : 0;
  }
  Plan plan(const StrategyInput& input) const override { return plan_parameter_server(options_, input); }

 private:
  ServerOptions options_;
};

}  // namespace

std::unique_ptr<Strategy> read_parameter_server(YamlMap& map) {
  ServerOptions options;
  options.servers = static_cast<std::uint32_t>(map.integer_or("servers", 1, 1, 100'000));
  options.servers_pos = map.pos("servers");
  options.dedicated = map.choice_or("placement", {"dedicated", "colocated"}, 0) == 0;
  options.sharding = static_cast<Sharding>(map.choice_or("sharding", {"tensor", "even"}, 0));
  map.choice_or("mode", {"sync"}, 0);
  options.overlap = map.flag_or("overlap", true);
  options.local_aggregation = map.flag_or("local_aggregation", false);
  options.pull_after_all = map.choice_or("pull", {"as_ready", "after_all"}, 0) == 1;
  const double bucket_bytes =
      map.quantity_or("bucket", Dimension::bytes,
                      options.overlap ? default_bucket_bytes : std::numeric_limits<double>::infinity(), true);
  if (map.has("bucket") && options.sharding == Sharding::tensor)
    map.fail("bucket",
             "has no meaning with sharding: tensor, which sends tensor by tensor; use sharding: even");
  options.bucket_bytes = bucket_bytes;
  options.shares = static_cast<Shares>(map.choice_or("shares", shares_names, 0));
  return std::make_unique<ParameterServer>(options);
}

}  // namespace convoy
