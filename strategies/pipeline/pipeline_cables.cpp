// SPDX-License-Identifier: MIT
// What lies between the slots of a pipeline: cables to the next stage, sums over replicas, links that both
// ends share.
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "sim/collectives/collectives.h"
#include "strategies/pipeline/pipeline_costs.h"

namespace convoy::inline strategies {

namespace {

/// The way from a device to another, by itself.
PipelineCosts::Cable way(const Machine& machine, EndpointId from, EndpointId to) {
  Route route;
  machine.router->route(from, to, route);
  PipelineCosts::Cable result{route.connection_Bps, route.latency_s};
  for (const LinkId link : route.links)
    result.bandwidth_Bps = std::min(result.bandwidth_Bps, machine.links[link].bandwidth_Bps);
  return result;
}

/// Messages from a stage with `left` slots to one with `right` before the same two slots are at it again; of many
/// only some are looked at.
std::uint32_t turns_of(std::uint32_t left, std::uint32_t right) {
  constexpr std::uint32_t most_turns = 128;
  return std::min(std::lcm(left, right), most_turns);
}

}  // namespace

const PipelineCosts::Cable& PipelineCosts::cable(std::uint32_t from, std::uint32_t to) const {
  const auto [known, fresh] = cables_.try_emplace({from, to});
  if (!fresh) return known->second;
  known->second = way(machine_, shape_.slots[from].front(), shape_.slots[to].front());
  double& bandwidth_Bps = known->second.bandwidth_Bps;
  for (const auto& [link, pipelines] : crossings(from, to))
    bandwidth_Bps = std::min(bandwidth_Bps, machine_.links[link].bandwidth_Bps / pipelines);
  return known->second;
}

const PipelineCosts::Crossings& PipelineCosts::crossings(std::uint32_t from, std::uint32_t to) const {
  const auto [known, fresh] = crossings_.try_emplace({from, to});
  if (!fresh) return known->second;
  const std::vector<EndpointId>&senders = shape_.slots[from], &receivers = shape_.slots[to];
  std::map<LinkId, double> count;
  Route route;
  for (std::size_t r = 0; r < senders.size(); ++r) {
    machine_.router->route(senders[r], receivers[r], route);
    for (const LinkId link : route.links) ++count[link];
  }
  known->second.assign(count.begin(), count.end());
  return known->second;
}

const PipelineCosts::Border& PipelineCosts::border(std::uint32_t from, std::uint32_t left, std::uint32_t to,
                                                   std::uint32_t right) const {
  const auto [known, fresh] = borders_.try_emplace({from, left, to, right});
  if (!fresh) return known->second;
  const std::uint32_t turns = turns_of(left, right);
  std::map<LinkId, double> load;
  double latency_s = 0, of_byte_s = 0;
  for (std::uint32_t m = 0; m < turns; ++m) {
    const std::uint32_t sender = from + m % left, receiver = to + m % right;
    const Cable& one = cable(sender, receiver);
    latency_s += one.latency_s / turns;
    of_byte_s += 1 / one.bandwidth_Bps / turns;
    for (const auto& [link, pipelines] : crossings(sender, receiver)) load[link] += pipelines / turns;
  }
  double& pace_Bps = known->second.pace_Bps = std::numeric_limits<double>::infinity();
  for (const auto& [link, bytes] : load)
    pace_Bps = std::min(pace_Bps, machine_.links[link].bandwidth_Bps / bytes);
  known->second.message = {1 / of_byte_s, latency_s};
  return known->second;
}

std::vector<PipelineCosts::Edge> PipelineCosts::edges(const std::vector<StageChoice>& stages) const {
  std::vector<std::uint32_t> stage_of(count_, static_cast<std::uint32_t>(stages.size() - 1));
  for (std::uint32_t s = 0; s + 1 < stages.size(); ++s)
    std::fill(stage_of.begin() + stages[s].first_unit, stage_of.begin() + stages[s + 1].first_unit, s);
  std::map<std::pair<std::uint32_t, std::uint32_t>, Edge> found;
  for (const Units::Tensor& tensor : tensors_) {
    const std::uint32_t from = stage_of[tensor.producer];
    std::uint32_t last = from;
    for (const std::uint32_t reader : tensor.readers) {
      if (stage_of[reader] == last) continue;
      last = stage_of[reader];
      Edge& edge = found.try_emplace({from, last}, Edge{from, last}).first->second;
      edge.bytes += tensor.bytes_per_image;
      if (tensor.has_gradient) edge.gradient_bytes += tensor.bytes_per_image;
    }
  }
  std::vector<Edge> edges;
  for (const auto& [ends, edge] : found) edges.push_back(edge);
  return edges;
}

double PipelineCosts::busiest_link_s(const std::vector<StageChoice>& stages) const {
  const auto micro_batches = static_cast<double>(shape_.micro_batches);
  std::map<LinkId, double> bytes;
  const auto add = [&](const Crossings& loads, double times) {
    for (const auto& [link, load] : loads) bytes[link] += load * times;
  };
  std::vector<std::uint32_t> first{0};
  for (const StageChoice& stage : stages) first.push_back(first.back() + stage.slots);
  for (const Edge& edge : edges(stages)) {
    const std::uint32_t left = stages[edge.from].slots, right = stages[edge.to].slots;
    const std::uint32_t turns = turns_of(left, right);
    const double each = micro_batches * shape_.images / turns;
    for (std::uint32_t m = 0; m < turns; ++m) {
      const std::uint32_t from = first[edge.from] + m % left, to = first[edge.to] + m % right;
      add(crossings(from, to), each * edge.bytes);
      add(crossings(to, from), each * edge.gradient_bytes);
    }
  }
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const std::uint32_t end = s + 1 < stages.size() ? stages[s + 1].first_unit : unit_count();
    const double sums =
        shape_.endless()
            ? micro_batches / static_cast<double>(stages[s].slots * share_of_update(shape_, stages[s].slots))
            : 1;
    add(sum_loads(first[s], stages[s].slots),
        sums * (parameters_before_[end] - parameters_before_[stages[s].first_unit]) *
            element_bytes(options_.precision));
  }
  double busiest_s = 0;
  for (const auto& [link, sent] : bytes)
    busiest_s = std::max(busiest_s, sent / machine_.links[link].bandwidth_Bps);
  return busiest_s;
}

void PipelineCosts::add_buckets() {
  buckets_.resize(count_ + 1);
  for (std::uint32_t end = 1; end <= count_; ++end)
    for (std::uint32_t last = end, first = end; first-- > 0;) {
      const double bytes =
          (parameters_before_[last] - parameters_before_[first]) * element_bytes(options_.precision);
      if (bytes <= shape_.sync.bucket_bytes || first + 1 == last) continue;
      buckets_[end].push_back(first + 1);
      last = first + 1;
    }
}

void PipelineCosts::add_sum_sizes() {
  constexpr double smallest = 1024, ratio = 4;
  double largest = 0;  // of units: no bucket is smaller than one of its own
  for (std::size_t u = 0; u < count_; ++u)
    largest = std::max(largest, parameters_before_[u + 1] - parameters_before_[u]);
  const double bytes = element_bytes(options_.precision);
  const double most =
      std::min(std::max(shape_.sync.bucket_bytes, largest * bytes), parameters_before_.back() * bytes);
  if (shape_.sync.algorithm.by_bytes())
    for (double size = smallest; size < most; size *= ratio) sum_sizes_.push_back(size);
  else
    sum_sizes_.push_back(0);
  sum_sizes_.push_back(most);
}

/// A schedule from a file may be for another number of devices.
Pattern PipelineCosts::sum_over(const std::vector<EndpointId>& devices, double bytes) const {
  const bool has_one = why_no_all_reduce(shape_.sync.algorithm, devices, machine_).empty();
  return all_reduce_pattern(has_one ? shape_.sync.algorithm : SumAlgorithm(), devices, machine_, bytes,
                            shape_.sync.rings);
}

std::vector<EndpointId> PipelineCosts::devices_of(std::uint32_t first_slot, std::uint32_t slots) const {
  std::vector<EndpointId> devices;
  for (std::uint32_t q = first_slot; q < first_slot + slots; ++q)
    devices.insert(devices.end(), shape_.slots[q].begin(), shape_.slots[q].end());
  return devices;
}

const std::vector<double>& PipelineCosts::sums_s(std::uint32_t first_slot, std::uint32_t slots) const {
  const auto [known, fresh] = sums_s_.try_emplace({first_slot, slots});
  if (!fresh || slots * shape_.slots[first_slot].size() < 2) return known->second;
  const std::vector<EndpointId> devices = devices_of(first_slot, slots);
  for (const double size : sum_sizes_)
    known->second.push_back(machine_.collective_overhead_s +
                            estimate_s(sum_over(devices, size), machine_, size));
  return known->second;
}

const PipelineCosts::Crossings& PipelineCosts::sum_loads(std::uint32_t first_slot,
                                                         std::uint32_t slots) const {
  const auto [known, fresh] = sum_loads_.try_emplace({first_slot, slots});
  if (!fresh || slots * shape_.slots[first_slot].size() < 2) return known->second;
  const Pattern pattern = sum_over(devices_of(first_slot, slots), sum_sizes_.back());
  std::map<LinkId, double> load;
  Route route;
  for (const Round& round : pattern.rounds)
    for (const std::vector<EndpointId>& group : pattern.groups)
      round.for_each_message([&](std::uint32_t from, std::uint32_t to, double fraction) {
        machine_.router->route(group[from], group[to], route);
        for (const LinkId link : route.links) load[link] += round.repeat * fraction;
      });
  known->second.assign(load.begin(), load.end());
  return known->second;
}

double PipelineCosts::narrowest_common_Bps(const Machine& machine, const Crossings& a, const Crossings& b) {
  double result_Bps = std::numeric_limits<double>::infinity();
  for (auto one = a.begin(), other = b.begin(); one != a.end() && other != b.end();) {
    if (one->first == other->first)
      result_Bps = std::min(result_Bps,
                            machine.links[one->first].bandwidth_Bps / std::max(one->second, other->second));
    one->first < other->first ? ++one : ++other;
  }
  return result_Bps;
}

void PipelineCosts::add_shared_links() {
  constexpr double none = std::numeric_limits<double>::infinity();
  const std::uint32_t slots = slot_count();
  for (std::uint32_t first = 0; first < slots; ++first) {
    shared_.push_back({{none, none}});
    for (std::uint32_t next = first + 1; next < slots && first > 0; ++next)
      shared_.back().push_back(
          {narrowest_common_Bps(machine_, crossings(first - 1, first), crossings(next, next - 1)),
           narrowest_common_Bps(machine_, crossings(next - 1, next), crossings(first, first - 1))});
  }
}

}  // namespace convoy::strategies
