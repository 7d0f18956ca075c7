// SPDX-License-Identifier: MIT
#include "models/layer_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "models/shapes.h"
#include "sim/base/csv.h"
#include "sim/base/yaml_map.h"

namespace convoy::inline models {
namespace {

constexpr const char* image_row = "input";
constexpr double float_bytes = 4;
constexpr double largest = static_cast<double>(YamlMap::max_integer);
constexpr double longest_ms = 1e12;

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> result;
  for (std::string word; stream >> word;) result.push_back(word);
  return result;
}

double milliseconds(const CsvTable& table, const CsvRow& row, const char* column) {
  const double value = table.number(row, column, false);
  if (value > longest_ms)
    throw InputError(table.find(row, column)->pos,
                     fmt::format("{}: no layer takes longer than {:g} ms", column, longest_ms));
  return value / 1000;
}

ProfiledLayer read_row(const CsvTable& table, const CsvRow& row) {
  ProfiledLayer layer;
  layer.pos = row.front().pos;
  layer.name = table.text(row, "layer");
  if (layer.name.empty() || words(layer.name) != std::vector<std::string>{layer.name})
    throw InputError(layer.pos, fmt::format("layer: expected a name without spaces, found '{}'", layer.name));
  layer.images = table.number(row, "batch", true);
  if (layer.images != std::floor(layer.images) || layer.images > largest)
    throw InputError(table.find(row, "batch")->pos,
                     fmt::format("batch: expected a whole number, found '{}'", table.text(row, "batch")));
  if (layer.name == image_row) {
    for (const char* column : {"forward_ms", "backward_ms", "inputs", "parameter_bytes"})
      if (const CsvCell* cell = table.find(row, column))
        throw InputError(
            cell->pos,
            fmt::format("{}: '{}' stands for the images and has only activation_bytes", column, image_row));
  } else {
    layer.forward_s = milliseconds(table, row, "forward_ms");
    layer.backward_s = milliseconds(table, row, "backward_ms");
  }
  if (const CsvCell* cell = table.find(row, "inputs")) layer.inputs = words(cell->text);
  if (table.find(row, "activation_bytes"))
    layer.activation_bytes = table.number(row, "activation_bytes", true);
  if (table.find(row, "parameter_bytes")) layer.parameter_bytes = table.number(row, "parameter_bytes", false);
  return layer;
}

/// fp32 values in so many bytes.
std::int64_t values(double bytes, double images, const ProfiledLayer& layer, const char* column) {
  const double count = bytes / images / float_bytes;
  if (count != std::floor(count) || count > largest)
    throw InputError(
        layer.pos,
        fmt::format("{}: {:g} bytes of '{}' are no whole number of fp32 values{}", column, bytes, layer.name,
                    images > 1 ? fmt::format(" for each of {:g} images", images) : ""));
  return static_cast<std::int64_t>(count);
}

std::int64_t output_values(const ProfiledLayer& layer) {
  if (layer.activation_bytes == 0)
    throw InputError(layer.pos,
                     fmt::format("activation_bytes of '{}' is missing; a model needs it", layer.name));
  return values(layer.activation_bytes, layer.images, layer, "activation_bytes");
}

}  // namespace

LayerProfile read_layer_profile(const std::string& file) {
  const CsvTable table(file,
                       {"layer", "inputs", "batch", "forward_ms", "backward_ms", "activation_bytes",
                        "parameter_bytes", "note"},
                       {"layer", "batch", "forward_ms", "backward_ms"});
  LayerProfile profile{file, std::nullopt, {}};
  std::map<std::string, int> line_of;
  for (const CsvRow& row : table.rows()) {
    ProfiledLayer layer = read_row(table, row);
    const auto [known, fresh] = line_of.emplace(layer.name, layer.pos.line);
    if (!fresh)
      throw InputError(layer.pos,
                       fmt::format("layer: '{}' is on line {} already", layer.name, known->second));
    if (layer.name == image_row)
      profile.image.emplace(std::move(layer));
    else
      profile.layers.push_back(std::move(layer));
  }
  if (profile.layers.empty()) throw InputError({file, 0, 0}, "holds no layer");
  return profile;
}

Model profiled_model(const LayerProfile& profile, const std::string& name) {
  if (!profile.image)
    throw InputError({profile.file, 0, 0},
                     fmt::format("a row '{}' with the batch and activation_bytes of the images is missing; a "
                                 "model needs it",
                                 image_row));
  Model model;
  model.name = name;
  model.input = {output_values(*profile.image)};
  std::map<std::string, LayerIndex> index{{image_row, image_input}};
  std::int64_t parameters = 0;
  for (const ProfiledLayer& row : profile.layers) {
    Custom custom;
    custom.forward_s = row.forward_s / row.images;
    custom.backward_s = row.backward_s / row.images;
    custom.output = {output_values(row)};
    custom.parameters = values(row.parameter_bytes, 1, row, "parameter_bytes");
    if ((parameters += custom.parameters) > YamlMap::max_integer)
      throw InputError(row.pos, "parameter_bytes: up to here the model has more than 2^53 parameters");
    Layer layer{row.name, custom, {}, {}, {}, 0, false, row.pos};
    std::vector<Shape> shapes;
    const std::vector<std::string> before{model.layers.empty() ? image_row : model.layers.back().name};
    for (const std::string& input : row.inputs.empty() ? before : row.inputs) {
      const auto found = index.find(input);
      if (found == index.end())
        throw InputError(row.pos, fmt::format("inputs: '{}' reads '{}', and no row before it has that name",
                                              row.name, input));
      if (std::find(layer.inputs.begin(), layer.inputs.end(), found->second) != layer.inputs.end())
        throw InputError(row.pos, fmt::format("inputs: '{}' reads '{}' twice", row.name, input));
      layer.inputs.push_back(found->second);
      shapes.push_back(model.shape_of(found->second));
    }
    infer_shape(layer, shapes);
    index.emplace(row.name, static_cast<LayerIndex>(model.layers.size()));
    model.layers.push_back(std::move(layer));
  }
  return model;
}

}  // namespace convoy::models
