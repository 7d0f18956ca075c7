// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <optional>

#include "sim/base/key_kinds.h"
#include "sim/base/key_parts.h"
#include "sim/base/names.h"
#include "strategies/pardnn/networks/networks.h"

namespace convoy::inline strategies {
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

/// A whole number from 1 that must be given.
template <class Shape, class Field>
Key<Shape> size_key(std::string name, std::int64_t most, std::string meaning, Field field) {
  return optional_integer_key<Shape>(std::move(name), "", 1, most, std::move(meaning), field).required();
}

template <class Shape>
Key<Shape> counts_key(std::string name, std::string example, std::string meaning,
                      std::vector<int> Shape::*field) {
  KeyText text = key_text(
      name, "", forms::list(forms::whole(1, YamlMap::max_integer), "a list such as " + std::move(example), 1),
      std::move(meaning) + "; required");
  text.required = true;
  return {std::move(text),
          [name, field](YamlMap& map, Shape& shape) { shape.*field = read_counts(map, name); }};
}

Keys<CharacterLayers> character_keys() {
  using C = CharacterLayers;
  return {size_key<C>("alphabet", widest, "different characters", &C::alphabet),
          size_key<C>("word_length", widest, "characters of a word", &C::word_length),
          size_key<C>("embedding", widest, "values of a character", &C::embedding),
          counts_key<C>("widths", "[1, 2, 3]", "characters that each convolution sees at a time", &C::widths),
          counts_key<C>("features", "[50, 100, 150]", "channels of each convolution", &C::features),
          optional_integer_key<C>("highway", "", 0, most_layers, "highway layers behind them", &C::highway)
              .required()};
}

Keys<RecurrentNetwork> recurrent_keys() {
  using R = RecurrentNetwork;
  return {
      size_key<R>("layers", most_layers, "of LSTM cells", &R::layers),
      size_key<R>("steps", most_steps, "over which the cells are unrolled", &R::steps),
      size_key<R>("hidden", widest, "values of a cell's state", &R::hidden),
      size_key<R>("vocabulary", most_words, "different words", &R::vocabulary),
      mapping_key<R>("characters", "none", "words are spelled, and seen by convolutions", character_keys(),
                     [](R& shape) -> CharacterLayers& { return shape.characters.emplace(); })};
}

Keys<TransformerNetwork> transformer_keys() {
  using T = TransformerNetwork;
  return {size_key<T>("layers", most_layers, "blocks of encoder and of decoder", &T::layers),
          size_key<T>("heads", widest, "of attention", &T::heads),
          size_key<T>("length", most_steps, "tokens of a sequence", &T::length),
          size_key<T>("hidden", widest, "values of a token", &T::hidden),
          size_key<T>("feed_forward", widest, "values between a block's two linear layers", &T::feed_forward),
          size_key<T>("vocabulary", most_words, "different tokens", &T::vocabulary)};
}

Keys<ResidualNetwork> residual_keys() {
  using R = ResidualNetwork;
  constexpr std::int64_t reduction = 32, largest_image = 4096, most_widening = 100;
  return {counts_key<R>("blocks", "[3, 4, 23, 3]", "of each of the four stages", &R::blocks),
          size_key<R>("widen", most_widening, "factor on the channels of the 3x3 convolutions", &R::widen),
          integer_key<R>("image", reduction, largest_image, "side in pixels, a multiple of 32", &R::image),
          integer_key<R>("classes", 1, widest, "of the last layer", &R::classes)};
}

Keys<VideoNetwork> video_keys() {
  using V = VideoNetwork;
  constexpr std::int64_t largest_image = 4096, most_frames = 1'000, largest_kernel = 31;
  return {
      size_key<V>("layers", most_layers, "of cells", &V::layers),
      size_key<V>("hidden", widest, "channels of a cell", &V::hidden),
      integer_key<V>("side", 1, largest_image, "of a frame in pixels, a multiple of patch", &V::side),
      integer_key<V>("colors", 1, widest, "channels of a pixel", &V::colors),
      integer_key<V>("patch", 1, largest_image, "side of the pixels that are the channels of one place",
                     &V::patch),
      integer_key<V>("given", 1, most_frames, "frames of a video that are given", &V::given),
      integer_key<V>("frames", 2, most_frames, "with those that are predicted", &V::frames),
      integer_key<V>("kernel_depth", 1, largest_kernel, "frames that a convolution sees", &V::kernel_depth),
      integer_key<V>("kernel", 1, largest_kernel, "side of a convolution's window", &V::kernel)};
}

void check_shape(YamlMap& map, const RecurrentNetwork& shape) {
  if (const std::int64_t cells = std::int64_t{shape.layers} * shape.steps; cells > most_cells)
    map.fail("steps", fmt::format("{} layers of {} steps are {} cells; at most {}, so {} steps", shape.layers,
                                  shape.steps, cells, most_cells, most_cells / shape.layers));
  if (!shape.characters) return;
  const CharacterLayers& characters = *shape.characters;
  const YamlMap part = map.map("characters");
  if (characters.widths.size() != characters.features.size())
    part.fail("features", fmt::format("{} numbers for {} widths; one each", characters.features.size(),
                                      characters.widths.size()));
  for (const int width : characters.widths)
    if (width > characters.word_length)
      part.fail("widths", fmt::format("{} is wider than a word of word_length", width));
}

void check_shape(YamlMap& /*map*/, const TransformerNetwork& /*shape*/) {}

void check_shape(YamlMap& map, const ResidualNetwork& shape) {
  constexpr std::size_t stages = 4;
  constexpr int most_blocks = 1'000, reduction = 32;
  if (shape.blocks.size() != stages)
    map.fail("blocks", fmt::format("{} stages; expected four, such as [3, 4, 23, 3]", shape.blocks.size()));
  for (const int blocks : shape.blocks)
    if (blocks > most_blocks)
      map.fail("blocks", fmt::format("{} blocks in a stage; at most {}", blocks, most_blocks));
  if (static_cast<int>(shape.image) % reduction != 0)
    map.fail("image",
             fmt::format("{} is not a multiple of 32, by which the network reduces its maps", shape.image));
}

void check_shape(YamlMap& map, const VideoNetwork& shape) {
  if (std::fmod(shape.side, shape.patch) != 0)
    map.fail("patch",
             fmt::format("side ({:.0f}) is not a multiple of patch ({:.0f})", shape.side, shape.patch));
  if (shape.given > shape.frames)
    map.fail("given", fmt::format("{} given frames, of {} in all", shape.given, shape.frames));
  if (const std::int64_t cells = std::int64_t{shape.layers} * shape.frames; cells > most_cells / 2)
    map.fail("layers", fmt::format("{} layers of {} frames are {} cells; at most {}", shape.layers,
                                   shape.frames, cells, most_cells / 2));
}

/// A kind of network as users write it.
struct NetworkEntry {
  std::string_view kind, summary;
  std::vector<KeyText> keys;
  std::function<OperationNetwork(YamlMap& map, Optimizer optimizer, bool clip)> read;
};

template <class Shape>
NetworkEntry network_entry(std::string_view kind, std::string_view summary, Keys<Shape> keys,
                           OperationNetwork (*build)(const Shape& shape, Optimizer optimizer, bool clip)) {
  std::vector<KeyText> texts = texts_of(keys);
  return {
      kind, summary, std::move(texts),
      [names = names_of(keys), keys = std::move(keys), build](YamlMap& map, Optimizer optimizer, bool clip) {
        refuse_unknown_keys(map, names);
        Shape shape;
        read_keys(keys, map, shape);
        check_shape(map, shape);
        map.finish();
        return build(shape, optimizer, clip);
      }};
}

const std::vector<NetworkEntry>& network_registry() {
  static const std::vector<NetworkEntry> registry{
      network_entry("recurrent", "LSTM cells in a grid of layers by steps", recurrent_keys(),
                    &recurrent_network),
      network_entry("transformer", "encoder and decoder of attention blocks", transformer_keys(),
                    &transformer_network),
      network_entry("residual", "bottleneck blocks of convolutions in four stages", residual_keys(),
                    &residual_network),
      network_entry("video", "eidetic LSTM cells that predict frames of a video", video_keys(),
                    &video_network)};
  return registry;
}

/// An operation network's file as it is read.
struct NetworkDraft {
  std::string name, device;
  SourcePos device_pos;
  std::int64_t batch = 0;
  Optimizer optimizer{};
  bool clip = false;
  std::optional<YamlMap> network;
};

const Keys<NetworkDraft>& network_file_keys() {
  using D = NetworkDraft;
  static const Keys<D> keys{
      custom_key<D>("name", "as the file", forms::text("a text"), "of the network",
                    [](YamlMap& map, D& file) {
                      file.name = map.text_or("name", std::filesystem::path(map.pos().file).stem().string());
                    }),
      optional_text_key<D>("device", "", "the name of a device", "whose times operations take", &D::device)
          .required()
          .at(&D::device_pos),
      size_key<D>("batch", most_words, "samples of a step", &D::batch),
      custom_key<D>("optimizer", "", forms::name(texts_of_names(optimizer_names)), "of the updates",
                    [](YamlMap& map, D& file) {
                      file.optimizer =
                          read_choice<Optimizer>(map, "optimizer", texts_of_names(optimizer_names));
                    })
          .told_required(),
      flag_key<D>("clip", "gradients are scaled by their common norm, for which all wait", &D::clip),
      custom_key<D>("network", "", forms::parts("{kind, ...}"), "its shape",
                    [](YamlMap& map, D& file) { file.network = map.map("network"); })
          .told_required()
          .with_parts(section_of_registry("network", "", network_registry()).keys)};
  return keys;
}

}  // namespace

OperationNetworkFile read_operation_network(const YamlNode& root) {
  NetworkDraft draft;
  read_part(network_file_keys(), YamlMap(root, ""), draft);
  OperationNetworkFile file;
  file.name = draft.name;
  file.device = load_device(draft.device, draft.device_pos);
  TrainingOptions software;  // parameters, gradients and activations are those of TensorFlow 1's graphs
  software.framework = Framework::tensorflow1;
  software.execution = default_execution(software.framework);
  file.software = Software(software);
  file.batch = static_cast<double>(draft.batch);
  std::vector<std::string> kinds;
  for (const NetworkEntry& entry : network_registry()) kinds.emplace_back(entry.kind);
  YamlMap& network = *draft.network;
  file.network = network_registry()[network.choice("kind", kinds)].read(network, draft.optimizer, draft.clip);
  return file;
}

KeySection operation_network_keys() {
  return {"operation-network", "a file of configs/networks: a network that is no chain of layers",
          texts_of(network_file_keys())};
}

}  // namespace convoy::strategies
