// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cctype>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "sim/base/names.h"
#include "sim/base/spellings.h"

using namespace convoy;

TEST_CASE("suggestion: the nearest known name, if it is near") {
  const std::vector<std::string> known{"resnet50", "resnet101", "vgg16", "k80"};
  CHECK(suggestion("resnet51", known) == " (did you mean 'resnet50'?)");
  CHECK(suggestion("RESNET50", known) == " (did you mean 'resnet50'?)");
  CHECK(suggestion("rsenet101", known) == " (did you mean 'resnet101'?)");
  CHECK(suggestion("transformer", known).empty());
  const std::vector<std::string> devices{"a10", "v100-pcie-16gb", "v100-sxm2-16gb"};
  CHECK(suggestion("v100", devices) == " (did you mean one of v100-pcie-16gb, v100-sxm2-16gb?)");
  CHECK(suggestion("V100", devices) == " (did you mean one of v100-pcie-16gb, v100-sxm2-16gb?)");
  CHECK(suggestion("v100-sx", devices) == " (did you mean 'v100-sxm2-16gb'?)");
  CHECK(suggestion("SXM2-16GB", devices) == " (did you mean 'v100-sxm2-16gb'?)");
  CHECK(suggestion("sxm2-16gb", devices) == " (did you mean 'v100-sxm2-16gb'?)");
  CHECK(suggestion("gb", devices).empty());
  CHECK(suggestion("a1", devices) == " (did you mean 'a10'?)");
  CHECK(suggestion("", known).empty());
  CHECK(suggestion(std::string(65, 'r'), known).empty());
  CHECK(suggestion("resnet50", {}).empty());
}

TEST_CASE("meant: names as people write them, where they can mean one thing only") {
  const std::vector<std::string> models{"resnet50", "resnet18",        "vgg16",
                                        "vgg16_bn", "wide_resnet50_2", "inception_v3"};
  CHECK(meant("ResNet50", models) == "resnet50");
  CHECK(meant("resnet-50", models) == "resnet50");
  CHECK(meant("ResNet 50", models) == "resnet50");
  CHECK(meant("VGG16", models) == "vgg16");  // itself, though vgg16_bn holds it too
  CHECK(meant("Inception-v3", models) == "inception_v3");
  CHECK(meant("WideResNet50", models) == "WideResNet50");
  CHECK(meant("wide-resnet", models) == "wide_resnet50_2");
  CHECK(meant("resnet", models) == "resnet");
  CHECK(suggestion("resnet", models) == " (did you mean one of resnet50, resnet18, wide_resnet50_2?)");
  const std::vector<std::string> devices{
      "a10", "a100-pcie-40gb", "a100-sxm4-40gb", "gtx-1080", "gtx-1080-ti", "t4", "k80", "v100-sxm2-16gb"};
  CHECK(meant("1080ti", devices) == "gtx-1080-ti");
  CHECK(meant("GeForce GTX 1080 Ti", devices) == "gtx-1080-ti");
  CHECK(meant("GTX1080", devices) == "gtx-1080");
  CHECK(meant("Tesla T4", devices) == "t4");
  CHECK(meant("NVIDIA A100-SXM4-40GB", devices) == "a100-sxm4-40gb");
  CHECK(meant("Tesla V100", devices) == "v100-sxm2-16gb");
  CHECK(meant("A100", devices) == "A100");
  CHECK(suggestion("A100", devices) == " (did you mean one of a100-pcie-40gb, a100-sxm4-40gb?)");
  CHECK(meant("1080", devices) == "1080");
  const std::vector<std::string> servers{"aws-p3.16xlarge", "aws-p4d.24xlarge", "dgx1-p100", "dgx1-v100",
                                         "dgx2"};
  CHECK(meant("p4d", servers) == "aws-p4d.24xlarge");
  CHECK(meant("p3.16xlarge", servers) == "aws-p3.16xlarge");
  CHECK(meant("DGX-2", servers) == "dgx2");
  CHECK(suggestion("DGX-1", servers) == " (did you mean one of dgx1-p100, dgx1-v100?)");
  const std::vector<std::string> kinds{"single", "data_parallel", "filter_parallel"};
  CHECK(meant("ddp", kinds) == "data_parallel");
  CHECK(meant("DataParallel", kinds) == "data_parallel");
  CHECK(meant("data-parallel", kinds) == "data_parallel");
  CHECK(meant("fsdp", kinds) == "fsdp");
  CHECK(suggestion("FSDP", kinds) == " (write kind: data_parallel with zero: 3)");
  const std::vector<std::string> precisions{"fp32", "tf32", "fp16", "bf16"};
  CHECK(meant("bfloat16", precisions) == "bf16");
  CHECK(meant("FP-16", precisions) == "fp16");
  CHECK(suggestion("amp", precisions) == " (did you mean one of fp16, bf16?)");
  const std::vector<std::string> keys{"batch_per_device", "global_batch", "precision"};
  CHECK(suggestion("batch_size", keys) == " (did you mean one of batch_per_device, global_batch?)");
  CHECK(meant("", keys).empty());
  CHECK(meant("--", keys) == "--");
}

TEST_CASE("meant: case and separators change nothing, and no name is taken for another") {
  const std::vector<std::string> names{"resnet50",        "resnext50_32x4d",
                                       "wide_resnet50_2", "vgg16",
                                       "vgg16_bn",        "a10",
                                       "a100-sxm4-40gb",  "a100-sxm4-80gb",
                                       "p100-pcie-16gb",  "gtx-1080",
                                       "gtx-1080-ti",     "dgx-a100",
                                       "dgx1-v100",       "dgx2",
                                       "aws-p3.2xlarge",  "aws-p3.16xlarge"};
  for (unsigned seed = 1; seed <= 500; ++seed) {
    CAPTURE(seed);
    std::mt19937 engine(seed);
    const std::string& name = names[engine() % names.size()];
    CHECK(meant(name, names) == name);
    std::string other;
    for (const char c : name) {
      const bool separator = !std::isalnum(static_cast<unsigned char>(c));
      other += separator ? "-_ ."[engine() % 4] : engine() % 2 ? static_cast<char>(std::toupper(c)) : c;
    }
    CHECK(meant(other, names) == name);
  }
}

TEST_CASE(
    "spelling patterns: what one matches means its name, and what means a name by its words is matched") {
  const std::vector<std::vector<std::string>> tables{
      {"ring", "tree", "halving_doubling", "hierarchical", "double_binary_tree", "nccl", "auto"},
      {"data_parallel", "pipeline", "filter_parallel", "single"},
      {"fp32", "tf32", "fp16", "bf16"},
      {"pytorch", "pytorch1", "tensorflow", "tensorflow1", "caffe", "caffe2"}};
  std::vector<std::vector<std::regex>> patterns;  // of each table
  for (const std::vector<std::string>& table : tables) {
    std::vector<std::regex>& of_table = patterns.emplace_back();
    for (const std::string& pattern : spelling_patterns(table)) of_table.emplace_back(pattern);
    REQUIRE(of_table.size() == table.size());
  }
  const std::vector<std::string> others{"ddp", "half", "float 16", "TF", "amp", "torch", "mixed", "parallel"};
  std::size_t matched = 0;
  for (unsigned seed = 1; seed <= 2000; ++seed) {
    std::mt19937 engine(seed);
    const std::size_t t = engine() % tables.size();
    const std::vector<std::string>& table = tables[t];
    std::string text = engine() % 4 ? table[engine() % table.size()] : others[engine() % others.size()];
    if (engine() % 3 == 0) text = text.substr(0, text.find('_', engine() % text.size()));
    for (char& c : text) {
      if (engine() % 3 == 0) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      if (c == '_') c = "-_ ."[engine() % 4];
    }
    CAPTURE(seed);
    CAPTURE(text);
    const std::string name = meant(text, table);
    for (std::size_t i = 0; i < table.size(); ++i) {
      const bool matches = std::regex_match(text, patterns[t][i]);
      CHECK(matches == (name == table[i]));
      matched += matches ? 1 : 0;
    }
  }
  CHECK(matched > 1000);
}

TEST_CASE("list_of: all names, or the first and how many more") {
  const std::vector<std::string> names{"a", "b", "c"};
  CHECK(list_of(names) == "a, b, c");
  CHECK(list_of(names, 2) == "a, b and 1 more");
  CHECK(list_of({}).empty());
}
