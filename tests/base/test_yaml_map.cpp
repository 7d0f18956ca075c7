// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <functional>

#include "sim/base/yaml_map.h"

using namespace convoy;

namespace {

/// What reading `text` with `use` complains about.
std::string refusal(const std::string& text, const std::function<void(YamlMap&)>& use) {
  const YamlNode root = parse_yaml(text, "f.yaml");
  try {
    YamlMap map(root, "box");
    use(map);
    map.finish();
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("YamlMap: values with and without defaults") {
  const YamlNode root =
      parse_yaml("t: word\ni: 1e3\nn: 2.5\nq: 10Gbps\nf: true\nm: {x: 1}\nl: [{x: 1}, {x: 2}]\n", "f.yaml");
  YamlMap map(root, "");
  CHECK(map.text("t") == "word");
  CHECK(map.text_or("no", "other") == "other");
  CHECK(map.integer("i", 0) == 1000);
  CHECK(map.integer_or("no", 7, 0) == 7);
  CHECK(map.number("n", 0) == 2.5);
  CHECK(map.number_or("no", 1.5, 0) == 1.5);
  CHECK(map.quantity("q", Dimension::bandwidth) == 1.25e9);
  CHECK(map.quantity_or("no", Dimension::bandwidth, 3) == 3);
  CHECK(map.flag_or("f", false));
  CHECK_FALSE(map.flag_or("no", false));
  CHECK(map.map("m").integer("x", 0) == 1);
  REQUIRE(map.maps("l").size() == 2);
  CHECK(map.maps("l")[1].path() == "l[1]");
  CHECK(map.choice("t", {"letter", "word"}) == 1);
  CHECK(map.choice_or("no", {"letter", "word"}, 0) == 0);
  CHECK_NOTHROW(map.finish());
}

TEST_CASE("YamlMap: a key that nobody asked for is an error with the nearest known one") {
  CHECK(refusal("bandwith: 1", [](YamlMap& m) { m.text_or("bandwidth", ""), m.text_or("latency", ""); }) ==
        "f.yaml:1:1: box.bandwith: unknown key (did you mean 'bandwidth'?); known here: bandwidth, latency");
  CHECK(refusal("{a: 1, b: 2}", [](YamlMap& m) { m.keys(); }) == "accepted");
}

TEST_CASE("YamlMap: a key that is missing, and what is there instead") {
  CHECK(refusal("{bandwith: 1}", [](YamlMap& m) { m.text("bandwidth"); }) ==
        "f.yaml:1:1: box: key 'bandwidth' is missing (did you mean 'bandwith'?)");
  CHECK(refusal("{x: 1}", [](YamlMap& m) { m.node("latency"); }) ==
        "f.yaml:1:1: box: key 'latency' is missing");
  CHECK(refusal("{x: 1}", [](YamlMap& m) {
          m.choice("color", {"red", "blue"});
        }) == "f.yaml:1:1: box: key 'color' is missing; allowed: red, blue");
}

TEST_CASE("YamlMap: a key whose value is null is as if it were left out, but known") {
  for (const char* text : {"k: null", "k: ~", "k:"}) {
    CAPTURE(text);
    CHECK(refusal(text, [](YamlMap& m) {
            CHECK_FALSE(m.has("k"));
            CHECK(m.find("k") == nullptr);
            CHECK(m.integer_or("k", 7, 1) == 7);
            CHECK(m.text_or("k", "usual") == "usual");
            CHECK(m.quantity_or("k", Dimension::time, 3) == 3);
            m.finish();
          }) == "accepted");
  }
  CHECK(refusal("k: null", [](YamlMap& m) { m.finish(); }).find("box.k: unknown key") != std::string::npos);
}

TEST_CASE("YamlMap: types") {
  CHECK(refusal("[1]", [](YamlMap&) {}) == "f.yaml:1:1: box: expected a mapping (key: value), found a list");
  CHECK(refusal("k: word", [](YamlMap& m) { m.map("k"); }) ==
        "f.yaml:1:4: box.k: expected a mapping (key: value), found 'word'");
  CHECK(refusal("k: {}", [](YamlMap& m) { m.maps("k"); }) ==
        "f.yaml:1:4: box.k: expected a list of mappings, found a mapping; each of them begins with a dash: "
        "'- '");
  CHECK(refusal("k: [1]", [](YamlMap& m) { m.maps("k"); }) ==
        "f.yaml:1:5: box.k[0]: expected a mapping (key: value), found '1'");
  CHECK(refusal("k: [1]", [](YamlMap& m) { m.text("k"); }) ==
        "f.yaml:1:4: box.k: expected a text, found a list");
  CHECK(refusal("k:", [](YamlMap& m) { m.text("k"); }) ==
        "f.yaml:1:1: box.k: expected a text, found nothing");
  CHECK(refusal("k: yes", [](YamlMap& m) { m.flag_or("k", true); }) ==
        "f.yaml:1:4: box.k: expected true or false, found 'yes'");
  CHECK(refusal("k: 'true'", [](YamlMap& m) { m.flag_or("k", true); }) ==
        "f.yaml:1:4: box.k: expected true or false, found 'true'");
}

TEST_CASE("YamlMap: whole numbers") {
  const auto whole = [](YamlMap& m) { m.integer("k", 1, 10); };
  CHECK(refusal("k: 10", whole) == "accepted");
  CHECK(refusal("k: 1e1", whole) == "accepted");
  CHECK(refusal("k: 2.5", whole) == "f.yaml:1:4: box.k: expected a whole number, found '2.5'");
  CHECK(refusal("k: 010", whole) == "f.yaml:1:4: box.k: expected a whole number, found '010'");
  CHECK(refusal("k: 0x5", whole) == "f.yaml:1:4: box.k: expected a whole number, found '0x5'");
  CHECK(refusal("k: '5'", whole) == "f.yaml:1:4: box.k: expected a whole number, found '5'");
  CHECK(refusal("k: .nan", whole) == "f.yaml:1:4: box.k: expected a whole number, found '.nan'");
  CHECK(refusal("k: 1e400", whole) == "f.yaml:1:4: box.k: expected a whole number, found '1e400'");
  CHECK(refusal("k: 11", whole) == "f.yaml:1:4: box.k: 11 is out of range: between 1 and 10 is allowed");
  CHECK(refusal("k: -1", [](YamlMap& m) { m.integer("k", 0); }) ==
        "f.yaml:1:4: box.k: -1 is out of range: between 0 and 2^53 is allowed");
  CHECK(refusal("k: 1e30", [](YamlMap& m) { m.integer("k", 0); }) ==
        "f.yaml:1:4: box.k: 1e30 is out of range: between 0 and 2^53 is allowed");
}

TEST_CASE("YamlMap: numbers and quantities") {
  const auto share = [](YamlMap& m) { m.number("k", 0, 1); };
  CHECK(refusal("k: 0.5", share) == "accepted");
  CHECK(refusal("k: 1.5", share) == "f.yaml:1:4: box.k: 1.5 is out of range: between 0 and 1 is allowed");
  CHECK(refusal("k: half", share) == "f.yaml:1:4: box.k: expected a number, found 'half'");
  CHECK(refusal("k: .inf", share) == "f.yaml:1:4: box.k: expected a number, found '.inf'");
  CHECK(refusal("k: 10", [](YamlMap& m) { m.quantity("k", Dimension::bandwidth); }) ==
        "f.yaml:1:4: box.k: '10' lacks its unit; write a bandwidth such as 10Gbps or 12GB/s");
  CHECK(refusal("k: 0s", [](YamlMap& m) { m.quantity("k", Dimension::time, true); }) ==
        "f.yaml:1:4: box.k: '0s' must be more than zero");
  CHECK(refusal("k: 0s", [](YamlMap& m) { m.quantity("k", Dimension::time); }) == "accepted");
  CHECK(refusal("k: [1s]", [](YamlMap& m) { m.quantity("k", Dimension::time); }) ==
        "f.yaml:1:4: box.k: expected a time such as 25us, 3ms or 1.5s, found a list");
}

TEST_CASE("YamlMap: choices list what is allowed") {
  CHECK(refusal("k: rign", [](YamlMap& m) {
          m.choice("k", {"ring", "tree"});
        }) == "f.yaml:1:4: box.k: unknown value 'rign' (did you mean 'ring'?); allowed: ring, tree");
}

TEST_CASE("YamlMap: a reader's own complaints stand at the key, or at the mapping where the key is absent") {
  CHECK(refusal("{k: 1}", [](YamlMap& m) { m.fail("k", "no good"); }) == "f.yaml:1:5: box.k: no good");
  CHECK(refusal("{k: 1}", [](YamlMap& m) { m.fail("z", "no good"); }) == "f.yaml:1:1: box.z: no good");
  CHECK(refusal("{k: 1}", [](YamlMap& m) { m.fail("no good"); }) == "f.yaml:1:1: box: no good");
}
