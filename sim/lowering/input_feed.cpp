// SPDX-License-Identifier: MIT
#include "sim/lowering/input_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace convoy::inline lowering {
namespace {

/// Whether a plan's operation is the graph's first.
bool reads_images(const PlanOp& op) { return op.operation == 0; }

/// ", pillow_simd or dali_cpu": the libraries of the catalogue that make more images of a core; "" where none does.
/// Its rates are compared with each other: one of the experiment's own is of other cores.
std::string faster_than(const InputSpec& spec) {
  const double own_rate = load_input_library(spec.library.name, spec.pos).core_images_per_s;
  std::string faster;
  for (const std::string& name : input_library_names())
    if (load_input_library(name, spec.pos).core_images_per_s > own_rate)
      faster += (faster.empty() ? " or " : ", ") + name;
  return faster;
}

/// @param faster faster_than(spec)
std::string text_of(const InputSpec& spec, const InputRate& rate, const std::string& host, double images,
                    const std::string& faster) {
  const std::string makes = fmt::format("{} makes {:.0f} images ready in {:.4g} ms", host, images,
                                        1e3 * images / rate.images_per_s);
  switch (rate.limit) {
    case InputRate::Limit::storage:
      return fmt::format("{}, as fast as its storage gives them: faster storage or cached: true would help",
                         makes);
    case InputRate::Limit::workers:
      return fmt::format("{} with {} workers of {} on {:g} cores: more workers_per_device would help", makes,
                         rate.workers, spec.library.name, rate.cores);
    case InputRate::Limit::cores:
      break;
  }
  return fmt::format("{} with {} on {:g} cores: more vCPUs{} would help", makes, spec.library.name,
                     rate.cores, faster);
}

/// The device's part of decoding, before each first operation of a program.
void add_device_part(Role& role, const std::string& first, const InputSpec& spec) {
  for (Task& task : role.program) {
    if (std::ranges::none_of(task.ops.get(), reads_images)) continue;
    std::vector<PlanOp>& ops = task.ops.edit();
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (!reads_images(ops[i])) continue;
      PlanOp decode{"decode" + ops[i].name.substr(first.size()), {}, ops[i].images, {}, {}};
      decode.work.kind = KernelKind::elementwise;
      decode.work.bytes_per_image =
          spec.library.device_bytes_per_image * spec.image_pixels / imagenet_image_pixels;
      ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(i++), std::move(decode));
    }
  }
}

/// What crosses the links between a host's memory and its devices for each image: the files themselves where
/// devices decode, else pixels of 4 bytes.
double copied_bytes(const TrainingGraph& graph, const InputSpec& spec) {
  return spec.library.device_bytes_per_image > 0 ? spec.image_bytes
                                                 : 4.0 * static_cast<double>(elements(graph.model.input));
}

/// Time that copies of a host's images to its devices take, side by side: that of the link which most bytes
/// over its bandwidth cross. @param images by device of the machine
double copy_time_s(const Machine& machine, std::uint32_t host, const std::vector<double>& images,
                   double image_bytes) {
  std::map<LinkId, double> images_of;
  Route way;
  const Host& of = machine.hosts[host];
  for (EndpointId device = of.first_device; device < of.first_device + of.device_count; ++device) {
    if (images[device] == 0) continue;
    machine.router->route(machine.host_endpoint(host), device, way);
    for (const LinkId link : way.links) images_of[link] += images[device];
  }
  double time_s = 0;
  for (const auto& [link, crossing] : images_of)
    time_s = std::max(time_s, crossing * image_bytes / machine.links[link].bandwidth_Bps);
  return time_s;
}

/// Images that each device's program reads.
std::vector<double> images_read(const Plan& plan, const Machine& machine) {
  std::vector<double> images(machine.devices.size(), 0.0);
  for (const Role& role : plan.roles) {
    double of_member = 0;
    for (const Task& task : role.program)
      for (const PlanOp& op : task.ops)
        if (reads_images(op)) of_member += op.images;
    for (const EndpointId member : role.members)
      if (member < machine.devices.size()) images[member] += of_member;
  }
  return images;
}

std::vector<double> sums_by_host(const std::vector<double>& of_device, const Machine& machine) {
  std::vector<double> sums(machine.hosts.size(), 0.0);
  for (std::size_t d = 0; d < of_device.size(); ++d) sums[machine.devices[d].host] += of_device[d];
  return sums;
}

}  // namespace

std::vector<double> images_by_host(const Plan& plan, const Machine& machine) {
  std::vector<double> images = sums_by_host(images_read(plan, machine), machine);
  const double total = std::accumulate(images.begin(), images.end(), 0.0);
  if (total > 0)
    for (double& of_host : images) of_host *= plan.images / total;
  return images;
}

InputFeed feed_of(const Plan& plan, const TrainingGraph& graph, const Machine& machine,
                  const InputSpec& spec) {
  const std::vector<double> of_device = images_read(plan, machine);
  const std::vector<double> images = sums_by_host(of_device, machine);
  const double total = std::accumulate(of_device.begin(), of_device.end(), 0.0);
  // With backup workers a global batch is less than what all read.
  const double once = !plan.service() && total > plan.images ? plan.images / total : 1;
  const std::string faster = faster_than(spec);
  InputFeed feed;
  feed.prefetch = static_cast<std::uint32_t>(spec.prefetch);
  for (std::uint32_t h = 0; h < machine.hosts.size(); ++h) {
    feed.interval_s.push_back(0);
    feed.limit.emplace_back();
    const Host& host = machine.hosts[h];
    if (images[h] == 0) continue;
    const InputRate rate = input_rate(spec, machine.host_types[host.type], host.device_count);
    const double made_s = images[h] * once / rate.images_per_s;
    const double copied_s = once * copy_time_s(machine, h, of_device, copied_bytes(graph, spec));
    feed.interval_s.back() = std::max(made_s, copied_s);
    feed.limit.back() =
        copied_s > made_s
            ? fmt::format("{} copies {:.0f} images to its devices in {:.4g} ms: faster PCIe links would help",
                          host.name, images[h] * once, 1e3 * copied_s)
            : text_of(spec, rate, host.name, images[h] * once, faster);
  }
  return feed;
}

void add_input(Plan& plan, const TrainingGraph& graph, const Machine& machine, const InputSpec& spec) {
  if (spec.synthetic || graph.operations.empty()) return;
  plan.input = feed_of(plan, graph, machine, spec);
  if (spec.library.device_bytes_per_image > 0)
    for (Role& role : plan.roles) add_device_part(role, graph.operations.front().name, spec);
}

}  // namespace convoy::lowering
