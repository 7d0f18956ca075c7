// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "topologies/machine.h"

namespace convoy::inline prove {

/// What is known of the parameters of devices that have parts of layers, and of which others have replicas.
class ParameterParts {
 public:
  ParameterParts() = default;
  ParameterParts(const ParameterParts&) = delete;
  ParameterParts& operator=(const ParameterParts&) = delete;
  virtual ~ParameterParts() = default;

  /// Of a parameter (index into TrainingGraph::parameters), on a device.
  virtual double elements(std::size_t parameter, EndpointId e) const = 0;
  /// Devices that sum their gradients have the same parts of the parameters, and between them the gradients
  /// of all images, each term once. @throws Refuted
  virtual void check_sum(const std::vector<std::size_t>& parameters,
                         const std::vector<EndpointId>& group) = 0;
};

}  // namespace convoy::prove
