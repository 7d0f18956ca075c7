// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "sim/base/input_error.h"
#include "sim/base/key_parts.h"
#include "sim/numerics/batches.h"
#include "sim/numerics/data.h"

using namespace convoy;

namespace {

std::string file_with(const std::string& name, const std::string& bytes) {
  const std::string path = std::filesystem::temp_directory_path() / ("convoy-numerics-" + name);
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

DataSpec idx_files(const std::string& images, const std::string& labels) {
  DataSpec spec;
  spec.kind = DataSpec::Kind::idx;
  spec.train_images = spec.held_out_images = images;
  spec.train_labels = spec.held_out_labels = labels;
  return spec;
}

std::string error_of(const DataSpec& spec, const Shape& input) {
  try {
    load_data(spec, input, 10, 1);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("numerics: the digits are 1,797 images of ten classes, standardized") {
  const LearningData data = load_data({}, {1, 8, 8}, 10, 1);
  CHECK(data.train.count() + data.held_out.count() == 1797);
  double sum = 0, squares = 0;
  for (const float value : data.train.values) sum += value, squares += value * value;
  const auto count = static_cast<double>(data.train.values.size());
  CHECK(std::abs(sum / count) < 1e-4);
  CHECK(squares / count == doctest::Approx(1).epsilon(1e-4));
  std::vector<int> of_class(10, 0);
  for (const std::int32_t label : data.train.labels) ++of_class[static_cast<std::size_t>(label)];
  for (const int images : of_class) CHECK(images > 120);
}

TEST_CASE("numerics: images are enlarged by whole numbers, and zeros are put around them") {
  const LearningData small = load_data({}, {1, 8, 8}, 10, 1), large = load_data({}, {3, 18, 18}, 10, 1);
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t y = 0; y < 18; ++y)
      for (std::size_t x = 0; x < 18; ++x) {
        const bool inside = y >= 1 && y < 17 && x >= 1 && x < 17;
        const float wanted = inside ? small.train.values[(y - 1) / 2 * 8 + (x - 1) / 2] : 0.0F;
        CHECK(large.train.values[(c * 18 + y) * 18 + x] == wanted);
      }
  CHECK(error_of({}, {1, 7, 7}).find("do not fit") != std::string::npos);
}

TEST_CASE("numerics: IDX files are read, and what is wrong with them is told") {
  const std::string head = std::string("\0\0\x08\x03", 4) + big_endian(2) + big_endian(2) + big_endian(3);
  const std::string images =
      file_with("images", head + std::string("\0\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b", 12));
  const std::string labels = file_with("labels", std::string("\0\0\x08\x01", 4) + big_endian(2) + "\x07\x01");
  const LearningData data = load_data(idx_files(images, labels), {1, 2, 3}, 10, 1);
  CHECK(data.train.labels == std::vector<std::int32_t>{7, 1});
  // 0 to 11 standardized: mean 5.5, variance 143 / 12
  for (int v = 0; v < 12; ++v)
    CHECK(data.held_out.values[static_cast<std::size_t>(v)] ==
          doctest::Approx((v - 5.5) / std::sqrt(143.0 / 12)).epsilon(1e-6));
  CHECK(error_of(idx_files(file_with("short", head + "abc"), labels), {1, 2, 3}).find("its head says 28") !=
        std::string::npos);
  CHECK(error_of(idx_files(labels, labels), {1, 2, 3}).find("is no IDX file") != std::string::npos);
  CHECK(
      error_of(idx_files(images, file_with("three", std::string("\0\0\x08\x01", 4) + big_endian(3) + "abc")),
               {1, 2, 3})
          .find("has 3 labels") != std::string::npos);
  CHECK(
      error_of(idx_files(images, file_with("classes", std::string("\0\0\x08\x01", 4) + big_endian(2) + "ab")),
               {1, 2, 3})
          .find("tells 10 classes apart") != std::string::npos);
}

TEST_CASE("numerics: CIFAR-10 files are read, and what is wrong with them is told") {
  DataSpec spec;
  spec.kind = DataSpec::Kind::cifar;
  const std::string row =
      "\x03" + std::string(1024, '\x10') + std::string(1024, '\x20') + std::string(1024, '\x30');
  spec.held_out_file = file_with("cifar", row);
  spec.train_files = {spec.held_out_file, spec.held_out_file};
  const LearningData data = load_data(spec, {3, 32, 32}, 10, 1);
  CHECK(data.train.labels == std::vector<std::int32_t>{3, 3});
  CHECK(data.train.values[0] < data.train.values[1024]);
  CHECK(data.train.values[1024] == doctest::Approx(0).epsilon(1e-6));
  const auto train_files = [](const std::string& list) {
    DataSpec read;
    const YamlNode node = parse_yaml("{kind: cifar, held_out_file: b, train_files: " + list + "}", "d.yaml");
    read_part(data_keys(), YamlMap(node, "data"), read);
  };
  CHECK_THROWS_WITH_AS(train_files("[{a: b}]"),
                       doctest::Contains("data.train_files: expected the name of a file, found"), InputError);
  spec.held_out_file = file_with("cut", row.substr(1));
  CHECK(error_of(spec, {3, 32, 32}).find("a multiple of 3073") != std::string::npos);
}

TEST_CASE("numerics: an epoch has every image once, and each epoch another order") {
  BatchOrder order(5, 100), again(5, 100);
  std::vector<std::int64_t> first, second;
  for (int i = 0; i < 100; ++i) first.push_back(order.image(i)), second.push_back(order.image(100 + i));
  CHECK(first != second);
  for (int i = 99; i >= 0; --i) CHECK(again.image(i) == first[static_cast<std::size_t>(i)]);
  std::sort(first.begin(), first.end()), std::sort(second.begin(), second.end());
  for (int i = 0; i < 100; ++i)
    CHECK((first[static_cast<std::size_t>(i)] == i && second[static_cast<std::size_t>(i)] == i));
}
