// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/yaml_map.h"
#include "topologies/machine.h"

namespace convoy {

/// A library that turns JPEG files into batches (topologies/catalog/input_libraries/NAME.yaml).
struct InputLibrary {
  std::string name;
  double core_images_per_s = 0;         ///< decode and augmentation, of one core (two vCPUs)
  std::int64_t workers_per_device = 0;  ///< threads or processes where the user gives none; 0: all cores
  double device_bytes_per_image = 0;    ///< that the device moves for its part; 0: it has none
};

/// `training.input`: where a step's images come from.
struct InputSpec {
  bool synthetic = true;  ///< images are there when they are needed; nothing below counts
  std::string name;       ///< of the catalogue; "" where the experiment describes it
  InputLibrary library;
  std::optional<std::int64_t> workers_per_device;
  double storage_Bps = std::numeric_limits<double>::infinity();  ///< of each host
  bool cached = false;        ///< images are in the host's memory: every epoch but the first
  double image_bytes = 0;     ///< of a file
  std::int64_t prefetch = 2;  ///< batches that are made ready ahead of a device
  SourcePos pos;

  /// "synthetic", "imagenet-pil", "jpeg by pil".
  std::string label() const;
};

/// `synthetic`, {kind: jpeg, library, workers_per_device, storage: {bandwidth}, cached, image_bytes,
/// prefetch}, or a name of topologies/catalog/inputs. @throws InputError
InputSpec read_input(const YamlNode& node, const std::string& path);

std::vector<std::string> input_library_names();
InputLibrary load_input_library(const std::string& name, const SourcePos& pos);

/// What a host makes ready, and what keeps it from more.
struct InputRate {
  enum class Limit : std::uint8_t { workers, cores, storage };
  double images_per_s = 0;
  Limit limit = Limit::cores;
  double cores = 0;
  std::int64_t workers = 0;
};

/// Rate of a host for so many devices: the least of its workers', each on a core at most, of its cores' (two
/// vCPUs each: hyperthreads of a full core give nothing) and, unless images are cached, of its storage's.
/// @throws InputError at spec.pos: the host does not say its `vcpus`
InputRate input_rate(const InputSpec& spec, const HostType& host, std::uint32_t devices);

}  // namespace convoy
