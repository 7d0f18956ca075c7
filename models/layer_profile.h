// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/model.h"
#include "sim/base/input_error.h"

namespace convoy::inline models {

/// A row of a profile: what one layer was measured to take on one device (docs/models.md).
struct ProfiledLayer {
  std::string name;
  double images = 0;                     ///< of the measurement
  double forward_s = 0, backward_s = 0;  ///< on all of them; backward: data and weight gradient together
  std::vector<std::string> inputs;       ///< empty: the row before, in the first row the images
  double activation_bytes = 0;           ///< output of all of them, in fp32; 0: not given
  double parameter_bytes = 0;            ///< in fp32
  SourcePos pos;
};

/// Measured times of a network's layers.
struct LayerProfile {
  std::string file;
  std::optional<ProfiledLayer> image;  ///< the row `input`, which has no times
  std::vector<ProfiledLayer> layers;   ///< in order, names unique
};

/// Reads a profile: CSV with the columns layer, batch, forward_ms, backward_ms and, where a model is to be
/// made of it, activation_bytes, parameter_bytes and inputs (names separated by spaces); note is free text.
/// @throws InputError at the cell that is wrong
LayerProfile read_layer_profile(const std::string& file);

/// A network of custom layers that take the measured times, in proportion for other batches.
/// @throws InputError where the profile does not say what layers read, put out or hold
Model profiled_model(const LayerProfile& profile, const std::string& name);

}  // namespace convoy::models
