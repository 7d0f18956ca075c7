// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "models/framework.h"
#include "models/work.h"

namespace convoy::inline models {

/// Into how many kernels an optimizer's step falls. A step is a sequence of elementwise operations on
/// parameters, gradients and states, of which each reads and writes its operands.
enum class UpdateMode : std::uint8_t {
  per_tensor,  ///< every operation is a kernel for every parameter tensor
  foreach,     ///< every operation is a kernel over many tensors
  fused,       ///< the whole step is a kernel over many tensors, which reads and writes each value once
};
inline constexpr std::array<std::string_view, 3> update_mode_names{"per_tensor", "foreach", "fused"};
constexpr std::string_view to_string(UpdateMode m) { return update_mode_names[static_cast<std::size_t>(m)]; }

/// Those that a framework has, its default first.
std::span<const UpdateMode> update_modes(Framework framework);

/// What a device does for one update of all parameters.
struct UpdateKernels {
  double launches;  ///< kernels, of all tensors together
  double passes;    ///< values read and written for each parameter, in all kernels
};

/// Sources of the operations and of the limits of a kernel stand in optimizer_update.cpp.
/// @param mode one of update_modes(framework)
/// @param tensors sizes of all parameter tensors, in the model's order
UpdateKernels update_kernels(Framework framework, UpdateMode mode, Optimizer optimizer,
                             std::span<const std::int64_t> tensors);

/// Values that a step reads and writes for each parameter when it touches each of them once: gradient,
/// states and parameter read, states and parameter written.
double fused_passes(Optimizer optimizer);

/// How long the host takes to issue an update, over what it takes in the framework's default mode: in
/// proportion to how often it turns to a tensor, once for every kernel of its own, and once to put it on the
/// list of kernels over many. Never more than 1: per kernel, issue times of foreach updates are already as
/// long as those of single kernels (docs/cost_model.md).
double update_issue_share(Framework framework, UpdateMode mode, Optimizer optimizer);

}  // namespace convoy::models
