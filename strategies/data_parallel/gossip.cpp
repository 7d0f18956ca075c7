// SPDX-License-Identifier: MIT
#include "strategies/data_parallel/gossip.h"

#include <fmt/format.h>

#include "sim/lowering/averaging.h"
#include "strategies/replicas.h"

namespace convoy::inline strategies {
namespace {

using Graph = GossipNeighbours::Graph;
const std::vector<std::string> gossip_graph_names{"ring", "exponential", "one_peer"};

struct GossipOptions {
  GossipNeighbours neighbours;
  GradientSync sync;  ///< how messages are sent
  Shares shares = Shares::equal;
  std::int64_t micro_batches = 1;
};

const Keys<GossipOptions>& gossip_keys() {
  using Options = GossipOptions;
  static const Keys<Options> keys{
      choice_key<Options>(
          "neighbours", gossip_graph_names,
          "with whom a device averages its parameters: the two beside it on a ring; those 1, 2, "
          "4, ... places on; or of these one at a time, another one in each step",
          [](Options& o) -> Graph& { return o.neighbours.graph; }),
      flag_key<Options>(
          "asynchronous",
          "no device waits for another's step: it exchanges parameters with the next device on the "
          "ring, whatever that one is at",
          [](Options& o) -> bool& { return o.neighbours.asynchronous; }),
      flag_key<Options>("overlap",
                        "send the parameters with which a step begins while it computes; false: the updated "
                        "ones after it",
                        [](Options& o) -> bool& { return o.sync.overlap; }),
      flag_key<Options>("sum_in_hosts",
                        "the devices of a host sum their gradients in every step, and hosts are each other's "
                        "neighbours",
                        [](Options& o) -> bool& { return o.neighbours.are_hosts; }),
      optional_quantity_key<Options>("bucket", "all in one message", Dimension::bytes, true,
                                     "parameters sent as one message",
                                     [](Options& o) -> double& { return o.sync.bucket_bytes; })
          .given([](Options& o) -> bool& { return o.sync.bucket_given; }),
      choice_key<Options>("fidelity", fidelity_names, "every message, or one flow an edge; auto chooses",
                          [](Options& o) -> Fidelity& { return o.sync.fidelity; }),
      shares_key<Options>(&Options::shares),
      integer_key<Options>("micro_batches", 1, 1'000'000,
                           "parts of a device's share, accumulated before the update",
                           &Options::micro_batches)};
  return keys;
}

class Gossip : public Annotator {
 public:
  explicit Gossip(GossipOptions options) : options_(std::move(options)) {}

  std::string label() const override {
    static constexpr std::array<std::string_view, 3> with{"on a ring", "on an exponential graph",
                                                          "with one peer a step"};
    return fmt::format("{}gossip {}{}{}", options_.neighbours.asynchronous ? "asynchronous " : "",
                       with[static_cast<std::size_t>(options_.neighbours.graph)],
                       options_.neighbours.are_hosts ? ", gradients summed in hosts" : "",
                       options_.sync.overlap ? "" : ", no overlap");
  }

  std::string_view refuses_recomputation() const override { return {}; }

  std::string trains_otherwise() const override {
    return "gossip may need more epochs; how many is not known";
  }

  std::optional<StepFloor> floor(const BatchSpec& batch, CostTable& table) const override {
    if (options_.shares == Shares::speed || options_.neighbours.asynchronous) return std::nullopt;
    return floor_of_replicas(batch, table, options_.micro_batches, true);
  }

  Annotation annotate(const StrategyInput& input) const override {
    Averaging averaging;
    averaging.with = static_cast<Averaging::With>(static_cast<int>(options_.neighbours.graph) + 1);
    averaging.sums_in_hosts = options_.neighbours.are_hosts;
    averaging.asynchronous = options_.neighbours.asynchronous;
    const std::int64_t steps = averaging.period(input.machine);
    Annotation annotation = annotate_replicas(input, options_.sync, share_batch(input, options_.shares),
                                              options_.micro_batches, averaging);
    annotation.report.gossip = options_.neighbours;
    annotation.report.notes.push_back(fmt::format(
        "each {} averages its parameters with {}{}; {}", options_.neighbours.are_hosts ? "host" : "device",
        averaging.asynchronous ? "one neighbour at a time, at its own pace" : "its neighbours only",
        steps > 1 ? fmt::format(" and a step is the mean of {}", steps) : "", trains_otherwise()));
    return annotation;
  }

 private:
  GossipOptions options_;
};

/// @throws InputError where what was read does not go together
void check_asynchronous(const YamlMap& map, const GossipOptions& options) {
  if (!options.neighbours.asynchronous) return;
  if (options.neighbours.graph != Graph::ring)
    map.fail("neighbours",
             "with asynchronous: true, a device averages with one neighbour at a time: use ring");
  if (!options.sync.overlap)
    map.fail("overlap",
             "with asynchronous: true, parameters are exchanged while a device computes: leave it out");
  if (options.neighbours.are_hosts)
    map.fail("sum_in_hosts",
             "goes with asynchronous: false: devices that sum gradients wait for each other's steps");
}

}  // namespace

std::unique_ptr<Strategy> read_gossip(YamlMap& map) {
  GossipOptions options;
  options.sync.path = map.path();
  read_keys(gossip_keys(), map, options);
  check_asynchronous(map, options);
  return std::make_unique<Gossip>(std::move(options));
}

std::vector<KeyText> gossip_key_texts() { return texts_of(gossip_keys()); }

}  // namespace convoy::strategies
