// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "sim/base/names.h"

using namespace convoy;

TEST_CASE("suggestion: the nearest known name, if it is near") {
  const std::vector<std::string> known{"resnet50", "resnet101", "vgg16", "k80"};
  CHECK(suggestion("resnet51", known) == " (did you mean 'resnet50'?)");
  CHECK(suggestion("RESNET50", known) == " (did you mean 'resnet50'?)");
  CHECK(suggestion("rsenet101", known) == " (did you mean 'resnet101'?)");
  CHECK(suggestion("transformer", known).empty());
  const std::vector<std::string> devices{"a10", "v100-pcie-16gb", "v100-sxm2-16gb"};
  CHECK(suggestion("v100", devices) == " (did you mean 'v100-pcie-16gb'?)");
  CHECK(suggestion("V100", devices) == " (did you mean 'v100-pcie-16gb'?)");
  CHECK(suggestion("SXM2-16GB", devices) == " (did you mean 'v100-sxm2-16gb'?)");
  CHECK(suggestion("sxm2-16gb", devices) == " (did you mean 'v100-sxm2-16gb'?)");
  CHECK(suggestion("gb", devices).empty());
  CHECK(suggestion("a1", devices) == " (did you mean 'a10'?)");
  CHECK(suggestion("", known).empty());
  CHECK(suggestion(std::string(65, 'r'), known).empty());
  CHECK(suggestion("resnet50", {}).empty());
}

TEST_CASE("list_of: all names, or the first and how many more") {
  const std::vector<std::string> names{"a", "b", "c"};
  CHECK(list_of(names) == "a, b, c");
  CHECK(list_of(names, 2) == "a, b and 1 more");
  CHECK(list_of({}).empty());
}
