// SPDX-License-Identifier: MIT
#include "models/summary.h"

#include "models/training_graph.h"

namespace convoy::inline models {

ModelSummary summarize(const Model& model) {
  ModelSummary summary;
  summary.name = model.name;
  for (const Layer& layer : model.layers) {
    summary.layers.push_back({layer.name, std::string(kind_name(layer.kind)), layer.output,
                              layer.parameter_elements(), layer.macs});
    summary.parameters += layer.parameter_elements();
    summary.parameter_tensors += layer.parameters.size();
    summary.forward_macs += layer.macs;
    if (const auto* custom = std::get_if<Custom>(&layer.kind)) summary.forward_flops += custom->forward_flops;
  }
  summary.forward_flops += 2.0 * static_cast<double>(summary.forward_macs);
  summary.saved_activation_bytes = saved_activation_bytes(build_training_graph(model, {}));
  return summary;
}

}  // namespace convoy::models
