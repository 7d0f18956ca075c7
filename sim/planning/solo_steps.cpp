// SPDX-License-Identifier: MIT
#include "sim/planning/solo_steps.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "sim/plan/program_times.h"
#include "sim/results/field_text.h"
#include "sim/run/search/assess.h"
#include "sim/run/workers.h"

namespace convoy::inline planning {
namespace {

constexpr auto bucket_fields = [](auto& archive, auto& bucket) {
  archive.field("bucketing", bucket.bucketing);
  archive.field("bytes", bucket.bytes);
  archive.field("ready_s", bucket.ready_s);
  archive.field("copy_s", bucket.copy_s);
};

constexpr auto solo_fields = [](auto& archive, auto& solo) {
  archive.field("batch", solo.batch);
  archive.field("step_s", solo.step_s);
  archive.field("update_s", solo.update_s);
  archive.field("forward_s", solo.forward_s);
  archive.field("running_s", solo.running_s);
  archive.field("device_energy_j", solo.device_energy_j);
  archive.field("peak_memory_bytes", solo.peak_memory_bytes);
  archive.field("fits", solo.fits);
  archive.list("buckets", solo.buckets, bucket_fields);
};

constexpr auto solos_fields = [](auto& archive, auto& solos) {
  archive.list("steps", solos.steps, solo_fields);
  archive.field("gradient_bytes", solos.gradient_bytes);
};

/// When the operations of a program that runs alone are done, if none waits for the host.
struct SoloTimes {
  std::vector<double> done_s;          ///< by operation of the graph but the update's; 0 where there is none
  double forward_s = 0, update_s = 0;  ///< of the operations of these passes
};

SoloTimes times_of(const PreparedRun& run) {
  const Device& device = run.machine.devices[0];
  const Role& role = run.plan.roles[0];
  const auto times_s =
      program_times_s({{role.program, role.repeats}, run.machine.device_types[device.type], run.cost});
  SoloTimes all{std::vector<double>(run.graph->operations.size(), 0.0)};
  auto next_s = times_s->begin();
  double done_s = 0;
  for (const Task& task : role.program)
    for (const PlanOp& op : task.ops) {
      const double own_s = *next_s++ / device.speed;
      const Operation* operation =
          op.operation != PlanOp::of_plan ? &run.graph->operations[op.operation] : nullptr;
      if (operation && operation->phase == Phase::update) {
        all.update_s += own_s;
        continue;
      }
      done_s += own_s;
      if (!operation) continue;
      if (operation->phase == Phase::forward) all.forward_s += own_s;
      all.done_s[op.operation] = done_s;
    }
  return all;
}

/// Alone on the first device of one server.
Setup solo_setup(const std::string& server, Precision precision, std::int64_t batch) {
  static const auto single = std::make_shared<const YamlNode>(parse_yaml("{kind: single}", "single"));
  return {{{server, 1}}, precision, batch, 1, batch, single};
}

Point solo_point(const PlanSpec& spec, const Setup& setup) {
  Point point = point_of(spec, setup);
  YamlNode cluster = point.cluster;
  cluster.entries.emplace_back("devices_per_node", parse_yaml("1", "devices_per_node"));
  point.cluster = std::move(cluster);
  return point;
}

SoloStep solo_step_of(PreparedRun run, std::int64_t batch, double share,
                      const std::vector<GradientSync>& bucketings) {
  run.plan.input.reset();  // a whole host has more devices to make images ready for
  const Assessment assessment = assess(run);
  const double host_w = run.machine.host_types[run.machine.hosts[0].type].host_power_w;
  const SoloTimes times = times_of(run);
  return {batch,
          assessment.step_bound_s,
          times.update_s,
          times.forward_s,
          assessment.running_s,
          assessment.energy_bound_j - host_w * assessment.step_bound_s,
          0,
          assessment.peak_bytes,
          assessment.fits_in(share),
          bucket_times(bucketings, run, times.done_s)};
}

/// On whole hosts of the server, as plain all-reduces use them.
HostWays ways_between(const PlanSpec& spec, const std::string& server, bool joined, Preparer& preparer) {
  static const auto sums = std::make_shared<const YamlNode>(
      parse_yaml("{kind: data_parallel, sync: all_reduce}", "data parallel"));
  const auto machine = [&](std::int64_t hosts) {
    return preparer.machine_of(point_of(spec, {{{server, hosts}}, spec.precisions.front(), 1, 1, 1, sums}));
  };
  try {
    if (!joined) return ways_of(machine(1), nullptr);
    const Machine two = machine(2);
    return ways_of(machine(1), &two);
  } catch (const InputError&) {
    return {};  // candidates say what is wrong
  }
}

/// Images a device that are tried where the plan names none, in order: powers of two, and what comes to a batch
/// that the goal's table has runs of.
std::vector<std::int64_t> tried_batches(const PlanSpec& spec, const ServerSpec& server) {
  std::set<std::int64_t> batches;
  for (std::int64_t batch = 1; batch <= largest_tried_batch; batch *= 2) batches.insert(batch);
  for (const double run : spec.goal.batches())
    for (const std::int64_t nodes : spec.nodes) {
      constexpr double most_images = 1e15;  // of which a double has all digits
      if (run < 1 || run > most_images || run != std::floor(run)) continue;
      const auto global = static_cast<std::int64_t>(run);
      const std::int64_t devices = nodes * server.device_count();
      if (global % devices == 0 && global / devices <= largest_tried_batch) batches.insert(global / devices);
    }
  return {batches.begin(), batches.end()};
}

/// Servers whose first device, alone, takes the same steps.
struct EqualServers {
  const ServerSpec* first = nullptr;
  std::vector<std::string> names;
  std::set<std::int64_t> batches;
};

/// Whether a step of the first device alone is the same, as are errors that name the host.
bool is_alike(const ServerSpec& a, const ServerSpec& b) {
  return a.devices.front().first == b.devices.front().first && a.host.issue_factor == b.host.issue_factor &&
         a.host.vcpus > 0 && b.host.vcpus > 0;
}

std::vector<EqualServers> equal_servers(const PlanSpec& spec, const ServerTable& servers) {
  std::vector<EqualServers> groups;
  for (const auto& [name, server] : servers) {
    auto group = std::find_if(groups.begin(), groups.end(), [&, &of = server](const EqualServers& each) {
      return is_alike(*each.first, of);
    });
    if (group == groups.end()) group = groups.insert(group, {&server, {}, {}});
    group->names.push_back(name);
    for (const std::int64_t batch : tried_batches(spec, server)) group->batches.insert(batch);
  }
  return groups;
}

/// @throws InputError: the servers cannot run the precision, or the network
SoloSteps steps_of(const PlanSpec& spec, const EqualServers& servers, Precision precision,
                   const std::vector<GradientSync>& bucketings, Preparer& preparer) {
  SoloSteps solos;
  const bool given = !spec.batches.empty();
  const std::vector<std::int64_t> tried(servers.batches.begin(), servers.batches.end());
  for (const std::int64_t batch : given ? spec.batches : tried) {
    PreparedRun run = preparer.prepare(solo_point(spec, solo_setup(servers.names.front(), precision, batch)),
                                       nullptr, {}, Detail::step);
    solos.gradient_bytes = run.graph->gradient_bytes();
    solos.steps.push_back(solo_step_of(std::move(run), batch, spec.constraints.memory, bucketings));
    if (!given && !solos.steps.back().fits) break;
  }
  return solos;
}

}  // namespace

SoloTable measure_servers(const PlanSpec& spec, const ServerTable& servers, Preparer& preparer,
                          std::size_t jobs, const std::function<void(std::size_t, std::size_t)>& progress) {
  const std::vector<EqualServers> groups = equal_servers(spec, servers);
  const std::size_t precisions = spec.precisions.size(), items = groups.size() * precisions;
  const std::vector<GradientSync> bucketings = bucketings_of(spec, servers);
  // What all processes need is read once, here.
  preparer.prepare(solo_point(spec, solo_setup(groups[0].names[0], Precision::fp32, 1)), nullptr, {},
                   Detail::step);
  const FirstHalf work = [&](std::size_t i) -> SecondHalf {
    const SoloSteps solos =
        steps_of(spec, groups[i / precisions], spec.precisions[i % precisions], bucketings, preparer);
    return [bytes = to_text(solos, solos_fields)] { return bytes; };
  };
  SoloTable table;
  std::size_t done = 0;
  run_in_workers(items, jobs, work, [&](std::size_t i, WorkerAnswer answer) {
    progress(++done, items);
    SoloSteps solos;
    if (answer.kind == WorkerAnswer::Kind::done)
      solos = from_text<SoloSteps>(answer.bytes, solos_fields);
    else
      solos.message = std::move(answer.bytes);
    for (const std::string& name : groups[i / precisions].names) {
      SoloSteps& own = table[{name, spec.precisions[i % precisions]}] = solos;
      const ServerSpec& server = servers.at(name);
      own.step_jitter = server.step_jitter;
      for (SoloStep& step : own.steps) step.host_power_w = server.host.host_power_w;
    }
  });
  for (const auto& [name, server] : servers) {
    const HostWays ways = ways_between(spec, name, server.fabric != nullptr, preparer);
    for (const Precision precision : spec.precisions) table[{name, precision}].ways = ways;
  }
  return table;
}

const SoloStep* solo_step(const SoloTable& table, const std::string& server, const Setup& setup) {
  const std::vector<SoloStep>& steps = table.at({server, setup.precision}).steps;
  const auto found = std::find_if(steps.begin(), steps.end(),
                                  [&](const SoloStep& solo) { return solo.batch == setup.batch_per_device; });
  return found == steps.end() ? nullptr : &*found;
}

}  // namespace convoy::planning
