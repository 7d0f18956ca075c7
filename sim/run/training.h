// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/training_graph.h"
#include "sim/base/keys.h"
#include "sim/costs/input_pipeline.h"
#include "strategies/batch_spec.h"

namespace convoy::inline runs {

/// Measured training throughput of one device, to which its compute times are scaled.
struct Anchor {
  double images_per_s = 0;
  std::int64_t batch = 0;             ///< images per step of that measurement
  std::optional<std::string> device;  ///< kind of device; required if the cluster has several
  SourcePos pos;
};

/// `training.profile`: measured times of layers on one kind of device.
struct ProfileSpec {
  std::string file;
  std::optional<std::string> device;  ///< required if the cluster has several
  SourcePos pos;
};

/// `training:` of an experiment.
struct Training {
  BatchSpec batch;
  /// As in the file. What it leaves out is decided together with the devices (resolve_software).
  TrainingOptions options;
  bool precision_given = false, layout_given = false;
  SourcePos precision_pos, recompute_pos;
  std::optional<std::int64_t> samples;  ///< `dataset: {samples}`
  std::optional<Anchor> anchor;
  std::optional<ProfileSpec> profile;
  InputSpec input;
};

/// Reads `training:`. @throws InputError
Training read_training(YamlMap map);

/// The keys of `training:`, for documentation.
KeySection training_keys();

}  // namespace convoy::runs
