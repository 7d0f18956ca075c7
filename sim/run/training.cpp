// SPDX-License-Identifier: MIT
#include "sim/run/training.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/key_parts.h"
#include "sim/base/named_file.h"
#include "sim/base/names.h"

namespace convoy::inline runs {
namespace {

constexpr std::int64_t largest_batch = 1'000'000'000;

Keys<Anchor> anchor_keys() {
  return {
      optional_number_key<Anchor>("images_per_s", "", 1e-6, 1e12,
                                  "images a second that one device trained on, alone", &Anchor::images_per_s)
          .required(),
      optional_integer_key<Anchor>("batch", "", 1, largest_batch, "images a step of that measurement",
                                   &Anchor::batch)
          .required(),
      optional_text_key<Anchor>("device", "the cluster's", "a device",
                                "kind of device that was measured, where the cluster has several",
                                &Anchor::device)};
}

Keys<ProfileSpec> profile_keys() {
  return {custom_key<ProfileSpec>(
              "file", "", forms::text("a CSV file"), "the measured times (docs/models.md)",
              [](YamlMap& map, ProfileSpec& profile) { profile.file = named_file(map, "file"); })
              .required(),
          optional_text_key<ProfileSpec>("device", "the cluster's", "a device",
                                         "kind of device that was measured, where the cluster has several",
                                         &ProfileSpec::device)};
}

/// A file's name, or {file, device}.
void read_profile(YamlMap& map, Training& training) {
  if (!map.find("profile")) return;
  ProfileSpec& profile = training.profile.emplace();
  if (map.node("profile").kind == YamlNode::Kind::mapping) {
    read_part(profile_keys(), map.map("profile"), profile);
  } else {
    profile.file = named_file(map, "profile");
    profile.pos = map.pos("profile");
  }
}

/// One of the two must be given; the error is the same whichever is looked up first.
void read_batch(YamlMap& map, Training& training) {
  const bool per_device = map.find("batch_per_device"), global = map.find("global_batch");
  if (per_device && global)
    map.fail("global_batch",
             "batch_per_device is given too; give one of the two (a sweep over one of them needs a "
             "file without the other)");
  if (!per_device && !global) map.fail("the batch is missing: give batch_per_device or global_batch");
  const char* const key = per_device ? "batch_per_device" : "global_batch";
  (per_device ? training.batch.per_device : training.batch.global) = map.integer(key, 1, largest_batch);
  training.batch.pos = map.pos(key);
}

void read_input_of(YamlMap& map, Training& training) {
  if (const YamlNode* input = map.find("input")) training.input = read_input(*input, map.path_of("input"));
}

Keys<Training> batch_keys() {
  return {custom_key<Training>("batch_per_device", "", forms::whole(1, largest_batch),
                               "images a device and step", &read_batch),
          custom_key<Training>("global_batch", "", forms::whole(1, largest_batch),
                               "images of all devices together and step; one of the two has to be there",
                               &read_batch)};
}

/// One of the modes that the framework has.
void read_update_mode(YamlMap& map, TrainingOptions& options) {
  if (!map.find("update")) return;
  const UpdateMode mode = read_choice<UpdateMode>(map, "update", texts_of_names(update_mode_names));
  std::vector<std::string> known;
  for (const UpdateMode each : update_modes(options.framework)) known.emplace_back(to_string(each));
  if (std::find(known.begin(), known.end(), to_string(mode)) == known.end())
    map.fail("update", fmt::format("{} has no {} updates; it has {}", to_string(options.framework),
                                   to_string(mode), list_of(known)));
  options.update = mode;
}

Keys<TrainingOptions> option_keys() {
  using Options = TrainingOptions;
  return {
      choice_key<Options>("optimizer", texts_of_names(optimizer_names),
                          "the state it keeps, and the bytes that its update moves", &Options::optimizer),
      choice_key<Options>("framework", texts_of_names(framework_names),
                          "the program that trains: its kernels, how long it takes to issue them, and by "
                          "whose rules memory is counted",
                          &Options::framework),
      derived_choice_key<Options>(
          "execution", "the framework's", texts_of_names(execution_names),
          "kernels are issued one by one, from a prepared graph, or from one whose chains of elementwise "
          "operations are one kernel (XLA, torch.compile)",
          &Options::execution, [](const Options& options) { return default_execution(options.framework); }),
      custom_key<Options>(
          "update", "the framework's", forms::name(texts_of_names(update_mode_names)),
          "how many kernels the optimizer's step is on the device: its operations one by one "
          "for each parameter tensor, each over many tensors, or all in one over many tensors",
          &read_update_mode),
      choice_key<Options>("processes", {"per_device", "per_host"},
                          "per_host: one thread issues the kernels of all devices of a host, one after "
                          "the other",
                          &Options::one_process_a_host)};
}

/// Keys whose position or presence later checks need.
Keys<Training> decided_keys() {
  return {
      derived_choice_key<Training>(
          "precision", "the framework's", texts_of_names(precision_names),
          "of the computation; fp16 and bf16: mixed precision with fp32 master weights",
          [](Training& t) -> Precision& { return t.options.precision; },
          [](const Training& t) { return t.options.precision; })
          .at(&Training::precision_pos)
          .given(&Training::precision_given),
      derived_choice_key<Training>(
          "layout", "the framework's", texts_of_names(layout_names),
          "order of the activations' values; tensor cores compute nhwc",
          [](Training& t) -> Layout& { return t.options.layout; },
          [](const Training& t) { return t.options.layout; })
          .given(&Training::layout_given),
      choice_key<Training>("recompute", texts_of_names(recomputation_names),
                           "keep the ends of segments only, and run their forward pass again before their "
                           "backward pass: segments of the network's blocks, or of equal numbers of layers",
                           [](Training& t) -> Recomputation& { return t.options.recompute; })
          .at(&Training::recompute_pos)};
}

Keys<Training> measured_keys() {
  const auto self = [](Training& t) -> Training& { return t; };
  return {
      mapping_key<Training>(
          "dataset", "", "what an epoch is: gives its time, and its cost where all hosts have prices",
          Keys<Training>{optional_integer_key<Training>("samples", "", 1, YamlMap::max_integer, "images",
                                                        &Training::samples)
                             .required()},
          self),
      mapping_key<Training>("anchor", "",
                            "measured training throughput of one device, to which its compute times are "
                            "scaled by one factor",
                            anchor_keys(), [](Training& t) -> Anchor& { return t.anchor.emplace(); }),
      custom_key<Training>(
          "profile", "", forms::either({forms::text("a CSV file"), forms::parts("{file, device}")}),
          "measured times of layers on one kind of device, instead of the cost model's", &read_profile)
          .with_parts(texts_of(profile_keys())),
      custom_key<Training>("input", "",
                           forms::either({forms::text("a name"), forms::section("input", "{...}")})
                               .said("synthetic | {kind: jpeg, ...} | a name of topologies/catalog/inputs"),
                           "where images come from (`convoy show keys input`)", &read_input_of)};
}

const Keys<Training>& all_training_keys() {
  static const Keys<Training> keys = [] {
    Keys<Training> table = batch_keys();
    for (const Keys<Training>& more :
         {decided_keys(), keys_of_part<Training>(option_keys(), &Training::options), measured_keys()})
      table.insert(table.end(), more.begin(), more.end());
    return table;
  }();
  return keys;
}

}  // namespace

Training read_training(YamlMap map) {
  Training training;
  read_part(all_training_keys(), std::move(map), training);
  return training;
}

KeySection training_keys() {
  return {"training", "how an experiment's network is trained", texts_of(all_training_keys())};
}

}  // namespace convoy::runs
