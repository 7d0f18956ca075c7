// SPDX-License-Identifier: MIT
#include "strategies/hybrid/hybrid_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "strategies/data_parallel/buckets.h"
#include "strategies/hybrid/hybrid_work.h"
#include "strategies/plan_ops.h"
#include "strategies/replicas.h"

namespace convoy {
namespace {

using Exchange = HybridSchedule::Exchange;
using Kind = Exchange::Kind;
constexpr std::uint32_t none = HybridSchedule::none;
enum Stream : int { computing, summing, exchanging };
/// Of one round: beyond it a plan takes gigabytes.
constexpr std::size_t largest_exchange = std::size_t{1} << 22;

std::string_view to_string(Kind kind) {
  static constexpr std::array<std::string_view, 6> names{
      "all-gather", "reduce-scatter", "all-reduce", "all-to-all", "halo exchange", "halo exchange back"};
  return names[static_cast<std::size_t>(kind)];
}

/// Gradients that are summed together, at one time on all devices.
struct Sum {
  std::string name;
  std::uint32_t ready = 0;    ///< the step that completes the last of them
  std::vector<CommId> comms;  ///< by device of a group; none: nothing to sum
  std::vector<std::size_t> parameters;
};

class Builder {
 public:
  Builder(const StrategyInput& input, std::size_t replicas, const std::vector<LayerSpread>& spreads,
          const HybridSchedule& schedule, const HybridCommunication& communication)
      : input_(input),
        graph_(input.graph),
        spreads_(spreads),
        schedule_(schedule),
        how_(communication),
        devices_(input.machine.devices.size() / replicas) {
    for (std::size_t r = 0; r < replicas; ++r) {
      groups_.emplace_back();
      for (std::size_t d = 0; d < devices_; ++d)
        groups_.back().push_back(static_cast<EndpointId>(r * devices_ + d));
    }
  }

  Plan build() {
    plan_.images = schedule_.parts.front().total() * static_cast<double>(groups_.size());
    add_exchanges();
    add_sums();
    for (const auto& [key, members] : alike()) plan_.roles.push_back(role(key.first, members));
    describe();
    return std::move(plan_);
  }

 private:
  // Communications.

  std::uint32_t add_pattern(Pattern pattern) {
    for (std::uint32_t p = 0; p < plan_.patterns.size(); ++p)
      if (plan_.patterns[p].groups == pattern.groups && is_same(plan_.patterns[p].rounds, pattern.rounds))
        return p;
    plan_.patterns.push_back(std::move(pattern));
    return static_cast<std::uint32_t>(plan_.patterns.size() - 1);
  }
  static bool is_same(const std::vector<Round>& a, const std::vector<Round>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Round& x, const Round& y) {
      return x.repeat == y.repeat && x.fractions == y.fractions && x.pairs == y.pairs;
    });
  }

  CommId add_communication(std::string name, Pattern pattern, double bytes) {
    const std::uint32_t id = add_pattern(std::move(pattern));
    plan_.communications.push_back(
        {std::move(name), id, bytes, how_.fidelity, input_.machine.collective_overhead_s});
    return static_cast<CommId>(plan_.communications.size() - 1);
  }

  const std::vector<std::vector<std::uint32_t>>& rings() {
    if (rings_.empty()) rings_ = find_rings(groups_.front(), input_.machine, how_.rings);
    return rings_;
  }

  std::vector<Round> rounds(const Exchange& exchange) {
    const bool in_rings = exchange.kind == Kind::all_gather || exchange.kind == Kind::reduce_scatter;
    const Cut* cut = exchange.kind == Kind::all_gather       ? exchange.from.cut.get()
                     : exchange.kind == Kind::reduce_scatter ? exchange.to.cut.get()
                                                             : nullptr;
    const bool even = cut && cut->counts.front() == cut->counts.back() &&
                      std::all_of(cut->counts.begin(), cut->counts.end(),
                                  [&](std::int64_t count) { return count == cut->counts.front(); });
    if ((in_rings ? !even : exchange.kind != Kind::all_reduce) && devices_ * devices_ > largest_exchange)
      throw InputError(how_.pos, fmt::format("strategy: groups of {} devices are too large for the {} of {}; "
                                             "use replicas",
                                             devices_, to_string(exchange.kind), exchange.tensor));
    switch (exchange.kind) {
      case Kind::all_gather:
        if (const std::optional<std::uint32_t> owner = only_owner(*cut)) return at_once(star(*owner, true));
        return ring_all_gather(rings(), *cut);
      case Kind::reduce_scatter:
        if (const std::optional<std::uint32_t> owner = only_owner(*cut)) return at_once(star(*owner, false));
        return ring_reduce_scatter(rings(), *cut);
      case Kind::all_reduce:
        return all_reduce_pattern(how_.algorithm, groups_.front(), input_.machine, exchange.bytes, how_.rings)
            .rounds;
      case Kind::all_to_all:
        return at_once(moved(exchange.from, exchange.to, devices_));
      case Kind::halo:
      case Kind::halo_back:
        break;
    }
    Traffic traffic(devices_, std::vector<double>(devices_, 0.0));
    for (std::size_t i = 0; i < devices_; ++i)
      for (std::size_t j = 0; j < devices_; ++j)
        (exchange.kind == Kind::halo ? traffic[i][j] : traffic[j][i]) =
            exchange.halo->rows[i][j] / exchange.halo_size;
    return at_once(traffic);
  }

  /// The device that has all there is, if one has.
  static std::optional<std::uint32_t> only_owner(const Cut& cut) {
    for (std::uint32_t d = 0; d < cut.counts.size(); ++d)
      if (cut.counts[d] == cut.size) return d;
    return std::nullopt;
  }
  Traffic star(std::uint32_t hub, bool out) const {
    Traffic traffic(devices_, std::vector<double>(devices_, 0.0));
    for (std::uint32_t d = 0; d < devices_; ++d)
      if (d != hub) (out ? traffic[hub][d] : traffic[d][hub]) = 1;
    return traffic;
  }

  void add_exchanges() {
    comm_of_.assign(schedule_.exchanges.size(), none);
    for (std::uint32_t e = 0; e < schedule_.exchanges.size(); ++e) {
      const Exchange& exchange = schedule_.exchanges[e];
      if (!exchange.awaited || exchange.bytes == 0) continue;
      std::vector<Round> rounds = this->rounds(exchange);
      if (rounds.empty()) continue;
      comm_of_[e] = add_communication(fmt::format("{} of {}", to_string(exchange.kind), exchange.tensor),
                                      {groups_, std::move(rounds)}, exchange.bytes);
    }
  }

  // Weights that all devices share are summed over all of them; what each has a share of, and what all of a
  // group compute alike, over the replicas.

  bool is_summed_by_all(std::size_t layer) const {
    const Layout layout = spreads_[layer].layout;
    return devices_ == 1 || layout == Layout::batch || layout == Layout::height || layout == Layout::width;
  }

  double elements_on(std::size_t parameter, std::size_t device) const {
    const Parameter& p = graph_.parameters[parameter];
    const Layer& layer = graph_.model.layers[p.layer];
    for (const ParameterTensor& tensor : layer.parameters)
      if (layer.name + "." + tensor.name == p.name)
        return parameters_on(layer, spreads_[p.layer], tensor, device);
    return 0;
  }

  void add_sums() {
    if (input_.machine.devices.size() == 1) return;
    std::vector<double> everywhere(graph_.parameters.size(), 0.0), of_share = everywhere;
    for (std::size_t p = 0; p < graph_.parameters.size(); ++p)
      (is_summed_by_all(graph_.parameters[p].layer) ? everywhere : of_share)[p] = elements_on(p, 0);
    std::vector<EndpointId> all(input_.machine.devices.size());
    for (EndpointId d = 0; d < all.size(); ++d) all[d] = d;
    for (const Bucket& bucket : fill_buckets(graph_, how_.bucket_bytes, everywhere)) {
      Sum& sum = add_sum(bucket, "all-reduce bucket");
      sum.comms.assign(devices_, add_communication(sum.name, all_reduce(all, bucket.bytes), bucket.bytes));
    }
    if (groups_.size() > 1)
      for (const Bucket& bucket : fill_buckets(graph_, how_.bucket_bytes, of_share))
        sum_over_replicas(bucket);
    std::stable_sort(sums_.begin(), sums_.end(),
                     [](const Sum& a, const Sum& b) { return a.ready < b.ready; });
  }

  Pattern all_reduce(const std::vector<EndpointId>& ranks, double bytes) const {
    return all_reduce_pattern(how_.algorithm, ranks, input_.machine, bytes, how_.rings);
  }

  Sum& add_sum(const Bucket& bucket, std::string_view what) {
    Sum& sum = sums_.emplace_back();
    sum.name = fmt::format("{} {}", what, sums_.size() - 1);
    sum.ready = schedule_.last_step[bucket.ready];
    sum.parameters = bucket.parameters;
    return sum;
  }

  /// One communication for each size of the devices' shares.
  void sum_over_replicas(const Bucket& bucket) {
    std::map<double, std::vector<std::size_t>> by_bytes;
    for (std::size_t d = 0; d < devices_; ++d) {
      double elements = 0;
      for (const std::size_t p : bucket.parameters) elements += elements_on(p, d);
      by_bytes[elements * element_bytes(graph_.options.precision)].push_back(d);
    }
    Sum& sum = add_sum(bucket, "all-reduce over replicas, bucket");
    sum.comms.assign(devices_, none);
    for (const auto& [bytes, devices] : by_bytes) {
      if (bytes == 0) continue;
      Pattern pattern;
      for (const std::size_t d : devices) {
        std::vector<EndpointId> ranks;
        for (const std::vector<EndpointId>& group : groups_) ranks.push_back(group[d]);
        if (pattern.rounds.empty()) pattern.rounds = all_reduce(ranks, bytes).rounds;
        pattern.groups.push_back(std::move(ranks));
      }
      const CommId comm = add_communication(sum.name, std::move(pattern), bytes);
      for (const std::size_t d : devices) sum.comms[d] = comm;
    }
  }

  // What a reader wants to know of it.

  double sent_bytes(CommId comm) const {
    const Communication& c = plan_.communications[comm];
    const Pattern& pattern = plan_.patterns[c.pattern];
    double fractions = 0;
    for (const Round& round : pattern.rounds)
      for (std::size_t k = 0; k < round.pairs.size(); ++k) fractions += round.fraction(k) * round.repeat;
    return c.bytes * fractions * static_cast<double>(pattern.groups.size());
  }

  void describe() {
    std::vector<double> exchanged(spreads_.size(), 0.0), summed = exchanged;
    for (std::size_t e = 0; e < comm_of_.size(); ++e)
      if (comm_of_[e] != none) exchanged[schedule_.exchanges[e].layer] += sent_bytes(comm_of_[e]);
    for (const Sum& sum : sums_) {
      double elements = 0;
      for (const std::size_t p : sum.parameters) elements += elements_on(p, 0);
      for (const CommId comm : std::set<CommId>(sum.comms.begin(), sum.comms.end()))
        for (const std::size_t p : sum.parameters)
          if (comm != none)
            summed[graph_.parameters[p].layer] += sent_bytes(comm) * elements_on(p, 0) / elements;
    }
    for (std::size_t i = 0; i < spreads_.size(); ++i) {
      const std::string_view layout = convoy::to_string(spreads_[i].layout);
      if (plan_.layouts.empty() || plan_.layouts.back().layout != layout)
        plan_.layouts.push_back({std::string(layout), {}});
      LayerGroup& group = plan_.layouts.back();
      group.layers.push_back(graph_.model.layers[i].name);
      double most = 0;
      for (std::size_t d = 0; d < devices_; ++d)
        most = std::max(most, parameters_on(graph_.model.layers[i], spreads_[i], d));
      group.parameter_bytes += most * element_bytes(graph_.options.precision);
      group.exchange_bytes += exchanged[i];
      group.gradient_bytes += summed[i];
    }
  }

  // Roles: devices of one type whose shares are the same everywhere.

  using Key = std::pair<std::size_t, std::uint32_t>;  ///< first device of a group that is like it, type

  std::map<Key, std::vector<EndpointId>> alike() const {
    std::map<std::vector<std::int64_t>, std::size_t> first;
    std::vector<std::size_t> like(devices_);
    const std::vector<const std::vector<std::int64_t>*> counts = all_counts();
    for (std::size_t d = 0; d < devices_; ++d) {
      std::vector<std::int64_t> shares;
      for (const std::vector<std::int64_t>* each : counts) shares.push_back((*each)[d]);
      for (const Sum& sum : sums_) shares.push_back(sum.comms[d]);
      like[d] = first.emplace(std::move(shares), d).first->second;
    }
    std::map<Key, std::vector<EndpointId>> roles;
    for (std::size_t d = 0; d < devices_; ++d)
      for (const std::vector<EndpointId>& group : groups_)
        roles[{like[d], input_.machine.devices[group[d]].type}].push_back(group[d]);
    for (auto& [key, members] : roles) std::sort(members.begin(), members.end());
    return roles;
  }

  /// Everything by which devices may differ, each once.
  std::vector<const std::vector<std::int64_t>*> all_counts() const {
    std::vector<const std::vector<std::int64_t>*> counts;
    std::set<const void*> known;
    const auto add = [&](const std::vector<std::int64_t>& each) {
      if (known.insert(&each).second) counts.push_back(&each);
    };
    const auto add_spread = [&](const Spread& spread) {
      if (spread.cut) add(spread.cut->counts);
    };
    for (const LayerSpread& spread : spreads_) {
      add_spread(spread.output);
      for (const InputSpread& in : spread.inputs) {
        add_spread(in.needed);
        if (in.halo) add(in.halo->counts);
      }
    }
    for (const ImagePart& part : schedule_.parts) {
      add(part.images.counts);
      add(part.loss.counts);
    }
    return counts;
  }

  Role role(std::size_t device, const std::vector<EndpointId>& members) {
    const Device& first = input_.machine.devices[members.front()];
    Role role = replica_role(input_, {first.type, 0, members}, true, input_.machine.devices.size());
    role.name = fmt::format("like {}", first.name);
    role.streams = {"compute", "all-reduce of gradients", "exchange"};
    double parameters = 0;
    for (std::size_t i = 0; i < spreads_.size(); ++i)
      parameters += parameters_on(graph_.model.layers[i], spreads_[i], device);
    const double reserved = role.resident_bytes[static_cast<std::size_t>(MemoryClass::reserved)];
    role.resident_bytes = resident_bytes(parameters, graph_.options);
    role.resident_bytes[static_cast<std::size_t>(MemoryClass::reserved)] += reserved;
    add_program(role, device);
    return role;
  }

  /// What happens to memory at each time (HybridSchedule::Copy).
  struct MemoryTimes {
    std::map<std::uint32_t, std::vector<MemoryDelta>> allocates, frees;
  };
  static void add(std::vector<MemoryDelta>& deltas, MemoryClass memory_class, double bytes) {
    for (MemoryDelta& delta : deltas)
      if (delta.memory_class == memory_class) {
        delta.bytes += bytes;
        return;
      }
    deltas.push_back({memory_class, bytes});
  }
  MemoryTimes memory(std::size_t device) const {
    MemoryTimes times;
    for (const HybridSchedule::Copy& copy : schedule_.copies) {
      const double bytes = schedule_.bytes(copy, device);
      if (copy.first == none || bytes == 0) continue;
      add(times.allocates[copy.first], copy.memory_class, bytes);
      add(times.frees[copy.last], copy.memory_class, bytes);
    }
    return times;
  }
  static std::vector<MemoryDelta> at(const std::map<std::uint32_t, std::vector<MemoryDelta>>& times,
                                     std::uint32_t time) {
    const auto it = times.find(time);
    return it == times.end() ? std::vector<MemoryDelta>{} : it->second;
  }

  void add_program(Role& role, std::size_t device) const {
    const MemoryTimes memory = this->memory(device);
    std::vector<std::vector<std::uint32_t>> starts(schedule_.steps.size());
    for (std::uint32_t e = 0; e < schedule_.exchanges.size(); ++e)
      if (comm_of_[e] != none) starts[schedule_.exchanges[e].after].push_back(e);
    std::vector<TaskId> task_of(schedule_.exchanges.size(), 0);
    std::vector<TaskId> after;
    std::vector<PlanOp> ops;
    std::optional<TaskId> last;
    const auto close = [&] {
      if (ops.empty()) return;
      std::string name = fmt::format("compute up to {}", ops.back().name);
      last = add_compute(role, std::move(name), std::move(ops), std::move(after));
      ops.clear();
      after.clear();
    };
    const auto collective = [&](const std::string& name, Stream stream, CommId comm,
                                std::vector<TaskId> before) {
      const TaskId task = add_message(role, Task::Kind::collective, name, comm, std::move(before));
      role.program.back().stream = stream;
      return task;
    };
    std::vector<TaskId> before_update;
    std::size_t next_sum = 0;
    for (std::uint32_t s = 0; s < schedule_.steps.size(); ++s) {
      const HybridSchedule::Step& step = schedule_.steps[s];
      for (const std::uint32_t e : step.waits)
        if (comm_of_[e] != none) {
          close();
          after.push_back(task_of[e]);
        }
      ops.push_back(operation(step, device));
      ops.back().allocates = at(memory.allocates, 2 * s);
      ops.back().frees = at(memory.frees, 2 * s);
      std::vector<MemoryDelta> buffers = at(memory.allocates, 2 * s + 1);
      if (!buffers.empty()) ops.push_back(memory_op("buffers of " + ops.back().name, std::move(buffers), {}));
      for (const std::uint32_t e : starts[s]) {
        close();
        std::vector<TaskId> before{*last};
        for (const std::uint32_t earlier : schedule_.exchanges[e].after_exchanges)
          if (comm_of_[earlier] != none) before.push_back(task_of[earlier]);
        task_of[e] = collective(plan_.communications[comm_of_[e]].name, exchanging, comm_of_[e], before);
      }
      for (; how_.overlap && next_sum < sums_.size() && sums_[next_sum].ready == s; ++next_sum) {
        if (sums_[next_sum].comms[device] == none) continue;
        close();
        before_update.push_back(
            collective(sums_[next_sum].name, summing, sums_[next_sum].comms[device], {*last}));
      }
    }
    close();
    if (last) before_update.insert(before_update.begin(), *last);
    for (; next_sum < sums_.size(); ++next_sum)
      if (sums_[next_sum].comms[device] != none)
        before_update.push_back(
            collective(sums_[next_sum].name, summing, sums_[next_sum].comms[device], {*last}));
    add_compute(role, "update", updates(device), std::move(before_update));
  }

  PlanOp operation(const HybridSchedule::Step& step, std::size_t device) const {
    ShareOfWork share = share_of(graph_, spreads_, schedule_, step, device);
    const std::string& name = graph_.operations[step.op].name;
    return {
        step.part == 0 ? name : fmt::format("{} #{}", name, step.part - 1), share.work, share.images, {}, {}};
  }

  std::vector<PlanOp> updates(std::size_t device) const {
    std::vector<PlanOp> ops;
    for (OpId id = 0; id < graph_.operations.size(); ++id)
      if (graph_.operations[id].phase == Phase::update)
        ops.push_back({graph_.operations[id].name, share_of_update(graph_, spreads_, id, device), 1, {}, {}});
    return ops;
  }

  const StrategyInput& input_;
  const TrainingGraph& graph_;
  const std::vector<LayerSpread>& spreads_;
  const HybridSchedule& schedule_;
  const HybridCommunication& how_;
  std::size_t devices_;                          ///< of a group
  std::vector<std::vector<EndpointId>> groups_;  ///< by replica
  std::vector<std::vector<std::uint32_t>> rings_;
  Plan plan_;
  std::vector<CommId> comm_of_;  ///< by exchange
  std::vector<Sum> sums_;
};

}  // namespace

Plan plan_hybrid(const StrategyInput& input, std::size_t replicas, const std::vector<LayerSpread>& spreads,
                 const HybridSchedule& schedule, const HybridCommunication& communication) {
  return Builder(input, replicas, spreads, schedule, communication).build();
}

}  // namespace convoy
