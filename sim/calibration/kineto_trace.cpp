// SPDX-License-Identifier: MIT
#include "sim/calibration/kineto_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "sim/base/median.h"
#include "sim/calibration/kineto_events.h"

namespace convoy::inline calibration {
namespace {

/// An operation of the framework that is inside no other one, with the operations of the graph of which it consists.
struct OutermostOperation {
  const TimedOperation* itself = nullptr;
  std::vector<std::pair<const TimedOperation*, Measurement>> parts;
  std::optional<OptimizerStep> step;  ///< where it is one
};

/// A pause in microseconds. Times of a trace are whole nanoseconds: less is what their sums are rounded by.
double pause_us(double us) {
  constexpr double resolution_us = 1e-3;
  return us < resolution_us / 2 ? 0 : us;
}

/// How long any of them is under way.
double covered_us(Stretches stretches) {
  std::sort(stretches.begin(), stretches.end());
  double covered = 0, until = -std::numeric_limits<double>::infinity();
  for (const auto& [from, to] : stretches) {
    covered += std::max(0.0, to - std::max(from, until));
    until = std::max(until, to);
  }
  return covered;
}

/// GPU kernels of NCCL: "ncclKernel_AllReduce_RING_LL_Sum_float", "ncclDevKernel_...".
bool is_communication(std::string_view kernel) { return kernel.starts_with("nccl"); }

/// Makes a trace of its events.
class TraceReader {
 public:
  TraceReader(std::string file, KinetoEvents events) : file_(std::move(file)), events_(std::move(events)) {}

  KinetoTrace finish(const std::string& device) {
    KinetoTrace trace;
    trace.on_cpu = events_.kernels.empty();
    if (trace.on_cpu)
      read_cpu(trace);
    else
      read_gpu(trace);
    if (times_.empty())
      throw InputError({file_, 0, 0},
                       trace.on_cpu
                           ? "no operation is a convolution, linear layer, batch normalization or ReLU whose "
                             "shapes are known; on a GPU, profile with ProfilerActivity.CUDA"
                           : "no GPU kernel belongs to a convolution, linear layer, batch normalization "
                             "or ReLU whose shapes are known");
    for (auto& [key, list] : times_) {
      Measurement m;
      m.device = device;
      std::tie(m.kernel, m.batch, m.precision, m.step, m.optimizer) = key;
      m.images_per_s = m.batch / (median(list) * 1e-6);
      m.without_launch = true;
      m.source = file_;
      m.note = fmt::format("median of {}", list.size());
      m.pos = {file_, 0, 0};
      trace.measurements.push_back(std::move(m));
      double total_us = 0;
      for (const double us : list) total_us += us;
      trace.totals_s.push_back(total_us * 1e-6);
    }
    trace.steps = events_.optimizer_steps > 0 ? events_.optimizer_steps : events_.profiler_steps;
    share_out(trace);
    draw_first_step(trace);
    trace.others.assign(others_.begin(), others_.end());
    std::stable_sort(trace.others.begin(), trace.others.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    return trace;
  }

 private:
  void share_out(KinetoTrace& trace) const {
    Stretches busy, all;
    const auto add = [](Stretches& list, double start_us, double us) {
      list.emplace_back(start_us, start_us + us);
    };
    for (const TimedOperation& op : events_.operations) {
      if (!is_operation(op.what.name)) continue;
      add(all, op.start_us, op.duration_us);
      if (trace.on_cpu) add(busy, op.start_us, op.duration_us);
    }
    Stretches with_messages;
    for (const GpuKernel& k : events_.kernels) {
      add(all, k.start_us, k.duration_us);
      add(is_communication(k.name) ? with_messages : busy, k.start_us, k.duration_us);
    }
    double first_us = all.front().first, last_us = all.front().second;
    for (const auto& [from, to] : all) first_us = std::min(first_us, from), last_us = std::max(last_us, to);
    with_messages.insert(with_messages.end(), busy.begin(), busy.end());
    Stretches with_loader = with_messages;
    for (const auto& [from, to] :
         events_.loader)                    // images that are waited for before the first operation are not
      if (to > first_us && from < last_us)  // of a step that is in the trace as a whole
        with_loader.emplace_back(std::max(from, first_us), std::min(to, last_us));
    const double compute_us = covered_us(busy), messages_us = covered_us(with_messages),
                 loader_us = covered_us(with_loader);
    trace.whole_s = (last_us - first_us) * 1e-6;
    trace.compute_s = compute_us * 1e-6;
    trace.exposed_comm_s = (messages_us - compute_us) * 1e-6;
    trace.loader_s = (loader_us - messages_us) * 1e-6;
    trace.waiting_s = trace.whole_s - loader_us * 1e-6;
    trace.recording_between_s = std::min(trace.recording_between_s, trace.waiting_s);
  }

  /// A GPU is behind its host, so that its step is the first part of its kernels' time.
  void draw_first_step(KinetoTrace& trace) {
    std::map<std::string, std::vector<TracedStretch>> threads;
    constexpr double never_us = std::numeric_limits<double>::infinity();
    double first_us = never_us, host_step_ends_us = never_us, first_kernel_us = never_us, last_kernel_us = 0;
    for (const OutermostOperation& outer : outermost_operations()) {
      const TimedOperation& op = *outer.itself;
      first_us = std::min(first_us, op.start_us);
      if (outer.step) host_step_ends_us = std::min(host_step_ends_us, op.start_us + op.duration_us);
    }
    for (const GpuKernel& k : events_.kernels) {
      first_kernel_us = std::min(first_kernel_us, k.start_us);
      last_kernel_us = std::max(last_kernel_us, k.start_us + k.duration_us);
    }
    first_us = std::min(first_us, first_kernel_us);
    const auto steps = static_cast<double>(std::max<std::size_t>(1, trace.steps));
    if (host_step_ends_us == never_us) host_step_ends_us = first_us + trace.whole_s * 1e6 / steps;
    const double kernels_end_us = first_kernel_us + (last_kernel_us - first_kernel_us) / steps;
    const auto add = [&](std::string thread, const std::string& name, double start_us, double us,
                         double ends) {
      constexpr double resolution_us = 1e-3;
      if (start_us >= ends - resolution_us / 2) return;
      std::vector<TracedStretch>& stretches = threads[thread];
      const double start_s = (start_us - first_us) * 1e-6;
      stretches.push_back({std::move(thread), name, start_s, start_s + us * 1e-6});
    };
    for (const OutermostOperation& outer : outermost_operations()) {
      const TimedOperation& op = *outer.itself;
      add(fmt::format("host thread {}", op.thread.second), op.what.name, op.start_us, op.duration_us,
          host_step_ends_us);
    }
    for (const GpuKernel& k : events_.kernels)
      add(fmt::format("GPU {} stream {}", k.stream.first, k.stream.second), k.name, k.start_us, k.duration_us,
          kernels_end_us);
    for (auto& [thread, stretches] : threads) {
      std::stable_sort(stretches.begin(), stretches.end(),
                       [](const auto& a, const auto& b) { return a.start_s < b.start_s; });
      std::move(stretches.begin(), stretches.end(), std::back_inserter(trace.first_step));
    }
  }

  void take(KinetoTrace& trace, const Measurement& m, double us) {
    times_[{m.kernel, m.batch, m.precision, m.step, m.optimizer}].push_back(us);
    trace.matched_s += us * 1e-6;
  }

  void read_gpu(KinetoTrace& trace) {
    trace.launch_s = median_pause_s();
    std::map<std::int64_t, double> microseconds;
    for (GpuKernel& k : events_.kernels) {
      if (is_communication(k.name)) continue;
      trace.kernel_s += k.duration_us * 1e-6;
      if (!k.operation) continue;
      microseconds[*k.operation] += k.duration_us;
      const auto found = events_.by_id.find(*k.operation);
      if (found != events_.by_id.end() && runs_on_tf32(k.name))
        events_.operations[found->second].what.tf32 = true;
    }
    for (const auto& [id, us] : microseconds) {
      const auto found = events_.by_id.find(id);
      if (found == events_.by_id.end()) continue;
      const KinetoOperation& op = events_.operations[found->second].what;
      if (const auto m = measurement_of(op))
        take(trace, *m, us);
      else
        others_[op.name] += us * 1e-6;
    }
  }

  /// Operations nest by their times on a thread. Of each outermost one, the whole time belongs to the operation of
  /// the graph that it consists of: what else happens in it (buffers, copies into another order) is done for that,
  /// but not what recording the operations in it took.
  void read_cpu(KinetoTrace& trace) {
    const double recording_us = find_nesting();
    const auto net_us = [&](const TimedOperation& op) {
      const double recorded_us = std::min(recording_us * static_cast<double>(op.nested), op.duration_us / 2);
      return op.duration_us - recorded_us;
    };
    std::size_t between = events_.operations.size();
    std::vector<double> pauses;
    const TimedOperation* before = nullptr;  // the last one of the graph
    double passed_over_us = 0;               // since then
    for (const OutermostOperation& outer : outermost_operations()) {
      const TimedOperation& op = *outer.itself;
      trace.kernel_s += net_us(op) * 1e-6;
      trace.recording_inside_s += (op.duration_us - net_us(op)) * 1e-6;
      between -= std::min(between, op.nested);
      const auto update = outer.step ? outer.step->measurement() : std::nullopt;
      if (!update && outer.parts.empty()) {
        others_[op.what.name] += net_us(op) * 1e-6;
        passed_over_us += op.duration_us;
        continue;
      }
      if (update) take(trace, *update, net_us(op));
      for (const auto& [part, m] : outer.parts) take(trace, m, net_us(outer.parts.size() == 1 ? op : *part));
      if (before && before->thread == op.thread)
        pauses.push_back(pause_us(op.start_us - before->start_us - before->duration_us - passed_over_us));
      before = &op;
      passed_over_us = 0;
    }
    trace.launch_s = median(std::move(pauses)) * 1e-6;
    trace.recording_between_s = recording_us * 1e-6 * static_cast<double>(between);
  }

  /// Counts for each operation those in it.
  /// @return what it takes to record one: the mean time that an operation takes beside the only one in it,
  /// where that is long, so that it only hands on to it. 0 where there are few of these.
  double find_nesting() {
    constexpr double long_us = 100;
    constexpr std::size_t few = 10;
    std::vector<TimedOperation*> order;
    for (TimedOperation& op : events_.operations) order.push_back(&op);
    // Of two that take the same time, a node of the backward pass is around the operation.
    std::stable_sort(order.begin(), order.end(), [](const TimedOperation* a, const TimedOperation* b) {
      return std::tuple(a->thread, a->start_us, -a->duration_us, is_operation(a->what.name)) <
             std::tuple(b->thread, b->start_us, -b->duration_us, is_operation(b->what.name));
    });
    struct Open {
      TimedOperation* op;
      std::size_t directly = 0;
      double last_us = 0;  ///< of the last one directly in it
    };
    std::vector<Open> open;
    std::vector<double> beside_us;
    const auto close = [&] {
      if (open.back().directly == 1 && open.back().last_us >= long_us)
        beside_us.push_back(open.back().op->duration_us - open.back().last_us);
      open.pop_back();
    };
    for (TimedOperation* op : order) {
      const auto holds = [&](const TimedOperation& around) {
        return around.thread == op->thread &&
               op->start_us + op->duration_us <= around.start_us + around.duration_us;
      };
      while (!open.empty() && !holds(*open.back().op)) close();
      for (const Open& around : open) ++around.op->nested;
      if (!open.empty()) ++open.back().directly, open.back().last_us = op->duration_us;
      open.push_back({op});
    }
    while (!open.empty()) close();
    if (beside_us.size() < few) return 0;
    return std::accumulate(beside_us.begin(), beside_us.end(), 0.0) / static_cast<double>(beside_us.size());
  }

  /// By thread, in order of their begin.
  std::vector<OutermostOperation> outermost_operations() {
    std::vector<const TimedOperation*> order;
    for (TimedOperation& op : events_.operations) {
      if (op.what.type.empty()) op.what.type = "float";  // not recorded: what PyTorch computes in unless told
      if (is_operation(op.what.name)) order.push_back(&op);
    }
    std::stable_sort(order.begin(), order.end(), [](const TimedOperation* a, const TimedOperation* b) {
      return std::tuple(a->thread, a->start_us, -a->duration_us) <
             std::tuple(b->thread, b->start_us, -b->duration_us);
    });
    std::vector<OutermostOperation> outermost;
    double end_us = 0, part_end_us = 0;  // of the outermost operation, and of the last of its parts
    for (const TimedOperation* op : order) {
      const double op_end_us = op->start_us + op->duration_us;
      if (outermost.empty() || outermost.back().itself->thread != op->thread || op->start_us >= end_us) {
        outermost.push_back({op, {}, std::nullopt});
        if (is_optimizer_step(op->what.name)) outermost.back().step.emplace();
        end_us = op_end_us;
        part_end_us = op->start_us;
      }
      OutermostOperation& outer = outermost.back();
      if (outer.step) {
        outer.step->add(op->what);
      } else if (op->start_us >= part_end_us) {
        auto m = measurement_of(op->what);
        if (!m) m = sum_of(op->what);
        if (!m) continue;
        outer.parts.emplace_back(op, std::move(*m));
        part_end_us = op_end_us;
      }
    }
    return outermost;
  }

  double median_pause_s() {
    std::map<std::pair<std::int64_t, std::string>, std::vector<const GpuKernel*>> streams;
    for (const GpuKernel& k : events_.kernels) streams[k.stream].push_back(&k);
    std::vector<double> pauses;
    for (auto& [stream, list] : streams) {
      std::stable_sort(list.begin(), list.end(),
                       [](const GpuKernel* a, const GpuKernel* b) { return a->start_us < b->start_us; });
      for (std::size_t i = 1; i < list.size(); ++i)
        pauses.push_back(pause_us(list[i]->start_us - list[i - 1]->start_us - list[i - 1]->duration_us));
    }
    return median(std::move(pauses)) * 1e-6;
  }

  std::string file_;
  KinetoEvents events_;

  using Key = std::tuple<std::string, double, Precision, MeasuredStep, Optimizer>;
  std::map<Key, std::vector<double>> times_;  // microseconds
  std::map<std::string, double> others_;      // seconds
};

}  // namespace

KinetoTrace read_kineto_trace(const std::string& file, const std::string& device) {
  return TraceReader(file, read_kineto_events(file)).finish(device);
}

}  // namespace convoy::calibration
