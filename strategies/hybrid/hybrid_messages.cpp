// SPDX-License-Identifier: MIT
#include "strategies/hybrid/hybrid_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "sim/lowering/buckets.h"

namespace convoy {
namespace {

/// Of one round: beyond it a plan takes gigabytes.
constexpr std::size_t largest_exchange = std::size_t{1} << 22;

std::string_view name_of_exchange(HybridSchedule::Exchange::Kind kind) {
  static constexpr std::array<std::string_view, 6> names{
      "all-gather", "reduce-scatter", "all-reduce", "all-to-all", "halo exchange", "halo exchange back"};
  return names[static_cast<std::size_t>(kind)];
}

class MessagePlanner {
 public:
  MessagePlanner(Plan& plan, const StrategyInput& input, const HybridGroups& groups,
                 const std::vector<std::uint32_t>& stages, const std::vector<LayerSharding>& shardings,
                 const HybridSchedule& schedule, const HybridCommunication& communication,
                 std::int64_t micro_batches)
      : plan_(plan),
        input_(input),
        graph_(input.graph),
        groups_(groups),
        stages_(stages),
        shardings_(shardings),
        schedule_(schedule),
        how_(communication),
        micro_batches_(micro_batches),
        devices_(groups.front().front().size()) {}

  HybridMessages build() {
    rings_.resize(groups_.size());
    add_exchanges();
    messages_.sums.resize(groups_.size());
    for (std::uint32_t s = 0; s < groups_.size(); ++s) add_sums(s);
    describe();
    return std::move(messages_);
  }

 private:
  using Exchange = HybridSchedule::Exchange;
  using Kind = Exchange::Kind;
  using Sum = HybridMessages::Sum;
  static constexpr CommId none = HybridMessages::none;

  std::uint32_t add_pattern(Pattern pattern) {
    for (std::uint32_t p = 0; p < plan_.patterns.size(); ++p)
      if (plan_.patterns[p].groups == pattern.groups && plan_.patterns[p].rounds == pattern.rounds) return p;
    plan_.patterns.push_back(std::move(pattern));
    return static_cast<std::uint32_t>(plan_.patterns.size() - 1);
  }

  CommId add_communication(std::string name, std::uint32_t pattern, double bytes) {
    plan_.communications.push_back(
        {std::move(name), pattern, bytes, how_.fidelity, input_.machine.collective_overhead_s});
    return static_cast<CommId>(plan_.communications.size() - 1);
  }

  const std::vector<std::vector<std::uint32_t>>& rings(std::uint32_t stage) {
    if (rings_[stage].empty()) rings_[stage] = find_rings(groups_[stage].front(), input_.machine, how_.rings);
    return rings_[stage];
  }

  std::vector<Round> rounds(const Exchange& exchange) {
    const std::uint32_t stage = schedule_.steps[exchange.after].stage;
    const bool in_rings = exchange.kind == Kind::all_gather || exchange.kind == Kind::reduce_scatter;
    const Shards* shards = exchange.kind == Kind::all_gather       ? exchange.from.shards.get()
                           : exchange.kind == Kind::reduce_scatter ? exchange.to.shards.get()
                                                                   : nullptr;
    const bool even =
        shards && std::all_of(shards->counts.begin(), shards->counts.end(),
                              [&](std::int64_t count) { return count == shards->counts.front(); });
    const bool listed = in_rings ? !even : exchange.kind != Kind::all_reduce && !is_all_to_all(exchange);
    if (listed && devices_ * devices_ > largest_exchange)
      throw InputError(how_.pos, fmt::format("strategy: groups of {} devices are too large for the {} of {}; "
                                             "use replicas",
                                             devices_, name_of_exchange(exchange.kind), exchange.tensor));
    switch (exchange.kind) {
      case Kind::all_gather:
        if (const std::optional<std::uint32_t> owner = only_owner(*shards))
          return at_once(star(*owner, true));
        return ring_all_gather(rings(stage), *shards);
      case Kind::reduce_scatter:
        if (const std::optional<std::uint32_t> owner = only_owner(*shards))
          return at_once(star(*owner, false));
        return ring_reduce_scatter(rings(stage), *shards);
      case Kind::all_reduce:
        return all_reduce_pattern(how_.algorithm, groups_[stage].front(), input_.machine, exchange.bytes,
                                  how_.rings)
            .rounds;
      case Kind::all_to_all:
        return split_anew(exchange.from, exchange.to, devices_);
      case Kind::halo:
      case Kind::halo_back:
        break;
    }
    Traffic traffic(devices_, std::vector<double>(devices_, 0.0));
    for (std::size_t i = 0; i < devices_; ++i)
      for (std::size_t j = 0; j < devices_; ++j)
        (exchange.kind == Kind::halo ? traffic[i][j] : traffic[j][i]) =
            exchange.halo->positions[i][j] / exchange.halo_size;
    return at_once(traffic);
  }

  /// Whether its messages are a Round::all_to_all that nobody has to list.
  bool is_all_to_all(const Exchange& exchange) const {
    std::vector<LinkId> out, in;
    return exchange.kind == Kind::all_to_all && crosses(exchange.from, exchange.to) &&
           input_.machine.router->halves(groups_.front().front().front(), out, in);
  }

  /// The device that has all there is, if one has.
  static std::optional<std::uint32_t> only_owner(const Shards& shards) {
    for (std::uint32_t d = 0; d < shards.counts.size(); ++d)
      if (shards.counts[d] == shards.size) return d;
    return std::nullopt;
  }
  Traffic star(std::uint32_t hub, bool out) const {
    Traffic traffic(devices_, std::vector<double>(devices_, 0.0));
    for (std::uint32_t d = 0; d < devices_; ++d)
      if (d != hub) (out ? traffic[hub][d] : traffic[d][hub]) = 1;
    return traffic;
  }

  void add_exchanges() {
    const std::size_t count = schedule_.exchanges.size();
    messages_.of_exchange.assign(static_cast<std::size_t>(micro_batches_), std::vector<CommId>(count, none));
    std::vector<std::optional<std::uint32_t>> patterns;
    for (const Exchange& exchange : schedule_.exchanges) {
      patterns.emplace_back();
      if (!exchange.is_needed() || exchange.bytes == 0) continue;
      if (std::vector<Round> rounds = this->rounds(exchange); !rounds.empty())
        patterns.back() = add_pattern({groups_[schedule_.steps[exchange.after].stage], std::move(rounds)});
    }
    for (std::int64_t m = 0; m < micro_batches_; ++m)
      for (std::uint32_t e = 0; e < count; ++e) {
        const Exchange& exchange = schedule_.exchanges[e];
        if (patterns[e])
          messages_.of_exchange[static_cast<std::size_t>(m)][e] =
              add_communication(fmt::format("{} of {}{}", name_of_exchange(exchange.kind), exchange.tensor,
                                            micro_batches_ > 1 ? fmt::format(", micro-batch {}", m) : ""),
                                *patterns[e], exchange.bytes);
      }
  }

  bool is_summed_by_all(std::size_t layer) const {
    const LayerLayout layout = shardings_[layer].layout;
    return devices_ == 1 || layout == LayerLayout::batch || is_by_space(layout);
  }

  double elements_on(std::size_t parameter, std::size_t device) const {
    const Parameter& p = graph_.parameters[parameter];
    const Layer& layer = graph_.model.layers[p.layer];
    for (const ParameterTensor& tensor : layer.parameters)
      if (layer.name + "." + tensor.name == p.name)
        return parameters_on(layer, shardings_[p.layer], tensor, device);
    return 0;
  }

  void add_sums(std::uint32_t stage) {
    const std::vector<std::vector<EndpointId>>& groups = groups_[stage];
    std::vector<EndpointId> all;
    for (const std::vector<EndpointId>& group : groups) all.insert(all.end(), group.begin(), group.end());
    if (all.size() == 1) return;
    std::vector<double> everywhere(graph_.parameters.size(), 0.0), of_share = everywhere;
    for (std::size_t p = 0; p < graph_.parameters.size(); ++p)
      if (stages_[graph_.parameters[p].layer] == stage)
        (is_summed_by_all(graph_.parameters[p].layer) ? everywhere : of_share)[p] = elements_on(p, 0);
    for (const Bucket& bucket : fill_buckets_of(graph_, how_.bucket_bytes, everywhere)) {
      Sum& sum = add_sum(stage, bucket, "all-reduce bucket");
      sum.comms.assign(devices_,
                       add_communication(sum.name, add_pattern(all_reduce(all, bucket.bytes)), bucket.bytes));
    }
    if (groups.size() > 1)
      for (const Bucket& bucket : fill_buckets_of(graph_, how_.bucket_bytes, of_share))
        sum_over_replicas(stage, bucket);
    std::vector<Sum>& sums = messages_.sums[stage];
    std::stable_sort(sums.begin(), sums.end(), [](const Sum& a, const Sum& b) { return a.ready < b.ready; });
  }

  Pattern all_reduce(const std::vector<EndpointId>& ranks, double bytes) const {
    return all_reduce_pattern(how_.algorithm, ranks, input_.machine, bytes, how_.rings);
  }

  Sum& add_sum(std::uint32_t stage, const Bucket& bucket, std::string_view what) {
    std::vector<Sum>& sums = messages_.sums[stage];
    Sum& sum = sums.emplace_back();
    sum.name = fmt::format("{} {}{}", what, sums.size() - 1,
                           groups_.size() > 1 ? fmt::format(" of stage {}", stage) : "");
    sum.ready = schedule_.last_step[bucket.ready];
    sum.parameters = bucket.parameters;
    return sum;
  }

  /// One communication for each size of the devices' shares.
  void sum_over_replicas(std::uint32_t stage, const Bucket& bucket) {
    std::map<double, std::vector<std::size_t>> by_bytes;
    for (std::size_t d = 0; d < devices_; ++d) {
      double elements = 0;
      for (const std::size_t p : bucket.parameters) elements += elements_on(p, d);
      by_bytes[elements * element_bytes(graph_.options.precision)].push_back(d);
    }
    Sum& sum = add_sum(stage, bucket, "all-reduce over replicas, bucket");
    sum.comms.assign(devices_, none);
    for (const auto& [bytes, devices] : by_bytes) {
      if (bytes == 0) continue;
      Pattern pattern;
      for (const std::size_t d : devices) {
        std::vector<EndpointId> ranks;
        for (const std::vector<EndpointId>& group : groups_[stage]) ranks.push_back(group[d]);
        if (pattern.rounds.empty()) pattern.rounds = all_reduce(ranks, bytes).rounds;
        pattern.groups.push_back(std::move(ranks));
      }
      const CommId comm = add_communication(sum.name, add_pattern(std::move(pattern)), bytes);
      for (const std::size_t d : devices) sum.comms[d] = comm;
    }
  }

  // What a reader wants to know of it.

  double sent_bytes(CommId comm) const {
    const Communication& c = plan_.communications[comm];
    const Pattern& pattern = plan_.patterns[c.pattern];
    double fractions = 0;
    for (const Round& round : pattern.rounds)
      round.for_each_message([&](auto, auto, double fraction) { fractions += fraction * round.repeat; });
    return c.bytes * fractions * static_cast<double>(pattern.groups.size());
  }

  void describe() {
    std::vector<double> exchanged(shardings_.size(), 0.0), summed = exchanged;
    for (const std::vector<CommId>& of_micro_batch : messages_.of_exchange)
      for (std::size_t e = 0; e < of_micro_batch.size(); ++e)
        if (of_micro_batch[e] != none)
          exchanged[schedule_.exchanges[e].layer] += sent_bytes(of_micro_batch[e]);
    for (const std::vector<Sum>& of_stage : messages_.sums)
      for (const Sum& sum : of_stage) {
        double elements = 0;
        for (const std::size_t p : sum.parameters) elements += elements_on(p, 0);
        for (const CommId comm : std::set<CommId>(sum.comms.begin(), sum.comms.end()))
          for (const std::size_t p : sum.parameters)
            if (comm != none)
              summed[graph_.parameters[p].layer] += sent_bytes(comm) * elements_on(p, 0) / elements;
      }
    for (std::size_t i = 0; i < shardings_.size(); ++i) {
      const std::string layout = layout_text(shardings_[i]);
      if (plan_.layouts.empty() || plan_.layouts.back().layout != layout)
        plan_.layouts.push_back({layout, {}});
      LayerGroup& group = plan_.layouts.back();
      group.layers.push_back(graph_.model.layers[i].name);
      double most = 0;
      for (std::size_t d = 0; d < devices_; ++d)
        most = std::max(most, parameters_on(graph_.model.layers[i], shardings_[i], d));
      group.parameter_bytes += most * element_bytes(graph_.options.precision);
      group.exchange_bytes += exchanged[i];
      group.gradient_bytes += summed[i];
    }
  }

  Plan& plan_;
  const StrategyInput& input_;
  const TrainingGraph& graph_;
  const HybridGroups& groups_;
  const std::vector<std::uint32_t>& stages_;  ///< by layer
  const std::vector<LayerSharding>& shardings_;
  const HybridSchedule& schedule_;
  const HybridCommunication& how_;
  std::int64_t micro_batches_;
  std::size_t devices_;                                         ///< of a group
  std::vector<std::vector<std::vector<std::uint32_t>>> rings_;  ///< by stage, of its first group
  HybridMessages messages_;
};

}  // namespace

HybridMessages add_messages(Plan& plan, const StrategyInput& input, const HybridGroups& groups,
                            const std::vector<std::uint32_t>& stages,
                            const std::vector<LayerSharding>& shardings, const HybridSchedule& schedule,
                            const HybridCommunication& communication, std::int64_t micro_batches) {
  return MessagePlanner(plan, input, groups, stages, shardings, schedule, communication, micro_batches)
      .build();
}

}  // namespace convoy
