// SPDX-License-Identifier: MIT
#include "sim/costs/input_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "sim/base/data_path.h"
#include "sim/base/key_parts.h"
#include "sim/base/memo.h"
#include "sim/base/names.h"

namespace convoy::inline costs {
namespace {

constexpr const char* library_folder = "topologies/catalog/input_libraries";
constexpr const char* input_folder = "topologies/catalog/inputs";
constexpr double imagenet_image_bytes = 113'959;  // about 146 GB / 1,281,167 files of ImageNet-1k train
constexpr double vcpus_per_core = 2;

const YamlNode& catalogue_entry(const char* folder, const char* what, const std::string& written,
                                const SourcePos& pos) {
  const std::vector<std::string>& names = data_names(folder);
  const std::string name = meant(written, names);
  if (!std::binary_search(names.begin(), names.end(), name))
    throw InputError(pos, fmt::format("unknown {} '{}'{}; known: {}", what, name, suggestion(name, names),
                                      list_of(names)));
  return data_yaml(folder, name);
}

/// What a file of the catalogue says besides its figures.
template <class Options>
Keys<Options> source_keys() {
  return {custom_key<Options>("title", "", forms::text("a text"), "what it is called",
                              [](YamlMap& map, Options&) { map.text_or("title", ""); }),
          custom_key<Options>("sources", "", forms::entries(forms::text("where"), "{what: where}"),
                              "where its figures are from",
                              [](YamlMap& map, Options& options) { options.sources = read_sources(map); })};
}

bool is_jpeg(const InputSpec& spec) { return !spec.synthetic; }

Keys<InputSpec> jpeg_keys() {
  using Spec = InputSpec;
  return {
      custom_key<Spec>("library", "", forms::text("a name of topologies/catalog/input_libraries"),
                       "what decodes and augments, at its images/s of a core",
                       [](YamlMap& map, Spec& spec) {
                         spec.library = load_input_library(map.text("library"), map.pos("library"));
                       })
          .required(&input_library_names),
      optional_number_key<Spec>("core_images_per_s", "the library's", 1e-6,
                                std::numeric_limits<double>::max(),
                                "images/s of one core, as measured on these hosts",
                                [](Spec& spec) -> double& { return spec.library.core_images_per_s; })
          .given(&Spec::rate_given),
      optional_integer_key<Spec>("workers_per_device", "the library's", 1, 100'000,
                                 "threads or processes that make images ready, each on one core at most",
                                 &Spec::workers_per_device),
      mapping_key<Spec>("storage", "no limit", "what each host reads files from",
                        Keys<double>{optional_quantity_key<double>("bandwidth", "", Dimension::bandwidth,
                                                                   true, "of each host", std::identity{})
                                         .required()},
                        &Spec::storage_Bps),
      flag_key<Spec>("cached", "files are in the host's memory: every epoch but the first, where they fit",
                     &Spec::cached),
      number_key<Spec>("image_pixels", 1, std::numeric_limits<double>::max(),
                       "of a file, before it is cropped; the default is the mean of ImageNet",
                       &Spec::image_pixels),
      quantity_key<Spec>(
          "image_bytes", "ImageNet's, by image_pixels", Dimension::bytes, "of a file", &Spec::image_bytes,
          [](const Spec& spec) { return imagenet_image_bytes * spec.image_pixels / imagenet_image_pixels; }),
      integer_key<Spec>("prefetch", 0, 1'000'000,
                        "batches that are made ready ahead of a device; 0: none, it waits for each",
                        &Spec::prefetch)};
}

const Keys<InputSpec>& all_input_keys() {
  static const Keys<InputSpec> keys = [] {
    Keys<InputSpec> table{choice_key<InputSpec>("kind", {"jpeg", "synthetic"},
                                                "images of files, or images that are there when they are "
                                                "needed",
                                                &InputSpec::synthetic)
                              .required()};
    append_keys(table, source_keys<InputSpec>());
    for (Key<InputSpec>& key : jpeg_keys()) table.push_back(std::move(key).only("kind: jpeg", &is_jpeg));
    return table;
  }();
  return keys;
}

const Keys<InputLibrary>& library_keys() {
  using Library = InputLibrary;
  static const Keys<Library> keys = [] {
    Keys<Library> table = source_keys<Library>();
    table.push_back(optional_number_key<Library>("core_images_per_s", "", 1e-6,
                                                 std::numeric_limits<double>::max(), "images/s of one core",
                                                 &Library::core_images_per_s)
                        .required());
    table.push_back(optional_quantity_key<Library>("image_overhead", "0s", Dimension::time, false,
                                                   "of a core for an image, whatever its size",
                                                   &Library::image_overhead_s));
    table.push_back(optional_integer_key<Library>("workers_per_device", "all cores", 1, 100'000,
                                                  "threads or processes", &Library::workers_per_device));
    table.push_back(optional_integer_key<Library>("spare_cores", "0", 1, 100'000,
                                                  "of a host, that it leaves to others however many workers "
                                                  "are asked for",
                                                  &Library::spare_cores));
    table.push_back(optional_quantity_key<Library>("device_bytes_per_image", "0B", Dimension::bytes, false,
                                                   "that the device moves for its part",
                                                   &Library::device_bytes_per_image));
    return table;
  }();
  return keys;
}

InputSpec read_mapping(const YamlNode& node, const std::string& path) {
  InputSpec spec;
  read_part(all_input_keys(), YamlMap(node, path), spec);
  // Hosts that are quicker or slower are so for all of an image: the library's share for any image stays.
  if (spec.rate_given) {
    const InputLibrary measured = load_input_library(spec.library.name, spec.pos);
    spec.library.image_overhead_s *= measured.core_images_per_s / spec.library.core_images_per_s;
  }
  return spec;
}

}  // namespace

std::string InputSpec::label() const {
  if (synthetic) return "synthetic";
  return name.empty() ? "jpeg by " + library.name : name;
}

InputSpec read_input(const YamlNode& node, const std::string& path) {
  if (node.kind != YamlNode::Kind::scalar) return read_mapping(node, path);
  const std::string name = read_text(node, path);
  if (name == "synthetic") return {};
  InputSpec spec = read_mapping(catalogue_entry(input_folder, "input", name, node.pos), "");
  spec.name = name;
  spec.pos = node.pos;
  return spec;
}

std::vector<std::string> input_library_names() { return data_names(library_folder); }

InputLibrary load_input_library(const std::string& name, const SourcePos& pos) {
  const YamlNode& node = catalogue_entry(library_folder, "input library", name, pos);
  struct Key {
    std::string name;
    bool operator==(const Key&) const = default;
    std::size_t hash() const { return std::hash<std::string>{}(name); }
  };
  static thread_local Memo<Key, InputLibrary> memo(64);
  return memo.of({name}, [&](const Key&) {
    InputLibrary library;
    library.name = name;
    read_part(library_keys(), YamlMap(node, ""), library);
    return library;
  });
}

KeySection input_keys() {
  KeySection section{"input", "`training.input`: the pipeline that images come through",
                     texts_of(all_input_keys()), "kind"};
  std::vector<KeyText> synthetic = texts_of(source_keys<InputSpec>()), jpeg = texts_of(jpeg_keys());
  jpeg.insert(jpeg.begin(), synthetic.begin(), synthetic.end());
  section.variants = {{"jpeg", "", std::move(jpeg)}, {"synthetic", "", std::move(synthetic)}};
  return section;
}

double core_image_s(const InputLibrary& library, double image_pixels) {
  const double of_imagenet_s = 1 / library.core_images_per_s;
  const double overhead_s = std::min(library.image_overhead_s, of_imagenet_s);
  return overhead_s + (of_imagenet_s - overhead_s) * image_pixels / imagenet_image_pixels;
}

InputRate input_rate(const InputSpec& spec, const HostType& host, std::uint32_t devices) {
  if (host.vcpus == 0)
    throw InputError(spec.pos,
                     fmt::format("training.input: how fast '{}' makes images ready depends on its CPUs: give "
                                 "the server `vcpus: N`, or training.input: synthetic",
                                 host.server));
  InputRate rate;
  const double all_cores = host.vcpus / vcpus_per_core;
  rate.cores = std::max(all_cores - static_cast<double>(spec.library.spare_cores), std::min(all_cores, 1.0));
  const std::int64_t each = spec.workers_per_device.value_or(spec.library.workers_per_device);
  rate.workers = each > 0 ? each * devices : std::int64_t{host.vcpus};
  const double workers = std::min(static_cast<double>(rate.workers), rate.cores);
  rate.limit = workers < rate.cores ? InputRate::Limit::workers : InputRate::Limit::cores;
  rate.images_per_s = workers / core_image_s(spec.library, spec.image_pixels);
  const double storage_per_s =
      spec.cached ? std::numeric_limits<double>::infinity() : spec.storage_Bps / spec.image_bytes;
  if (storage_per_s < rate.images_per_s) {
    rate.images_per_s = storage_per_s;
    rate.limit = InputRate::Limit::storage;
  }
  return rate;
}

}  // namespace convoy::costs
