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

/// Pixels of a file of ImageNet on average, 500 x 400: what the libraries' rates were measured with.
constexpr double imagenet_image_pixels = 200'000;

/// A library that turns JPEG files into batches (topologies/catalog/input_libraries/NAME.yaml).
struct InputLibrary {
  std::string name;
  /// Decode and augmentation of images of ImageNet's mean size (`imagenet_image_pixels`), of one core (two
  /// vCPUs).
  double core_images_per_s = 0;
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
  bool cached = false;     ///< images are in the host's memory: every epoch but the first
  double image_bytes = 0;  ///< of a file
  double image_pixels = imagenet_image_pixels;  ///< of a file, before it is cropped
  std::int64_t prefetch = 2;                    ///< batches that are made ready ahead of a device
  SourcePos pos;

  /// "synthetic", "imagenet-pil", "jpeg by pil".
  std::string label() const;
};

/// `synthetic`, a mapping of input_keys(), or a name of topologies/catalog/inputs. @throws InputError
InputSpec read_input(const YamlNode& node, const std::string& path);

/// The keys of the mapping, for whoever reads about them.
KeySection input_keys();

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
/// What a core does for an image is proportional to the file's pixels: decoding is (Pillow takes 0.77, 3.19
/// and 12.29 ms for 224, 512 and 1,024 pixels a side, torchvision 0.64, 2.99 and 11.6,
/// huggingface/transformers pull request 45195), and a random crop that is resized reads a share of them.
/// @throws InputError at spec.pos: the host does not say its `vcpus`
InputRate input_rate(const InputSpec& spec, const HostType& host, std::uint32_t devices);

}  // namespace convoy::costs
