// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/layer.h"
#include "sim/base/keys.h"

namespace convoy::inline numerics {

/// `data:` of `numerics:`: which images a network learns from (docs/numerics.md).
struct DataSpec {
  enum class Kind : std::uint8_t { digits, drawn, idx, cifar };
  Kind kind = Kind::digits;
  std::int64_t train = 1000, held_out = 500;  ///< of drawn: images
  double noise = 1;                           ///< of drawn: deviation of a value, over that of the prototypes
  std::string train_images, train_labels, held_out_images, held_out_labels;  ///< files of idx
  std::vector<std::string> train_files;                                      ///< of cifar
  std::string held_out_file;
  SourcePos pos;
};

const Keys<DataSpec>& data_keys();

/// Images, all of one shape, and the classes that they belong to.
struct LearningData {
  struct Part {
    std::vector<float> values;  ///< image by image
    std::vector<std::int32_t> labels;
    std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
  };
  Part train, held_out;
};

/// Reads or draws the images, and makes them `input` large: enlarged by the whole number of times that fits,
/// then zeros around them; one channel stands for several. Values are shifted and scaled so that those of the
/// training part have mean 0 and deviation 1.
/// @param classes that the network tells apart
/// @param seed of what is drawn
/// @throws InputError: files that cannot be read or are of another format, images that do not fit, a class
/// that the network does not have
LearningData load_data(const DataSpec& spec, const Shape& input, std::int64_t classes, std::uint64_t seed);

}  // namespace convoy::numerics
