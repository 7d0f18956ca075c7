// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "models/onnx/onnx_import.h"
#include "models/summary.h"
#include "models/training_graph.h"
#include "tests/models/model_text.h"
#include "tests/models/onnx_writer.h"

using namespace convoy;

namespace {

using List = std::vector<std::int64_t>;

Model import(const OnnxWriter& onnx, const OnnxOptions& options = {}) {
  return import_onnx(parse_onnx(onnx.bytes(), "net.onnx"), "net.onnx", options);
}

/// "conv2d [16, 8, 8], relu [16, 8, 8]"
std::string text(const Model& model) {
  std::string all;
  for (const Layer& layer : model.layers)
    all += fmt::format("{}{} {}", all.empty() ? "" : ", ", kind_name(layer.kind), to_string(layer.output));
  return all;
}

/// A model of nodes on an image [batch, 4, 8, 6]; `write` gives the output.
template <typename Write>
Model small(Write write, std::int64_t opset = 13, std::int64_t batch = -1) {
  OnnxWriter onnx(opset);
  const std::string x = onnx.input("x", {batch, 4, 8, 6});
  onnx.output(write(onnx, x));
  return import(onnx);
}

}  // namespace

TEST_CASE("a pooling to a size that does not divide the image's is an operator of convoy's own") {
  const auto pooled = [](std::vector<std::int64_t> size, const std::string& domain) {
    return small([&](OnnxWriter& onnx, const std::string& x) {
      return onnx.node("AdaptiveAveragePool", {x}, {{"output_size", std::move(size)}}, 1, domain);
    });
  };
  CHECK(pooled({3, 5}, "convoy").layers[0].output == Shape{4, 3, 5});
  CHECK(pooled({3, 5}, "convoy").warnings.empty());
  CHECK(!pooled({3, 5}, "others").warnings.empty());
  CHECK_THROWS_AS(pooled({3}, "convoy"), InputError);
  CHECK_THROWS_AS(pooled({0, 3}, "convoy"), InputError);
}

TEST_CASE("zeros that PyTorch's exporter writes around an average are its padding, unless others read them") {
  const auto network = [](const std::string& mode, bool read_twice) {
    return small([&](OnnxWriter& onnx, const std::string& x) {
      const std::vector<std::int64_t> window{3, 3};
      const std::string zeros =
          onnx.node("Pad", {x, onnx.integers({0, 0, 1, 1, 0, 0, 1, 1})}, {{"mode", mode}});
      const std::string mean = onnx.node("AveragePool", {zeros}, {{"kernel_shape", window}});
      if (!read_twice) return mean;
      const std::string most = onnx.node("MaxPool", {zeros}, {{"kernel_shape", window}});
      return onnx.node("Concat", {mean, most}, {{"axis", std::int64_t{1}}});
    });
  };
  const Model mean = network("constant", false);
  REQUIRE(mean.layers.size() == 1);
  CHECK(std::get<Pool>(mean.layers[0].kind) == Pool{Pool::Mode::average, {3, 3}, {1, 1}, {1, 1}});
  CHECK(mean.layers[0].output == Shape{4, 8, 6});
  CHECK(network("reflect", false).layers.size() == 2);
  CHECK(std::holds_alternative<Pad>(network("constant", true).layers[0].kind));
}

TEST_CASE("zoo models and ONNX exports of them have the same operations, buffers and parameters") {
  for (const char* name : {"resnet50", "vgg16_bn", "densenet121", "inception_v3", "squeezenet1_0",
                           "mobilenet_v2", "shufflenet_v2_x1_0", "mnasnet1_0", "efficientnet_b0",
                           "regnet_y_400mf", "resnext50_32x4d", "wrn_16_2", "alexnet", "cifar_two_conv"})
    for (const auto& [batch, data] :
         {std::pair{-1, false}, std::pair{8, std::string_view(name) == "squeezenet1_0"}}) {
      CAPTURE(name);
      CAPTURE(batch);
      const Model zoo = model_from(name);
      const Model onnx = import(exported(zoo, batch, data));
      CHECK(onnx.warnings.empty());
      CHECK(onnx.cross_entropy_loss);
      const TrainingGraph a = build_training_graph(zoo, {Precision::fp32, Optimizer::momentum});
      const TrainingGraph b = build_training_graph(onnx, {Precision::fp32, Optimizer::momentum});
      REQUIRE(a.operations.size() == b.operations.size());
      bool same = true;
      for (std::size_t i = 0; i < a.operations.size(); ++i)
        same = same && a.operations[i].work == b.operations[i].work &&
               a.operations[i].inputs == b.operations[i].inputs;
      CHECK(same);
      REQUIRE(a.buffers.size() == b.buffers.size());
      for (std::size_t i = 0; i < a.buffers.size(); ++i)
        same = same && a.buffers[i].bytes_per_image == b.buffers[i].bytes_per_image &&
               a.buffers[i].born == b.buffers[i].born && a.buffers[i].dies == b.buffers[i].dies;
      CHECK(same);
      REQUIRE(a.parameters.size() == b.parameters.size());
      for (std::size_t i = 0; i < a.parameters.size(); ++i)
        same = same && a.parameters[i].elements == b.parameters[i].elements;
      CHECK(same);
      CHECK(a.resident_bytes() == b.resident_bytes());
      CHECK(saved_activation_bytes(a) == saved_activation_bytes(b));
    }
}

TEST_CASE("batch normalization that an export folded into convolutions is put back") {
  const auto same = [](const Model& x, const Model& y) {
    const TrainingGraph a = build_training_graph(x, {}), b = build_training_graph(y, {});
    bool all = a.operations.size() == b.operations.size() && a.buffers.size() == b.buffers.size() &&
               a.parameters.size() == b.parameters.size();
    for (std::size_t i = 0; all && i < a.operations.size(); ++i)
      all = a.operations[i].work == b.operations[i].work && a.operations[i].inputs == b.operations[i].inputs;
    for (std::size_t i = 0; all && i < a.buffers.size(); ++i)
      all = a.buffers[i].bytes_per_image == b.buffers[i].bytes_per_image &&
            a.buffers[i].born == b.buffers[i].born && a.buffers[i].dies == b.buffers[i].dies;
    for (std::size_t i = 0; all && i < a.parameters.size(); ++i)
      all = a.parameters[i].elements == b.parameters[i].elements;
    return all;
  };
  // DenseNet's normalizations before a convolution stay, and tell no story without PyTorch's names.
  for (const auto& [name, by_residuals] :
       {std::pair{"resnet50", true}, std::pair{"mobilenet_v2", true}, std::pair{"efficientnet_b0", true},
        std::pair{"regnet_y_400mf", true}, std::pair{"resnext50_32x4d", true}, std::pair{"vgg16_bn", false},
        std::pair{"densenet121", false}, std::pair{"inception_v3", false}})
    for (const Folding folding : {Folding::pytorch, Folding::other}) {
      if (folding == Folding::other && !by_residuals) continue;
      CAPTURE(std::string(name));
      const Model zoo = model_from(name);
      const OnnxWriter onnx = exported(zoo, -1, false, folding);
      const Model restored = import(onnx);
      // torchvision's VGG keeps biases before normalization, which adds them again: no export shows that.
      CHECK((std::string_view(name) == "vgg16_bn" ? text(import(exported(zoo, -1, false))) == text(restored)
                                                  : same(zoo, restored)));
      REQUIRE(restored.warnings.size() == 1);
      CHECK(restored.warnings[0].find("folded batch normalization into") != std::string::npos);
      const Model kept = import(onnx, {.input = {}, .cross_entropy_loss = true, .restore_batch_norm = false});
      CHECK(kept.warnings.empty());
      CHECK(kept.layers.size() < zoo.layers.size());
      CHECK(saved_activation_bytes(build_training_graph(kept, {})) <
            saved_activation_bytes(build_training_graph(zoo, {})));
    }
}

TEST_CASE("networks whose convolutions have biases of their own stay as they are") {
  for (const char* name : {"vgg16", "alexnet", "squeezenet1_0", "cifar_two_conv"}) {
    CAPTURE(name);
    CHECK(import(exported(model_from(name), -1, true)).warnings.empty());
  }
}

TEST_CASE("a ConvNeXt block whose weights are inputs without data is that with initialisers") {
  const auto block = [](bool as_inputs) {
    OnnxWriter onnx(17);
    std::string x = onnx.input("x", {1, 8, 6, 6});
    const auto weight = [&](const std::string& name, const List& dims) {
      return as_inputs ? onnx.input(name, dims) : onnx.weight(name, dims, false);
    };
    const std::string conv = onnx.node("Conv", {x, weight("dw.weight", {8, 1, 7, 7}), weight("dw.bias", {8})},
                                       {{"group", std::int64_t{8}}, {"pads", List{3, 3, 3, 3}}});
    std::string y = onnx.node("Transpose", {conv}, {{"perm", List{0, 2, 3, 1}}});
    y = onnx.node("LayerNormalization", {y, weight("norm.weight", {8}), weight("norm.bias", {8})});
    y = onnx.node("Add", {weight("fc1.bias", {32}), onnx.node("MatMul", {y, weight("fc1.weight", {8, 32})})});
    y = onnx.node("Relu", {y});
    y = onnx.node("Add", {weight("fc2.bias", {8}), onnx.node("MatMul", {y, weight("fc2.weight", {32, 8})})});
    y = onnx.node("Transpose", {y}, {{"perm", List{0, 3, 1, 2}}});
    y = onnx.node("Mul", {y, weight("layer_scale", {8, 1, 1})});
    onnx.output(onnx.node("Add", {y, x}));
    return import(onnx);
  };
  const Model inputs = block(true), initialisers = block(false);
  CHECK(inputs.warnings.empty());
  CHECK(text(inputs) == text(initialisers));
  // 8 x 49 + 8, 2 x 8, 8 x 32 + 32, 32 x 8 + 8, 8
  CHECK(summarize(inputs).parameters == 976);
  CHECK(summarize(inputs).parameters == summarize(initialisers).parameters);
}

TEST_CASE("convolutions keep their groups, strides, dilations and automatic padding") {
  const auto conv = [](List weight, OnnxWriter::Attributes attributes, const char* op = "Conv") {
    return small([&](OnnxWriter& onnx, const std::string& x) {
      return onnx.node(op, {x, onnx.weight("w", weight, false)}, attributes);
    });
  };
  CHECK(text(conv({16, 4, 3, 3}, {{"strides", List{2, 1}}, {"pads", List{1, 0, 1, 0}}})) ==
        "conv2d [16, 4, 4]");
  CHECK(text(conv({4, 1, 3, 3}, {{"group", std::int64_t{4}}, {"dilations", List{2, 1}}})) ==
        "conv2d [4, 4, 4]");
  // 8 in steps of 2: 4 places span 3 * 2 + 3 = 9, one more than there is: the zero goes to the end
  const Model same = conv({16, 4, 3, 3}, {{"strides", List{2, 2}}, {"auto_pad", std::string("SAME_UPPER")}});
  CHECK(text(same) == "pad [4, 9, 7], conv2d [16, 4, 3]");
  CHECK(std::get<Pad>(same.layers[0].kind) == Pad{0, 0, 1, 1});
  // (8 - 1) 2 - 2 + 3 + 1 = 16 and (6 - 1) 2 - 2 + 3 + 1 = 12
  const Model up = conv({4, 6, 3, 3},
                        {{"strides", List{2, 2}}, {"pads", List{1, 1, 1, 1}}, {"output_padding", List{1, 1}}},
                        "ConvTranspose");
  CHECK(text(up) == "conv_transpose2d [6, 16, 12]");
  CHECK(up.layers[0].macs == 4 * 8 * 6 * 6 * 9);
  // (8 - 1) + 2 (3 - 1) + 1 = 12
  CHECK(text(conv({4, 6, 3, 3}, {{"dilations", List{2, 2}}}, "ConvTranspose")) ==
        "conv_transpose2d [6, 12, 10]");
}

TEST_CASE("pooling rounds up by attribute, and by padding at the end in old files") {
  const auto pool = [](OnnxWriter::Attributes more) {
    more.emplace_back("kernel_shape", List{3, 3});
    more.emplace_back("strides", List{2, 2});
    return small([&](OnnxWriter& onnx, const std::string& x) { return onnx.node("MaxPool", {x}, more); });
  };
  CHECK(text(pool({})) == "max_pool [4, 3, 2]");
  CHECK(text(pool({{"ceil_mode", std::int64_t{1}}})) == "max_pool [4, 4, 3]");
  CHECK(text(pool({{"pads", List{0, 0, 1, 1}}})) == "max_pool [4, 4, 3]");
  CHECK(text(small([](OnnxWriter& onnx, const std::string& x) { return onnx.node("GlobalMaxPool", {x}); })) ==
        "max_pool [4, 1, 1]");
}

TEST_CASE("a product with a matrix and the sum with a vector after it are a linear layer") {
  const Model model = small([](OnnxWriter& onnx, const std::string& x) {
    const std::string flat = onnx.node("Reshape", {x, onnx.integers({0, -1})});
    const std::string product = onnx.node("MatMul", {flat, onnx.weight("fc.weight", {192, 10}, false)});
    return onnx.node("Add", {product, onnx.weight("fc.bias", {10}, false)});
  });
  CHECK(text(model) == "flatten [192], linear [10]");
  CHECK(model.layers[1].parameter_elements() == 1930);
  CHECK(model.layers[1].parameters.size() == 2);
}

TEST_CASE("shapes that the graph computes are folded") {
  const auto write = [](OnnxWriter& onnx, const std::string& x) {
    const std::string relu = onnx.node("Relu", {x});
    const std::string shape = onnx.node("Shape", {relu});
    const std::string batch = onnx.node("Gather", {shape, onnx.integers({0}, true)});
    const std::string rows = onnx.node("Slice", {shape, onnx.integers({2}), onnx.integers({3})});
    const std::string half = onnx.node("Div", {rows, onnx.integers({2})});
    const std::string to =
        onnx.node("Concat",
                  {onnx.node("Unsqueeze", {batch, onnx.integers({0})}), onnx.integers({-1}),
                   onnx.node("Cast", {half}, {{"to", std::int64_t{7}}})},
                  {{"axis", std::int64_t{0}}});
    return onnx.node("Reshape", {relu, to});
  };
  CHECK(text(small(write)) == "relu [4, 8, 6], reshape [48, 4]");
  CHECK(text(small(write, 13, 5)) == "relu [4, 8, 6], reshape [48, 4]");
}

TEST_CASE("patterns of nodes are the functions they spell out") {
  const auto hardswish = [](OnnxWriter& onnx, const std::string& x) {
    const std::string clip =
        onnx.node("Clip", {onnx.node("Add", {x, onnx.number(3)})}, {{"min", 0.0}, {"max", 6.0}});
    return onnx.node("Div", {onnx.node("Mul", {x, clip}), onnx.number(6)});
  };
  CHECK(text(small(hardswish, 9)) == "hardswish [4, 8, 6]");
  const auto silu = [](OnnxWriter& onnx, const std::string& x) {
    return onnx.node("Mul", {onnx.node("Sigmoid", {x}), x});
  };
  CHECK(text(small(silu)) == "silu [4, 8, 6]");
  const auto two_readers = [](OnnxWriter& onnx, const std::string& x) {
    const std::string gate = onnx.node("Sigmoid", {x});
    return onnx.node("Add", {onnx.node("Mul", {gate, x}), gate});
  };
  CHECK(text(small(two_readers)) == "sigmoid [4, 8, 6], multiply [4, 8, 6], add [4, 8, 6]");
  const auto layer_norm = [](OnnxWriter& onnx, const std::string& x) {
    const OnnxWriter::Attributes last{{"axes", List{-1}}};
    const std::string centred = onnx.node("Sub", {x, onnx.node("ReduceMean", {x}, last)});
    const std::string variance = onnx.node("ReduceMean", {onnx.node("Pow", {centred, onnx.number(2)})}, last);
    const std::string deviation = onnx.node("Sqrt", {onnx.node("Add", {variance, onnx.number(1e-5f)})});
    const std::string scaled =
        onnx.node("Mul", {onnx.node("Div", {centred, deviation}), onnx.weight("n.weight", {6})});
    return onnx.node("Add", {scaled, onnx.weight("n.bias", {6})});
  };
  const Model norm = small(layer_norm);
  CHECK(text(norm) == "layer_norm [4, 8, 6]");
  CHECK(norm.layers[0].parameter_elements() == 12);
}

TEST_CASE("squeeze and excitation by a mean over axes and reshapes") {
  const Model model = small([](OnnxWriter& onnx, const std::string& x) {
    const std::string relu = onnx.node("Relu", {x});
    const std::string mean =
        onnx.node("ReduceMean", {relu}, {{"axes", List{2, 3}}, {"keepdims", std::int64_t{0}}});
    const std::string fc = onnx.node("Gemm", {mean, onnx.weight("w", {4, 4}), onnx.weight("b", {4})});
    const std::string gate = onnx.node("Unsqueeze", {onnx.node("Sigmoid", {fc}), onnx.integers({2, 3})});
    return onnx.node("Mul", {relu, gate});
  });
  CHECK(
      text(model) ==
      "relu [4, 8, 6], adaptive_avg_pool [4, 1, 1], flatten [4], linear [4], sigmoid [4], reshape [4, 1, 1], "
      "multiply [4, 8, 6]");
}

TEST_CASE("shapes that are read backwards, from beyond their end to before their beginning, are folded") {
  const Model model = small([](OnnxWriter& onnx, const std::string& x) {
    const std::string backwards =
        onnx.node("Slice", {onnx.integers({16, 12, -1}), onnx.integers({INT64_MAX}),
                            onnx.integers({INT64_MIN}), onnx.integers({0}), onnx.integers({-1})});
    return onnx.node("Reshape", {x, backwards});
  });
  CHECK(text(model) == "reshape [12, 16]");
}

TEST_CASE("split, slice, pad, resize and concat") {
  const Model model = small([](OnnxWriter& onnx, const std::string& x) {
    const std::string parts = onnx.node("Split", {x, onnx.integers({1, 3})}, {{"axis", std::int64_t{1}}}, 2);
    const std::string up = onnx.node("Resize", {parts + ".1", "", onnx.numbers({1, 1, 2, 2})});
    const std::string cut =
        onnx.node("Slice", {up, onnx.integers({0, -12}), onnx.integers({INT64_MAX, INT64_MAX}),
                            onnx.integers({2, 3}), onnx.integers({2, 2})});
    const std::string padded = onnx.node("Pad", {parts, onnx.integers({0, 0, 0, 1, 0, 0, 0, 2})});
    const std::string back =
        onnx.node("Slice", {padded, onnx.integers({0}), onnx.integers({6}), onnx.integers({3})});
    return onnx.node("Concat", {cut, back}, {{"axis", std::int64_t{-3}}});
  });
  CHECK(text(model) ==
        "slice [1, 8, 6], slice [3, 8, 6], upsample [3, 16, 12], slice [3, 8, 12], slice [3, 8, 6], pad [1, "
        "8, 9], "
        "slice [1, 8, 6], concat [4, 8, 6]");
}

TEST_CASE("tiles, and blocks that become channels or the other way round, have ONNX's sizes") {
  const auto block = [](std::int64_t size) { return OnnxWriter::Attributes{{"blocksize", size}}; };
  const Model model = small([&](OnnxWriter& onnx, const std::string& x) {
    const std::string apart = onnx.node("SpaceToDepth", {x}, block(2));
    const std::string thirds = onnx.node("Tile", {apart, onnx.integers({1, 9, 1, 5})});
    return onnx.node("DepthToSpace", {thirds}, block(3));
  });
  CHECK(text(model) == "elementwise [16, 4, 3], elementwise [144, 4, 15], elementwise [16, 12, 45]");
}

TEST_CASE("weights that two layers share are counted once, and duplicates by Identity twice") {
  const Model model = small([](OnnxWriter& onnx, const std::string& x) {
    const std::string w = onnx.weight("w", {4, 4, 1, 1}), copy = onnx.node("Identity", {w});
    return onnx.node("Conv", {onnx.node("Conv", {onnx.node("Conv", {x, w}), w}), copy});
  });
  CHECK(summarize(model).parameters == 32);
  CHECK(summarize(model).forward_macs == 3 * 16 * 48);
  const TrainingGraph graph = build_training_graph(model, {});
  CHECK(graph.parameters.size() == 2);
  // as it is written by hand
  CHECK(model.layers[1].weights_of == 0);
  CHECK(!model.layers[2].shares());
  const std::string conv = "kind: conv2d, out_channels: 4, kernel: 1, bias: false";
  const Model written = model_from(fmt::format(
      "\n  name: toy\n  input: [4, 8, 6]\n  loss: cross_entropy\n  layers:\n  - {{name: a, {0}}}\n"
      "  - {{name: b, weights_of: a, {0}}}\n  - {{name: c, {0}}}\n",
      conv));
  const TrainingGraph by_hand = build_training_graph(written, {});
  REQUIRE(graph.operations.size() == by_hand.operations.size());
  for (std::size_t i = 0; i < graph.operations.size(); ++i) {
    CHECK(graph.operations[i].work == by_hand.operations[i].work);
    CHECK(graph.operations[i].inputs == by_hand.operations[i].inputs);
  }
}

TEST_CASE("weights listed among the inputs, without initialisers, are weights") {
  OnnxWriter onnx;
  const std::string x = onnx.input("x", {1, 3, 8, 8}), w = onnx.input("w", {5, 3, 3, 3});
  onnx.output(onnx.node("Conv", {x, w}));
  CHECK(summarize(import(onnx)).parameters == 135);
}

TEST_CASE("a softmax that ends the network is the loss's, and stays where there is none") {
  OnnxWriter onnx;
  onnx.output(onnx.node("Softmax", {onnx.node("Flatten", {onnx.input("x", {1, 3, 8, 8})})}));
  CHECK(text(import(onnx)) == "flatten [192]");
  CHECK(text(import(onnx, {.input = {}, .cross_entropy_loss = false})) == "flatten [192], softmax [192]");
}

TEST_CASE("unknown operators are elementwise, with a warning that names them") {
  const Model model = small([](OnnxWriter& onnx, const std::string& x) {
    const std::string a = onnx.node("Whirl", {x}, {}, 1, "com.example");
    return onnx.node("Add", {onnx.node("Whirl", {a}, {}, 1, "com.example"), onnx.node("Twist", {x})});
  });
  CHECK(text(model) == "elementwise [4, 8, 6], elementwise [4, 8, 6], elementwise [4, 8, 6], add [4, 8, 6]");
  REQUIRE(model.warnings.size() == 2);
  CHECK(model.warnings[0] == "net.onnx: operator 'Twist' (once) is not known and taken as elementwise");
  CHECK(model.warnings[1] ==
        "net.onnx: operator 'com.example.Whirl' (2 times) is not known and taken as elementwise");
}
