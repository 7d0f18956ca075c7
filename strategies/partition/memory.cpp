// SPDX-License-Identifier: MIT
#include "strategies/partition/memory.h"

#include <algorithm>

namespace convoy::inline partition {
namespace {

/// Position of the operation of a part that is running at `time_us`, or would run next.
std::uint32_t position_at(const std::vector<NodeId>& sequence, const Schedule& schedule, double time_us) {
  const auto after = std::upper_bound(sequence.begin(), sequence.end(), time_us,
                                      [&](double t, NodeId v) { return t < schedule.start_us[v]; });
  if (after != sequence.begin() && (after == sequence.end() || schedule.finish_us[*(after - 1)] > time_us))
    return static_cast<std::uint32_t>(after - 1 - sequence.begin());
  return static_cast<std::uint32_t>(after - sequence.begin());
}

void find_peaks(MemoryUse& use) {
  std::vector<std::vector<double>> change(use.sequence.size());
  for (Part part = 0; part < change.size(); ++part) change[part].resize(use.sequence[part].size() + 1);
  for (const HeldOutput& output : use.outputs) {
    change[output.part][output.first] += output.bytes;
    change[output.part][output.last + 1] -= output.bytes;
  }
  for (Part part = 0; part < change.size(); ++part) {
    double held = use.resident_bytes[part], peak = held;
    for (std::uint32_t i = 0; i < use.sequence[part].size(); ++i) {
      held += change[part][i];
      if (held > peak) peak = held, use.peak_position[part] = i;
    }
    use.peak_bytes[part] = peak;
  }
}

}  // namespace

MemoryUse emulate_memory(const Dag& dag, const PartLink& link, Part parts, const Placement& placement,
                         const Schedule& schedule) {
  MemoryUse use;
  use.sequence.resize(parts);
  use.position.resize(dag.size());
  use.resident_bytes.resize(parts);
  use.peak_bytes.resize(parts);
  use.peak_position.resize(parts);
  for (const NodeId v : dag.order()) {
    use.sequence[placement[v]].push_back(v);
    use.resident_bytes[placement[v]] += dag.memory_bytes(v);
  }
  for (std::vector<NodeId>& sequence : use.sequence) {
    // Operations that take no time may start together; then their inputs' order, which is the vector's.
    std::stable_sort(sequence.begin(), sequence.end(), [&](NodeId a, NodeId b) {
      return schedule.start_us[a] < schedule.start_us[b] ||
             (schedule.start_us[a] == schedule.start_us[b] && schedule.finish_us[a] < schedule.finish_us[b]);
    });
    for (std::uint32_t i = 0; i < sequence.size(); ++i) use.position[sequence[i]] = i;
  }
  constexpr std::uint32_t unread = 0xffffffff;
  std::vector<std::uint32_t> last(parts, unread);  // of the readers on each part
  for (NodeId v = 0; v < dag.size(); ++v) {
    if (dag.output_bytes(v) == 0) continue;
    const Part home = placement[v];
    last[home] = use.position[v];
    bool sent = false;
    for (const NodeId w : dag.children(v)) {
      std::uint32_t& reader = last[placement[w]];
      reader = reader == unread ? use.position[w] : std::max(reader, use.position[w]);
      sent = sent || placement[w] != home;
    }
    if (sent) {
      const double arrived = schedule.finish_us[v] + link.cost_us(dag.output_bytes(v));
      const auto end = static_cast<std::uint32_t>(use.sequence[home].size() - 1);
      last[home] = std::max(last[home], std::min(end, position_at(use.sequence[home], schedule, arrived)));
    }
    const double at_home = dag.output_bytes(v) - dag.memory_bytes(v);
    if (at_home > 0) use.outputs.push_back({v, home, use.position[v], last[home], at_home});
    last[home] = unread;
    for (const NodeId w : dag.children(v)) {
      const Part part = placement[w];
      if (last[part] == unread) continue;
      const std::uint32_t posted = position_at(use.sequence[part], schedule, schedule.finish_us[v]);
      use.outputs.push_back({v, part, std::min(posted, last[part]), last[part], dag.output_bytes(v)});
      last[part] = unread;
    }
  }
  find_peaks(use);
  return use;
}

}  // namespace convoy::partition
