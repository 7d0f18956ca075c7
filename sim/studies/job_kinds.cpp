// SPDX-License-Identifier: MIT
// From the runs of a sweep to the throughput of jobs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/yaml_map.h"
#include "sim/studies/job_study.h"

namespace convoy::inline studies {
namespace {

using Points = std::map<std::int64_t, double>;   ///< devices -> images/s
using ByHosts = std::map<std::int64_t, Points>;  ///< 0: the sweep does not say

/// Linear interpolation between two points; nothing outside them.
std::optional<double> between(const Points& points, std::int64_t devices) {
  const auto high = points.lower_bound(devices);
  if (high == points.end()) return std::nullopt;
  if (high->first == devices) return high->second;
  if (high == points.begin()) return std::nullopt;
  const auto low = std::prev(high);
  const double part =
      static_cast<double>(devices - low->first) / static_cast<double>(high->first - low->first);
  return low->second + part * (high->second - low->second);
}

/// `between`, also along the hosts. Nothing if no two neighbours have a value.
std::optional<double> at(const ByHosts& by_hosts, std::int64_t devices, std::int64_t hosts) {
  const auto high = by_hosts.lower_bound(hosts);
  if (high == by_hosts.end()) return between(std::prev(high)->second, devices);
  const std::optional<double> above = between(high->second, devices);
  if (high->first == hosts || high == by_hosts.begin()) return above;
  const std::optional<double> below = between(std::prev(high)->second, devices);
  if (!above || !below) return above ? above : below;
  const double part = static_cast<double>(hosts - std::prev(high)->first) /
                      static_cast<double>(high->first - std::prev(high)->first);
  return *below + part * (*above - *below);
}

std::int64_t most_devices(const ByHosts& by_hosts) {
  std::int64_t most = 0;
  for (const auto& [hosts, points] : by_hosts) most = std::max(most, points.rbegin()->first);
  return most;
}

/// Throughput on one kind of device with one batch: packed from 1 device on; 0 for unknown placements.
Throughput throughput_of(const ByHosts& by_hosts, const GpuPool& pool) {
  Throughput result;
  const std::int64_t most = std::min<std::int64_t>(most_devices(by_hosts), pool.gpus);
  const bool placed = by_hosts.rbegin()->first > 0;
  const std::int64_t size = pool.gpus_per_host;
  for (std::int64_t w = 0; w <= most; ++w)
    result.packed.push_back(w == 0 ? 0 : at(by_hosts, w, placed ? (w + size - 1) / size : 0).value_or(0));
  if (!placed) return result;
  for (std::int64_t hosts = 1; hosts <= by_hosts.rbegin()->first; ++hosts) {
    std::vector<double>& row = result.spread.emplace_back(result.packed);
    for (std::int64_t w = 1; w <= most; ++w)
      if (hosts > (w + size - 1) / size)
        if (const std::optional<double> known = at(by_hosts, w, std::min(hosts, w)))
          row[static_cast<std::size_t>(w)] = *known;
  }
  return result;
}

/// Replaces values by those of the other one where it is faster.
void raise(std::vector<double>& to, const std::vector<double>& by) {
  if (to.size() < by.size()) to.resize(by.size(), 0);
  for (std::size_t i = 0; i < by.size(); ++i) to[i] = std::max(to[i], by[i]);
}

void raise(Throughput& to, const Throughput& by) {
  raise(to.packed, by.packed);
  if (to.spread.size() < by.spread.size()) to.spread.resize(by.spread.size(), to.packed);
  for (std::size_t h = 0; h < by.spread.size(); ++h) raise(to.spread[h], by.spread[h]);
}

/// All runs of a model, as measured.
struct Measured {
  std::string model;
  std::vector<std::map<double, ByHosts>> kinds;  ///< by pool; batch -> throughput
};

class Reader {
 public:
  Reader(const JobStudy& study, const SourcePos& pos) : study_(study), pos_(pos) {}

  void take(const RunFigures& run) {
    if (!run.fits)
      fail(
          "{} on {} devices does not fit in memory; leave that number out of the sweep, or give it smaller "
          "batches",
          run.words.model, run.devices);
    const std::size_t kind = kind_of(run);
    const std::int64_t hosts = hosts_of(run);
    if (hosts > 0 && study_.pools[kind].gpus_per_host == 0)
      fail("the sweep has runs of {} on {} hosts; say how many GPUs the cluster's hosts have: gpus_per_host",
           run.words.model, hosts);
    const double batch = study_.learning.contains(run.words.model) ? run.global_batch : 0;
    if (!of(run.words.model)
             .kinds[kind][batch][hosts]
             .emplace(run.devices, run.throughput_images_per_s)
             .second)
      fail(
          "the sweep has two runs of {} on {} devices; a queue takes one throughput for each model and "
          "number of "
          "devices, kind of device (gpus: {{KIND: N}}), number of hosts (a sweep over cluster.nodes) and "
          "batch "
          "(convergence: {{MODEL: ...}})",
          run.words.model, run.devices);
  }

  JobKinds kinds() const {
    JobKinds result;
    for (const Measured& model : models_) {
      JobKind& asked = result.as_asked.emplace_back(JobKind{model.model, {}});
      JobKind& best = result.best_batch.emplace_back(JobKind{model.model, {}});
      for (std::size_t kind = 0; kind < study_.pools.size(); ++kind) read_kind(model, kind, asked, best);
      if (std::all_of(asked.kinds.begin(), asked.kinds.end(),
                      [](const Throughput& t) { return t.most() == 0; }))
        fail("the sweep has no run of {} on one device, which takes time", model.model);
    }
    return result;
  }

 private:
  template <class... T>
  [[noreturn]] void fail(fmt::format_string<T...> text, T&&... values) const {
    throw InputError(pos_, "jobs: " + fmt::format(text, std::forward<T>(values)...));
  }

  Measured& of(const std::string& model) {
    const auto it =
        std::find_if(models_.begin(), models_.end(), [&](const Measured& m) { return m.model == model; });
    if (it != models_.end()) return *it;
    return models_.emplace_back(Measured{model, std::vector<std::map<double, ByHosts>>(study_.pools.size())});
  }

  std::size_t kind_of(const RunFigures& run) const {
    if (study_.kinds.front().empty()) return 0;
    const auto it = std::find(study_.kinds.begin(), study_.kinds.end(), run.words.device_type);
    if (it == study_.kinds.end())
      fail("the sweep has runs of {} on {}, of which the cluster has none (gpus)", run.words.model,
           run.words.device_type);
    return static_cast<std::size_t>(it - study_.kinds.begin());
  }

  /// As the sweep states it; 0 if it does not.
  static std::int64_t hosts_of(const RunFigures& run) {
    for (const auto& [path, value] : run.point)
      if (path == "cluster.nodes") return read_integer(value, path, 1);
    return 0;
  }

  void read_kind(const Measured& model, std::size_t kind, JobKind& asked, JobKind& best) const {
    Throughput& as_asked = asked.kinds.emplace_back();
    Throughput& any = best.kinds.emplace_back();
    const auto learning = study_.learning.find(model.model);
    const double smallest = smallest_batch(model);
    for (const auto& [batch, by_hosts] : model.kinds[kind]) {
      Throughput of_batch = throughput_of(by_hosts, study_.pools[kind]);
      if (learning != study_.learning.end()) count(of_batch, learning->second, model.model, batch, smallest);
      if (learning == study_.learning.end() || batch == learning->second.batch) as_asked = of_batch;
      raise(any, of_batch);
    }
    for (Throughput* t : {&as_asked, &any}) check_whole(*t, model.model);
  }

  static double smallest_batch(const Measured& model) {
    double smallest = std::numeric_limits<double>::infinity();
    for (const auto& kind : model.kinds)
      if (!kind.empty()) smallest = std::min(smallest, kind.begin()->first);
    return smallest;
  }

  /// Counts images by how much they teach: those of the smallest batch count fully.
  void count(Throughput& throughput, const Learning& learning, const std::string& model, double batch,
             double smallest) const {
    const std::optional<double> epochs = learning.epochs(batch), best = learning.epochs(smallest);
    if (!epochs || !best)
      fail("{}'s batch {} lies outside its table of epochs (convergence)", model, epochs ? smallest : batch);
    for (double& v : throughput.packed) v *= *best / *epochs;
    for (std::vector<double>& row : throughput.spread)
      for (double& v : row) v *= *best / *epochs;
  }

  /// Requires values from one device on without a gap; a kind that starts with more cannot be used.
  void check_whole(Throughput& throughput, const std::string& model) const {
    if (throughput.packed.size() < 2 || throughput.packed[1] <= 0) {
      throughput = {};
      return;
    }
    const auto gap = std::find(throughput.packed.begin() + 1, throughput.packed.end(), 0.0);
    if (gap != throughput.packed.end())
      fail("no runs tell what {} does on {} devices", model, gap - throughput.packed.begin());
  }

  const JobStudy& study_;
  const SourcePos& pos_;
  std::vector<Measured> models_;
};

}  // namespace

JobKinds job_kinds(const SweepResults& results, const JobStudy& study, const SourcePos& pos) {
  Reader reader(study, pos);
  for (const RunFigures& run : results.runs) reader.take(run);
  return reader.kinds();
}

}  // namespace convoy::studies
