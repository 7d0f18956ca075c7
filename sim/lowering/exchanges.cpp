// SPDX-License-Identifier: MIT
#include "sim/lowering/exchanges.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace convoy::inline lowering {
namespace {

/// Of one round: beyond it a plan takes gigabytes.
constexpr std::size_t largest_exchange = std::size_t{1} << 22;

std::string_view name_of_exchange(GraphSchedule::Exchange::Kind kind) {
  static constexpr std::array<std::string_view, 6> names{
      "all-gather", "reduce-scatter", "all-reduce", "all-to-all", "halo exchange", "halo exchange back"};
  return names[static_cast<std::size_t>(kind)];
}

class ExchangePlanner {
 public:
  ExchangePlanner(Plan& plan, const Machine& machine, const DeviceGroups& groups,
                  const GraphSchedule& schedule, const ExchangeOptions& communication,
                  std::int64_t micro_batches, PartLayouts* layouts)
      : plan_(plan),
        machine_(machine),
        groups_(groups),
        schedule_(schedule),
        how_(communication),
        micro_batches_(micro_batches),
        layouts_(layouts),
        devices_(groups.front().front().size()) {}

  ExchangeComms build() {
    rings_.resize(groups_.size());
    const std::size_t count = schedule_.exchanges.size();
    ExchangeComms comms(static_cast<std::size_t>(micro_batches_), std::vector<CommId>(count, none));
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
        if (!patterns[e]) continue;
        comms[static_cast<std::size_t>(m)][e] =
            add_communication(fmt::format("{} of {}{}", name_of_exchange(exchange.kind), exchange.tensor,
                                          micro_batches_ > 1 ? fmt::format(", micro-batch {}", m) : ""),
                              *patterns[e], exchange.bytes);
        if (layouts_) mean(exchange, m);
      }
    return comms;
  }

 private:
  using Exchange = GraphSchedule::Exchange;
  using Kind = Exchange::Kind;
  static constexpr CommId none = GraphSchedule::none;

  std::uint32_t add_pattern(Pattern pattern) {
    for (std::uint32_t p = 0; p < plan_.patterns.size(); ++p)
      if (plan_.patterns[p].groups == pattern.groups && plan_.patterns[p].rounds == pattern.rounds) return p;
    plan_.patterns.push_back(std::move(pattern));
    return static_cast<std::uint32_t>(plan_.patterns.size() - 1);
  }

  CommId add_communication(std::string name, std::uint32_t pattern, double bytes) {
    plan_.communications.push_back(
        {std::move(name), pattern, bytes, how_.sync.fidelity, machine_.collective_overhead_s});
    return static_cast<CommId>(plan_.communications.size() - 1);
  }

  /// Of the communication that was added last.
  void mean(const Exchange& exchange, std::int64_t micro_batch) {
    CommMeaning meaning = layouts_->of_exchange(exchange);
    meaning.micro_batch = micro_batch;
    meaning.images = images_of_groups(schedule_, groups_.front().size(), micro_batch);
    plan_.communications.back().meaning = static_cast<std::uint32_t>(plan_.meaning->communications.size());
    plan_.meaning->communications.push_back(std::move(meaning));
  }

  const std::vector<std::vector<std::uint32_t>>& rings(std::uint32_t stage) {
    if (rings_[stage].empty()) rings_[stage] = find_rings(groups_[stage].front(), machine_, how_.sync.rings);
    return rings_[stage];
  }

  std::vector<Round> rounds(const Exchange& exchange) {
    const std::uint32_t stage = schedule_.steps[exchange.after].stage;
    const Shards* shards = shards_in_rings(exchange);
    const bool rotating = rotates();
    const bool listed = shards ? !is_even(*shards) && !rotating
                               : exchange.kind != Kind::all_reduce && !is_all_to_all(exchange);
    if (listed && devices_ * devices_ > largest_exchange)
      throw InputError(how_.pos, fmt::format("strategy: groups of {} devices are too large for the {} of {}; "
                                             "use replicas",
                                             devices_, name_of_exchange(exchange.kind), exchange.tensor));
    switch (exchange.kind) {
      case Kind::all_gather:
        if (const std::optional<std::uint32_t> owner = only_owner(*shards))
          return at_once(star(*owner, true));
        return ring_all_gather(rings(stage), *shards, rotating);
      case Kind::reduce_scatter:
        if (const std::optional<std::uint32_t> owner = only_owner(*shards))
          return at_once(star(*owner, false));
        return ring_reduce_scatter(rings(stage), *shards, rotating);
      case Kind::all_reduce:
        check_all_reduce(how_.sync, groups_[stage].front(), machine_);
        return all_reduce_pattern(how_.sync.algorithm,
                                  slowest_group(how_.sync.algorithm, groups_[stage], machine_, exchange.bytes,
                                                how_.sync.rings),
                                  machine_, exchange.bytes, how_.sync.rings)
            .rounds;
      case Kind::all_to_all:
        return split_anew(exchange.from, exchange.to, devices_);
      case Kind::halo:
      case Kind::halo_back:
        break;
    }
    TrafficMatrix traffic(devices_, std::vector<double>(devices_, 0.0));
    for (std::size_t i = 0; i < devices_; ++i)
      for (std::size_t j = 0; j < devices_; ++j)
        (exchange.kind == Kind::halo ? traffic[i][j] : traffic[j][i]) =
            exchange.halo->positions[i][j] / exchange.halo_size;
    return at_once(traffic);
  }

  /// What goes around rings; nullptr: the exchange does not.
  static const Shards* shards_in_rings(const Exchange& exchange) {
    return exchange.kind == Kind::all_gather       ? exchange.from.shards.get()
           : exchange.kind == Kind::reduce_scatter ? exchange.to.shards.get()
                                                   : nullptr;
  }
  static bool is_even(const Shards& shards) {
    return std::all_of(shards.counts.begin(), shards.counts.end(),
                       [&](std::int64_t count) { return count == shards.counts.front(); });
  }

  /// Whether shares of different sizes go around rings as one round: where they are more messages than are
  /// replayed one by one, so that nobody will ask for each of them.
  bool rotates() const {
    if (how_.sync.fidelity == Fidelity::chunk || plan_.meaning) return false;
    double messages = 0;
    for (const Exchange& exchange : schedule_.exchanges)
      if (const Shards* shards = shards_in_rings(exchange);
          exchange.is_needed() && exchange.bytes > 0 && shards && !is_even(*shards) && !only_owner(*shards))
        messages += static_cast<double>(devices_) * static_cast<double>(devices_ - 1) *
                    static_cast<double>(micro_batches_);
    return messages > most_messages_one_by_one;
  }

  /// Whether its messages are a Round::all_to_all that nobody has to list.
  bool is_all_to_all(const Exchange& exchange) const {
    if (exchange.kind != Kind::all_to_all || !crosses(exchange.from, exchange.to)) return false;
    std::vector<LinkId> out, in;
    Route way;
    machine_.router->route(0, static_cast<EndpointId>(machine_.devices.size() - 1), way);
    return machine_.router->halves(groups_.front().front().front(), out, in) &&
           std::isinf(way.connection_Bps);
  }

  /// The device that has all there is, if one has.
  static std::optional<std::uint32_t> only_owner(const Shards& shards) {
    for (std::uint32_t d = 0; d < shards.counts.size(); ++d)
      if (shards.counts[d] == shards.size) return d;
    return std::nullopt;
  }
  TrafficMatrix star(std::uint32_t hub, bool out) const {
    TrafficMatrix traffic(devices_, std::vector<double>(devices_, 0.0));
    for (std::uint32_t d = 0; d < devices_; ++d)
      if (d != hub) (out ? traffic[hub][d] : traffic[d][hub]) = 1;
    return traffic;
  }

  Plan& plan_;
  const Machine& machine_;
  const DeviceGroups& groups_;
  const GraphSchedule& schedule_;
  const ExchangeOptions& how_;
  std::int64_t micro_batches_;
  PartLayouts* layouts_;                                        ///< nullptr: nobody asks what they carry
  std::size_t devices_;                                         ///< of a group
  std::vector<std::vector<std::vector<std::uint32_t>>> rings_;  ///< by stage, of its first group
};

}  // namespace

ExchangeComms add_exchanges(Plan& plan, const Machine& machine, const DeviceGroups& groups,
                            const GraphSchedule& schedule, const ExchangeOptions& communication,
                            std::int64_t micro_batches, PartLayouts* layouts) {
  return ExchangePlanner(plan, machine, groups, schedule, communication, micro_batches, layouts).build();
}

}  // namespace convoy::lowering
