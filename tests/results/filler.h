// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/results/result.h"

namespace convoy {

/// An archive of result_fields.h that gives every field a value of its own, none of them a default.
class FieldFiller {
 public:
  void field(std::string_view, double& number) { number = next() + 1.0 / 3; }
  void field(std::string_view, std::int64_t& number) { number = next(); }
  void field(std::string_view, std::uint64_t& number) { number = static_cast<std::uint64_t>(next()); }
  void field(std::string_view, bool& truth) { truth = !truth; }
  void field(std::string_view name, std::string& text) { text = fmt::format("{} \"{}\"", name, next()); }
  void gain(std::string_view, double& number) { number = -(next() + 1.0 / 3); }
  void gain(std::string_view name, std::optional<double>& number) { gain(name, number.emplace()); }
  void nullable(std::string_view name, std::optional<double>& number) { field(name, number.emplace()); }
  void truth(std::string_view, bool& value) { value = true; }
  void optional(std::string_view name, std::optional<double>& number) { field(name, number.emplace()); }
  template <class T, class Fields>
  void optional(std::string_view, std::optional<T>& value, Fields fields) {
    fields(*this, value.emplace());
  }
  template <class T, class Fields>
  void optional_block(std::string_view, std::optional<T>& value, Fields fields) {
    fields(*this, value.emplace());
  }
  template <class T, class Fields>
  void object(std::string_view, T& value, Fields fields) {
    fields(*this, value);
  }
  template <class T, class Fields>
  void list(std::string_view, std::vector<T>& values, Fields fields) {
    for (int i = 0; i < 2; ++i) fields(*this, values.emplace_back());
  }
  template <class T, class Fields>
  void table(std::string_view name, std::vector<T>& rows, Fields fields) {
    list(name, rows, fields);
  }
  template <class T, class Fields>
  void list_where(bool, std::string_view name, std::vector<T>& values, Fields fields) {
    list(name, values, fields);
  }
  template <class T>
  void count(std::string_view, const std::vector<T>&) {}
  void range(std::string_view, std::array<double, 2>& bounds) {
    for (double& bound : bounds) bound = next() + 1.0 / 3;
  }
  void nullable_range(std::string_view name, std::optional<std::array<double, 2>>& bounds) {
    range(name, bounds.emplace());
  }
  void texts(std::string_view name, std::vector<std::string>& texts) {
    for (int i = 0; i < 2; ++i) field(name, texts.emplace_back());
  }
  void point(std::string_view, std::vector<std::pair<std::string, YamlNode>>& point) {
    point.emplace_back("cluster.nodes", parse_yaml(std::to_string(next()), "filler"));
  }
  void yaml(std::string_view, YamlNode& node) {
    node = parse_yaml(fmt::format("{{kind: single, l: [{}, \"x\"], m: {{n: null}}}}", next()), "filler");
  }
  void memory(std::string_view, std::array<double, memory_class_count>& bytes) {
    for (double& number : bytes) number = next() + 1.0 / 3;
  }
  void null(std::string_view) {}

 private:
  std::int64_t next() { return ++last_; }
  std::int64_t last_ = 0;
};

// Whether a value, and all that is in it, is another than that of a fresh T.
inline bool is_set(double number) { return number != 0 && number != 1; }
inline bool is_set(std::int64_t number) { return number != 0; }
inline bool is_set(std::uint64_t number) { return number != 0; }
inline bool is_set(bool truth) { return truth; }
inline bool is_set(const std::string& text) { return !text.empty(); }
inline bool is_set(const YamlNode& node) { return node.kind != YamlNode::Kind::null; }
template <std::size_t n>
bool is_set(const std::array<double, n>& numbers) {
  for (const double number : numbers)
    if (!is_set(number)) return false;
  return true;
}
template <class T>
bool is_set(const T& aggregate);  // one of the structs below
template <class A, class B>
bool is_set(const std::pair<A, B>& pair) {
  return is_set(pair.first) && is_set(pair.second);
}
template <class T>
bool is_set(const std::optional<T>& value) {
  return value && is_set(*value);
}
template <class T>
bool is_set(const std::vector<T>& values) {
  for (const T& value : values)
    if (!is_set(value)) return false;
  return !values.empty();
}
template <class... T>
bool all_set(const T&... values) {
  return (is_set(values) && ...);
}

// All members of each struct: where one is added, these lines stop compiling until it is named here, and the
// test fails until it is a field of result_fields.h.
inline bool members_set(const DeviceResult& v) {
  const auto& [a, b, c, d, e, f, g, h] = v;
  return all_set(a, b, c, d, e, f, g, h);
}
inline bool members_set(const LinkResult& v) {
  const auto& [a, b, c, d] = v;
  return all_set(a, b, c, d);
}
inline bool members_set(const Bottleneck& v) {
  const auto& [a, b, c, d] = v;
  return all_set(a, b, c, d);
}
inline bool members_set(const PhaseResult& v) {
  const auto& [a, b, c, d, e, f, g, h] = v;
  return all_set(a, b, c, d, e, f, g, h);
}
inline bool members_set(const ReconfigurationResult& v) {
  const auto& [a, b, c, d, e, f] = v;
  return all_set(a, b, c, d, e, f);
}
inline bool members_set(const Staleness& v) {
  const auto& [a, b] = v;
  return all_set(a, b);
}
inline bool members_set(const StageResult& v) {
  const auto& [a, b, c, d, e, f, g] = v;
  return all_set(a, b, c, d, e, f, g);
}
inline bool members_set(const CandidateResult& v) {
  const auto& [a, b, c, d, e, f, g] = v;
  return all_set(a, b, c, d, e, f, g);
}
inline bool members_set(const SearchSummary& v) {
  const auto& [a, b, c, d, proven, e] = v;
  return all_set(a, b, c, d, !proven, e);  // `proven` is true by default
}
inline bool members_set(const LayerGroup& v) {
  const auto& [a, b, c, d, e] = v;
  return all_set(a, b, c, d, e);
}
inline bool members_set(const PartitionSummary& v) {
  const auto& [a, b, c, d] = v;
  return all_set(a, b, c, d);
}
inline bool members_set(const Counterfactual& v) {
  const auto& [a, b, c, d, e, f, fits] = v;
  return all_set(a, b, c, d, e, f, !fits);  // `fits` is true by default
}
inline bool members_set(const RefusedChange& v) {
  const auto& [a, b] = v;
  return all_set(a, b);
}
inline bool members_set(const SoftwareResult& v) {
  const auto& [a, b, c, d, e, f, g, h, i] = v;
  return all_set(a, b, c, d, e, f, g, h, i);
}
inline bool members_set(const IntervalResult& v) {
  const auto& [a, b, c, d, e] = v;
  return all_set(a, b, c, d, e);
}
inline bool members_set(const VariabilityResult& v) {
  const auto& [a, b, c, d, e, f, g, h, i] = v;
  return all_set(a, b, c, d, e, f, g, h, i);
}
inline bool members_set(const LearningPoint& v) {
  const auto& [step, time, loss, accuracy] = v;
  return all_set(step, time, loss, accuracy);
}
/// @param v its `fits` is true by default
inline bool members_set(const RunResult& v) {
  const auto& [id, point, model, cluster, strategy, algorithms, servers, device_type, network_model, devices,
               global_batch, step, throughput, epoch, cost, energy, compute, exposed, idle, issue_wait, comm,
               imbalance, peak, size, process, fits, software, warnings, interval, bottleneck, per_device,
               per_link, phases, changes, staleness, bubble, stages, partition, search, layouts, variability,
               counterfactuals, refused, learning] = v;
  return all_set(id, point, model, cluster, strategy, algorithms, servers, device_type, network_model,
                 devices, global_batch, step, throughput, epoch, cost, energy, compute, exposed, idle,
                 issue_wait, comm, imbalance, peak, size, process, !fits, software, warnings, interval,
                 bottleneck, per_device, per_link, phases, changes, staleness, bubble, stages, partition,
                 search, layouts, variability, counterfactuals, refused, learning);
}
template <class T>
bool is_set(const T& aggregate) {
  return members_set(aggregate);
}

}  // namespace convoy
