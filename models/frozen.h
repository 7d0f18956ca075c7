// SPDX-License-Identifier: MIT
#pragma once

#include "models/training_graph.h"

namespace convoy::inline models {

/// Values of a layer's parameters that are not trained.
double frozen_elements(const Layer& layer);

/// Bytes of so many parameters that are not trained: what trained ones have in class weights, without
/// gradients and optimizer state. They are there throughout the step.
double frozen_bytes(double elements, const TrainingOptions& options);

}  // namespace convoy::models
