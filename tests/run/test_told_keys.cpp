// SPDX-License-Identifier: MIT
// The keys that `convoy show keys` tells of experiments are those that their readers take.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/base/input_error.h"
#include "sim/run/experiment.h"
#include "tests/support/told_keys.h"

using namespace convoy;

namespace {

template <class Read>
std::string said(const std::string& entries, const Read& read) {
  const YamlNode node = parse_yaml("{" + entries + "}", "told.yaml");
  try {
    return read(node);
  } catch (const InputError& error) {
    return error.what();
  }
}

std::string text_of(const InputSpec& input) {
  return fmt::format("{} {} {} {} {} {} {} {}", input.label(), input.workers_per_device.value_or(-1),
                     input.storage_Bps, input.cached, input.image_bytes, input.image_pixels, input.prefetch,
                     input.synthetic);
}

std::string text_of(const Training& t) {
  const TrainingOptions& o = t.options;
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {}", t.batch.per_device.value_or(-1),
                     t.batch.global.value_or(-1), to_string(o.precision), static_cast<int>(o.optimizer),
                     static_cast<int>(o.recompute), to_string(o.framework), to_string(o.execution),
                     to_string(o.layout), o.one_process_a_host, t.samples.value_or(-1),
                     t.anchor ? t.anchor->images_per_s : -1, text_of(t.input));
}

std::string text_of(const VariabilitySpec& v) {
  std::string text = fmt::format("{} {} {}", v.runs, v.seed, v.jitter);
  for (const auto& links : v.links)
    text +=
        fmt::format("; {} {} {} {}", links.pattern, links.bandwidth, links.chance, links.at_s.value_or(-1));
  for (const auto& stop : v.stops)
    text += fmt::format("; {} {} {} {}", stop.host, stop.at_s, stop.for_s, stop.chance);
  if (v.failures)
    text += fmt::format("; {} {} {} {} {} {}", v.failures->per_host_s, v.failures->given.size(),
                        v.failures->recovery.checkpoint_s, v.failures->recovery.every_s.value_or(-1),
                        v.failures->recovery.wait_s, v.failures->recovery.restart_s);
  return text;
}

std::string training_said(const std::string& entries) {
  return said(entries,
              [](const YamlNode& node) { return text_of(read_training(YamlMap(node, "training"))); });
}

std::string input_said(const std::string& entries) {
  return said(entries, [](const YamlNode& node) { return text_of(read_input(node, "training.input")); });
}

std::string variability_said(const std::string& entries) {
  return said(entries, [](const YamlNode& node) { return text_of(read_variability(node)); });
}

/// Reads entries as the value of a key: "anchor: {...}".
told::Reading inside(std::string before, std::string after, std::string (*read)(const std::string&)) {
  return [=](const std::string& entries) { return read(before + entries + after); };
}

}  // namespace

TEST_CASE("told keys: an experiment takes those that its table tells") {
  const std::string least =
      "experiment: e, model: resnet18, training: {batch_per_device: 1}, cluster: {}, strategy: {}";
  const auto read = [](const std::string& entries) {
    return said(entries, [](const YamlNode& node) {
      const Point point = read_point(node);
      return text_of(point.training) + (point.variability ? text_of(*point.variability) : "") +
             point.model->scalar;
    });
  };
  CHECK(told::known_keys(read(least + ", zzzzzzzz: 1")) == told::told_names(experiment_keys().keys));
}

TEST_CASE("told keys: training takes those that its table tells, and their defaults change nothing") {
  const std::vector<KeyText> keys = training_keys().keys;
  CHECK(told::check(keys, "batch_per_device: 8", &training_said) >= 5);
  told::check(told::parts_of(keys, "anchor"), "images_per_s: 5, batch: 2",
              inside("batch_per_device: 8, anchor: {", "}", &training_said));
  told::check(told::parts_of(keys, "dataset"), "samples: 5",
              inside("batch_per_device: 8, dataset: {", "}", &training_said));
  CHECK(told::parts_of(keys, "profile").size() == 2);
  CHECK(training_said("batch_per_device: 8, framework: tensorflow1, update: foreach")
            .ends_with("training.update: tensorflow1 has no foreach updates; it has per_tensor"));
  CHECK(training_said("batch_per_device: 8, update: foreach") == training_said("batch_per_device: 8"));
}

TEST_CASE("told keys: the input of files takes those that its table tells, and synthetic images none") {
  const std::vector<KeyText> keys = input_keys().keys;
  CHECK(told::check(keys, "kind: jpeg, library: pil", &input_said) >= 3);
  told::check(told::parts_of(keys, "storage"), "bandwidth: 1GB/s",
              inside("kind: jpeg, library: pil, storage: {", "}", &input_said));
  CHECK(input_said("kind: synthetic, prefetch: 3") ==
        "told.yaml:1:29: training.input.prefetch: goes with kind: jpeg only; leave it out");
}

TEST_CASE("told keys: variability takes those that its table tells, and their defaults change nothing") {
  const std::vector<KeyText> keys = variability_keys().keys;
  CHECK(told::check(keys, "", &variability_said) == 3);
  CHECK(told::check(told::parts_of(keys, "links"), "link: a, bandwidth: 50%",
                    inside("links: [{", "}]", &variability_said)) == 1);
  CHECK(told::check(told::parts_of(keys, "stops"), "host: n0, at: 1s, for: 1s",
                    inside("stops: [{", "}]", &variability_said)) == 1);
  const std::vector<KeyText>& failures = told::parts_of(keys, "failures");
  CHECK(told::check(failures, "per_host_day: 1, checkpoint: {time: 1s, every: 9s}",
                    inside("failures: {", "}", &variability_said)) == 2);
  told::check(told::parts_of(failures, "checkpoint"), "time: 1s, every: 9s",
              inside("failures: {per_host_day: 1, checkpoint: {", "}}", &variability_said));
  told::check(told::parts_of(failures, "at"), "host: n0, at: 2h",
              inside("failures: {checkpoint: {time: 1s, every: 9s}, at: [{", "}]}", &variability_said));
}
