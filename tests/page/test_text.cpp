// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "sim/page/text.h"

using namespace convoy;

TEST_CASE("text: the last key of a path, quoted where it has dots of its own") {
  CHECK(last_key("model") == "model");
  CHECK(last_key("cluster.nodes.0.count") == "count");
  CHECK(last_key("cluster.server.\"fabric.bandwidth\"") == "fabric.bandwidth");
  CHECK(last_key("cluster.servers.\"aws-p3.16xlarge\".price") == "price");
  CHECK(last_key("\"a.b\"") == "a.b");
}

TEST_CASE("text: two digits of any number at least, and nothing but 0 is shown as 0") {
  CHECK(number_text(0) == "0.00");
  CHECK(number_text(0.05) == "0.05");
  CHECK(number_text(0.00146) == "0.0015");
  CHECK(number_text(-0.00146) == "-0.0015");
  CHECK(number_text(0.12) == "0.12");
  CHECK(number_text(1299) == "1299");
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    const double value =
        std::pow(10, std::uniform_real_distribution<>(-9, 6)(random)) * (random() % 2 ? 1 : -1);
    CAPTURE(value);
    CHECK(std::abs(std::stod(number_text(value)) / value - 1) <= 0.0501);
  }
}
