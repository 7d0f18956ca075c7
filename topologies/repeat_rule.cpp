// SPDX-License-Identifier: MIT
#include "topologies/repeat_rule.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/formula.h"
#include "sim/base/names.h"

namespace convoy::inline topologies {
namespace {

constexpr std::int64_t most_repeats = 1'000'000;

}  // namespace

RuleFormula::RuleFormula(std::string text, const SourcePos& pos, std::string path)
    : text_(std::move(text)), path_(std::move(path)), pos_(pos) {
  formula_ = std::make_shared<Formula>(text_, 0, [this](const std::string& message) { fail(message); });
  if (formula_->end() != text_.size()) fail(fmt::format("has '{}' left over", text_.substr(formula_->end())));
}

void RuleFormula::fail(const std::string& message) const {
  throw InputError(pos_, fmt::format("{}: '{}' {}", path_, text_, message));
}

std::int64_t RuleFormula::value(const RuleNames& names) const {
  std::vector<std::int64_t> values;
  for (const std::string& name : formula_->names()) {
    const auto it = names.find(name);
    if (it == names.end()) {
      std::vector<std::string> known;
      for (const auto& [other, value] : names) known.push_back(other);
      fail(fmt::format("uses '{}', which nothing defines here{}; known: {}", name, suggestion(name, known),
                       known.empty() ? "nothing" : list_of(known)));
    }
    values.push_back(it->second);
  }
  return formula_->value(values, [this](const std::string& message) { fail(message); });
}

NameRule::NameRule(std::string_view text, const SourcePos& pos, const std::string& path) {
  while (true) {
    const std::size_t begin = text.find("$(");
    parts_.emplace_back(text.substr(0, begin), std::vector<RuleFormula>{});
    if (begin == std::string_view::npos) return;
    text.remove_prefix(begin + 2);
    // The parenthesis that closes the formula's own.
    std::size_t end = 0;
    for (int open = 1; end < text.size(); ++end) {
      if (text[end] == '(') ++open;
      if (text[end] == ')' && --open == 0) break;
    }
    if (end == text.size()) throw InputError(pos, fmt::format("{}: '$({}' lacks a ')'", path, text));
    parts_.back().second.emplace_back(std::string(text.substr(0, end)), pos, path);
    text.remove_prefix(end + 1);
  }
}

std::string NameRule::text(const RuleNames& names) const {
  std::string result;
  for (const auto& [text, formulas] : parts_) {
    result += text;
    for (const RuleFormula& formula : formulas) result += fmt::format("{}", formula.value(names));
  }
  return result;
}

RepeatRule RepeatRule::read(YamlMap& map) {
  RepeatRule rule;
  rule.path_ = map.path_of("for");
  rule.pos_ = map.pos("for");
  if (map.find("for")) {
    YamlMap loops = map.map("for");
    for (const std::string& name : loops.keys())
      rule.loops_.emplace_back(name, RuleFormula(loops.text(name), loops.pos(name), loops.path_of(name)));
    std::sort(rule.loops_.begin(), rule.loops_.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  if (map.find("when")) rule.when_.emplace_back(map.text("when"), map.pos("when"), map.path_of("when"));
  return rule;
}

void RepeatRule::for_each(RuleNames names, const std::function<void(const RuleNames&)>& write) const {
  Counted counted;
  repeat(0, counted, names, write);
}

void RepeatRule::repeat(std::size_t loop, Counted& counted, RuleNames& names,
                        const std::function<void(const RuleNames&)>& write) const {
  if (loop == loops_.size()) {
    if (when_.empty() || when_.front().value(names) != 0) write(names);
    return;
  }
  const auto& [name, count_of] = loops_[loop];
  const std::int64_t count = count_of.value(names);
  for (std::int64_t i = 0; i < count; ++i) {
    const bool innermost = loop + 1 == loops_.size();
    if (++counted.steps > most_repeats * static_cast<std::int64_t>(loops_.size()) ||
        (innermost && ++counted.written > most_repeats))
      throw InputError(pos_, fmt::format("{}: more than {} repetitions", path_, most_repeats));
    names[name] = i;
    repeat(loop + 1, counted, names, write);
  }
  names.erase(name);
}

KeyText repeat_for_text() {
  return key_text("for", "once",
                  forms::entries(forms::text("a whole number or a formula"), "{NAME: COUNT, ...}"),
                  "written out for every value of these names from 0 up: $(NAME) in names");
}

KeyText repeat_when_text() {
  return key_text("when", "always", forms::text("a formula such as i < j"), "only where it is not 0");
}

}  // namespace convoy::topologies
