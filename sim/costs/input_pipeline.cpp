// SPDX-License-Identifier: MIT
#include "sim/costs/input_pipeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/data_path.h"
#include "sim/base/names.h"

namespace convoy {
namespace {

constexpr const char* library_folder = "topologies/catalog/input_libraries";
constexpr const char* input_folder = "topologies/catalog/inputs";
constexpr double imagenet_image_bytes = 113'959;  // about 146 GB / 1,281,167 files of ImageNet-1k train
constexpr double vcpus_per_core = 2;

YamlNode catalogue_entry(const char* folder, const char* what, const std::string& name,
                         const SourcePos& pos) {
  const std::vector<std::string> names = data_names(folder);
  if (!std::binary_search(names.begin(), names.end(), name))
    throw InputError(pos, fmt::format("unknown {} '{}'{}; known: {}", what, name, suggestion(name, names),
                                      list_of(names)));
  return load_yaml(fmt::format("{}/{}.yaml", data_path(folder), name));
}

void take_sources(YamlMap& map) {
  map.text_or("title", "");
  if (!map.find("sources")) return;
  YamlMap sources = map.map("sources");
  for (const std::string& key : sources.keys()) sources.text(key);
}

InputSpec read_mapping(const YamlNode& node, const std::string& path) {
  YamlMap map(node, path);
  InputSpec spec;
  spec.pos = node.pos;
  spec.synthetic = map.choice("kind", {"synthetic", "jpeg"}) == 0;
  take_sources(map);
  if (!spec.synthetic) {
    spec.library = load_input_library(map.text("library"), map.pos("library"));
    if (map.find("workers_per_device"))
      spec.workers_per_device = map.integer("workers_per_device", 1, 100'000);
    if (map.find("storage")) {
      YamlMap storage = map.map("storage");
      spec.storage_Bps = storage.quantity("bandwidth", Dimension::bandwidth, true);
      storage.finish();
    }
    spec.cached = map.flag_or("cached", false);
    if (map.find("image_pixels")) spec.image_pixels = map.number("image_pixels", 1);
    spec.image_bytes =
        map.quantity_or("image_bytes", Dimension::bytes,
                        imagenet_image_bytes * spec.image_pixels / imagenet_image_pixels, true);
    spec.prefetch = map.integer_or("prefetch", spec.prefetch, 0, 1'000'000);
  }
  map.finish();
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
  const YamlNode node = catalogue_entry(library_folder, "input library", name, pos);
  YamlMap map(node, "");
  take_sources(map);
  InputLibrary library;
  library.name = name;
  library.core_images_per_s = map.number("core_images_per_s", 1e-6);
  library.workers_per_device = map.integer_or("workers_per_device", 0, 1, 100'000);
  library.device_bytes_per_image = map.quantity_or("device_bytes_per_image", Dimension::bytes, 0);
  map.finish();
  return library;
}

InputRate input_rate(const InputSpec& spec, const HostType& host, std::uint32_t devices) {
  if (host.vcpus == 0)
    throw InputError(spec.pos,
                     fmt::format("training.input: how fast '{}' makes images ready depends on its CPUs: give "
                                 "the server `vcpus: N`, or training.input: synthetic",
                                 host.server));
  InputRate rate;
  rate.cores = host.vcpus / vcpus_per_core;
  const std::int64_t each = spec.workers_per_device.value_or(spec.library.workers_per_device);
  rate.workers = each > 0 ? each * devices : std::int64_t{host.vcpus};
  const double workers = std::min(static_cast<double>(rate.workers), rate.cores);
  rate.limit = workers < rate.cores ? InputRate::Limit::workers : InputRate::Limit::cores;
  rate.images_per_s = workers * spec.library.core_images_per_s * imagenet_image_pixels / spec.image_pixels;
  const double storage_per_s =
      spec.cached ? std::numeric_limits<double>::infinity() : spec.storage_Bps / spec.image_bytes;
  if (storage_per_s < rate.images_per_s) {
    rate.images_per_s = storage_per_s;
    rate.limit = InputRate::Limit::storage;
  }
  return rate;
}

}  // namespace convoy
