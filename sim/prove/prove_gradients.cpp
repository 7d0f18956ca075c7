// SPDX-License-Identifier: MIT
#include "sim/prove/prove_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/low_rank_shape.h"
#include "sim/prove/image_cover.h"
#include "sim/prove/prove_averages.h"

namespace convoy::inline prove {
namespace {

using Kind = CommMeaning::Kind;
using Act = OpMeaning::Act;

/// An operation of a role's program.
struct Event {
  TaskId task;
  std::uint32_t place;  ///< of its task among the compute tasks
  std::size_t number;   ///< among all operations of the program
  OpId operation = no_meaning;
  std::int64_t micro_batch = 0;
  ImageRange images{};
};

/// What a role's program does with a bucket of gradients or parameters.
struct BucketUse {
  std::array<std::vector<Event>, OpMeaning::act_count> acts;  ///< by Act
  std::vector<Event> forgets;
  std::vector<TaskId> sums, scatters, gathers;  ///< gathers of parameters
  std::vector<TaskId> factor_sums;              ///< of second factors
  std::vector<TaskId> averages;                 ///< of parameters, with all or with neighbours
};

/// What a role's program does with parameters.
struct RoleUse {
  std::map<std::uint32_t, std::vector<Event>> reads, gradients, updates;  ///< by layer
  std::map<std::uint32_t, BucketUse> buckets;
  std::map<std::size_t, std::set<std::uint32_t>> buckets_of;  ///< by parameter
};

class GradientProver {
 public:
  GradientProver(const Plan& plan, const StrategyReport& report, const TrainingGraph& graph,
                 const Machine& machine, const HappensBefore& order, RoundRules& rounds)
      : plan_(plan),
        meaning_(*plan.meaning),
        graph_(graph),
        machine_(machine),
        order_(order),
        rounds_(rounds) {
    for (const Layer& layer : graph.model.layers) has_parameters_.push_back(layer.trains());
    completes_.assign(graph.operations.size(), false);
    for (const Parameter& parameter : graph.parameters) completes_[parameter.gradient] = true;
    std::vector<std::size_t> versions(machine.endpoint_count(), 1);
    for (const PipelineStage& stage : report.stages)
      for (const EndpointId e : stage.devices) versions[e] = stage.weight_versions;
    for (std::uint32_t r = 0; r < plan.roles.size(); ++r) {
      uses_.push_back(find_uses(r));
      versions_.push_back(versions[plan.roles[r].members.front()]);
    }
  }

  void prove() {
    std::map<std::uint32_t, std::vector<std::uint32_t>> replicas;  // by layer
    for (std::uint32_t r = 0; r < uses_.size(); ++r) {
      for (const auto& [layer, events] : uses_[r].updates) replicas[layer].push_back(r);
      for (const auto* all : {&uses_[r].reads, &uses_[r].gradients})
        for (const auto& [layer, events] : *all)
          if (!uses_[r].updates.contains(layer))
            throw Refuted(fmt::format("{}: {} is never updated", name_of(plan_.roles[r], machine_),
                                      graph_.model.layers[layer].name));
    }
    for (const Parameter& parameter : graph_.parameters)
      if (!replicas.contains(parameter.layer))
        throw Refuted(fmt::format("nobody updates {}", parameter.name));
    for (const auto& [layer, roles] : replicas) {
      for (const std::uint32_t r : roles) check_updates(r, layer, uses_[roles.front()].updates[layer].size());
      check_images(layer, roles);
    }
    for (std::size_t p = 0; p < graph_.parameters.size(); ++p)
      check_replicas(p, replicas[graph_.parameters[p].layer]);
    for (std::uint32_t r = 0; r < uses_.size(); ++r)
      for (const auto& [bucket, use] : uses_[r].buckets) check_bucket(r, bucket, use);
  }

 private:
  std::string at(std::uint32_t r, TaskId t) const { return name_of(plan_.roles[r], t, machine_); }
  std::string comm_name(std::uint32_t r, TaskId t) const {
    return plan_.communications[plan_.roles[r].program[t].comm].name;
  }
  const RoleOrder& order(std::uint32_t r) const { return order_.of(r); }

  RoleUse find_uses(std::uint32_t r) const {
    RoleUse use;
    std::size_t number = 0;
    for (TaskId t = 0; t < plan_.roles[r].program.size(); ++t) {
      const Task& task = plan_.roles[r].program[t];
      for (const PlanOp& op : task.ops) {
        ++number;
        if (op.meaning == no_meaning) continue;
        const OpMeaning& means = meaning_.operations[op.meaning];
        const Event event{t, order(r).begins[t], number, means.operation, means.micro_batch, means.images};
        if (means.forgets != no_meaning) use.buckets[means.forgets].forgets.push_back(event);
        if (means.act != Act::compute)
          use.buckets[means.bucket].acts.at(static_cast<std::size_t>(means.act)).push_back(event);
        else if (means.operation != no_meaning)
          add_event(use, event);
      }
      if (task.kind == Task::Kind::collective) add_collective(use, t, plan_.communications[task.comm]);
    }
    for (const auto& [bucket, of] : use.buckets)
      for (const std::size_t p : meaning_.buckets[bucket].parameters) use.buckets_of[p].insert(bucket);
    return use;
  }

  void add_event(RoleUse& use, const Event& event) const {
    const Operation& operation = graph_.operations[event.operation];
    if (operation.part != OperationPart::layer || !has_parameters_[operation.layer]) return;
    const Layer& layer = graph_.model.layers[operation.layer];
    const std::uint32_t owner =
        layer.shares() ? static_cast<std::uint32_t>(layer.weights_of) : operation.layer;
    if (operation.phase == Phase::update)
      use.updates[owner].push_back(event);
    else if (completes_[event.operation])
      use.gradients[owner].push_back(event);
    if (operation.phase == Phase::forward || operation.phase == Phase::data_gradient)
      use.reads[owner].push_back(event);
  }

  void add_collective(RoleUse& use, TaskId t, const Communication& comm) const {
    if (comm.meaning == no_meaning) throw NotCovered(fmt::format("what '{}' carries is not said", comm.name));
    const CommMeaning& carries = meaning_.communications[comm.meaning];
    BucketUse& of = use.buckets[carries.bucket];
    switch (carries.kind) {
      case Kind::push:
      case Kind::pull:
      case Kind::collect:
      case Kind::hand_out:
        throw NotCovered(fmt::format("'{}' is a message of servers in a collective", comm.name));
      case Kind::results:
      case Kind::parts:
        throw NotCovered(fmt::format("'{}' carries results of operations in a collective", comm.name));
      case Kind::sum:
      case Kind::gather_gradients:
        of.sums.push_back(t);
        break;
      case Kind::sum_factors:
        of.factor_sums.push_back(t);
        break;
      case Kind::average:
      case Kind::exchange:
        of.averages.push_back(t);
        break;
      case Kind::scatter:
        of.scatters.push_back(t);
        break;
      case Kind::gather_parameters:
        of.gathers.push_back(t);
        break;
    }
  }

  /// Which update gets a gradient: that before which it was added up last.
  std::size_t update_of(std::uint32_t r, std::uint32_t layer, const Event& gradient) {
    const std::vector<Event>& updates = uses_[r].updates[layer];
    return static_cast<std::size_t>(
        std::upper_bound(updates.begin(), updates.end(), gradient.number,
                         [](std::size_t number, const Event& update) { return number < update.number; }) -
        updates.begin());
  }

  /// All replicas together have, for one update after the other, the gradients of the images from where the
  /// update before has ended, each once: in a step the global batch. Of a run that goes on, what comes after
  /// the last update is left out.
  void check_images(std::uint32_t layer, const std::vector<std::uint32_t>& roles) {
    const std::size_t updates = uses_[roles.front()].updates[layer].size();
    std::vector<double> signature{static_cast<double>(updates)};
    for (const std::uint32_t r : roles) {
      signature.push_back(r);
      for (const Event& event : uses_[r].gradients[layer])
        signature.insert(signature.end(), {event.images.first, event.images.count,
                                           static_cast<double>(update_of(r, layer, event))});
    }
    if (!known_images_.insert(std::move(signature)).second) return;
    std::vector<std::vector<std::pair<double, double>>> parts(updates);  // by update: first image, count
    for (const std::uint32_t r : roles)
      for (const Event& event : uses_[r].gradients[layer]) {
        const std::size_t update = update_of(r, layer, event);
        for (const EndpointId e : plan_.roles[r].members)
          if (event.images.count > 0 && update < updates)
            parts[update].emplace_back(event.images.first + meaning_.lanes[e] * event.images.count,
                                       event.images.count);
      }
    const std::string name = graph_.model.layers[layer].name;
    const double tolerance = 1e-9 * (1 + plan_.images);
    double end = 0;
    std::vector<double> ends;  // by update
    for (std::vector<std::pair<double, double>>& of_update : parts)
      ends.push_back(end = end_of_images(of_update, end, tolerance, name));
    if (const auto [it, fresh] = ends_.try_emplace(roles, ends); !fresh && it->second != ends)
      throw Refuted(
          fmt::format("{}: updates of {} have the gradients of other images than those of other layers",
                      name_of(plan_.roles[roles.front()], machine_), name));
    if (!plan_.endless() && std::abs(end - plan_.images * plan_.steps) > tolerance)
      throw Refuted(fmt::format("the gradients of {} are of {} images, and the batch has {}", name, end,
                                plan_.images * plan_.steps));
  }

  /// A step has one update, after all that reads the old version. A run that goes on has many: forward and
  /// backward pass read one version of those kept, and no gradient is older than they are when it is used.
  void check_updates(std::uint32_t r, std::uint32_t layer, std::size_t updates_of_others) {
    const std::vector<Event>& updates = uses_[r].updates[layer];
    const std::string& name = graph_.model.layers[layer].name;
    if (updates.size() != updates_of_others)
      throw Refuted(fmt::format("{}: {} is updated {} times, and elsewhere {} times", at(r, updates[0].task),
                                name, updates.size(), updates_of_others));
    if (!plan_.endless() && static_cast<double>(updates.size()) != plan_.steps)
      throw Refuted(
          fmt::format("{}: {} is updated {} times", at(r, updates.back().task), name, updates.size()));
    std::map<std::int64_t, std::size_t> oldest;  // by micro-batch: updates before the first to read
    std::vector<const Event*> all;
    for (const auto* events : {&uses_[r].reads[layer], &uses_[r].gradients[layer]})
      for (const Event& event : *events) all.push_back(&event);
    std::sort(all.begin(), all.end(), [](const Event* a, const Event* b) { return a->number < b->number; });
    const std::vector<std::size_t> versions = version_numbers(r, layer);
    for (const Event* event : all) {
      const auto update = static_cast<std::size_t>(
          std::upper_bound(versions.begin(), versions.end(), event->number) - versions.begin());
      if (!plan_.endless() && plan_.steps == 1 && update > 0 && update > averages_before(r, layer, *event))
        throw Refuted(fmt::format("{}: {} comes after the update of {}, of whose old version it is",
                                  at(r, event->task), graph_.operations[event->operation].name, name));
      const std::size_t missed = update - oldest.try_emplace(event->micro_batch, update).first->second;
      if (missed >= versions_[r])
        throw Refuted(fmt::format(
            "{}: {} comes {} after the version that its micro-batch began with; {} kept", at(r, event->task),
            graph_.operations[event->operation].name, count_of(missed, "update"),
            versions_[r] == 1 ? "only the newest is" : fmt::format("{} are", versions_[r])));
    }
  }
  /// Numbers of the operations that change a layer's parameters: updates, and averages.
  std::vector<std::size_t> version_numbers(std::uint32_t r, std::uint32_t layer) {
    std::vector<std::size_t> numbers = average_numbers(r, layer);
    for (const Event& update : uses_[r].updates[layer]) numbers.push_back(update.number);
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  }
  std::vector<std::size_t> average_numbers(std::uint32_t r, std::uint32_t layer) const {
    std::vector<std::size_t> numbers;
    for (const auto& [id, use] : uses_[r].buckets) {
      const std::vector<std::size_t>& of = meaning_.buckets[id].parameters;
      if (std::any_of(of.begin(), of.end(),
                      [&](std::size_t p) { return graph_.parameters[p].layer == layer; }))
        for (const Act act : {Act::mean, Act::slow})
          for (const Event& event : acts(use, act)) numbers.push_back(event.number);
    }
    return numbers;
  }
  std::size_t averages_before(std::uint32_t r, std::uint32_t layer, const Event& event) const {
    const std::vector<std::size_t> numbers = average_numbers(r, layer);
    return static_cast<std::size_t>(std::count_if(numbers.begin(), numbers.end(),
                                                  [&](std::size_t number) { return number < event.number; }));
  }
  static std::string count_of(std::size_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  }

  bool averages() const { return !meaning_.own_images.empty(); }

  /// A parameter of which there are several replicas is averaged in one bucket, the same on all of them;
  /// gradients of it are summed over groups of them, if at all, and are the mean of all images of the group.
  void check_averaged(std::size_t p, const std::vector<std::uint32_t>& roles) {
    std::vector<EndpointId> members;
    for (const std::uint32_t r : roles)
      members.insert(members.end(), plan_.roles[r].members.begin(), plan_.roles[r].members.end());
    std::vector<CommId> first;
    for (const std::uint32_t r : roles) {
      const std::string role = name_of(plan_.roles[r], machine_);
      const std::string& name = graph_.parameters[p].name;
      std::vector<CommId> comms;
      std::size_t buckets = 0;
      bool with_all = true;
      for (const std::uint32_t id : uses_[r].buckets_of[p]) {
        const BucketUse& use = uses_[r].buckets[id];
        buckets += !use.averages.empty();
        for (const TaskId t : use.averages) {
          comms.push_back(plan_.roles[r].program[t].comm);
          with_all =
              meaning_.communications[plan_.communications[comms.back()].meaning].kind == Kind::average;
        }
        for (const TaskId t : use.sums) check_own_images(r, plan_.roles[r].program[t].comm);
        if (use.averages.empty() && use.sums.empty())
          throw Refuted(fmt::format("{}: {} is in a message that goes nowhere", role, name));
      }
      if (buckets != (members.size() > 1 ? 1 : 0))
        throw Refuted(fmt::format("{}: {} is averaged in {} messages", role, name, buckets));
      if (uses_[r].buckets_of[p].size() == buckets) check_own_images(r, std::nullopt);
      if (r == roles.front())
        first = comms;
      else if (comms != first)
        throw Refuted(fmt::format("{}: {} is averaged in other messages than on {}", role, name,
                                  name_of(plan_.roles[roles.front()], machine_)));
      if (comms.empty() || r != roles.front() || !known_averages_.insert(comms).second) continue;
      if (with_all)
        rounds_.check_collective(comms.front(), roles);
      else
        check_exchanges(plan_, machine_, comms, members);
    }
  }

  /// What a device updates with is the mean over the images of those whose gradients are summed.
  void check_own_images(std::uint32_t r, std::optional<CommId> sum) {
    if (!known_sums_.insert({r, sum}).second) return;
    for (const EndpointId e : plan_.roles[r].members) {
      double images = 0;
      std::vector<EndpointId> group{e};
      if (sum)
        for (const std::vector<EndpointId>& each : rounds_.check_rounds_of(*sum))
          if (std::find(each.begin(), each.end(), e) != each.end()) group = each;
      for (const EndpointId other : group) images += images_of(other);
      if (std::abs(images - meaning_.own_images[e]) > 1e-9 * images)
        throw Refuted(fmt::format("{}: it updates with the gradients of {} images, as if they were {}",
                                  machine_.endpoint_name(e), images, meaning_.own_images[e]));
    }
  }

  /// A step of a device, by the gradients of a layer that it has.
  double images_of(EndpointId endpoint) const {
    for (std::uint32_t r = 0; r < uses_.size(); ++r) {
      const std::vector<EndpointId>& members = plan_.roles[r].members;
      if (std::find(members.begin(), members.end(), endpoint) == members.end()) continue;
      double images = 0;
      if (!uses_[r].gradients.empty())
        for (const Event& event : uses_[r].gradients.begin()->second) images += event.images.count;
      return images / plan_.steps;
    }
    return 0;
  }

  void check_average_bucket(std::uint32_t r, const BucketMeaning& bucket, const BucketUse& use) {
    AverageUse average;
    average.role = name_of(plan_.roles[r], machine_);
    average.is_slow = bucket.slow_momentum > 0;
    const auto at = [](const Event& event) { return AverageUse::At{event.place, event.number}; };
    for (const TaskId t : use.averages) {
      const Communication& comm = plan_.communications[plan_.roles[r].program[t].comm];
      average.messages.push_back({comm.name, order(r).begins[t], order(r).ends[t]});
      average.with_all = meaning_.communications[comm.meaning].kind == Kind::average;
    }
    for (const Event& event : acts(use, Act::mean)) average.means.push_back(at(event));
    for (const Event& event : acts(use, Act::slow)) average.slows.push_back(at(event));
    for (const std::size_t p : bucket.parameters) {
      average.updates.clear();
      for (const Event& event : updates_of(r, p)) average.updates.push_back(at(event));
      check_average(average);
    }
  }

  /// A parameter of which there are several replicas goes through one bucket, the same on all of them.
  void check_replicas(std::size_t p, const std::vector<std::uint32_t>& roles) {
    if (averages()) {
      check_averaged(p, roles);
      return;
    }
    std::size_t members = 0;
    for (const std::uint32_t r : roles) members += plan_.roles[r].members.size();
    const std::set<std::uint32_t>& buckets = uses_[roles.front()].buckets_of[p];
    for (const std::uint32_t r : roles) {
      const std::set<std::uint32_t>& own = uses_[r].buckets_of[p];
      const std::string role = name_of(plan_.roles[r], machine_);
      const std::string& name = graph_.parameters[p].name;
      if (own.size() > 1)
        throw Refuted(fmt::format("{}: the gradient of {} is sent {} times", role, name, own.size()));
      if (own.empty() && members > 1)
        throw Refuted(
            fmt::format("{}: the gradient of {} stays there: no message brings it to the {} other "
                        "devices that have a replica",
                        role, name, members - 1));
      if (own != buckets)
        throw Refuted(fmt::format("{}: the gradient of {} goes in another message than on {}", role, name,
                                  name_of(plan_.roles[roles.front()], machine_)));
    }
    if (buckets.empty()) return;
    std::vector<CommId> first;
    for (const std::uint32_t r : roles) {
      std::vector<CommId> comms = comms_of(r, uses_[r].buckets[*buckets.begin()]);
      if (r == roles.front())
        first = comms;
      else if (comms != first)
        throw Refuted(fmt::format("{}: {} goes through other messages than on {}",
                                  name_of(plan_.roles[r], machine_), graph_.parameters[p].name,
                                  name_of(plan_.roles[roles.front()], machine_)));
    }
    for (const CommId comm : first) rounds_.check_collective(comm, roles);
  }

  std::vector<CommId> comms_of(std::uint32_t r, const BucketUse& use) const {
    std::vector<CommId> comms;
    for (const auto* tasks : {&use.sums, &use.factor_sums, &use.scatters, &use.gathers, &use.averages})
      for (const TaskId t : *tasks) comms.push_back(plan_.roles[r].program[t].comm);
    return comms;
  }

  // What a member does with a bucket.

  void check_bucket(std::uint32_t r, std::uint32_t id, const BucketUse& use) {
    const BucketMeaning& bucket = meaning_.buckets[id];
    if (bucket.parameters.empty())
      throw Refuted(fmt::format("{}: a bucket has no tensors", name_of(plan_.roles[r], machine_)));
    check_members(r, bucket);
    check_bytes(r, bucket, use);
    if (!use.averages.empty() || !acts(use, Act::mean).empty()) {
      check_average_bucket(r, bucket, use);
      return;
    }
    check_factors(r, bucket, use);
    if (bucket.zero == 0) {
      check_sum(r, bucket, use);
      return;
    }
    if (!use.sums.empty())
      throw Refuted(fmt::format("{}: sums what its members have only shares of", at(r, use.sums[0])));
    if (plan_.endless()) {
      if (bucket.zero > 1)
        throw NotCovered("shares of gradients or parameters in a pipeline that is never flushed");
      check_shared_states(r, bucket, use);
      return;
    }
    check_scatters(r, bucket, use);
    if (bucket.zero == 3)
      check_gathers_before(r, bucket, use);
    else
      check_gather_after(r, bucket, use);
  }

  /// Tensors that go together are updated together.
  void check_members(std::uint32_t r, const BucketMeaning& bucket) const {
    const auto times = [&](std::size_t p) {
      const auto of = uses_[r].updates.find(graph_.parameters[p].layer);
      return of == uses_[r].updates.end() ? 0 : of->second.size();
    };
    const std::size_t first = bucket.parameters.front();
    for (const std::size_t p : bucket.parameters)
      if (times(p) == 0 || times(p) != times(first))
        throw Refuted(fmt::format("{}: {} and {} are in one bucket, and are updated {} and {} times",
                                  name_of(plan_.roles[r], machine_), graph_.parameters[first].name,
                                  graph_.parameters[p].name, times(first), times(p)));
  }

  void check_bytes(std::uint32_t r, const BucketMeaning& bucket, const BucketUse& use) const {
    if (bucket.coding == BucketMeaning::Coding::low_rank) {
      double first = 0, second = 0;  // elements
      for (const std::size_t p : bucket.parameters) {
        const auto elements = static_cast<double>(graph_.parameters[p].elements);
        const auto shape = low_rank_shape(graph_.model, graph_.parameters[p], elements, bucket.detail);
        first += shape ? shape->rows * shape->rank : elements;
        second += shape ? shape->columns * shape->rank : 0;
      }
      const double element = element_bytes(graph_.options.precision);
      for (const TaskId t : use.sums) check_bytes_of(r, plan_.roles[r].program[t].comm, first * element);
      for (const TaskId t : use.factor_sums)
        check_bytes_of(r, plan_.roles[r].program[t].comm, second * element);
      return;
    }
    if (bucket.element_bytes == 0) return;  // which gradients are sent, and how many, compression decides
    double bytes = 0;
    for (const std::size_t p : bucket.parameters)
      bytes += bucket.element_bytes * static_cast<double>(graph_.parameters[p].elements);
    for (const CommId id : comms_of(r, use)) check_bytes_of(r, id, bytes);
  }

  void check_bytes_of(std::uint32_t r, CommId id, double bytes) const {
    if (const Communication& comm = plan_.communications[id]; std::abs(comm.bytes - bytes) > 1e-9 * bytes)
      throw Refuted(fmt::format("{}: '{}' carries {} bytes, and its tensors have {}",
                                name_of(plan_.roles[r], machine_), comm.name, comm.bytes, bytes));
  }

  /// Second factors are made of the sum of the first ones, summed once for each update, and decompressed with
  /// it; where no tensor of the bucket is a matrix worth it, there are none.
  void check_factors(std::uint32_t r, const BucketMeaning& bucket, const BucketUse& use) const {
    const bool has_matrices =
        bucket.coding == BucketMeaning::Coding::low_rank &&
        std::any_of(bucket.parameters.begin(), bucket.parameters.end(), [&](std::size_t p) {
          const Parameter& parameter = graph_.parameters[p];
          return low_rank_shape(graph_.model, parameter, static_cast<double>(parameter.elements),
                                bucket.detail)
              .has_value();
        });
    const std::size_t times = has_matrices ? use.sums.size() : 0;
    const std::vector<Event>& made = acts(use, Act::factor);
    if (made.size() != times || use.factor_sums.size() != times)
      throw Refuted(fmt::format("{}: second factors of {} are made {} times and summed {} times; {} is right",
                                name_of(plan_.roles[r], machine_), list_text(bucket), made.size(),
                                use.factor_sums.size(), times));
    for (std::size_t k = 0; k < times; ++k) {
      if (made[k].place < order(r).ends[use.sums[k]])
        throw Refuted(
            fmt::format("{}: does not wait for '{}'", at(r, made[k].task), comm_name(r, use.sums[k])));
      if (made[k].place >= order(r).begins[use.factor_sums[k]])
        throw Refuted(fmt::format("{}: does not wait for '{}'", at(r, use.factor_sums[k]),
                                  plan_.roles[r].program[made[k].task].name));
      if (const std::vector<Event>& undone = acts(use, Act::decompress);
          undone.size() == times && undone[k].place < order(r).ends[use.factor_sums[k]])
        throw Refuted(fmt::format("{}: does not wait for '{}'", at(r, undone[k].task),
                                  comm_name(r, use.factor_sums[k])));
    }
  }

  /// @pre the role updates the parameter's layer
  const std::vector<Event>& updates_of(std::uint32_t r, std::size_t p) const {
    return uses_[r].updates.at(graph_.parameters[p].layer);
  }
  std::vector<Event> gradients_of(std::uint32_t r, std::size_t p) const {
    std::vector<Event> events;
    if (const auto of = uses_[r].gradients.find(graph_.parameters[p].layer); of != uses_[r].gradients.end())
      for (const Event& event : of->second)
        if (event.operation == graph_.parameters[p].gradient) events.push_back(event);
    return events;
  }
  std::string gradient_text(std::size_t p, const Event& event) const {
    return fmt::format("the gradient of {} of micro-batch {}", graph_.parameters[p].name, event.micro_batch);
  }
  std::string list_text(const BucketMeaning& bucket) const {
    return fmt::format("{}{}", graph_.parameters[bucket.parameters.front()].name,
                       bucket.parameters.size() > 1
                           ? fmt::format(" and {} other tensors", bucket.parameters.size() - 1)
                           : "");
  }

  /// For each update gradients are complete, then made ready to be sent, then summed once, then put back,
  /// then used, and only then the next are begun.
  void check_sum(std::uint32_t r, const BucketMeaning& bucket, const BucketUse& use) {
    const std::size_t updates = updates_of(r, bucket.parameters.front()).size();
    if (use.sums.size() != updates || !use.scatters.empty() || !use.gathers.empty())
      throw Refuted(fmt::format("{}: the gradients of {} are summed over the replicas {} times for {}",
                                name_of(plan_.roles[r], machine_), list_text(bucket),
                                use.sums.size() + use.scatters.size(), count_of(updates, "update")));
    const bool compressed = bucket.element_bytes != element_bytes(graph_.options.precision);
    check_pairs(r, use, Act::compress, Act::decompress, compressed ? updates : 0);
    check_pairs(r, use, Act::fill, Act::empty, acts(use, Act::fill).empty() ? 0 : updates);
    if (compressed && !acts(use, Act::fill).empty()) check_copies(r, use, updates);
    for (std::size_t k = 0; k < updates; ++k) {
      const TaskId sum = use.sums[k];
      const Communication& comm = plan_.communications[plan_.roles[r].program[sum].comm];
      const bool gathers = meaning_.communications[comm.meaning].kind == Kind::gather_gradients;
      if (gathers != (bucket.element_bytes == 0 && bucket.coding != BucketMeaning::Coding::low_rank))
        throw Refuted(fmt::format("{}: whole gradients are summed on the way, the largest ones are gathered",
                                  at(r, sum)));
      for (const std::size_t p : bucket.parameters) check_sum_of(r, p, use, k);
    }
  }

  void check_sum_of(std::uint32_t r, std::size_t p, const BucketUse& use, std::size_t k) {
    const TaskId sum = use.sums[k];
    const Event& update = updates_of(r, p)[k];
    for (const Event& event : gradients_of(r, p)) {
      const std::size_t of_update = update_of(r, graph_.parameters[p].layer, event);
      if (of_update == k && event.place >= order(r).begins[sum])
        throw Refuted(fmt::format("{}: does not wait for {}", at(r, sum), gradient_text(p, event)));
      for (const Act act : {Act::compress, Act::fill})
        if (!acts(use, act).empty() && of_update == k && event.number > acts(use, act)[k].number)
          throw Refuted(fmt::format("{}: {} is not in what is sent", at(r, acts(use, act)[k].task),
                                    gradient_text(p, event)));
    }
    check_waits(r, update, sum, p);
    for (const Act act : {Act::decompress, Act::empty})
      if (!acts(use, act).empty() && acts(use, act)[k].number > update.number)
        throw Refuted(fmt::format("{}: {} is updated before the sum of its gradients is put back",
                                  at(r, update.task), graph_.parameters[p].name));
  }

  static const std::vector<Event>& acts(const BucketUse& use, Act act) {
    return use.acts.at(static_cast<std::size_t>(act));
  }

  /// What is done before a message is undone after it, each time.
  void check_pairs(std::uint32_t r, const BucketUse& use, Act before, Act after, std::size_t times) {
    if (acts(use, before).size() != times || acts(use, after).size() != times)
      throw Refuted(fmt::format(
          "{}: its gradients are {} {} times before it and {} {} times after it; {} is right",
          at(r, use.sums[0]), before == Act::fill ? "copied" : "compressed", acts(use, before).size(),
          before == Act::fill ? "copied back" : "decompressed", acts(use, after).size(), times));
    for (std::size_t k = 0; k < times; ++k) {
      if (const Event& event = acts(use, before)[k]; event.place >= order(r).begins[use.sums[k]])
        throw Refuted(fmt::format("{}: does not wait for '{}'", at(r, use.sums[k]),
                                  plan_.roles[r].program[event.task].name));
      if (const Event& event = acts(use, after)[k]; event.place < order(r).ends[use.sums[k]])
        throw Refuted(
            fmt::format("{}: does not wait for '{}'", at(r, event.task), comm_name(r, use.sums[k])));
    }
  }

  /// What is compressed is the bucket's copy.
  void check_copies(std::uint32_t r, const BucketUse& use, std::size_t times) const {
    const auto check = [&](Act first, Act second, const char* what) {
      for (std::size_t k = 0; k < times; ++k)
        if (acts(use, first)[k].number > acts(use, second)[k].number)
          throw Refuted(fmt::format("{}: its gradients are {}", at(r, acts(use, second)[k].task), what));
    };
    check(Act::fill, Act::compress, "compressed before they are copied into the bucket");
    check(Act::decompress, Act::empty, "copied back before they are decompressed");
  }

  void check_waits(std::uint32_t r, const Event& event, TaskId message, std::size_t p) const {
    if (event.place < order(r).ends[message])
      throw Refuted(fmt::format("{}: {} does not wait for '{}', which brings {}", at(r, event.task),
                                graph_.operations[event.operation].name, comm_name(r, message),
                                graph_.parameters[p].name));
  }

  /// Each scatter takes the gradients that have been made since the one before; together they take all.
  void check_scatters(std::uint32_t r, const BucketMeaning& bucket, const BucketUse& use) {
    std::vector<std::vector<std::int64_t>> taken(use.scatters.size());
    for (const std::size_t p : bucket.parameters) {
      std::vector<Event> events = gradients_of(r, p);
      std::size_t next = 0;
      for (std::size_t i = 0; i < use.scatters.size(); ++i) {
        std::vector<std::int64_t> own;
        for (; next < events.size() && events[next].place < order(r).begins[use.scatters[i]]; ++next)
          own.push_back(events[next].micro_batch);
        if (p == bucket.parameters.front()) taken[i] = own;
        if (own.empty() || own != taken[i])
          throw Refuted(fmt::format("{}: it begins without the gradient of {} of a micro-batch that it sums",
                                    at(r, use.scatters[i]), graph_.parameters[p].name));
      }
      if (next < events.size())
        throw Refuted(fmt::format("{}: {} reaches no replica: no message takes it",
                                  name_of(plan_.roles[r], machine_), gradient_text(p, events[next])));
      for (const Event& update : updates_of(r, p))
        for (const TaskId scatter : use.scatters) check_waits(r, update, scatter, p);
    }
  }

  /// New parameters go to all replicas, once: after the update, or in the next step before they are read.
  void check_gather_after(std::uint32_t r, const BucketMeaning& bucket, const BucketUse& use) {
    if (use.gathers.size() != 1)
      throw Refuted(fmt::format("{}: the new shares of {} are gathered {} times",
                                name_of(plan_.roles[r], machine_), list_text(bucket), use.gathers.size()));
    if (is_before_all_reads(r, bucket, use.gathers[0])) return;
    for (const std::size_t p : bucket.parameters)
      for (const Event& update : updates_of(r, p))
        if (update.place >= order(r).begins[use.gathers[0]])
          throw Refuted(fmt::format("{}: does not wait for the update of {}", at(r, use.gathers[0]),
                                    graph_.parameters[p].name));
  }

  /// Of a run that goes on, with shares of the optimizer's states: for each update gradients are complete, then
  /// scattered, then used, then the new parameters are gathered, and then the next micro-batches read them.
  void check_shared_states(std::uint32_t r, const BucketMeaning& bucket, const BucketUse& use) {
    const std::size_t updates = updates_of(r, bucket.parameters.front()).size();
    for (const auto* tasks : {&use.scatters, &use.gathers})
      if (tasks->size() != updates)
        throw Refuted(fmt::format("{}: {} are {} {} times for {}", name_of(plan_.roles[r], machine_),
                                  list_text(bucket), tasks == &use.scatters ? "scattered" : "gathered",
                                  tasks->size(), count_of(updates, "update")));
    for (const std::size_t p : bucket.parameters) {
      const std::uint32_t layer = graph_.parameters[p].layer;
      for (const Event& event : gradients_of(r, p)) {
        const std::size_t k = update_of(r, layer, event);
        if (k < updates && event.place >= order(r).begins[use.scatters[k]])
          throw Refuted(
              fmt::format("{}: does not wait for {}", at(r, use.scatters[k]), gradient_text(p, event)));
      }
      std::set<std::int64_t> begun;  // micro-batches, which keep the version that they began with
      for (const Event& read : uses_[r].reads[layer])
        if (const std::size_t k = update_of(r, layer, read); begun.insert(read.micro_batch).second && k > 0)
          check_waits(r, read, use.gathers[k - 1], p);
      for (std::size_t k = 0; k < updates; ++k) {
        const Event& update = updates_of(r, p)[k];
        check_waits(r, update, use.scatters[k], p);
        if (update.place >= order(r).begins[use.gathers[k]])
          throw Refuted(fmt::format("{}: does not wait for the update of {}", at(r, use.gathers[k]),
                                    graph_.parameters[p].name));
      }
    }
  }

  bool is_before_all_reads(std::uint32_t r, const BucketMeaning& bucket, TaskId gather) {
    return std::all_of(bucket.parameters.begin(), bucket.parameters.end(), [&](std::size_t p) {
      const std::vector<Event>& reads = uses_[r].reads[graph_.parameters[p].layer];
      return !reads.empty() && std::all_of(reads.begin(), reads.end(), [&](const Event& read) {
        return read.place >= order(r).ends[gather];
      });
    });
  }

  /// Parameters are gathered before they are read, again where they have gone, and before they are updated.
  void check_gathers_before(std::uint32_t r, const BucketMeaning& bucket, const BucketUse& use) {
    for (const std::size_t p : bucket.parameters) {
      for (const Event& read : uses_[r].reads[graph_.parameters[p].layer]) {
        const auto gone = static_cast<std::size_t>(
            std::count_if(use.forgets.begin(), use.forgets.end(),
                          [&](const Event& forget) { return forget.number < read.number; }));
        if (gone >= use.gathers.size())
          throw Refuted(fmt::format("{}: {} reads {}, which is no longer there: no message gathers it again",
                                    at(r, read.task), graph_.operations[read.operation].name,
                                    graph_.parameters[p].name));
        check_waits(r, read, use.gathers[gone], p);
      }
      for (const Event& update : updates_of(r, p))
        for (const TaskId gather : use.gathers) check_waits(r, update, gather, p);
    }
  }

  const Plan& plan_;
  const Meaning& meaning_;
  const TrainingGraph& graph_;
  const Machine& machine_;
  const HappensBefore& order_;
  RoundRules& rounds_;
  std::vector<bool> has_parameters_;   ///< by layer
  std::vector<bool> completes_;        ///< by operation of the graph: gradients of parameters
  std::vector<RoleUse> uses_;          ///< by role
  std::vector<std::size_t> versions_;  ///< by role: of the parameters that each member keeps
  std::set<std::vector<double>> known_images_;
  std::set<std::vector<CommId>> known_averages_;
  std::set<std::pair<std::uint32_t, std::optional<CommId>>> known_sums_;
  /// By the roles that have a layer: up to which image each of their updates has gradients.
  std::map<std::vector<std::uint32_t>, std::vector<double>> ends_;
};

}  // namespace

void prove_gradients(const Plan& plan, const StrategyReport& report, const TrainingGraph& graph,
                     const Machine& machine, const HappensBefore& order, RoundRules& rounds) {
  GradientProver(plan, report, graph, machine, order, rounds).prove();
}

}  // namespace convoy::prove
