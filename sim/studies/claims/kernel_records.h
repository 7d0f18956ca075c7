// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "sim/base/yaml_map.h"
#include "sim/run/preparer.h"
#include "sim/studies/claims/record.h"

namespace convoy::inline studies {

/// How the time of a training step on one device divides among kinds of kernels, for each point of an
/// experiment: a record with "device_type", the point's coordinates and, for each kind ("convolution",
/// "matmul", …), "share.KIND": its share, 0 to 1, of the sum of the times of all operations on the cluster's
/// first device, for the whole batch, by the cost model.
std::vector<Record> kernel_share_records(YamlMap& map, std::size_t jobs);

/// The same of one point of the preparer's experiment.
Record kernel_shares(Preparer& preparer, std::size_t index);

}  // namespace convoy::studies
