// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/keys.h"
#include "topologies/machine.h"

namespace convoy::inline costs {

/// Pixels of an average file of ImageNet, 500 x 400: the libraries' rates were measured with it.
constexpr double imagenet_image_pixels = 200'000;

/// A library that turns JPEG files into batches (topologies/catalog/input_libraries/NAME.yaml).
struct InputLibrary {
  std::string name;
  /// Rate of one core (two vCPUs) for decoding and augmenting images of ImageNet's mean size
  /// (`imagenet_image_pixels`).
  double core_images_per_s = 0;
  /// Of that time of a core, what it spends on an image whatever its size: opening the file, Python, tensors.
  double image_overhead_s = 0;
  std::int64_t workers_per_device = 0;  ///< threads or processes if the user gives none; 0: all cores
  std::int64_t spare_cores = 0;  ///< of a host, that it leaves to others however many workers are asked for
  double device_bytes_per_image = 0;    ///< bytes that the device moves for its part; 0: it has none
  Sources sources;                      ///< of its numbers
};

/// `training.input`: where the images of a step come from.
struct InputSpec {
  bool synthetic = true;  ///< images are available when needed; the fields below do not apply
  std::string name;       ///< in the catalogue; "" if the experiment describes it
  InputLibrary library;
  bool rate_given = false;  ///< library.core_images_per_s is not the catalogue's but the experiment's
  std::optional<std::int64_t> workers_per_device;
  double storage_Bps = std::numeric_limits<double>::infinity();  ///< of each host
  bool cached = false;     ///< images are in the host's memory, as in every epoch but the first
  double image_bytes = 0;  ///< of a file
  double image_pixels = imagenet_image_pixels;  ///< of a file, before it is cropped
  std::int64_t prefetch = 2;                    ///< number of batches that are prepared ahead of a device
  Sources sources;                              ///< of its numbers
  SourcePos pos;

  /// "synthetic", "imagenet-pil", "jpeg by pil".
  std::string label() const;
};

/// `synthetic`, a mapping of input_keys(), or a name of topologies/catalog/inputs. @throws InputError
InputSpec read_input(const YamlNode& node, const std::string& path);

/// The keys of the mapping, for documentation.
KeySection input_keys();

std::vector<std::string> input_library_names();
InputLibrary load_input_library(const std::string& name, const SourcePos& pos);

/// The rate at which a host prepares images, and what limits it.
struct InputRate {
  enum class Limit : std::uint8_t { workers, cores, storage };
  double images_per_s = 0;
  Limit limit = Limit::cores;
  double cores = 0;  ///< of the host, that the library may use
  std::int64_t workers = 0;
};

/// Seconds of a core for an image: what the library spends on any, and for each pixel of the file. Decoding
/// is in proportion to the pixels (Pillow takes 0.77, 3.19 and 12.29 ms for 224, 512 and 1,024 pixels a side,
/// torchvision 0.64, 2.99 and 11.6, huggingface/transformers pull request 45195), and a random resized crop
/// reads a share of them.
double core_image_s(const InputLibrary& library, double image_pixels);

/// Rate of a host for this many devices: the least of the rates of its workers (each uses at most one core),
/// of its cores (two vCPUs each, since hyperthreads of a busy core add nothing) but those that the library
/// leaves to others, and, unless images are cached, of its storage.
/// @throws InputError at spec.pos: the host does not say its `vcpus`
InputRate input_rate(const InputSpec& spec, const HostType& host, std::uint32_t devices);

}  // namespace convoy::costs
