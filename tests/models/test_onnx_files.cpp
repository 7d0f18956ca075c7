// SPDX-License-Identifier: MIT
// ONNX files as files: beside an experiment, incomplete, wrong.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <random>

#include "models/onnx/onnx_import.h"
#include "models/summary.h"
#include "tests/models/model_text.h"
#include "tests/models/onnx_writer.h"

using namespace convoy;

namespace {

std::string import_error(const std::string& bytes) {
  try {
    import_onnx(parse_onnx(bytes, "net.onnx"), "net.onnx", {});
    return {};
  } catch (const InputError& error) {
    return error.what();
  }
}

struct TemporaryFile {
  std::string path;
  explicit TemporaryFile(const std::string& name)
      : path((std::filesystem::temp_directory_path() /
              fmt::format("convoy_{}_{}", std::random_device{}(), name))
                 .string()) {}
  ~TemporaryFile() { std::filesystem::remove(path); }
};

}  // namespace

TEST_CASE("a model reads an ONNX file beside the experiment, under the file's name") {
  const TemporaryFile file("net.onnx");
  exported(model_from("cifar_two_conv"), -1, true).save(file.path);
  const Model model = model_from("{onnx: '" + file.path + "', loss: none}");
  CHECK(model.name == std::filesystem::path(file.path).stem());
  CHECK_FALSE(model.cross_entropy_loss);
  CHECK(summarize(model).parameters == summarize(model_from("cifar_two_conv")).parameters);
  CHECK(model.layers[0].name == "conv1");  // from its weight, conv1.weight
}

TEST_CASE("an experiment can refuse that batch normalization is put back") {
  const TemporaryFile file("net.onnx");
  exported(model_from("resnet18"), -1, true, Folding::pytorch).save(file.path);
  const auto layers = [&](const std::string& onnx) {
    return model_from("{onnx: " + onnx + "}").layers.size();
  };
  const std::size_t restored = layers("'" + file.path + "'");
  CHECK(layers("{file: '" + file.path + "'}") == restored);
  CHECK(layers("{file: '" + file.path + "', batch_norm: restore}") == restored);
  CHECK(layers("{file: '" + file.path + "', batch_norm: keep_folded}") == restored - 20);
  CHECK_THROWS_WITH_AS(layers("{file: '" + file.path + "', batch_norm: drop}"),
                       doctest::Contains("allowed: keep_folded, restore"), InputError);
}

TEST_CASE("sizes that the file leaves open are given beside it") {
  OnnxWriter onnx;
  const std::string x = onnx.input("x", {-1, 3, -1, -1});
  onnx.output(onnx.node("Relu", {onnx.node("Conv", {x, onnx.weight("w", {8, 3, 3, 3}, false)})}));
  CHECK(import_error(onnx.bytes()) ==
        "net.onnx: input 'x' has no fixed size of an image; give it, such as {onnx: FILE, input: [3, 224, "
        "224]}");
  const Model given =
      import_onnx(parse_onnx(onnx.bytes(), "net.onnx"), "net.onnx", {.input = Shape{3, 10, 12}});
  CHECK(given.layers.at(0).output == Shape{8, 8, 10});
}

TEST_CASE("files that are no network are errors of one line") {
  CHECK(import_error("") == "net.onnx: is no ONNX file: it has no graph");
  CHECK(import_error("model: resnet50\n") == "net.onnx: is cut off, or no ONNX file");
  CHECK(error_of("{onnx: nowhere.onnx}") == "test.yaml:1:8: model.onnx: there is no file 'nowhere.onnx'");
  CHECK(error_of("{onnx: /}") == "test.yaml:1:8: model.onnx: there is no file '/'");
  CHECK(import_error(OnnxWriter(6).bytes()) == "net.onnx: uses operator set 6; 7 to 17 can be read");
  CHECK(import_error(OnnxWriter().bytes()) == "net.onnx: needs one input, the images; it has 0");
  OnnxWriter two;
  two.output(two.node("Add", {two.input("a", {1, 3, 8, 8}), two.input("b", {1, 3, 8, 8})}));
  CHECK(import_error(two.bytes()) == "net.onnx: needs one input, the images; it has 2: 'a', 'b'");
  const auto error = [](auto write) {
    OnnxWriter onnx;
    const std::string x = onnx.input("x", {1, 4, 8, 6});
    onnx.output(write(onnx, x));
    return import_error(onnx.bytes());
  };
  CHECK(error([](OnnxWriter&, const std::string&) { return std::string("y"); }) ==
        "net.onnx: no output of the file is computed from its input");
  CHECK(error([](OnnxWriter& onnx, const std::string& x) {
          return onnx.node("Conv", {x, onnx.weight("w", {8, 3, 3, 3})});
        }) ==
        "net.onnx: node 'v1' (Conv): weights [8, 3, 3, 3] in 1 groups do not fit an input [1, 4, 8, 6]");
  CHECK(error([](OnnxWriter& onnx, const std::string& x) {
          return onnx.node("Conv", {x, onnx.weight("w", {8, 4, 9, 9})});
        }) == "net.onnx: layer 'v1': the kernel spans 9 in height, the padded input has 8");
  CHECK(error([](OnnxWriter& onnx, const std::string& x) {
          return onnx.node("Reshape", {x, onnx.integers({1, 7})});
        }) == "net.onnx: node 'v2' (Reshape): [1, 4, 8, 6] cannot be reshaped to [1, 7]");
  CHECK(error([](OnnxWriter& onnx, const std::string& x) {
          return onnx.node("Add", {x, "z"});
        }) ==
        "net.onnx: node 'v1' (Add): reads 'z', which nothing before it makes, or which cannot be computed "
        "here");
  CHECK(error([](OnnxWriter& onnx, const std::string& x) { return onnx.node("If", {x}); }) ==
        "net.onnx: node 'v1' (If): control flow and recurrent layers cannot be read");
}

TEST_CASE("files of 2 GiB and more are refused before they are read") {
  const TemporaryFile file("net.onnx");
  exported(model_from("cifar_two_conv"), -1, true).save(file.path);
  const std::string refusal = "is larger than 2 GiB";
  std::filesystem::resize_file(file.path, std::uintmax_t{1} << 31);
  CHECK(error_of("{onnx: '" + file.path + "'}").find(refusal) != std::string::npos);
}

TEST_CASE("files of more than 100,000 nodes or initialisers are refused before they are read to the end") {
  const auto error = [](int nodes, int weights) {
    OnnxWriter writer;
    std::string last = writer.input("x", {1, 4});
    for (int i = 0; i < weights; ++i) writer.weight(fmt::format("w{}", i), {1}, false);
    for (int i = 0; i < nodes; ++i) last = writer.node("Relu", {last});
    writer.output(last);
    return import_error(writer.bytes());
  };
  const std::string refusal = "has more than 100000 nodes or initialisers";
  CHECK(error(10, 10).find(refusal) == std::string::npos);
  CHECK(error(100'001, 0).find(refusal) != std::string::npos);
  CHECK(error(1, 100'001).find(refusal) != std::string::npos);
}

TEST_CASE("a cut file, or one with a wrong byte, is a network or an error but never a crash") {
  const std::string whole = exported(model_from("shufflenet_v2_x1_0"), -1, false).bytes();
  std::mt19937 random(20261);
  MESSAGE("seed 20261");
  int errors = 0;
  for (int i = 0; i < 300; ++i) {
    std::string bytes = whole.substr(0, random() % whole.size());
    errors += !import_error(bytes).empty();
    bytes = whole;
    for (int k = 0; k < 3; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    import_error(bytes);
  }
  CHECK(errors == 300);
}
