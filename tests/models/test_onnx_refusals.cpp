// SPDX-License-Identifier: MIT
// ONNX files with one node that cannot be read: every refusal of a node, by a file that has nothing else wrong.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdint>
#include <functional>

#include "models/onnx/onnx_import.h"
#include "tests/models/onnx_writer.h"

using namespace convoy;

namespace {

using List = std::vector<std::int64_t>;
using Write = std::function<std::string(OnnxWriter& onnx, const std::string& x)>;

struct Refused {
  std::string because;
  Write write;
  List image{1, 4, 8, 6};
  std::int64_t opset = 13;
};

/// What is said of the last node: without the file, and the node's name.
std::string refusal(const Refused& refused) {
  OnnxWriter onnx(refused.opset);
  onnx.output(refused.write(onnx, onnx.input("x", refused.image)));
  try {
    import_onnx(parse_onnx(onnx.bytes(), "net.onnx"), "net.onnx", {});
  } catch (const InputError& error) {
    const std::string text = error.what();
    CHECK(text.starts_with("net.onnx: node '"));
    const std::size_t end = text.find("): ");
    return end == std::string::npos ? text : text.substr(end + 3);
  }
  return "none";
}

/// A node that reads the image and nothing else.
Write alone(const char* op, OnnxWriter::Attributes attributes, const char* domain = "") {
  return [=](OnnxWriter& onnx, const std::string& x) { return onnx.node(op, {x}, attributes, 1, domain); };
}

/// A node that reads the image, or its values in the order of `first`, and lists of whole numbers.
Write with(const char* op, std::vector<List> lists, OnnxWriter::Attributes attributes = {},
           std::size_t outputs = 1) {
  return [=](OnnxWriter& onnx, const std::string& x) {
    std::vector<std::string> inputs{x};
    for (const List& list : lists) inputs.push_back(list.empty() ? "" : onnx.integers(list));
    return onnx.node(op, inputs, attributes, outputs);
  };
}

/// A node that reads the image, or `vectors` of it, and a matrix of weights.
Write weighted(const char* op, List weight, OnnxWriter::Attributes attributes = {}, bool vectors = false) {
  return [=](OnnxWriter& onnx, const std::string& x) {
    const std::string from = vectors ? onnx.node("Flatten", {x}) : x;
    return onnx.node(op, {from, onnx.weight("w", weight, false)}, attributes);
  };
}

/// A shape that depends on the image's values.
std::string unknown_numbers(OnnxWriter& onnx) { return onnx.weight("numbers", {4}, false); }

}  // namespace

TEST_CASE("nodes that cannot be read are refused, each for its own reason") {
  constexpr std::int64_t too_many = 1'000'000'001, one = 1, two = 2;
  const std::vector<Refused> all{
      // windows
      {"'strides' has 3 numbers; only convolutions and pooling of images are read",
       weighted("Conv", {8, 4, 3, 3}, {{"strides", List{1, 1, 1}}})},
      {"'strides' cannot be 0", weighted("Conv", {8, 4, 3, 3}, {{"strides", List{0, 1}}})},
      {"'dilations' cannot be 1000000001", weighted("Conv", {8, 4, 3, 3}, {{"dilations", List{1, too_many}}})},
      {"'output_padding' cannot be -1",
       weighted("ConvTranspose", {4, 8, 3, 3}, {{"output_padding", List{0, -1}}})},
      {"'pads' has 3 numbers, not 4", weighted("Conv", {8, 4, 3, 3}, {{"pads", List{1, 1, 1}}})},
      {"'pads' cannot have -1", weighted("Conv", {8, 4, 3, 3}, {{"pads", List{1, 1, 1, -1}}})},
      {"'pads' cannot have 1000000001", weighted("Conv", {8, 4, 3, 3}, {{"pads", List{too_many, 1, 1, 1}}})},
      {"reads [1, 192]; only two-dimensional convolution and pooling are read",
       weighted("Conv", {8, 4, 3, 3}, {}, true)},
      {"its weights are [8, 4, 3]; only two-dimensional convolutions are read", weighted("Conv", {8, 4, 3})},
      {"its weights are [8, 0, 3, 3]; only two-dimensional convolutions are read",
       weighted("Conv", {8, 0, 3, 3})},
      {"weights [8, 4, 3, 3] in 9 groups do not fit an input [1, 4, 8, 6]",
       weighted("Conv", {8, 4, 3, 3}, {{"group", std::int64_t{9}}})},
      {"weights [8, 4, 3, 3] in 0 groups do not fit an input [1, 4, 8, 6]",
       weighted("Conv", {8, 4, 3, 3}, {{"group", std::int64_t{0}}})},
      {"weights [8, 4, 3, 3] in 1 groups do not fit an input [1, 4, 8, 6]",
       weighted("ConvTranspose", {8, 4, 3, 3})},
      // products
      {"is no product of a batch of vectors and a matrix", weighted("Gemm", {4, 4})},
      {"is no product of a batch of vectors and a matrix", weighted("Gemm", {192, 4, 1}, {}, true)},
      {"is no product of a batch of vectors and a matrix",
       weighted("Gemm", {192, 4}, {{"transA", one}}, true)},
      {"weights [4, 192] do not fit an input [1, 192]", weighted("Gemm", {4, 192}, {}, true)},
      {"weights [192, 4] do not fit an input [1, 192]",
       weighted("Gemm", {192, 4}, {{"transB", one}}, true)},
      {"weights [192, 0] do not fit an input [1, 192]", weighted("Gemm", {192, 0}, {}, true)},
      {"weights [5, 7] do not fit an input [1, 4, 8, 6]", weighted("MatMul", {5, 7})},
      // pooling, normalization, dropout
      {"pools [1, 4, 8, 6] to [3]", alone("AdaptiveAveragePool", {{"output_size", List{3}}}, "convoy")},
      {"pools [1, 4, 8, 6] to [3, 0]", alone("AdaptiveAveragePool", {{"output_size", List{3, 0}}}, "convoy")},
      {"pools [1, 4, 8, 6] to [3, 1000000001]",
       alone("AdaptiveAveragePool", {{"output_size", List{3, too_many}}}, "convoy")},
      {"'num_groups' cannot be 0", alone("GroupNormalization", {{"num_groups", std::int64_t{0}}})},
      {"'size' cannot be 0", alone("LRN", {{"size", std::int64_t{0}}})},
      {"'size' cannot be 1000000001", alone("LRN", {{"size", too_many}})},
      {"its ratio cannot be 1.5", alone("Dropout", {{"ratio", 1.5}}), {1, 4, 8, 6}, 10},
      {"its ratio cannot be -0.5", alone("Dropout", {{"ratio", -0.5}}), {1, 4, 8, 6}, 10},
      // arithmetic
      {"[1, 4, 8, 6] and [5] do not go together", weighted("Add", {5})},
      {"axes [4] of [1, 4, 8, 6]", alone("ReduceMean", {{"axes", List{4}}})},
      {"axes [1, 1] of [1, 4, 8, 6]", alone("ReduceMean", {{"axes", List{1, 1}}})},
      {"mixes the images of a batch", alone("ReduceMean", {{"axes", List{0}}}), {2, 4, 8, 6}},
      {"mixes the images of a batch", alone("ReduceMean", {}), {2, 4, 8, 6}},
      // views
      {"the shape it makes is not known before the network runs",
       [](OnnxWriter& onnx, const std::string& x) { return onnx.node("Reshape", {x, unknown_numbers(onnx)}); }},
      {"[1, 4, 8, 6] cannot be reshaped to [-1, -1]", with("Reshape", {{-1, -1}})},
      {"[1, 4, 8, 6] cannot be reshaped to [1, 5, -1]", with("Reshape", {{1, 5, -1}})},
      {"[1, 4, 8, 6] cannot be reshaped to [1, 4, 8, 6, 0]", with("Reshape", {{1, 4, 8, 6, 0}})},
      {"[1, 4, 8, 6] cannot be reshaped to [1, 0, -1]", with("Reshape", {{1, 0, -1}}, {{"allowzero", one}})},
      {"axis 5 of [1, 4, 8, 6]", alone("Flatten", {{"axis", std::int64_t{5}}})},
      {"axis -5 of [1, 4, 8, 6]", alone("Flatten", {{"axis", std::int64_t{-5}}})},
      {"axes [4] of [1, 4, 8, 6]", with("Squeeze", {{4}})},
      {"axis 2 of [1, 4, 8, 6] is not 1", with("Squeeze", {{0, 2}})},
      {"axes [6] of [1, 4, 8, 6]", with("Unsqueeze", {{6}})},
      {"perm [0, 1] of [1, 4, 8, 6]", alone("Transpose", {{"perm", List{0, 1}}})},
      {"perm [0, 1, 1, 2] of [1, 4, 8, 6]", alone("Transpose", {{"perm", List{0, 1, 1, 2}}})},
      {"axis 4 of [1, 4, 8, 6]", alone("Concat", {{"axis", std::int64_t{4}}})},
      {"[1, 4, 8, 6] and [4] cannot be joined", weighted("Concat", {4}, {{"axis", one}})},
      {"inputs differ along other axes than 1", weighted("Concat", {1, 4, 8, 5}, {{"axis", one}})},
      {"its input has the batch at another place than first",
       [](OnnxWriter& onnx, const std::string& x) {
         return onnx.node("Concat", {x, x}, {{"axis", std::int64_t{0}}});
       },
       {2, 4, 8, 6}},
      {"cuts or joins the images of a batch", with("Slice", {{0}, {1}, {0}}), {2, 4, 8, 6}},
      {"its input has the batch at another place than first",
       [](OnnxWriter& onnx, const std::string& x) {
         const std::string turned = onnx.node("Transpose", {x}, {{"perm", List{1, 0, 2, 3}}});
         return onnx.node("Slice", {turned, onnx.integers({0}), onnx.integers({1}), onnx.integers({2})});
       },
       {2, 4, 8, 6}},
      {"leaves nothing of its input", with("Slice", {{3}, {3}, {1}})},
      {"starts, ends, axes and steps do not go together", with("Slice", {{0, 1}, {3}})},
      {"starts, ends, axes and steps do not go together", with("Slice", {{0}, {3}, {1, 2}})},
      {"starts, ends, axes and steps do not go together", with("Slice", {{0}, {3}, {1}, {1, 1}})},
      {"starts, ends, axes and steps do not go together", with("Slice", {{0, 0}, {3, 3}, {1, 1}})},
      {"2 outputs in 3 parts", with("Split", {{1, 1, 2}}, {{"axis", one}}, 2)},
      {"[1, 4, 8, 6] cannot be split so along axis 1", with("Split", {{2, 3}}, {{"axis", one}}, 2)},
      {"[1, 4, 8, 6] cannot be split so along axis 1", with("Split", {{0, 4}}, {{"axis", one}}, 2)},
      {"index 8 along axis 2 of [1, 4, 8, 6]", with("Gather", {{8}}, {{"axis", two}})},
      {"index -1 along axis 2 of [1, 4, 8, 6]", with("Gather", {{-9}}, {{"axis", two}})},
      // sizes
      {"7 pads of [1, 4, 8, 6]", with("Pad", {{0, 0, 0, 1, 0, 0, 0}})},
      {"its 'pads' are not known before the network runs",
       [](OnnxWriter& onnx, const std::string& x) { return onnx.node("Pad", {x, unknown_numbers(onnx)}); }},
      {"a result [1, 4, -2, 6] is no batch of 1 images", with("Pad", {{0, 0, -5, 0, 0, 0, -5, 0}})},
      {"the size it makes is not known before the network runs",
       [](OnnxWriter& onnx, const std::string& x) {
         return onnx.node("Resize", {x, "", onnx.numbers({2, 2})});
       }},
      {"[1, 4, 8, 6] by [5, 5]", with("Expand", {{5, 5}})},
      {"[1, 4, 8, 6] by [2, 2]", with("Tile", {{2, 2}})},
      {"blocks of 0 of [1, 4, 8, 6]", alone("DepthToSpace", {{"blocksize", std::int64_t{0}}})},
      {"blocks of 3 of [1, 4, 8, 6]", alone("DepthToSpace", {{"blocksize", std::int64_t{3}}})},
      {"blocks of 3 of [1, 4, 8, 6]", alone("SpaceToDepth", {{"blocksize", std::int64_t{3}}})},
      {"blocks of 4 of [1, 4, 8, 6]", alone("SpaceToDepth", {{"blocksize", std::int64_t{4}}})},
      {"blocks of 65536 of [1, 4, 8, 6]", alone("SpaceToDepth", {{"blocksize", std::int64_t{65536}}})},
      {"blocks of 2 of [1, 192]",
       [](OnnxWriter& onnx, const std::string& x) {
         return onnx.node("SpaceToDepth", {onnx.node("Flatten", {x})}, {{"blocksize", std::int64_t{2}}});
       }},
      // all nodes
      {"its input 1 is missing", alone("Conv", {})},
      {"its input 0 is a constant",
       [](OnnxWriter& onnx, const std::string& x) {
         return onnx.node("Conv", {onnx.weight("w", {1, 4, 8, 6}), x});
       }},
      {"its input 1 is computed by the network, not a weight",
       [](OnnxWriter& onnx, const std::string& x) { return onnx.node("Conv", {x, x}); }},
      {"its result has more than 32 axes", with("Reshape", {List(33, 1)}), {1, 1}},
      {"is not known, and has too many outputs",
       [](OnnxWriter& onnx, const std::string& x) { return onnx.node("Enigma", {x}, {}, 2000); }},
      {"up to here the model has more than 2^53 parameters or multiply-adds",
       [](OnnxWriter& onnx, const std::string& x) {
         const std::string flat = onnx.node("Flatten", {x});
         for (const char* name : {"a", "b"})  // 0.85 * 2^53 each
           onnx.node("Gemm", {flat, onnx.weight(name, {192, 40'000'000'000'000}, false)});
         return flat;
       }},
  };
  for (const Refused& refused : all) {
    CAPTURE(refused.because);
    CHECK(refusal(refused) == refused.because);
  }
}

TEST_CASE(
    "what shapes are computed with has ONNX's meaning, with vectors and with numbers that go with all") {
  // The image's 192 values as [1, computed, rest]; 0 stands for the image's own 4 channels.
  const auto channels = [](const char* op, const List& a, const List& b) {
    OnnxWriter onnx;
    const std::string x = onnx.input("x", {1, 4, 8, 6});
    const std::string number = onnx.node(op, {onnx.integers(a), onnx.integers(b)});
    const std::string to =
        onnx.node("Concat", {onnx.integers({1}), number, onnx.integers({-1})}, {{"axis", std::int64_t{0}}});
    onnx.output(onnx.node("Reshape", {onnx.node("Relu", {x}), to}));
    return import_onnx(parse_onnx(onnx.bytes(), "net.onnx"), "net.onnx", {}).layers.back().output;
  };
  struct Case {
    const char* op;
    List a, b;
    Shape result;
  };
  for (const auto& [op, a, b, result] : std::vector<Case>{{"Add", {2}, {4}, {6, 32}},
                                                          {"Sub", {9}, {1}, {8, 24}},
                                                          {"Mul", {4}, {3}, {12, 16}},
                                                          {"Div", {13}, {2}, {6, 32}},
                                                          {"Div", {13}, {0}, {4, 48}},
                                                          {"Min", {3}, {6}, {3, 64}},
                                                          {"Max", {3}, {6}, {6, 32}},
                                                          {"Mod", {14}, {8}, {6, 32}},
                                                          {"Mod", {-2}, {8}, {6, 32}},
                                                          {"Mod", {14}, {0}, {4, 48}},
                                                          {"Pow", {2}, {3}, {8, 24}},
                                                          {"Equal", {5}, {5}, {1, 192}},
                                                          {"Equal", {5}, {4}, {4, 48}},
                                                          {"Greater", {5}, {4}, {1, 192}},
                                                          {"Greater", {4}, {5}, {4, 48}},
                                                          {"Mul", {1, 3}, {2, 4}, {2, 12, 8}},
                                                          {"Mul", {2, 3}, {2}, {4, 6, 8}},
                                                          {"Sub", {9}, {7, 3}, {2, 6, 16}}}) {
    CAPTURE(op);
    CAPTURE(a);
    CAPTURE(b);
    CHECK(channels(op, a, b) == result);
  }
}
