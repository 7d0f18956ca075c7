// SPDX-License-Identifier: MIT
#include "strategies/partition/memory.h"

#include <algorithm>

namespace convoy::inline partition {
namespace {

/// When the operations of a part run, in the order of its sequence.
struct PartTimes {
  std::vector<double> start_us, finish_us;

  /// Position of the operation that is running at `time_us`, or would run next.
  std::uint32_t position_at(double time_us) const {
    const auto after = static_cast<std::size_t>(std::upper_bound(start_us.begin(), start_us.end(), time_us) -
                                                start_us.begin());
    const bool runs = after > 0 && (after == start_us.size() || finish_us[after - 1] > time_us);
    return static_cast<std::uint32_t>(runs ? after - 1 : after);
  }
};

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
  std::vector<PartTimes> times(parts);
  for (Part part = 0; part < parts; ++part) {
    std::vector<NodeId>& sequence = use.sequence[part];
    // Times are sorted with their nodes: looking them up at each comparison waits for memory in large graphs.
    struct Run {
      double start_us, finish_us;
      NodeId node;
    };
    std::vector<Run> runs;
    runs.reserve(sequence.size());
    for (const NodeId v : sequence) runs.push_back({schedule.start_us[v], schedule.finish_us[v], v});
    // Operations that take no time may start together; then their inputs' order, which is the vector's.
    std::stable_sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
      return a.start_us < b.start_us || (a.start_us == b.start_us && a.finish_us < b.finish_us);
    });
    for (std::uint32_t i = 0; i < runs.size(); ++i) {
      sequence[i] = runs[i].node;
      use.position[sequence[i]] = i;
      times[part].start_us.push_back(runs[i].start_us);
      times[part].finish_us.push_back(runs[i].finish_us);
    }
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
      last[home] = std::max(last[home], std::min(end, times[home].position_at(arrived)));
    }
    const double at_home = dag.output_bytes(v) - dag.memory_bytes(v);
    if (at_home > 0) use.outputs.push_back({v, home, use.position[v], last[home], at_home});
    last[home] = unread;
    for (const NodeId w : dag.children(v)) {
      const Part part = placement[w];
      if (last[part] == unread) continue;
      const std::uint32_t posted = times[part].position_at(schedule.finish_us[v]);
      use.outputs.push_back({v, part, std::min(posted, last[part]), last[part], dag.output_bytes(v)});
      last[part] = unread;
    }
  }
  find_peaks(use);
  return use;
}

}  // namespace convoy::partition
