// SPDX-License-Identifier: MIT
#include "models/low_rank_shape.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <variant>

namespace convoy::inline models {
namespace {

/// First dimension of a layer's weight; 0: it is no matrix.
std::int64_t weight_rows(const Model& model, const Layer& layer) {
  return std::visit(
      [&](const auto& kind) -> std::int64_t {
        using Kind = std::remove_cvref_t<decltype(kind)>;
        if constexpr (std::is_same_v<Kind, ConvTranspose2d> || std::is_same_v<Kind, ConvTranspose3d>)
          return model.shape_of(layer.inputs.front()).front();
        else if constexpr (requires { kind.out_channels; })
          return kind.out_channels;
        else if constexpr (requires { kind.out_features; })
          return kind.out_features;
        else
          return 0;
      },
      layer.kind);
}

}  // namespace

std::optional<LowRankShape> low_rank_shape(const Model& model, const Parameter& parameter, double elements,
                                           std::int64_t rank) {
  const Layer& layer = model.layers[parameter.layer];
  if (layer.parameters[parameter.tensor].role != ParameterRole::weight) return std::nullopt;
  const std::int64_t all_rows = weight_rows(model, layer);
  if (all_rows == 0 || parameter.elements % all_rows != 0) return std::nullopt;
  LowRankShape shape;
  shape.columns = static_cast<double>(parameter.elements / all_rows);
  shape.rows = elements / shape.columns;
  shape.rank = std::min({static_cast<double>(rank), shape.rows, shape.columns});
  if (shape.rows != std::floor(shape.rows)) return std::nullopt;
  if ((shape.rows + shape.columns) * shape.rank >= shape.rows * shape.columns) return std::nullopt;
  return shape;
}

}  // namespace convoy::models
