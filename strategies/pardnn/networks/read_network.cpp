// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <filesystem>

#include "sim/base/keys.h"
#include "sim/base/names.h"
#include "strategies/pardnn/networks/networks.h"

namespace convoy {
namespace {

constexpr std::int64_t most_layers = 1'000, most_steps = 10'000, widest = 1'000'000, most_words = 100'000'000;
constexpr std::int64_t most_cells = 100'000;  // each has some 33 operations, backward included

std::vector<int> read_counts(YamlMap& map, std::string_view key) {
  std::vector<int> result;
  for (const YamlNode& item : map.node(key).items)
    result.push_back(static_cast<int>(read_integer(item, map.path_of(key), 1, widest)));
  if (result.empty()) map.fail(key, "expected a list of whole numbers such as [1, 2, 3]");
  return result;
}

CharacterLayers read_characters(YamlMap map) {
  CharacterLayers shape;
  shape.alphabet = static_cast<double>(map.integer("alphabet", 1, widest));
  shape.word_length = static_cast<double>(map.integer("word_length", 1, widest));
  shape.embedding = static_cast<double>(map.integer("embedding", 1, widest));
  shape.widths = read_counts(map, "widths");
  shape.features = read_counts(map, "features");
  shape.highway = static_cast<int>(map.integer("highway", 0, most_layers));
  if (shape.widths.size() != shape.features.size())
    map.fail("features",
             fmt::format("{} numbers for {} widths; one each", shape.features.size(), shape.widths.size()));
  for (const int width : shape.widths)
    if (width > shape.word_length)
      map.fail("widths", fmt::format("{} is wider than a word of word_length", width));
  map.finish();
  return shape;
}

OperationNetwork read_recurrent(YamlMap& map, Optimizer optimizer, bool clip) {
  RecurrentNetwork shape;
  shape.layers = static_cast<int>(map.integer("layers", 1, most_layers));
  shape.steps = static_cast<int>(map.integer("steps", 1, most_steps));
  shape.hidden = static_cast<double>(map.integer("hidden", 1, widest));
  if (const std::int64_t cells = std::int64_t{shape.layers} * shape.steps; cells > most_cells)
    map.fail("steps", fmt::format("{} layers of {} steps are {} cells; at most {}, so {} steps", shape.layers,
                                  shape.steps, cells, most_cells, most_cells / shape.layers));
  shape.vocabulary = static_cast<double>(map.integer("vocabulary", 1, most_words));
  if (map.has("characters")) shape.characters = read_characters(map.map("characters"));
  map.finish();
  return recurrent_network(shape, optimizer, clip);
}

OperationNetwork read_transformer(YamlMap& map, Optimizer optimizer, bool clip) {
  TransformerNetwork shape;
  shape.layers = static_cast<int>(map.integer("layers", 1, most_layers));
  shape.heads = static_cast<int>(map.integer("heads", 1, widest));
  shape.length = static_cast<int>(map.integer("length", 1, most_steps));
  shape.hidden = static_cast<double>(map.integer("hidden", 1, widest));
  shape.feed_forward = static_cast<double>(map.integer("feed_forward", 1, widest));
  shape.vocabulary = static_cast<double>(map.integer("vocabulary", 1, most_words));
  map.finish();
  return transformer_network(shape, optimizer, clip);
}

OperationNetwork read_residual(YamlMap& map, Optimizer optimizer, bool clip) {
  constexpr std::size_t stages = 4;
  constexpr std::int64_t reduction = 32, largest_image = 4096, most_blocks = 1'000;
  ResidualNetwork shape;
  shape.blocks = read_counts(map, "blocks");
  if (shape.blocks.size() != stages)
    map.fail("blocks", fmt::format("{} stages; expected four, such as [3, 4, 23, 3]", shape.blocks.size()));
  for (const int blocks : shape.blocks)
    if (blocks > most_blocks)
      map.fail("blocks", fmt::format("{} blocks in a stage; at most {}", blocks, most_blocks));
  shape.widen = static_cast<double>(map.integer("widen", 1, 100));
  const std::int64_t image = map.integer_or("image", 224, reduction, largest_image);
  if (image % reduction != 0)
    map.fail("image",
             fmt::format("{} is not a multiple of 32, by which the network reduces its maps", image));
  shape.image = static_cast<double>(image);
  shape.classes = static_cast<double>(map.integer_or("classes", 1000, 1, widest));
  map.finish();
  return residual_network(shape, optimizer, clip);
}

}  // namespace

OperationNetworkFile read_operation_network(const YamlNode& root) {
  YamlMap map(root, "");
  OperationNetworkFile file;
  file.name = map.text_or("name", std::filesystem::path(root.pos.file).stem().string());
  file.device = load_device(map.text("device"), map.pos("device"));
  TrainingOptions software;  // parameters, gradients and activations are those of TensorFlow 1's graphs
  software.framework = Framework::tensorflow1;
  software.execution = default_execution(software.framework);
  file.software = Software(software);
  file.batch = static_cast<double>(map.integer("batch", 1, most_words));
  const auto optimizer = read_choice<Optimizer>(map, "optimizer", texts_of_names(optimizer_names));
  const bool clip = map.flag_or("clip", false);
  YamlMap network = map.map("network");
  constexpr std::array readers{&read_recurrent, &read_transformer, &read_residual};
  file.network =
      readers[network.choice("kind", {"recurrent", "transformer", "residual"})](network, optimizer, clip);
  map.finish();
  return file;
}

}  // namespace convoy
