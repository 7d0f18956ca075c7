// SPDX-License-Identifier: MIT
#include "strategies/data_parallel/parameter_server.h"

#include <fmt/format.h>

#include <limits>

#include "sim/base/quantity.h"
#include "sim/lowering/server_messages.h"
#include "strategies/cost_table.h"
#include "strategies/framework_habits.h"
#include "strategies/replicas.h"

namespace convoy::inline strategies {
namespace {

constexpr std::int64_t most_workers = 1'000'000;

struct ServerOptions {
  std::uint32_t servers = 1;
  bool dedicated = true;
  Shares shares = Shares::equal;
  std::int64_t micro_batches = 1;             ///< of a worker's share
  ServerExchange exchange;                    ///< but for where the servers are
  SourcePos servers_pos, backup_workers_pos;  ///< of the numbers, for errors
};

/// The exchange on a machine. @throws InputError where the servers do not find a node, or all workers are
/// backup workers.
ServerExchange placed(const ServerOptions& options, const Machine& machine) {
  const std::uint32_t nodes = node_count(machine);
  if (!options.dedicated && options.servers > nodes)
    throw InputError(
        options.servers_pos,
        fmt::format("strategy.servers: {} colocated servers need a node each, and there are {}; at most {} "
                    "here, or placement: dedicated",
                    options.servers, nodes, nodes));
  ServerExchange exchange = options.exchange;
  if (exchange.backup_workers >= machine.devices.size())
    throw InputError(
        options.backup_workers_pos,
        fmt::format("strategy.backup_workers: with {} backup workers of {} no worker is left to wait "
                    "for; at most {} here",
                    exchange.backup_workers, machine.devices.size(), machine.devices.size() - 1));
  for (std::uint32_t s = 0; s < options.servers; ++s)
    exchange.servers.push_back(machine.host_endpoint(options.dedicated ? nodes + s : s));
  return exchange;
}

class ParameterServer : public Annotator {
 public:
  explicit ParameterServer(const ServerOptions& options) : options_(options) {}

  std::string label() const override {
    return fmt::format("{} {} parameter server{}{}{}{}{}", options_.servers,
                       options_.dedicated ? "dedicated" : "colocated", options_.servers == 1 ? "" : "s",
                       mode_label(), local_label(), label_of(options_.exchange.compression),
                       options_.exchange.overlap ? "" : ", no overlap");
  }
  bool uses_servers() const override { return true; }
  std::uint32_t dedicated_hosts(std::uint32_t) const override {
    return options_.dedicated ? options_.servers : 0;
  }
  std::string_view refuses_recomputation() const override { return {}; }
  /// Where servers on the nodes have whole tensors, one of them sends the largest to every other node.
  std::optional<StepFloor> floor(const BatchSpec& batch, CostTable& table) const override {
    if (options_.exchange.one_by_one() || options_.shares == Shares::speed) return std::nullopt;
    std::optional<StepFloor> floor = floor_of_replicas(batch, table, options_.micro_batches, false);
    if (!floor || options_.dedicated || options_.exchange.sharding == ServerSharding::even) return floor;
    if (const double spread_s = table.spread_largest_tensor_s(); spread_s > floor->step_s) {
      floor->step_s = spread_s;
      floor->text =
          fmt::format("at least {} a step for the server of the largest tensor to send it to all other nodes",
                      format_time(spread_s));
    }
    return floor;
  }
  Annotation annotate(const StrategyInput& input) const override {
    ServerExchange exchange = placed(options_, input.machine);
    Annotation annotation{
        WholeLayers{replica_passes(input, share_batch(input, options_.shares), options_.micro_batches),
                    std::nullopt, input.network},
        std::move(exchange)};
    if (options_.exchange.mode != ServerMode::sync) annotation.report.staleness.emplace();
    return annotation;
  }

 private:
  const char* local_label() const {
    switch (options_.exchange.local_aggregation) {
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
    switch (options_.exchange.mode) {
      case ServerMode::async:
        return ", asynchronous";
      case ServerMode::ssp:
        return fmt::format(", staleness {}", options_.exchange.staleness);
      case ServerMode::sync:
        break;
    }
    if (options_.exchange.backup_workers == 0) return "";
    return fmt::format(", {} backup worker{}", options_.exchange.backup_workers,
                       options_.exchange.backup_workers == 1 ? "" : "s");
  }

  ServerOptions options_;
};

const std::vector<std::string> mode_names{"sync", "async", "ssp"};

void read_local_aggregation(YamlMap& map, ServerExchange& exchange) {
  constexpr LocalAggregation where[] = {LocalAggregation::none, LocalAggregation::host,
                                        LocalAggregation::host, LocalAggregation::owner,
                                        LocalAggregation::ring};
  exchange.local_aggregation =
      where[map.choice_or("local_aggregation", {"false", "true", "host", "owner", "ring"}, 0)];
}

/// `true` means host, and is told there.
ValueForm aggregation_form() {
  return forms::either({forms::name({"false", "host", "owner", "ring"}), forms::flag()})
      .said("false | host | owner | ring");
}

void read_staleness(YamlMap& map, ServerExchange& exchange) {
  exchange.staleness = static_cast<std::uint32_t>(map.integer("staleness", 0, most_workers));
}

/// What is sent how.
Keys<ServerExchange> message_keys() {
  using Exchange = ServerExchange;
  Keys<Exchange> keys{
      choice_key<Exchange>("sharding", {"tensor", "even"},
                           "whole tensors a server, or every bucket cut evenly", &Exchange::sharding),
      quantity_key<Exchange>("bucket", "25MiB", Dimension::bytes,
                             "gradients sent as one message; without overlap all of them, unless given",
                             &Exchange::bucket_bytes,
                             [](const Exchange& exchange) { return usual_bucket_bytes(exchange.overlap); })
          .only("sharding: even", [](const Exchange& e) { return e.sharding == ServerSharding::even; }),
      custom_key<Exchange>(
          "local_aggregation", "", aggregation_form(),
          "each node sums its devices' gradients first, in the host's memory (true means that too), on the "
          "device that owns the tensor, or round a ring of its devices",
          &read_local_aggregation),
      choice_key<Exchange>("pull", {"as_ready", "after_all", "at_first_use"},
                           "parameters go back as they are updated, when all of a server's are, or when the "
                           "next step's forward pass first uses them",
                           &Exchange::pull),
      optional_quantity_key<Exchange>("unpack", "no limit", Dimension::bandwidth, true,
                                      "at which one thread of a node brings what it pulls into its devices' "
                                      "memory, before it is handed out",
                                      &Exchange::unpack_Bps)
          .only("local_aggregation: host", [](const Exchange& e) { return e.sums_on_hosts(); })};
  append_keys(keys, keys_of_part<Exchange>(Keys<Compression>{compression_key()}, &Exchange::compression));
  return keys;
}

/// The keys beside those of how an update is made (mode_keys).
const Keys<ServerOptions>& exchange_keys() {
  using Options = ServerOptions;
  static const Keys<Options> keys = [] {
    Keys<Options> table{shares_key<Options>(&Options::shares),
                        integer_key<Options>("micro_batches", 1, 1'000'000,
                                             "parts of a device's share, accumulated before sending",
                                             &Options::micro_batches)};
    append_keys(table,
                keys_of_part<Options>(
                    Keys<ServerExchange>{flag_key<ServerExchange>(
                        "overlap", "send gradients while backward goes on; false: all of them after it",
                        &ServerExchange::overlap)},
                    &Options::exchange));
    table.push_back(
        integer_key<Options>("servers", 1, 100'000, "how many", &Options::servers).at(&Options::servers_pos));
    table.push_back(choice_key<Options>("placement", {"colocated", "dedicated"},
                                        "on hosts of their own, or on the nodes", &Options::dedicated));
    append_keys(table, keys_of_part<Options>(message_keys(), &Options::exchange));
    table.push_back(like_key<Options>("parameter_server"));
    return table;
  }();
  return keys;
}

const Keys<ServerOptions>& mode_keys() {
  using Exchange = ServerExchange;
  static const Keys<ServerOptions> keys = [] {
    Keys<ServerOptions> table = keys_of_part<ServerOptions>(
        Keys<Exchange>{
            choice_key<Exchange>("mode", mode_names,
                                 "the server answers when all have pushed, each at once, or those that are "
                                 "not too far ahead",
                                 &Exchange::mode),
            custom_key<Exchange>("staleness", "", forms::whole(0, most_workers),
                                 "steps that a worker may be ahead of the slowest", &read_staleness)
                .told_required()
                .only("mode: ssp", [](const Exchange& e) { return e.mode == ServerMode::ssp; }),
            integer_key<Exchange>("backup_workers", 0, most_workers,
                                  "workers that an update does not wait for; what comes late is dropped",
                                  &Exchange::backup_workers)
                .only("mode: sync", [](const Exchange& e) { return e.mode == ServerMode::sync; })},
        &ServerOptions::exchange);
    table.back() = std::move(table.back()).at(&ServerOptions::backup_workers_pos);
    return table;
  }();
  return keys;
}

/// How updates are made, and that it goes with the rest.
void read_mode(YamlMap& map, ServerOptions& options) {
  read_keys(mode_keys(), map, options);
  const ServerExchange& exchange = options.exchange;
  if (!exchange.one_by_one()) return;
  const std::string whose = exchange.backup_workers > 0
                                ? "backup_workers"
                                : "mode: " + mode_names[static_cast<std::size_t>(exchange.mode)];
  if (exchange.local_aggregation != LocalAggregation::none)
    map.fail(
        "local_aggregation",
        fmt::format(
            "devices of a node would wait for each other, which {} spares them; leave out one of the two",
            whose));
  if (exchange.pull != PullMode::as_ready)
    map.fail("pull",
             fmt::format("with {} servers answer each message as it comes; use pull: as_ready", whose));
  if (exchange.backup_workers > 0 && options.shares != Shares::equal)
    map.fail("shares",
             "with backup_workers any of the workers may be left out, so that all need equal shares");
}

}  // namespace

std::unique_ptr<Strategy> read_parameter_server(YamlMap& map) {
  ServerOptions options;
  read_keys(exchange_keys(), map, options);
  const ServerExchange& exchange = options.exchange;
  if (exchange.compression.kind == Compression::Kind::top_k &&
      exchange.local_aggregation != LocalAggregation::none)
    map.fail("compression",
             "top_k with local_aggregation: how many of a node's gradients differ in index is not known; "
             "leave out one of the two");
  if (const Compression& of = exchange.compression;
      of.kind == Compression::Kind::quantised || of.kind == Compression::Kind::sign)
    map.fail(
        "compression",
        fmt::format("{} goes with sync: all_reduce; what servers' CPUs need to add up codes is not known",
                    kind_of(of)));
  if (exchange.compression.kind == Compression::Kind::powersgd)
    map.fail("compression", "powersgd goes with sync: all_reduce, by which its factors are summed");
  if (exchange.compression.kind != Compression::Kind::none && exchange.sums_on_devices())
    map.fail("compression",
             "goes with sums in the host's memory or on the servers; use local_aggregation: false or host");
  read_mode(map, options);
  return std::make_unique<ParameterServer>(options);
}

std::vector<KeyText> parameter_server_key_texts() {
  std::vector<KeyText> texts = texts_of(exchange_keys());
  const std::vector<KeyText> mode = texts_of(mode_keys());
  texts.insert(texts.end(), mode.begin(), mode.end());
  return texts;
}

}  // namespace convoy::strategies
