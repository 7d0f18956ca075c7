// SPDX-License-Identifier: MIT
#include "sim/plan/program_times.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>

namespace convoy::inline plans {
namespace {

struct Costs {
  DeviceType device;
  CostModel cost;
  bool operator==(const Costs&) const = default;
  std::size_t hash() const { return std::hash<std::string>{}(device.name); }
};

/// Of an operation of the graph, the work and the images for which its time was asked last.
struct LastTime {
  Work work;
  double images = -1, time_s = 0;
};

/// By operation of the graph, for so many of its first ones: programs that differ in their buckets alone have the
/// same operations.
using LastTimes = std::vector<LastTime>;
constexpr std::size_t most_kept = 4096;

std::shared_ptr<LastTimes> last_times(const TimedProgram& timed) {
  constexpr std::size_t most_costs = 16;
  static thread_local Memo<Costs, std::shared_ptr<LastTimes>> memo(most_costs);
  return memo.of({timed.device, timed.cost}, [](const Costs&) { return std::make_shared<LastTimes>(); });
}

/// Times of operations by what they do, whichever layer of the network does it: a network has many equal ones.
class TimesByWork {
 public:
  explicit TimesByWork(const TimedProgram& timed)
      : timed_(timed), by_layer_(timed.cost.has_measured_layers(timed.device)) {}

  double time_s(const Work& work, double images) {
    if (by_layer_) return timed_.cost.time_s(work, images, timed_.device);
    const auto [known, fresh] = times_s_.try_emplace({&work, images}, 0.0);
    if (fresh) known->second = timed_.cost.time_s(work, images, timed_.device);
    return known->second;
  }

 private:
  struct Key {
    const Work* work;  ///< of the program
    double images;
    bool operator==(const Key& other) const {
      if (images != other.images || work->bytes_per_image != other.work->bytes_per_image) return false;
      Work of_same_layer = *work;
      of_same_layer.layer = other.work->layer;
      return of_same_layer == *other.work;
    }
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      const auto bits = [](double number) { return std::bit_cast<std::uint64_t>(number); };
      const std::size_t hash =
          hash_with(hash_with(bits(key.work->bytes_per_image), bits(key.work->flops_per_image)),
                    hash_with(bits(key.work->bytes_fixed), bits(key.images)));
      return hash ^ (hash >> 32);  // numbers of few digits have their differences on top
    }
  };

  const TimedProgram& timed_;
  bool by_layer_;
  std::unordered_map<Key, double, Hash> times_s_;
};

std::vector<double> times_of(const TimedProgram& timed) {
  const std::shared_ptr<LastTimes> kept = last_times(timed);
  TimesByWork times(timed);
  std::vector<double> times_s;
  std::unordered_map<const std::vector<PlanOp>*, std::size_t>
      shared;  // where the times of their operations begin
  for (const Task& task : timed.program) {
    if (task.ops.is_shared())
      if (const auto [begin, fresh] = shared.try_emplace(&task.ops.get(), times_s.size()); !fresh) {
        for (std::size_t i = 0; i < task.ops.size(); ++i) times_s.push_back(times_s[begin->second + i]);
        continue;
      }
    for (const PlanOp& op : task.ops) {
      if (op.operation >= most_kept) {  // or is none of the graph's
        times_s.push_back(times.time_s(op.work, op.images));
        continue;
      }
      if (op.operation >= kept->size()) kept->resize(op.operation + 1);
      LastTime& last = (*kept)[op.operation];
      if (last.images != op.images || last.work != op.work)
        last = {op.work, op.images, times.time_s(op.work, op.images)};
      times_s.push_back(last.time_s);
    }
  }
  return times_s;
}

}  // namespace

std::shared_ptr<const std::vector<double>> program_times_s(const TimedProgram& timed) {
  static thread_local ProgramMemo<TimedProgram, std::shared_ptr<const std::vector<double>>> memo;
  TimedProgram once = timed;
  once.repeats.reset();
  return memo.of(std::move(once), [](const TimedProgram& of) {
    return std::make_shared<const std::vector<double>>(times_of(of));
  });
}

}  // namespace convoy::plans
