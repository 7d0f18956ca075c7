// SPDX-License-Identifier: MIT
#include "sim/numerics/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/named_file.h"
#include "sim/numerics/data_files.h"
#include "sim/numerics/draw.h"

namespace convoy::inline numerics {
namespace {

using DataKind = DataSpec::Kind;

constexpr std::int64_t most_images = 1'000'000;

template <DataKind kind>
bool is_kind(const DataSpec& spec) {
  return spec.kind == kind;
}

Key<DataSpec> file_key(std::string name, std::string meaning, void (*read)(YamlMap&, DataSpec&)) {
  return custom_key<DataSpec>(std::move(name), "", forms::text("a file"), std::move(meaning), read)
      .told_required()
      .only("kind: idx", &is_kind<DataKind::idx>);
}

void read_cifar_files(YamlMap& map, DataSpec& spec) {
  const YamlNode& list = map.node("train_files");
  if (list.kind != YamlNode::Kind::sequence || list.items.empty())
    map.fail("train_files", "expected a list of files such as [data_batch_1.bin]");
  for (const YamlNode& item : list.items) {
    if (item.kind != YamlNode::Kind::scalar || item.scalar.empty())
      throw InputError(item.pos, fmt::format("{}: expected the name of a file, found {}",
                                             map.path_of("train_files"), describe(item)));
    spec.train_files.push_back(beside(item.pos, item.scalar));
  }
}

/// Class prototypes, smooth patterns of a few waves, with noise added: harder the more noise there is.
LearningData draw_images(const DataSpec& spec, const Shape& input, std::int64_t classes, std::uint64_t seed) {
  constexpr int waves = 4;
  const std::int64_t size = elements(input), w = input.back();
  std::vector<std::vector<double>> prototypes;
  for (std::int64_t c = 0; c < classes; ++c) {
    std::vector<double>& prototype = prototypes.emplace_back(static_cast<std::size_t>(size), 0.0);
    const std::uint64_t stream = drawn_stream(DrawnFor::prototypes, static_cast<std::uint64_t>(c));
    for (int k = 0; k < waves; ++k) {
      const auto draw = [&](std::uint64_t n) {
        return drawn_uniform(seed, stream, static_cast<std::uint64_t>(4 * k) + n);
      };
      const double along = 2 * draw(0) - 1, down = 2 * draw(1) - 1, phase = draw(2), channel = draw(3);
      for (std::int64_t e = 0; e < size; ++e)
        prototype[static_cast<std::size_t>(e)] +=
            std::cos(along * static_cast<double>(e % w) + down * static_cast<double>(e / w % w) +
                     6.28 * phase + channel * static_cast<double>(e / (w * w))) *
            std::sqrt(2.0 / waves);
    }
  }
  LearningData data;
  std::uint64_t number = 0;
  for (auto [part, count] : {std::pair{&data.train, spec.train}, {&data.held_out, spec.held_out}})
    for (std::int64_t i = 0; i < count; ++i, ++number) {
      part->labels.push_back(static_cast<std::int32_t>(i % classes));
      const std::vector<double>& prototype = prototypes[static_cast<std::size_t>(i % classes)];
      const std::uint64_t stream = drawn_stream(DrawnFor::noise, number);
      for (std::size_t e = 0; e < prototype.size(); ++e)
        part->values.push_back(static_cast<float>(prototype[e] + spec.noise * drawn_normal(seed, stream, e)));
    }
  return data;
}

void standardize(LearningData& data) {
  double sum = 0, squares = 0;
  for (const float value : data.train.values) sum += value;
  const double mean = sum / static_cast<double>(data.train.values.size());
  for (const float value : data.train.values) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(data.train.values.size()));
  for (LearningData::Part* part : {&data.train, &data.held_out})
    for (float& value : part->values)
      value = static_cast<float>((value - mean) / (deviation > 0 ? deviation : 1));
}

/// The images of one shape in another.
std::vector<float> fitted(const std::vector<float>& values, const Shape& from, const Shape& to,
                          const SourcePos& pos) {
  if (from == to) return values;
  const std::int64_t times = to.size() == 3 ? std::min(to[1] / from[1], to[2] / from[2]) : 0;
  if (times < 1 || (from[0] != to[0] && from[0] != 1))
    throw InputError(pos, fmt::format("numerics.data: its images are {}, which do not fit in the network's "
                                      "input {}; give the model an `input` that they fit in",
                                      to_string(from), to_string(to)));
  const std::int64_t top = (to[1] - times * from[1]) / 2, left = (to[2] - times * from[2]) / 2;
  const auto images = static_cast<std::int64_t>(values.size()) / elements(from);
  std::vector<float> result(static_cast<std::size_t>(images * elements(to)), 0.0F);
  for (std::int64_t i = 0; i < images; ++i)
    for (std::int64_t c = 0; c < to[0]; ++c)
      for (std::int64_t y = 0; y < times * from[1]; ++y)
        for (std::int64_t x = 0; x < times * from[2]; ++x) {
          const std::int64_t source =
              ((i * from[0] + (from[0] == 1 ? 0 : c)) * from[1] + y / times) * from[2] + x / times;
          const std::int64_t place = ((i * to[0] + c) * to[1] + top + y) * to[2] + left + x;
          result[static_cast<std::size_t>(place)] = values[static_cast<std::size_t>(source)];
        }
  return result;
}

}  // namespace

const Keys<DataSpec>& data_keys() {
  using Spec = DataSpec;
  static const Keys<Spec> keys{
      choice_key<Spec>(
          "kind", {"digits", "drawn", "idx", "cifar"},
          "digits: 8 x 8 handwritten digits that come with convoy (UCI); drawn: a pattern a class, "
          "with noise; idx: files in the format of MNIST; cifar: those of CIFAR-10's binary version",
          &Spec::kind),
      integer_key<Spec>("train", 1, most_images, "images to learn from", &Spec::train)
          .only("kind: drawn", &is_kind<DataKind::drawn>),
      integer_key<Spec>("held_out", 1, most_images, "images to measure the accuracy with", &Spec::held_out)
          .only("kind: drawn", &is_kind<DataKind::drawn>),
      number_key<Spec>("noise", 0, 1000, "deviation of the noise, over that of the patterns", &Spec::noise)
          .only("kind: drawn", &is_kind<DataKind::drawn>),
      file_key("train_images", "to learn from, gzip-packed or not",
               [](YamlMap& map, Spec& spec) { spec.train_images = named_file(map, "train_images"); }),
      file_key("train_labels", "their classes",
               [](YamlMap& map, Spec& spec) { spec.train_labels = named_file(map, "train_labels"); }),
      file_key("held_out_images", "to measure the accuracy with",
               [](YamlMap& map, Spec& spec) { spec.held_out_images = named_file(map, "held_out_images"); }),
      file_key("held_out_labels", "their classes",
               [](YamlMap& map, Spec& spec) { spec.held_out_labels = named_file(map, "held_out_labels"); }),
      list_key<Spec>("train_files", "", forms::list(forms::text("a file"), "a list of files", 1),
                     "images to learn from, with their classes", &read_cifar_files)
          .told_required()
          .only("kind: cifar", &is_kind<DataKind::cifar>),
      custom_key<Spec>(
          "held_out_file", "", forms::text("a file"), "images to measure the accuracy with",
          [](YamlMap& map, Spec& spec) { spec.held_out_file = named_file(map, "held_out_file"); })
          .told_required()
          .only("kind: cifar", &is_kind<DataKind::cifar>)};
  return keys;
}

LearningData load_data(const DataSpec& spec, const Shape& input, std::int64_t classes, std::uint64_t seed) {
  LearningData data;
  Shape shape = input;
  switch (spec.kind) {
    case DataKind::digits:
      data = read_digits();
      shape = {1, 8, 8};
      break;
    case DataKind::drawn:
      data = draw_images(spec, input, classes, seed);
      break;
    case DataKind::idx: {
      const Shape of_train = read_idx(spec.train_images, spec.train_labels, data.train);
      shape = read_idx(spec.held_out_images, spec.held_out_labels, data.held_out);
      if (shape != of_train)
        throw InputError({spec.held_out_images, 1, 1},
                         fmt::format("its images are {}, and those to learn from {}", to_string(shape),
                                     to_string(of_train)));
      break;
    }
    case DataKind::cifar:
      for (const std::string& file : spec.train_files) read_cifar(file, data.train);
      read_cifar(spec.held_out_file, data.held_out);
      shape = {3, 32, 32};
      break;
  }
  for (const LearningData::Part* part : {&data.train, &data.held_out})
    for (const std::int32_t label : part->labels)
      if (label >= classes)
        throw InputError(spec.pos, fmt::format("numerics.data: has an image of class {}, and the network "
                                               "tells {} classes apart, 0 to {}",
                                               label, classes, classes - 1));
  standardize(data);
  data.train.values = fitted(data.train.values, shape, input, spec.pos);
  data.held_out.values = fitted(data.held_out.values, shape, input, spec.pos);
  return data;
}

}  // namespace convoy::numerics
