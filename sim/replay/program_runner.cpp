// SPDX-License-Identifier: MIT
#include "sim/replay/program_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "sim/replay/parameter_servers.h"

namespace convoy::inline replays {
namespace {

std::vector<double> capacities(const FoldedPlan& folded) {
  std::vector<double> result;
  for (const LinkId link : folded.folding.links)
    result.push_back(bandwidth_Bps(folded.machine, folded.table, link));
  for (const double adder : ParameterServers::adder_capacities(folded.plan, folded.machine, folded.folding))
    result.push_back(adder);
  return result;
}

double largest_flow_bytes(const Plan& plan) {
  std::vector<double> largest_part(plan.patterns.size(), 0.0);
  for (std::size_t p = 0; p < plan.patterns.size(); ++p)
    for (const Round& round : plan.patterns[p].rounds)
      largest_part[p] = std::max(largest_part[p], round.largest_fraction() * round.repeat);
  double largest = 1;
  for (const Communication& comm : plan.communications)
    largest = std::max(largest, comm.bytes * largest_part[comm.pattern]);
  return largest;
}

/// By endpoint class: the share of the device's processors that a collective takes.
std::vector<double> processors_taken(const Machine& machine, const Folding& folding) {
  std::vector<double> result;
  for (const EndpointId endpoint : folding.endpoints)
    result.push_back(endpoint < machine.devices.size()
                         ? machine.processors_taken(machine.device_types[machine.devices[endpoint].type])
                         : 0);
  return result;
}

}  // namespace

ProgramRunner::ProgramRunner(const FoldedPlan& folded, const Surroundings& surroundings)
    : plan_(folded.plan),
      machine_(folded.machine),
      folding_(folded.folding),
      engine_(capacities(folded), largest_flow_bytes(folded.plan), surroundings.contention,
              surroundings.network_model),
      link_clock_(folded.machine, folded.folding),
      transfers_(folded, surroundings.contention, engine_, link_clock_, *this),
      compute_times_(folded.plan, folded.machine, folded.cost, folded.cost_of_role),
      stops_(surroundings.disturbances, folded.folding),
      compute_(engine_, processors_taken(folded.machine, folded.folding), stops_,
               surroundings.contention == Contention::shared) {
  for (const Role& role : plan_.roles) programs_.push_back(analyse(role));
  progress_.resize(folding_.endpoints.size());
  std::size_t tasks = 0;
  for (std::uint32_t c = 0; c < progress_.size(); ++c) tasks += program_of(c).predecessor_count.size();
  missing_.resize(tasks);
  std::span<std::uint32_t> rest = missing_;
  for (std::uint32_t c = 0; c < progress_.size(); ++c) {
    progress_[c].missing = rest.first(program_of(c).predecessor_count.size());
    rest = rest.subspan(progress_[c].missing.size());
    rewind(c);
    timelines_.push_back(
        {role_of(c), folding_.endpoints[c], std::vector<TaskTimes>(progress_[c].missing.size())});
  }
  disturb_links(surroundings.disturbances, machine_, folding_, engine_);
}

ProgramRunner::Program ProgramRunner::analyse(const Role& role) {
  Program program;
  const std::size_t n = role.program.size();
  program.tasks.resize(n + 1);
  program.streams.resize(role.streams.size());
  for (TaskId t = 0; t < n; ++t) {
    const Task& task = role.program[t];
    program.tasks[t] = {task.comm, task.stream, task.kind, task.begins_step,
                        program.tasks[t].first_successor};
    program.predecessor_count.push_back(static_cast<std::uint32_t>(task.after.size()));
    for (const TaskId before : task.after) ++program.tasks[before + 1].first_successor;
    if (task.stream == Task::no_stream)
      program.streamless.push_back(t);
    else
      program.streams[static_cast<std::size_t>(task.stream)].push_back(t);
  }
  for (std::size_t t = 0; t < n; ++t)
    program.tasks[t + 1].first_successor += program.tasks[t].first_successor;
  program.successors.resize(program.tasks[n].first_successor);
  std::vector<std::uint32_t> known(n, 0);  // successors of a task so far
  for (TaskId t = 0; t < n; ++t)
    for (const TaskId before : role.program[t].after)
      program.successors[program.tasks[before].first_successor + known[before]++] = t;
  return program;
}

void ProgramRunner::rewind(std::uint32_t c) {
  Progress& progress = progress_[c];
  const Program& program = program_of(c);
  std::copy(program.predecessor_count.begin(), program.predecessor_count.end(), progress.missing.begin());
  progress.streams.assign(program.streams.size(), {});
  progress.done_count = 0;
}

void ProgramRunner::begin(std::uint32_t c) {
  const Program& program = program_of(c);
  for (std::size_t s = 0; s < program.streams.size(); ++s) try_stream(c, s);
  for (const TaskId t : program.streamless)
    if (progress_[c].missing[t] == 0) start(c, t);
}

void ProgramRunner::try_stream(std::uint32_t c, std::size_t stream) {
  Progress::Stream& progress = progress_[c].streams[stream];
  const std::vector<TaskId>& order = program_of(c).streams[stream];
  if (progress.busy || progress.next == order.size()) return;
  const TaskId t = order[progress.next];
  if (progress_[c].missing[t] != 0) return;
  progress.busy = true;
  ++progress.next;
  start(c, t);
}

void ProgramRunner::start(std::uint32_t c, TaskId t) {
  const Program::Node& it = program_of(c).tasks[t];
  Progress& progress = progress_[c];
  const double now_s = engine_.now_s();
  if (progress.recorded) timelines_[c].tasks[t].start_s = now_s;
  if (it.kind != Task::Kind::compute) {
    if (it.kind == Task::Kind::collective) compute_.collective_begins(c, t);
    start_message(c, t, it.kind, it.comm);
    return;
  }
  if (it.begins_step) progress.step_began_s = now_s;
  const TaskWork work = compute_times_.work(folding_.endpoints[c], role_of(c), t, progress.stretch);
  const std::optional<double> issue_wait_s = compute_.start(c, work, progress.step_began_s, [this, c, t] {
    progress_[c].clock.compute_ends(engine_.now_s(), compute_.take_more_wait_s(c));
    finished_.push_back({c, t});
    drain();
  });
  if (issue_wait_s)
    progress.clock.compute_begins(now_s, *issue_wait_s);
  else
    finished_.push_back({c, t});
}

void ProgramRunner::drain() {
  while (next_finished_ < finished_.size()) {
    const auto [c, t] = finished_[next_finished_++];
    finish(c, t);
  }
  finished_.clear();
  next_finished_ = 0;
}

void ProgramRunner::task_done(std::uint32_t c, TaskId t) {
  const bool owes =
      program_of(c).tasks[t].kind == Task::Kind::collective && compute_.works_off(c, t, [this, c, t] {
        message_ends(c);
        finished_.push_back({c, t});
        drain();
      });
  owes ? message_begins(c) : finished_.push_back({c, t});
}

void ProgramRunner::fetch(std::uint32_t c) const { fetch_soon(progress_[c]); }

void ProgramRunner::finish(std::uint32_t c, TaskId t) {
  Progress& progress = progress_[c];
  if (progress.recorded) timelines_[c].tasks[t].end_s = engine_.now_s();
  const Program& program = program_of(c);
  if (program.tasks[t].kind == Task::Kind::collective) compute_.collective_ends(c);
  progress.missing[t] = Progress::is_done;
  ++progress.done_count;
  const int stream = program.tasks[t].stream;
  if (stream != Task::no_stream) progress.streams[static_cast<std::size_t>(stream)].busy = false;
  for (const TaskId next : program.successors_of(t)) {
    if (--progress.missing[next] != 0) continue;
    const int next_stream = program.tasks[next].stream;
    if (next_stream == Task::no_stream)
      start(c, next);
    else
      try_stream(c, static_cast<std::size_t>(next_stream));
  }
  if (stream != Task::no_stream) try_stream(c, static_cast<std::size_t>(stream));
  task_ended(c, t);
}

Readings ProgramRunner::readings() {
  const double now_s = engine_.now_s();
  Readings result{now_s, link_clock_.link_busy_s(now_s), link_clock_.port_busy_s(now_s), {}, {}};
  for (Progress& progress : progress_) {
    progress.clock.advance(now_s);
    result.times.push_back(progress.clock.times());
  }
  return result;
}

void ProgramRunner::require_finished() const {
  std::string blocked;
  std::size_t count = 0;
  for (std::uint32_t c = 0; c < progress_.size(); ++c) {
    const Progress& progress = progress_[c];
    for (TaskId t = 0; t < progress.missing.size(); ++t) {
      if (progress.missing[t] == Progress::is_done || ++count > 5) continue;
      std::string waits;
      for (const TaskId before : task(c, t).after)
        if (progress.missing[before] != Progress::is_done)
          waits += fmt::format("{}'{}'", waits.empty() ? "" : ", ", task(c, before).name);
      blocked += fmt::format("{}{} '{}' waits for {}", blocked.empty() ? "" : "; ",
                             machine_.endpoint_name(folding_.endpoints[c]), task(c, t).name,
                             waits.empty() ? "its messages or its stream" : waits);
    }
  }
  if (count > 0)
    throw std::runtime_error(fmt::format("the plan cannot finish: {} blocked: {}{}",
                                         count == 1 ? "1 task is" : fmt::format("{} tasks are", count),
                                         blocked, count > 5 ? "; ..." : ""));
}

}  // namespace convoy::replays
