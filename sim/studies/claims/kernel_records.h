// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "sim/base/yaml_map.h"
#include "sim/studies/claims/record.h"

namespace convoy::inline studies {

/// What kinds of kernels a training step's time goes to on one device, for each point of an experiment: a
/// record with "device_type", the point's coordinates and, for each kind ("convolution", "matmul", …),
/// "share.KIND": its part, 0 to 1, of the sum of all operations' times on the cluster's first device, of the
/// whole batch, by the cost model.
std::vector<Record> kernel_share_records(YamlMap& map, std::size_t jobs);

}  // namespace convoy::studies
