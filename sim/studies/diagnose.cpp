// SPDX-License-Identifier: MIT
#include "sim/studies/diagnose.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/base/input_error.h"
#include "sim/calibration/kineto_trace.h"
#include "sim/replay/compute_times.h"
#include "sim/run/explain.h"
#include "sim/run/preparer.h"
#include "sim/run/search/search_spec.h"
#include "sim/run/simulate.h"

namespace convoy::inline studies {
namespace {

/// What a measurement of the trace is of, as the graph has it.
struct TracedKernel {
  std::string name, kind;
  double images = 0;
  std::vector<Work> works;
  double measured_s = 0;  ///< a step
  double predicted_s = 0;
  std::vector<std::string> products;  ///< of a matmul: the plan's operations that it is
};

bool equal_but_for_rounding(double a, double b) {
  constexpr double rounding = 1e-6;
  return std::abs(a - b) <= rounding * std::abs(b);
}

/// FLOPs alone do not tell convolutions apart: 64>256 1x1 has those, and the bytes, of 256>64 1x1. Strides of a
/// trace may be guessed, and are not compared.
bool same_convolution(const Work& a, const Work& b) {
  const auto geometry = [](const Work& work) {
    return std::tuple(work.in_channels, work.out_channels, work.kernel_h, work.kernel_w, work.groups,
                      work.out_h, work.out_w);
  };
  return geometry(a) == geometry(b);
}

/// A trace has products of matrices, [rows, inner] by [inner, columns], and does not say of which pass they
/// are: a layer in > out of n rows is n, in, out; its data gradient n, out, in; and its weight gradient out, n,
/// in, or the transpose of that.
bool same_product(const Work& layer, double images, const TracedKernel& kernel, const Work& traced) {
  const auto in = static_cast<double>(layer.in_channels), out = static_cast<double>(layer.out_channels);
  const double rows = images * static_cast<double>(std::max<std::int64_t>(1, layer.out_h));
  const std::array product{kernel.images, static_cast<double>(traced.in_channels),
                           static_cast<double>(traced.out_channels)};
  if (layer.phase == Phase::forward) return product == std::array{rows, in, out};
  if (layer.phase == Phase::data_gradient) return product == std::array{rows, out, in};
  return product == std::array{out, rows, in} || product == std::array{in, rows, out};
}

bool is_of(const Work& work, double images, const TracedKernel& kernel, const Work& traced) {
  if (work.kind != traced.kind) return false;
  if (work.kind == KernelKind::matmul)
    return same_product(work, images, kernel, traced) &&
           equal_but_for_rounding(work.flops_per_image * images, traced.flops_per_image * kernel.images);
  if (work.phase != traced.phase) return false;
  if (work.phase == Phase::update) return true;  // of all parameters together
  if (images != kernel.images) return false;
  // A trace does not tell how far windows overlap, on which the FLOPs of pooling depend.
  if (work.kind == KernelKind::pooling)
    return equal_but_for_rounding(work.bytes_per_image, traced.bytes_per_image);
  if (!equal_but_for_rounding(work.flops_per_image, traced.flops_per_image)) return false;
  // silu and hardswish do as many FLOPs, on as many bytes.
  if (work.peak_flops_a_flop != traced.peak_flops_a_flop) return false;
  const bool convolves =
      work.kind == KernelKind::convolution || work.kind == KernelKind::depthwise_convolution;
  return !convolves || same_convolution(work, traced);
}

/// The kernel of the trace that an operation of the plan is: of several that with the nearest bytes; nullptr:
/// none.
TracedKernel* kernel_of(const Work& work, double images, std::vector<TracedKernel>& kernels) {
  TracedKernel* nearest = nullptr;
  double least = 0;
  for (TracedKernel& kernel : kernels)
    for (const Work& traced : kernel.works) {
      if (!is_of(work, images, kernel, traced)) continue;
      const double away = std::abs(work.bytes_per_image - traced.bytes_per_image);
      if (nearest && away >= least) continue;
      nearest = &kernel, least = away;
    }
  return nearest;
}

/// Names a product by the layers, and their passes, that it is of.
void name_product(TracedKernel& kernel, const Work& work) {
  const std::string product =
      fmt::format("{}>{}, {}", work.in_channels, work.out_channels, to_string(work.phase));
  if (std::find(kernel.products.begin(), kernel.products.end(), product) != kernel.products.end()) return;
  kernel.products.push_back(product);
  kernel.name = fmt::format("{} {}", kernel.kind, fmt::join(kernel.products, " and "));
}

std::vector<TracedKernel> kernels_of(const KinetoTrace& trace) {
  std::vector<TracedKernel> kernels;
  for (std::size_t i = 0; i < trace.measurements.size(); ++i) {
    const Measurement& m = trace.measurements[i];
    TracedKernel kernel;
    kernel.kind = m.kernel.substr(0, m.kernel.find(' '));
    kernel.name = kernel.kind == "update" ? m.kernel : fmt::format("{}, {}", m.kernel, to_string(m.step));
    kernel.images = m.batch;
    kernel.works = measured_work(m);
    kernel.measured_s = trace.totals_s[i] / static_cast<double>(trace.steps);
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

/// What the first device of the plan computes in a step: adds its operations to the kernels that they are.
void add_predicted(const PreparedRun& run, std::vector<TracedKernel>& kernels) {
  for (const Role& role : run.plan.roles) {
    if (std::find(role.members.begin(), role.members.end(), EndpointId{0}) == role.members.end()) continue;
    for (TaskId t = 0; t < role.program.size(); ++t) {
      const Task& task = role.program[t];
      if (task.kind != Task::Kind::compute) continue;
      const std::vector<double> times_s = operation_times_s(role, task, run.machine, run.cost, 0);
      for (std::size_t i = 0; i < task.ops.size(); ++i)
        if (TracedKernel* kernel = kernel_of(task.ops[i].work, task.ops[i].images, kernels)) {
          kernel->predicted_s += role.times(t) * times_s[i] / run.plan.steps;
          if (task.ops[i].work.kind == KernelKind::matmul) name_product(*kernel, task.ops[i].work);
        }
    }
  }
}

void sort_by_gap(std::vector<DiagnosedTerm>& list) {
  std::stable_sort(list.begin(), list.end(), [](const DiagnosedTerm& a, const DiagnosedTerm& b) {
    return std::abs(a.gap_s()) > std::abs(b.gap_s());
  });
}

/// The part of the predicted step that the loader takes: what the step is shorter without one.
double loader_s(Preparer& preparer, Point point, double step_time_s) {
  if (point.training.input.synthetic) return 0;
  point.training.input = InputSpec{};
  return step_time_s - simulate(preparer.prepare(point, nullptr), false).result.step_time_s;
}

/// By kind of kernel, and what else the two steps consist of.
std::vector<DiagnosedTerm> terms_of(const KinetoTrace& trace, const std::vector<TracedKernel>& kernels,
                                    const RunResult& run, double predicted_loader_s) {
  const auto steps = static_cast<double>(trace.steps);
  std::map<std::string, DiagnosedTerm> by_kind;
  double measured_s = 0, predicted_s = 0;  // matched
  for (const TracedKernel& kernel : kernels) {
    if (kernel.predicted_s == 0) continue;
    DiagnosedTerm& term = by_kind[kernel.kind];
    term.name = kernel.kind;
    term.measured_s += kernel.measured_s, measured_s += kernel.measured_s;
    term.predicted_s += kernel.predicted_s, predicted_s += kernel.predicted_s;
  }
  std::vector<DiagnosedTerm> parts;
  for (auto& [kind, term] : by_kind) parts.push_back(std::move(term));
  const double running_s = run.compute_s - run.issue_wait_s;
  parts.push_back({"other operations", (trace.compute_s - trace.recording_inside_s) / steps - measured_s,
                   running_s - predicted_s});
  parts.push_back({"recording of the trace", trace.recording_s() / steps, 0});
  parts.push_back({"communication", trace.exposed_comm_s / steps, run.exposed_comm_s});
  parts.push_back({"loader", trace.loader_s / steps, predicted_loader_s});
  parts.push_back({"waiting for the host, and for others",
                   (trace.waiting_s - trace.recording_between_s) / steps,
                   run.issue_wait_s + run.idle_s - predicted_loader_s});
  std::erase_if(parts,
                [](const DiagnosedTerm& term) { return term.measured_s == 0 && term.predicted_s == 0; });
  sort_by_gap(parts);
  return parts;
}

/// The measured step as a process before those of the predicted one.
std::vector<TraceProcess> both_steps(const KinetoTrace& trace, std::vector<TraceProcess> predicted) {
  TraceProcess measured{"measured", {}};
  for (const TracedStretch& stretch : trace.first_step) {
    if (measured.threads.empty() || measured.threads.back().name != stretch.thread)
      measured.threads.push_back({stretch.thread, {}});
    measured.threads.back().spans.push_back({stretch.name, stretch.start_s, stretch.end_s});
  }
  std::vector<TraceProcess> both;
  both.push_back(std::move(measured));
  for (TraceProcess& process : predicted) {
    process.name = "predicted: " + process.name;
    both.push_back(std::move(process));
  }
  keep_largest(both);
  return both;
}

void check_trace(const KinetoTrace& trace, const std::string& file, const DeviceType& device) {
  if (trace.steps == 0)
    throw InputError({file, 0, 0},
                     "does not mark its steps: profile whole training steps, with the optimizer's, or call "
                     "profiler.step() after each");
  if (trace.on_cpu == device.kind->in_process) return;
  throw InputError({file, 0, 0},
                   fmt::format("holds operations of a {}, and the experiment's device {} is a {}",
                               trace.on_cpu ? "CPU" : "GPU", device.name, device.kind->text));
}

}  // namespace

TraceDiagnosis diagnose_trace(const std::string& file, const Experiment& experiment, std::size_t jobs,
                              bool with_steps) {
  if (experiment.size() != 1)
    throw InputError({file, 0, 0}, fmt::format("a trace is of one point, and the experiment has {}; --set "
                                               "sweep.KEY=[VALUE] leaves one value of a key",
                                               experiment.size()));
  const Point point = experiment.point(0);
  if (is_search(point.strategy))
    throw InputError(point.strategy->pos, "strategy: name the strategy that the trace is of, not auto");
  Preparer preparer(experiment);
  const PreparedRun run = preparer.prepare(0);
  const DeviceType& device = run.machine.device_types[run.machine.devices.front().type];
  const KinetoTrace trace = read_kineto_trace(file, device.name);
  check_trace(trace, file, device);
  std::vector<TracedKernel> kernels = kernels_of(trace);
  add_predicted(run, kernels);
  TraceDiagnosis diagnosis;
  double matched_s = 0;
  for (const TracedKernel& kernel : kernels) {
    if (kernel.predicted_s == 0) continue;
    matched_s += kernel.measured_s;
    diagnosis.operations.push_back({kernel.name, kernel.measured_s, kernel.predicted_s});
  }
  // Any network has sums and activations of the same size as another's.
  const bool is_of_another = std::none_of(kernels.begin(), kernels.end(), [](const TracedKernel& kernel) {
    return kernel.predicted_s > 0 && (kernel.kind == "convolution" || kernel.kind == "matmul");
  });
  if (is_of_another)
    throw InputError({file, 0, 0},
                     fmt::format("no convolution or linear layer is one of {} on the images of a device's "
                                 "step: the trace is of {:.0f} images, and of another network, image size or "
                                 "batch",
                                 run.graph->model.name, kernels.front().images));
  const Explanation explanation(preparer, experiment.resolved(0), nullptr, jobs);
  RunOutput predicted = simulate(run, with_steps);
  diagnosis.run = std::move(predicted.result);
  diagnosis.run.id = point_id(0);
  if (with_steps) diagnosis.steps_drawn = both_steps(trace, std::move(predicted.trace));
  explanation.add_to(diagnosis.run);
  diagnosis.experiment = experiment.name();
  diagnosis.steps = trace.steps;
  diagnosis.measured_s = trace.whole_s / static_cast<double>(trace.steps);
  diagnosis.recording_s = trace.recording_s() / static_cast<double>(trace.steps);
  diagnosis.matched_share =
      matched_s * static_cast<double>(trace.steps) / (trace.compute_s - trace.recording_inside_s);
  diagnosis.terms =
      terms_of(trace, kernels, diagnosis.run, loader_s(preparer, point, diagnosis.run.step_time_s));
  sort_by_gap(diagnosis.operations);
  return diagnosis;
}

}  // namespace convoy::studies
