// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/yaml_node.h"

using namespace convoy;

namespace {

YamlNode read(const std::string& text) { return parse_yaml(text, "f.yaml"); }

std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

YamlNode scalar(const std::string& text) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.scalar = text;
  node.pos = node.key_pos = {"--set", 1, 1};
  return node;
}

}  // namespace

TEST_CASE("yaml: values, kinds and places") {
  const YamlNode root = read("a: 1\nb: [x, 'y', null, ~, ]\nc:\n  d: \"1\"\n");
  REQUIRE(root.kind == YamlNode::Kind::mapping);
  CHECK(root.find("a")->scalar == "1");
  CHECK(root.find("a")->pos == SourcePos{"f.yaml", 1, 4});
  CHECK(root.find("a")->key_pos == SourcePos{"f.yaml", 1, 1});
  const YamlNode& list = *root.find("b");
  REQUIRE(list.items.size() == 4);
  CHECK_FALSE(list.items[0].quoted);
  CHECK(list.items[1].quoted);
  CHECK(list.items[2].kind == YamlNode::Kind::null);
  CHECK(list.items[3].kind == YamlNode::Kind::null);
  CHECK(root.find("c")->find("d")->pos == SourcePos{"f.yaml", 4, 6});
  CHECK(root.find("c")->find("d")->quoted);
  CHECK(root.find("z") == nullptr);
}

TEST_CASE("yaml: a number has one spelling, as a value and as a key, a quoted one is the text that it is") {
  const YamlNode root = read("{a: [16.0, 1.6e1, +16, '16.0', 010, v1.0], 2.50: b}");
  std::string texts;
  for (const YamlNode& item : root.find("a")->items) texts += item.scalar + " ";
  CHECK(texts == "16 16 16 16.0 010 v1.0 ");
  CHECK(root.find("2.5")->scalar == "b");
  CHECK(refusal("{1.0: a, 1: b}") == "f.yaml:1:10: key '1' given twice (first in line 1)");
}

TEST_CASE("yaml: line ends of Windows and a byte order mark are read, Unicode is kept") {
  const YamlNode root = read(
      "\xEF\xBB\xBFname: Gr\xC3\xB6\xC3\x9F"
      "e\r\nb: 2\r\n");
  CHECK(root.find("name")->scalar ==
        "Gr\xC3\xB6\xC3\x9F"
        "e");
  CHECK(root.find("b")->scalar == "2");
  CHECK(root.find("b")->pos.line == 2);
}

TEST_CASE("yaml: a value that is not there stands at its key") {
  const YamlNode root = read("a: 1\nb:\n  c:\nd: 1\n");
  CHECK(root.find("b")->find("c")->kind == YamlNode::Kind::null);
  CHECK(root.find("b")->find("c")->pos == SourcePos{"f.yaml", 3, 3});
}

TEST_CASE("yaml: aliases are expanded where they stand") {
  const YamlNode root = read("a: &x {k: 1}\nb: *x\n");
  CHECK(root.find("b")->find("k")->scalar == "1");
  CHECK(root.find("b")->pos == SourcePos{"f.yaml", 2, 4});
}

TEST_CASE("yaml: what is refused, and where") {
  CHECK(refusal("a: 1\na: 2\n") == "f.yaml:2:1: key 'a' given twice (first in line 1)");
  CHECK(refusal("x: {a: 1, b: 2, a: 3}") == "f.yaml:1:17: key 'a' given twice (first in line 1)");
  CHECK(refusal("") == "f.yaml:1:1: empty: expected a YAML mapping");
  CHECK(refusal("# only a comment\n") == "f.yaml:1:1: empty: expected a YAML mapping");
  CHECK(refusal("a: 1\n---\nb: 2\n") == "f.yaml:3:1: a second YAML document; a file holds one");
  CHECK(refusal("a: 1\nb: \"x\n") ==
        "f.yaml:2:4: not valid YAML: the text that begins here has no closing \"");
  CHECK(refusal("b: \"x\\\"\n") == "f.yaml:1:4: not valid YAML: the text that begins here has no closing \"");
  CHECK(refusal("b: 'x''y\n") == "f.yaml:1:4: not valid YAML: the text that begins here has no closing '");
  CHECK(refusal("a: 'it''s'\nb: \"\\\\\"\nc: &q \"#\" # \"\n") == "accepted");
  CHECK(refusal("[a]: 1\n") == "f.yaml:1:1: a key must be a word, not a list");
  CHECK(refusal("{a: 1}: 1\n") == "f.yaml:1:1: a key must be a word, not a mapping");
  CHECK(refusal("a: &x [*x]\n") == "f.yaml:1:8: alias inside the value it stands for; write the value out");
  CHECK(refusal("a: *nobody\n").starts_with("f.yaml:1:4: not valid YAML: "));
  CHECK(refusal("a: [1, 2\n").starts_with("f.yaml:2:1: not valid YAML: "));
  CHECK(refusal("a:\n\tb: 1\n") == "f.yaml:2:1: not valid YAML: a tab cannot indent; use spaces");
  CHECK(refusal(std::string("a: 1\nb: \0\n", 10)) ==
        "f.yaml:2:4: holds zero bytes: this is not a YAML text file");
  CHECK(refusal(std::string("\0", 1)) == "f.yaml:1:1: holds zero bytes: this is not a YAML text file");
}

TEST_CASE("yaml: limits of size, number and depth") {
  CHECK(refusal(std::string((8u << 20) + 1, ' ')) == "f.yaml:1:1: 8 MiB of YAML; at most 8 MiB are read");
  CHECK(refusal(std::string(101, '[') + std::string(101, ']')) ==
        "f.yaml:1:101: nested deeper than 100 levels");
  CHECK(refusal(std::string(100, '[') + std::string(100, ']')) == "accepted");
  std::string bomb = "a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n";
  bomb += "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n";
  CHECK(refusal(bomb) == "accepted");  // 11111 + 1111 + 111 + 11 values and five mappings
  bomb += "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e]\n";
  CHECK(refusal(bomb) == "f.yaml:6:14: more than 500000 values once aliases are expanded");
}

TEST_CASE("yaml: control characters in messages become question marks") {
  const std::string message = refusal("\"a\\e[2J\": 1\n\"a\\e[2J\": 2\n");
  CHECK(message == "f.yaml:2:1: key 'a\\x1b[2J' given twice (first in line 1)");
}

TEST_CASE("load_yaml: files that cannot be read") {
  const auto reason = [](const std::string& file) -> std::string {
    try {
      load_yaml(file);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  CHECK(reason("no/such.yaml") == "no/such.yaml: cannot be opened: no such file, or not readable");
  CHECK(reason("/") == "/: is a folder; expected a YAML file");
  CHECK(reason("/dev/zero") == "/dev/zero:1:1: larger than 8 MiB, more than any experiment needs");
}

TEST_CASE("set_path: replaces, makes mappings, indexes lists") {
  YamlNode root = read("a: {b: 1}\nl: [{c: 1}, {c: 2}]\n");
  set_path(root, "a.b", scalar("5"));
  set_path(root, "a.new.deep", scalar("6"));
  set_path(root, "l.1.c", scalar("7"));
  CHECK(to_flow(root) == "{a: {b: 5, new: {deep: 6}}, l: [{c: 1}, {c: 7}]}");
  CHECK(root.find("a")->find("b")->key_pos == SourcePos{"f.yaml", 1, 5});  // the key stays where it was
  CHECK(root.find("a")->find("b")->pos.file == "--set");
}

TEST_CASE("set_path: a quoted key may have dots") {
  YamlNode root = read("servers: {aws-p3.16xlarge: {price: 1}}\n");
  set_path(root, "servers.\"aws-p3.16xlarge\".price", scalar("5"));
  set_path(root, "servers.'a.b'", scalar("6"));
  set_path(root, "\"c.d\".e", scalar("7"));
  CHECK(to_flow(root) == "{servers: {aws-p3.16xlarge: {price: 5}, a.b: 6}, c.d: {e: 7}}");
  for (const std::string path : {"a.\"b", "\"a\"b", "a.\"\"", "\"a\"."}) {
    CAPTURE(path);
    CHECK_THROWS_WITH(set_path(root, path, scalar("5")), doctest::Contains("is not a dotted path"));
  }
}

TEST_CASE("set_path: paths that lead nowhere") {
  const auto reason = [](const std::string& path) -> std::string {
    YamlNode root = read("a: {b: 1}\nl: [1, 2]\n");
    try {
      set_path(root, path, scalar("5"));
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  CHECK(reason("a.b.c") == "--set:1:1: path 'a.b.c' runs through '1', which has no keys");
  CHECK(reason("l.2") == "--set:1:1: path 'l.2': '2' is not an index into a list of 2");
  CHECK(reason("l.x") == "--set:1:1: path 'l.x': 'x' is not an index into a list of 2");
  CHECK(reason("l.-1") == "--set:1:1: path 'l.-1': '-1' is not an index into a list of 2");
  CHECK(reason("") == "--set:1:1: '' is not a dotted path such as cluster.nodes");
  CHECK(reason("a..b") == "--set:1:1: 'a..b' is not a dotted path such as cluster.nodes");
  CHECK(reason("a.") == "--set:1:1: 'a.' is not a dotted path such as cluster.nodes");
}

TEST_CASE("parse_yaml: slips of the hand are told as what they are, where they are") {
  const std::string tab = "not valid YAML: a tab cannot indent; use spaces";
  const std::string space = "not valid YAML: a space is missing after the colon";
  CHECK(refusal("a: 1\nb:\n  c: 2\n \td: 3\n") == "f.yaml:4:2: " + tab);
  CHECK(refusal("a: 1\nb:2\nc: 3\n") == "f.yaml:2:3: " + space);
  CHECK(refusal("a:\n  bc:2\n  d: 3\n") == "f.yaml:2:6: " + space);
  CHECK(refusal("a:\n  - b:2\n    c: 3\n") == "f.yaml:2:7: " + space);
  CHECK(refusal("a:\n  - b: 1\n    c: 2\n  b: 3\n") ==
        "f.yaml:4:3: not valid YAML: a dash is missing: line 2 is an item of a list");
  // What is right in YAML stays right: tabs inside values, colons inside words, a file's and a site's name.
  for (const char* good : {"a: 1\t\nb:\t2\n", "a: b:c\n", "a: http://x\nb: C:\\x\n", "a: '\tb:c'\n"})
    CHECK(refusal(good) == "accepted");
}

TEST_CASE("parse_yaml: in valid files with one slip of each kind, the message names the place of the slip") {
  // Mappings in mappings, a key a line; the slip is put into a random line.
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 engine(seed);
    const auto below = [&](std::size_t n) { return engine() % n; };
    std::vector<std::string> lines;
    std::size_t depth = 0;
    for (std::size_t i = 0, count = 4 + below(12); i < count; ++i) {
      const bool opens = depth < 3 && below(3) == 0;
      lines.push_back(std::string(2 * depth, ' ') + "k" + std::to_string(i) + (opens ? ":" : ": 1"));
      if (opens)
        lines.push_back(std::string(2 * ++depth, ' ') + "first: 2");
      else if (depth > 0 && below(3) == 0)
        --depth;
    }
    lines.push_back("last: 3");
    std::vector<std::size_t> values;
    for (std::size_t i = 0; i + 1 < lines.size(); ++i)
      if (lines[i].find(": ") != std::string::npos) values.push_back(i);
    const std::size_t at = values[below(values.size())];
    const std::size_t colon = lines[at].find(": ");
    lines[at].erase(colon + 1, 1);
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    CAPTURE(text);
    // Alone at the end of its mapping the line is a word, which YAML takes for the value of the key above.
    const std::string said = refusal(text);
    if (said == "accepted") continue;
    CHECK(said == "f.yaml:" + std::to_string(at + 1) + ":" + std::to_string(colon + 2) +
                      ": not valid YAML: a space is missing after the colon");
  }
}

namespace {

/// A text of letters that YAML gives a meaning to.
std::string drawn_text(std::mt19937& draw) {
  constexpr std::string_view letters = "ab1.-_ :,#'\"\\{}[]&*!|>%@`?=~\t\n\xC3\xB6";
  static const std::vector<std::string> words{"null", "true", "no",  "~", "1e3", "0x10", "-",
                                              "--",   "---",  "...", "",  "<<",  ".inf"};
  if (draw() % 3 == 0) return words[draw() % words.size()];
  std::string text;
  for (std::size_t length = draw() % 6; text.size() < length;) {
    const char letter = letters[draw() % letters.size()];
    if (letter == '\xC3' || letter == '\xB6')
      text += "\xC3\xB6";
    else
      text += letter;
  }
  return text;
}

/// A tree as a file can have it: a text in quotes, or a number, true or nothing without.
YamlNode drawn_node(std::mt19937& draw, int depth) {
  YamlNode node;
  switch (draw() % (depth > 0 ? 5 : 3)) {
    case 0:
      break;  // null
    case 1:
      node.kind = YamlNode::Kind::scalar;
      node.scalar = drawn_text(draw);
      node.quoted = true;
      break;
    case 2:
      node.kind = YamlNode::Kind::scalar;
      node.scalar = std::vector<std::string>{"7", "-1.5", "true", "ring", "100GB/s", "a.b_c-d"}[draw() % 6];
      break;
    case 3:
      node.kind = YamlNode::Kind::sequence;
      for (std::size_t i = draw() % 4; i > 0; --i) node.items.push_back(drawn_node(draw, depth - 1));
      break;
    default:
      node.kind = YamlNode::Kind::mapping;
      for (std::size_t i = draw() % 4; i > 0; --i)
        node.entries.emplace_back(draw() % 2 == 0 ? fmt::format("{} {}", drawn_text(draw), i)
                                                  : std::vector<std::string>{"1e3", "7", "true", "a.b"}[i],
                                  drawn_node(draw, depth - 1));
  }
  return node;
}

/// All that a tree says but for places.
std::string said(const YamlNode& node) {
  std::string text =
      fmt::format("{}{}<{}>(", static_cast<int>(node.kind), node.quoted ? "q" : "", node.scalar);
  for (const YamlNode& item : node.items) text += said(item);
  for (const auto& [key, value] : node.entries) text += fmt::format("<{}>{}", key, said(value));
  return text + ')';
}

}  // namespace

TEST_CASE("to_yaml: whatever the texts in it, a value reads back as it was") {
  const std::uint32_t seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 draw(seed);
  for (int i = 0; i < 2000; ++i) {
    const YamlNode node = drawn_node(draw, 3);
    const std::string text = to_yaml(node);
    CAPTURE(text);
    CHECK(text.find('\n') == std::string::npos);
    REQUIRE(said(parse_yaml(text, "test")) == said(node));
  }
}
