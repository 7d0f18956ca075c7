// SPDX-License-Identifier: MIT
#include "sim/run/export/rank_programs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/plan/repetition.h"
#include "sim/replay/fidelity.h"
#include "sim/replay/flows.h"

namespace convoy::inline runs {

std::optional<CollectiveType> collective_type(const Plan& plan, const Communication& comm) {
  if (comm.meaning == no_meaning || !plan.meaning) {
    if (comm.purpose == CommPurpose::all_reduce) return CollectiveType::all_reduce;
    return std::nullopt;
  }
  switch (plan.meaning->communications[comm.meaning].kind) {
    case CommMeaning::Kind::sum:
    case CommMeaning::Kind::sum_factors:
    case CommMeaning::Kind::average:
      return CollectiveType::all_reduce;
    case CommMeaning::Kind::scatter:
      return CollectiveType::reduce_scatter;
    case CommMeaning::Kind::gather_parameters:
    case CommMeaning::Kind::gather_gradients:
      return CollectiveType::all_gather;
    default:
      return std::nullopt;
  }
}

std::uint64_t WholeTimes::next(std::uint32_t queue, double seconds) {
  if (queue >= sums_.size()) sums_.resize(queue + 1);
  auto& [sum_s, units] = sums_[queue];
  sum_s += seconds;
  const auto until = static_cast<std::uint64_t>(std::llround(sum_s * units_per_s_));
  return until - std::exchange(units, until);
}

/// Makes the steps of one class of members.
class RankProgramMaker {
 public:
  RankProgramMaker(const RankPrograms& all, const Role& role, EndpointId member)
      : all_(all), plan_(all.plan_), role_(role), member_(member) {
    if (is_device()) begin_s_ = pending_s_ = all.cost_.begin_s(type());
  }

  std::vector<RankStep> make() {
    ends_.reserve(role_.program.size());
    std::vector<std::int64_t> last(role_.streams.size(), -1);  // task of each stream
    for (const Task& task : role_.program) {
      std::vector<std::uint32_t> after;
      for (const TaskId before : task.after) join(after, ends_[before]);
      if (task.stream != Task::no_stream) {
        std::int64_t& before = last[static_cast<std::size_t>(task.stream)];
        if (before >= 0) join(after, ends_[static_cast<std::size_t>(before)]);
        before = static_cast<std::int64_t>(ends_.size());
      }
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
      ends_.push_back(task.kind == Task::Kind::compute ? compute(task, std::move(after))
                                                       : communicate(task, std::move(after)));
    }
    return std::move(steps_);
  }

  /// By which members of a role differ in more than whom they meet.
  static std::vector<std::uint32_t> shape(const RankPrograms& all, const Role& role, EndpointId member) {
    std::vector<std::uint32_t> result;
    for (const Task& task : role.program) {
      if (task.kind == Task::Kind::compute || is_whole(all, task)) continue;
      const Pattern& pattern = all.plan_.patterns[all.plan_.communications[task.comm].pattern];
      std::vector<std::uint32_t> counts(2 * pattern.rounds.size());
      for (const RankMessage& message : all.messages(all.plan_.communications[task.comm].pattern, member))
        ++counts[2 * message.round + message.sends];
      result.insert(result.end(), counts.begin(), counts.end());
    }
    return result;
  }

 private:
  using Steps = std::vector<std::uint32_t>;

  static constexpr std::size_t many = 1000;  ///< of whom nobody knows how many they are

  static void join(Steps& to, const Steps& from) { to.insert(to.end(), from.begin(), from.end()); }
  static bool does(const Task& task, const RankMessage& message) {
    return task.kind != (message.sends ? Task::Kind::receive : Task::Kind::send);
  }
  static bool is_whole(const RankPrograms& all, const Task& task) {
    return all.collectives_ == RankPrograms::Collectives::known && task.kind == Task::Kind::collective &&
           collective_type(all.plan_, all.plan_.communications[task.comm]);
  }
  bool is_device() const { return member_ < all_.machine_.devices.size(); }
  const DeviceType& type() const { return all_.machine_.device_types[all_.machine_.devices[member_].type]; }

  Steps add(RankStep step) {
    steps_.push_back(std::move(step));
    return {static_cast<std::uint32_t>(steps_.size() - 1)};
  }

  /// What so many steps wait for instead of all of `after`: one step, where they have fewer waits then.
  Steps joined(Steps after, std::size_t steps_to_come, const std::string& name) {
    if (after.size() * steps_to_come <= after.size() + steps_to_come + 1) return after;
    return add(
        {.kind = RankStep::Kind::join, .on_host = true, .name = name, .queue = 2, .after = std::move(after)});
  }

  /// @return the steps with which the task ends
  Steps compute(const Task& task, Steps after) {
    if (!is_device()) {
      // Whoever comes after such a task, and those after him, wait for the same.
      if (task.seconds <= 0) return joined(std::move(after), many, task.name);
      return add({.kind = RankStep::Kind::compute,
                  .on_host = true,
                  .name = task.name,
                  .seconds = task.seconds,
                  .after = std::move(after)});
    }
    if (task.begins_step) {
      issued_ = after;
      pending_s_ = begin_s_;
    }
    const Device& device = all_.machine_.devices[member_];
    for (const PlanOp& op : task.ops) {
      pending_s_ += all_.cost_.issue_s(op.work, op.images, type(), devices_of_host(all_.machine_, device));
      if (pending_s_ > 0)
        issued_ = add({.kind = RankStep::Kind::issue,
                       .on_host = true,
                       .name = name_of(task, op),
                       .seconds = std::exchange(pending_s_, 0),
                       .queue = 1,
                       .after = issued_});
      const double time_s = all_.cost_.time_s(op.work, op.images, type());
      if (time_s > 0) join(after, issued_);
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
      after = add({.kind = RankStep::Kind::compute,
                   .name = name_of(task, op),
                   .seconds = time_s * role_.slowdown / device.speed,
                   .flops = op.work.flops_per_image * op.images + op.work.flops_fixed,
                   .bytes = (op.work.bytes_per_image + op.work.aside_bytes_per_image) * op.images +
                            op.work.bytes_fixed + op.work.aside_bytes_fixed + op.work.reordered_bytes,
                   .after = std::move(after)});
    }
    return task.ops.empty() ? joined(std::move(after), many, task.name) : after;
  }

  Steps communicate(const Task& task, Steps after) {
    const Communication& comm = plan_.communications[task.comm];
    RankStep step{.kind = RankStep::Kind::collective,
                  .name = comm.name,
                  .comm = task.comm,
                  .delay_s = task.kind == Task::Kind::receive ? 0 : comm.overhead_s,
                  .queue = 3 + static_cast<std::uint32_t>(task.stream == Task::no_stream
                                                              ? role_.streams.size()
                                                              : static_cast<std::size_t>(task.stream)),
                  .after = std::move(after)};
    if (is_whole(all_, task)) return add(std::move(step));
    const Pattern& pattern = plan_.patterns[comm.pattern];
    const std::span<const RankMessage> messages = all_.messages(comm.pattern, member_);
    const bool in_turn = all_.one_by_one_[comm.pattern];
    for (auto of_round = messages.begin(); of_round != messages.end();) {
      const std::uint32_t round = of_round->round;
      const auto next = std::find_if(of_round, messages.end(),
                                     [&](const RankMessage& message) { return message.round != round; });
      for (std::uint32_t i = 0; i < (in_turn ? pattern.rounds[round].repeat : 1); ++i) {
        const auto steps = static_cast<std::size_t>(
            std::count_if(of_round, next, [&](const RankMessage& message) { return does(task, message); }));
        if (steps == 0) continue;
        step.after = joined(std::move(step.after), steps, comm.name);
        Steps done;
        for (auto message = of_round; message != next; ++message) {
          if (!does(task, *message)) continue;
          RankStep one = step;
          one.kind = message->sends ? RankStep::Kind::send : RankStep::Kind::receive;
          one.message = static_cast<std::uint32_t>(message - messages.begin());
          if (message->sends) one.delay_s += message->more_latency_s;
          join(done, add(std::move(one)));
        }
        step.after = std::move(done);
        step.delay_s = 0;
      }
      of_round = next;
    }
    return std::move(step.after);
  }

  const RankPrograms& all_;
  const Plan& plan_;
  const Role& role_;
  EndpointId member_;
  double begin_s_ = 0, pending_s_ = 0;  ///< of the host, before it issues the next operation
  Steps issued_;                        ///< what the host's next operation comes after
  std::vector<Steps> ends_;             ///< by task
  std::vector<RankStep> steps_;
};

RankPrograms::RankPrograms(const Plan& plan, const Machine& machine, const CostModel& cost,
                           Collectives collectives)
    : plan_(plan),
      machine_(machine),
      cost_(cost),
      collectives_(collectives),
      rank_of_(machine.endpoint_count(), 0) {
  list_messages();
  for (const Role& role : plan.roles) {
    // Kind of device, speed, shape. In the order of the first members.
    using Key = std::tuple<std::uint32_t, std::uint32_t, double, std::vector<std::uint32_t>>;
    std::map<Key, std::size_t> known;
    for (const EndpointId e : role.members) {
      Key key;
      if (e < machine.devices.size()) {
        const Device& device = machine.devices[e];
        key = {device.type, devices_of_host(machine, device), device.speed, {}};
      }
      std::get<3>(key) = RankProgramMaker::shape(*this, role, e);
      const auto [it, fresh] = known.emplace(std::move(key), programs_.size());
      if (fresh) programs_.push_back({{}, RankProgramMaker(*this, role, e).make()});
      programs_[it->second].members.push_back(e);
      ranks_.push_back(e);
    }
  }
  std::sort(ranks_.begin(), ranks_.end());
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    rank_of_[ranks_[rank]] = static_cast<std::uint32_t>(rank);
}

void RankPrograms::list_messages() {
  // Decided as for the replay, which need not list the messages of an all-to-all.
  one_by_one_ = ranks_go_one_by_one(plan_, machine_, expand_flows(plan_, machine_, Listing::where_needed));
  std::vector<bool> listed(plan_.patterns.size(), false);
  for (const Communication& comm : plan_.communications)
    if (collectives_ == Collectives::none || !collective_type(plan_, comm)) listed[comm.pattern] = true;
  messages_.resize(plan_.patterns.size());
  const FlowTable table = expand_flows(plan_, machine_, Listing::always);
  for (std::uint32_t p = 0; p < plan_.patterns.size(); ++p) {
    if (!listed[p]) continue;
    std::vector<RankMessage>& messages = messages_[p];
    for (std::uint32_t g = table.first_group[p]; g < table.first_group[p + 1]; ++g) {
      const FlowGroup& group = table.groups[g];
      for (const Flow& flow : std::span(table.flows).subspan(group.first_flow, group.flow_count)) {
        const double repeat = one_by_one_[p] ? 1 : plan_.patterns[p].rounds[flow.round].repeat;
        const FlowPath& path = table.path(flow);
        const double more_latency_s = (repeat - 1) * path.latency_s;
        messages.push_back({path.from, path.to, flow.round, true, flow.fraction * repeat, more_latency_s});
        messages.push_back({path.to, path.from, flow.round, false, flow.fraction * repeat, more_latency_s});
      }
    }
    // Members whose rounds have as many messages of both kinds have them at the same places.
    std::stable_sort(messages.begin(), messages.end(), [](const RankMessage& a, const RankMessage& b) {
      return std::tuple(a.member, a.round, !a.sends) < std::tuple(b.member, b.round, !b.sends);
    });
  }
}

std::span<const RankMessage> RankPrograms::messages(std::uint32_t pattern, EndpointId member) const {
  const std::vector<RankMessage>& all = messages_[pattern];
  const auto first = std::lower_bound(all.begin(), all.end(), member,
                                      [](const RankMessage& m, EndpointId e) { return m.member < e; });
  const auto last = std::upper_bound(first, all.end(), member,
                                     [](EndpointId e, const RankMessage& m) { return e < m.member; });
  return {first, last};
}

std::uint64_t RankPrograms::message_bytes(const RankStep& step, EndpointId member) const {
  const Communication& comm = plan_.communications[step.comm];
  return whole_bytes(comm.bytes * messages(comm.pattern, member)[step.message].fraction);
}

std::uint64_t whole_bytes(double bytes) {
  return static_cast<std::uint64_t>(std::max(1LL, std::llround(bytes)));
}

}  // namespace convoy::runs
