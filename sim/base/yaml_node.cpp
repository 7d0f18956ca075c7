// SPDX-License-Identifier: MIT
#include "sim/base/yaml_node.h"

#include <fmt/format.h>
#include <yaml-cpp/emitter.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <optional>
#include <sstream>
#include <unordered_map>

#include "sim/base/clean_text.h"
#include "sim/base/input_file.h"
#include "sim/base/quantity.h"

namespace convoy::inline base {
namespace {

constexpr std::size_t max_text_bytes = 8u << 20;
constexpr std::size_t max_values = 500'000;
constexpr std::size_t max_depth = 100;

std::size_t count_values(const YamlNode& node) {
  std::size_t n = 1;
  for (const YamlNode& item : node.items) n += count_values(item);
  for (const auto& [key, value] : node.entries) n += count_values(value);
  return n;
}

/// Builds the tree from yaml-cpp's events. This is the only interface of yaml-cpp 0.7 that shows aliases (so
/// that they can be limited) and keeps the place of every scalar.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string file, std::string_view text) : file_(std::move(file)), text_(text) {}

  YamlNode root;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { leaf(mark, anchor, {}, false, true); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const bool quoted = tag == "!";
    if (quoted) check_closed(mark);
    leaf(mark, anchor, value, quoted, !quoted && (value.empty() || value == "~" || value == "null"));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto it = anchors_.find(anchor);
    if (it == anchors_.end())
      throw InputError(at(mark), "alias inside the value it stands for; write the value out");
    YamlNode copy = it->second;
    add_values(mark, count_values(copy));
    copy.pos = at(mark);
    place(std::move(copy));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, anchor, YamlNode::Kind::sequence);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, anchor, YamlNode::Kind::mapping);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    YamlNode node;
    YAML::anchor_t anchor;
    bool has_key = false;
    std::string key;
    SourcePos key_pos;
    std::unordered_map<std::string, SourcePos> seen;
  };

  SourcePos at(const YAML::Mark& mark) const { return {file_, mark.line + 1, mark.column + 1}; }

  void add_values(const YAML::Mark& mark, std::size_t n) {
    values_ += n;
    if (values_ > max_values)
      throw InputError(at(mark), fmt::format("more than {} values once aliases are expanded", max_values));
  }

  /// yaml-cpp 0.7 accepts the end of the file as the end of a quoted text.
  void check_closed(const YAML::Mark& mark) const {
    const auto begin = static_cast<std::size_t>(mark.pos);
    if (begin >= text_.size() || (text_[begin] != '"' && text_[begin] != '\'')) return;  // after an anchor
    const char quote = text_[begin];
    for (std::size_t i = begin + 1; i < text_.size(); ++i) {
      const bool doubled = quote == '\'' && text_.substr(i, 2) == "''";
      if (doubled || (text_[i] == '\\' && quote == '"'))
        ++i;
      else if (text_[i] == quote)
        return;
    }
    throw InputError(at(mark),
                     fmt::format("not valid YAML: the text that begins here has no closing {}", quote));
  }

  void leaf(const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& value, bool quoted, bool null) {
    add_values(mark, 1);
    YamlNode node;
    node.kind = null ? YamlNode::Kind::null : YamlNode::Kind::scalar;
    node.scalar = quoted ? value : number_spelling(value).value_or(value);
    node.quoted = quoted;
    node.pos = at(mark);
    if (anchor) anchors_[anchor] = node;
    place(std::move(node));
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, YamlNode::Kind kind) {
    add_values(mark, 1);
    if (stack_.size() >= max_depth)
      throw InputError(at(mark), fmt::format("nested deeper than {} levels", max_depth));
    Open level;
    level.node.kind = kind;
    level.node.pos = at(mark);
    level.anchor = anchor;
    stack_.push_back(std::move(level));
  }

  void close() {
    YamlNode node = std::move(stack_.back().node);
    if (const YAML::anchor_t anchor = stack_.back().anchor) anchors_[anchor] = node;
    stack_.pop_back();
    place(std::move(node));
  }

  void place(YamlNode node) {
    if (stack_.empty()) {
      root = std::move(node);
      return;
    }
    Open& parent = stack_.back();
    if (parent.node.kind == YamlNode::Kind::sequence) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      if (node.kind != YamlNode::Kind::scalar)
        throw InputError(node.pos, fmt::format("a key must be a word, not {}", describe(node)));
      const auto [it, fresh] = parent.seen.emplace(node.scalar, node.pos);
      if (!fresh)
        throw InputError(
            node.pos, fmt::format("key '{}' given twice (first in line {})", node.scalar, it->second.line));
      parent.key = std::move(node.scalar);
      parent.key_pos = node.pos;
      parent.has_key = true;
    } else {
      node.key_pos = parent.key_pos;
      // yaml-cpp gives a missing value the position of the token after it.
      if (node.kind == YamlNode::Kind::null && node.scalar.empty()) node.pos = parent.key_pos;
      parent.node.entries.emplace_back(std::move(parent.key), std::move(node));
      parent.has_key = false;
    }
  }

  std::string file_;
  std::string_view text_;
  std::vector<Open> stack_;
  std::unordered_map<YAML::anchor_t, YamlNode> anchors_;
  std::size_t values_ = 0;
};

/// A mistake that YAML's own message does not name, and where it stands.
struct Mistake {
  std::size_t line = 0, column = 0;  ///< from 0
  std::string what;
};

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::size_t indentation_of(std::string_view line) {
  return std::min(line.find_first_not_of(" \t"), line.size());
}

/// Where the colon of `key:value` stands, a plain word at the line's begin with something else right behind
/// it; npos where the line is none. Not of C:\\ and http://.
std::size_t tight_colon(std::string_view line) {
  std::size_t begin = indentation_of(line);
  while (line.substr(begin).starts_with("- ")) begin += 2;
  std::size_t end = begin;
  const auto in_key = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
  };
  while (end < line.size() && in_key(line[end])) ++end;
  const bool tight = end > begin && end + 1 < line.size() && line[end] == ':' && line[end + 1] != ' ' &&
                     line[end + 1] != '\t' && line[end + 1] != '\r' && line[end + 1] != '/' &&
                     line[end + 1] != '\\';
  return tight ? end : std::string_view::npos;
}

/// The mistake that most likely made a text invalid in line `broken`: a tab in the indentation, no space
/// behind a colon, no dash before an item of a list. The last one before the place counts: an error is seen
/// where the text no longer fits, which is at the mistake or behind it.
std::optional<Mistake> likely_mistake(std::string_view text, std::size_t broken) {
  const std::vector<std::string_view> lines = lines_of(text);
  if (lines.empty()) return std::nullopt;
  broken = std::min(broken, lines.size() - 1);
  for (std::size_t i = broken + 1; i-- > 0;) {
    const std::string_view line = lines[i];
    if (const std::size_t tab = line.find('\t'); tab < indentation_of(line))
      return Mistake{i, tab, "a tab cannot indent; use spaces"};
    if (const std::size_t colon = tight_colon(line); colon != std::string_view::npos)
      return Mistake{i, colon + 1, "a space is missing after the colon"};
  }
  const std::size_t here = indentation_of(lines[broken]);
  if (lines[broken].substr(here).starts_with("-")) return std::nullopt;
  for (std::size_t i = broken; i-- > 0 && (lines[i].empty() || indentation_of(lines[i]) >= here);)
    if (indentation_of(lines[i]) == here && lines[i].substr(here).starts_with("- "))
      return Mistake{broken, here, fmt::format("a dash is missing: line {} is an item of a list", i + 1)};
  return std::nullopt;
}

bool is_index(std::string_view step, std::size_t& index) {
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
  return error == std::errc{} && end == step.data() + step.size();
}

}  // namespace

YamlNode::YamlNode() = default;

const YamlNode* YamlNode::find(std::string_view key) const {
  for (const auto& [name, value] : entries)
    if (name == key) return &value;
  return nullptr;
}

std::string describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return "nothing";
    case YamlNode::Kind::sequence:
      return "a list";
    case YamlNode::Kind::mapping:
      return "a mapping";
    case YamlNode::Kind::scalar:
      break;
  }
  return fmt::format("'{}'", excerpt(node.scalar));
}

YamlNode parse_yaml(const std::string& text, const std::string& file) {
  if (text.size() > max_text_bytes)
    throw InputError({file, 1, 1}, fmt::format("{} MiB of YAML; at most {} MiB are read", text.size() >> 20,
                                               max_text_bytes >> 20));
  if (const std::size_t zero = text.find('\0'); zero != std::string::npos) {
    const std::size_t line_start = zero == 0 ? 0 : text.rfind('\n', zero - 1) + 1;  // npos + 1 is 0
    const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(zero), '\n') + 1;
    throw InputError({file, static_cast<int>(line), static_cast<int>(zero - line_start) + 1},
                     "holds zero bytes: this is not a YAML text file");
  }
  std::istringstream stream(text);
  TreeBuilder builder(file, text);
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) throw InputError({file, 1, 1}, "empty: expected a YAML mapping");
    TreeBuilder rest(file, text);
    if (parser.HandleNextDocument(rest) && rest.root.kind != YamlNode::Kind::null)
      throw InputError(rest.root.pos, "a second YAML document; a file holds one");
  } catch (const YAML::Exception& e) {
    if (const auto mistake =
            e.mark.is_null() ? std::nullopt : likely_mistake(text, static_cast<std::size_t>(e.mark.line)))
      throw InputError({file, static_cast<int>(mistake->line) + 1, static_cast<int>(mistake->column) + 1},
                       "not valid YAML: " + mistake->what);
    const int line = e.mark.is_null() ? 0 : e.mark.line + 1;
    throw InputError({file, line, line ? e.mark.column + 1 : 0}, "not valid YAML: " + e.msg);
  }
  return std::move(builder.root);
}

YamlNode load_yaml(const std::string& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    throw InputError({file, 0, 0}, "is a folder; expected a YAML file");
  std::ifstream in = open_input(file);
  if (!in) throw InputError({file, 0, 0}, "cannot be opened: no such file, or not readable");
  std::string text;
  std::array<char, 65536> buffer;
  while (in.read(buffer.data(), buffer.size()) || in.gcount() > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > max_text_bytes)
      throw InputError({file, 1, 1}, fmt::format("larger than {} MiB, more than any experiment needs",
                                                 max_text_bytes >> 20));
  }
  return parse_yaml(text, file);
}

namespace {

/// The first key of a dotted path and the position where the rest begins, or npos if nothing follows. The key
/// ends at a dot, or is quoted; "" if the text is not a path.
std::pair<std::string_view, std::size_t> first_key(std::string_view path) {
  const bool quoted = !path.empty() && (path[0] == '"' || path[0] == '\'');
  const std::size_t close = quoted ? path.find(path[0], 1) : std::string_view::npos;
  const std::size_t end = quoted ? close + 1 : path.find('.');
  if (quoted && (close == std::string_view::npos || (end < path.size() && path[end] != '.'))) return {"", 0};
  const std::string_view key = quoted ? path.substr(1, close - 1) : path.substr(0, end);
  return {key, end < path.size() ? end + 1 : std::string_view::npos};
}

}  // namespace

void set_path(YamlNode& root, std::string_view dotted_path, YamlNode value) {
  YamlNode* node = &root;
  std::string_view rest = dotted_path;
  while (true) {
    const auto [step, after] = first_key(rest);
    std::size_t index = 0;
    YamlNode* next = nullptr;
    if (step.empty())
      throw InputError(value.pos,
                       fmt::format("'{}' is not a dotted path such as cluster.nodes", dotted_path));
    if (node->kind == YamlNode::Kind::sequence) {
      if (!is_index(step, index) || index >= node->items.size())
        throw InputError(value.pos, fmt::format("path '{}': '{}' is not an index into a list of {}",
                                                dotted_path, step, node->items.size()));
      next = &node->items[index];
    } else {
      if (node->kind == YamlNode::Kind::null) node->kind = YamlNode::Kind::mapping, node->pos = value.pos;
      if (node->kind != YamlNode::Kind::mapping)
        throw InputError(value.pos, fmt::format("path '{}' runs through {}, which has no keys", dotted_path,
                                                describe(*node)));
      const auto it =
          std::find_if(node->entries.begin(), node->entries.end(), [&](auto& e) { return e.first == step; });
      if (it != node->entries.end()) {
        next = &it->second;
      } else {
        next = &node->entries.emplace_back(std::string(step), YamlNode{}).second;
        next->key_pos = value.key_pos.file.empty() ? value.pos : value.key_pos;
        next->pos = value.pos;
      }
    }
    if (after == std::string_view::npos) {
      value.key_pos = next->key_pos.file.empty() ? value.pos : next->key_pos;
      *next = std::move(value);
      return;
    }
    node = next;
    rest = rest.substr(after);
  }
}

const YamlNode* find_path(const YamlNode& root, std::string_view dotted_path) {
  const YamlNode* node = &root;
  for (std::string_view rest = dotted_path; node != nullptr;) {
    const auto [step, after] = first_key(rest);
    if (step.empty()) return nullptr;
    if (std::size_t index = 0; node->kind == YamlNode::Kind::sequence)
      node = is_index(step, index) && index < node->items.size() ? &node->items[index] : nullptr;
    else
      node = node->kind == YamlNode::Kind::mapping ? node->find(step) : nullptr;
    if (after == std::string_view::npos) return node;
    rest = rest.substr(after);
  }
  return nullptr;
}

namespace {

/// One line of flow-style YAML. @param written a text, which was in quotes or not, as it stands there
template <class Written>
std::string in_flow(const YamlNode& node, Written written) {
  std::string out;
  switch (node.kind) {
    case YamlNode::Kind::null:
      return "null";
    case YamlNode::Kind::scalar:
      return written(node.scalar, node.quoted);
    case YamlNode::Kind::sequence:
      for (const YamlNode& item : node.items) out += (out.empty() ? "" : ", ") + in_flow(item, written);
      return "[" + out + "]";
    case YamlNode::Kind::mapping:
      for (const auto& [key, value] : node.entries)
        out += (out.empty() ? "" : ", ") + written(key, false) + ": " + in_flow(value, written);
      return "{" + out + "}";
  }
  return out;
}

/// Whether a text, or a number in its one spelling, stands for itself within flow-style YAML.
bool is_plain(const std::string& text) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("_./+-").find(c) != std::string_view::npos;
  };
  const bool a_dash = !text.empty() && text.front() == '-' && (text.size() == 1 || text[1] == '-');
  return !text.empty() && !a_dash && std::ranges::all_of(text, plain) &&
         number_spelling(text).value_or(text) == text;
}

}  // namespace

std::string to_flow(const YamlNode& node) {
  return in_flow(node, [](const std::string& text, bool) { return text; });
}

std::string to_yaml(const YamlNode& node) {
  return in_flow(node, [](const std::string& text, bool quoted) {
    if (!quoted && is_plain(text)) return text;
    YAML::Emitter out;
    out << YAML::DoubleQuoted << text;
    return std::string(out.c_str());
  });
}

}  // namespace convoy::base
