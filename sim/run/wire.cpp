// SPDX-License-Identifier: MIT
#include "sim/run/wire.h"

#include <cstring>
#include <optional>
#include <stdexcept>
#include <type_traits>

namespace convoy {
namespace {

class Encoder {
 public:
  std::string bytes;

  template <class T>
  void number(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(const std::string& value) {
    number(value.size());
    bytes += value;
  }
  template <class T, class Each>
  void maybe(const std::optional<T>& value, Each each) {
    number(value.has_value());
    if (value) each(*this, *value);
  }
  template <class T, class Each>
  void list(const std::vector<T>& values, Each each) {
    number(values.size());
    for (const T& value : values) each(*this, value);
  }
};

class Decoder {
 public:
  explicit Decoder(const std::string& bytes) : bytes_(bytes) {}

  template <class T>
  void number(T& value) {
    std::memcpy(&value, take(sizeof value), sizeof value);
  }
  void text(std::string& value) {
    const std::size_t size = count();
    value.assign(take(size), size);
  }
  template <class T, class Each>
  void maybe(std::optional<T>& value, Each each) {
    bool there = false;
    number(there);
    if (there) each(*this, value.emplace());
  }
  template <class T, class Each>
  void list(std::vector<T>& values, Each each) {
    values.resize(count());
    for (T& value : values) each(*this, value);
  }

 private:
  std::size_t count() {
    std::size_t n = 0;
    number(n);
    if (n > bytes_.size() - at_) throw std::runtime_error("a worker's answer is cut short");
    return n;
  }
  const char* take(std::size_t n) {
    if (n > bytes_.size() - at_) throw std::runtime_error("a worker's answer is cut short");
    at_ += n;
    return bytes_.data() + at_ - n;
  }
  const std::string& bytes_;
  std::size_t at_ = 0;
};

/// A tree without its places in the file.
struct NodeField {
  template <class Archive, class Node>
  void operator()(Archive& archive, Node& node) const {
    archive.number(node.kind);
    archive.text(node.scalar);
    archive.number(node.quoted);
    archive.list(node.items, *this);
    archive.list(node.entries, [this](auto& each, auto& entry) {
      each.text(entry.first);
      (*this)(each, entry.second);
    });
  }
};

// One list of fields serves both directions: Archive is an Encoder with const values or a Decoder with
// values.

constexpr auto device_fields = [](auto& archive, auto& device) {
  archive.text(device.name);
  for (auto* number : {&device.busy_s, &device.sent_bytes, &device.received_bytes, &device.peak_memory_bytes,
                       &device.energy_j})
    archive.number(*number);
  archive.number(device.memory);
};

constexpr auto link_fields = [](auto& archive, auto& link) {
  archive.text(link.name);
  archive.number(link.bytes);
  archive.number(link.utilization);
};

constexpr auto phase_fields = [](auto& archive, auto& phase) {
  for (auto* number : {&phase.first_step, &phase.devices, &phase.least_images, &phase.most_images})
    archive.number(*number);
  for (auto* number :
       {&phase.start_s, &phase.step_time_s, &phase.throughput_images_per_s, &phase.peak_memory_bytes})
    archive.number(*number);
};

constexpr auto reconfiguration_fields = [](auto& archive, auto& change) {
  for (auto* number : {&change.at_step, &change.from, &change.to, &change.first_step})
    archive.number(*number);
  archive.number(change.pause_s);
};

constexpr auto text_field = [](auto& archive, auto& text) { archive.text(text); };

constexpr auto stage_fields = [](auto& archive, auto& stage) {
  archive.text(stage.device);
  archive.list(stage.replicas, text_field);
  archive.list(stage.layers, text_field);
  archive.number(stage.compute_s);
  archive.number(stage.peak_memory_bytes);
  archive.number(stage.weight_versions);
  archive.number(stage.staleness);
};

constexpr auto partition_fields = [](auto& archive, auto& partition) {
  archive.text(partition.method);
  for (auto* number : {&partition.connectivity_bytes, &partition.cut_bytes, &partition.load_imbalance})
    archive.number(*number);
};

constexpr auto candidate_fields = [](auto& archive, auto& candidate) {
  for (auto* text : {&candidate.strategy, &candidate.outcome, &candidate.reason}) archive.text(*text);
  NodeField{}(archive, candidate.candidate);
  archive.number(candidate.value);
  archive.number(candidate.bound);
};

constexpr auto search_fields = [](auto& archive, auto& search) {
  archive.text(search.objective);
  archive.number(search.simulated);
  archive.number(search.proven);
  archive.list(search.ranking, candidate_fields);
};

constexpr auto layout_fields = [](auto& archive, auto& group) {
  archive.text(group.layout);
  archive.list(group.layers, text_field);
  for (auto* number : {&group.parameter_bytes, &group.exchange_bytes, &group.gradient_bytes})
    archive.number(*number);
};

constexpr auto run_fields = [](auto& archive, auto& run) {
  for (auto* text :
       {&run.id, &run.model, &run.cluster, &run.strategy, &run.servers, &run.device_type, &run.network_model})
    archive.text(*text);
  archive.number(run.devices);
  for (auto* number : {&run.global_batch, &run.step_time_s, &run.throughput_images_per_s, &run.energy_j,
                       &run.compute_s, &run.exposed_comm_s, &run.idle_s, &run.comm_bytes, &run.load_imbalance,
                       &run.peak_memory_bytes, &run.process_memory_bytes, &run.device_memory_bytes})
    archive.number(*number);
  archive.number(run.epoch_time_s);
  archive.number(run.cost_usd_per_epoch);
  archive.number(run.fits);
  for (auto* text : {&run.bottleneck.kind, &run.bottleneck.name, &run.bottleneck.text}) archive.text(*text);
  archive.number(run.bottleneck.utilization);
  archive.list(run.per_device, device_fields);
  archive.list(run.per_link, link_fields);
  archive.list(run.phases, phase_fields);
  archive.list(run.reconfigurations, reconfiguration_fields);
  archive.number(run.staleness);
  archive.number(run.bubble_fraction);
  archive.list(run.stages, stage_fields);
  archive.maybe(run.partition, partition_fields);
  archive.maybe(run.search, search_fields);
  archive.list(run.layouts, layout_fields);
};

constexpr auto span_fields = [](auto& archive, auto& span) {
  archive.text(span.name);
  archive.number(span.start_s);
  archive.number(span.end_s);
};

constexpr auto thread_fields = [](auto& archive, auto& thread) {
  archive.text(thread.name);
  archive.list(thread.spans, span_fields);
};

constexpr auto memory_point_fields = [](auto& archive, auto& point) {
  archive.number(point.time_s);
  archive.number(point.bytes);
};

constexpr auto memory_fields = [](auto& archive, auto& memory) {
  archive.text(memory.name);
  archive.list(memory.points, memory_point_fields);
};

constexpr auto process_fields = [](auto& archive, auto& process) {
  archive.text(process.name);
  archive.list(process.threads, thread_fields);
  archive.list(process.memory, memory_fields);
};

constexpr auto output_fields = [](auto& archive, auto& output) {
  run_fields(archive, output.result);
  archive.list(output.trace, process_fields);
};

constexpr auto assessment_fields = [](auto& archive, auto& assessment) {
  for (auto* text : {&assessment.label, &assessment.bound_text, &assessment.fullest}) archive.text(*text);
  for (auto* number : {&assessment.images, &assessment.step_bound_s, &assessment.energy_bound_j,
                       &assessment.peak_bytes, &assessment.process_bytes, &assessment.fullest_size_bytes})
    archive.number(*number);
  archive.number(assessment.price_usd_per_h);
  archive.number(assessment.samples);
  archive.number(assessment.fits);
};

}  // namespace

std::string encode(const RunOutput& output) {
  Encoder encoder;
  output_fields(encoder, output);
  return std::move(encoder.bytes);
}

RunOutput decode_output(const std::string& bytes) {
  Decoder decoder(bytes);
  RunOutput output;
  output_fields(decoder, output);
  return output;
}

std::string encode(const Assessment& assessment) {
  Encoder encoder;
  assessment_fields(encoder, assessment);
  return std::move(encoder.bytes);
}

Assessment decode_assessment(const std::string& bytes) {
  Decoder decoder(bytes);
  Assessment assessment;
  assessment_fields(decoder, assessment);
  return assessment;
}

}  // namespace convoy
