// SPDX-License-Identifier: MIT
#include "sim/studies/claims/claim.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "sim/base/names.h"
#include "sim/results/schedule_summary.h"

namespace convoy::inline studies {
namespace {

const std::vector<std::string> roles{"test", "calibrated", "fit"};
const std::vector<std::string> places{"abstract", "table", "ours"};
const std::vector<std::string> causes{"thesis", "input", "mechanism"};

/// Cells of a table: `{name: [values…], …}` stands for all combinations, the last name changing fastest;
/// `[{name: value, …}, …]` lists them. Without the key: one cell without names.
std::vector<Scope> read_cells(YamlMap& map, std::string_view key) {
  std::vector<Scope> cells{{}};
  const YamlNode* node = map.find(key);
  if (!node) return cells;
  if (node->kind == YamlNode::Kind::sequence) {
    cells.clear();
    for (const YamlNode& cell : node->items) {
      Scope& scope = cells.emplace_back();
      for (const auto& [name, value] : cell.entries) scope[name] = value;
    }
  }
  for (const auto& [name, values] : node->entries) {
    std::vector<Scope> wider;
    for (const Scope& cell : cells)
      for (const YamlNode& value : values.items) {
        wider.push_back(cell);
        wider.back()[name] = value;
      }
    cells = std::move(wider);
  }
  if (cells.empty()) map.fail(key, "expected lists of values, or a list of cells");
  return cells;
}

bool matches(const Record& record, const std::string& key, const YamlNode& wanted) {
  const std::string value = wanted.kind == YamlNode::Kind::scalar ? wanted.scalar : to_flow(wanted);
  const auto text = record.texts.find(key);
  const auto number = record.numbers.find(key);
  if (value == "none") return text == record.texts.end() && number == record.numbers.end();
  if (text != record.texts.end()) return text->second == value;
  return number != record.numbers.end() && parse_number(value) == number->second;
}

const Record& find_record(const RecordTables& tables, const YamlNode& selection, const std::string& alias) {
  const YamlNode* from = selection.find("from");
  if (!from)
    throw InputError(selection.pos, fmt::format("{}: lacks 'from', the table of its records", alias));
  const auto table = tables.find(from->scalar);
  if (table == tables.end())
    throw InputError(from->pos, fmt::format("{}: there are no records '{}'", alias, from->scalar));
  const Record* found = nullptr;
  std::size_t count = 0;
  for (const Record& record : table->second) {
    const bool wanted =
        std::all_of(selection.entries.begin(), selection.entries.end(), [&](const auto& entry) {
          return entry.first == "from" || matches(record, entry.first, entry.second);
        });
    if (!wanted) continue;
    found = &record;
    ++count;
  }
  if (count != 1)
    throw InputError(selection.pos, fmt::format("{}: {} of {} records are {}", alias, count,
                                                table->second.size(), to_flow(selection)));
  return *found;
}

}  // namespace

std::string_view to_string(ClaimRole role) {
  static constexpr std::array<std::string_view, 3> names{"fit", "calibrated", "test"};
  return names[static_cast<std::size_t>(role)];
}

std::string_view to_string(FailureCause cause) { return causes[static_cast<std::size_t>(cause)]; }

std::string_view to_string(StatedIn stated_in) {
  static constexpr std::array<std::string_view, 3> names{"abstract", "table", "ours"};
  return names[static_cast<std::size_t>(stated_in)];
}

std::string_view to_string(Verdict verdict) {
  static constexpr std::array<std::string_view, 3> names{"passed", "failed", "none"};
  return names[static_cast<std::size_t>(verdict)];
}

Verdict JudgedClaim::verdict() const {
  if (!low && !high) return Verdict::none;
  return (!low || *low <= ours) && (!high || ours <= *high) ? Verdict::passed : Verdict::failed;
}

ClaimSpec::ClaimSpec(const YamlNode& node,
                     const std::vector<std::pair<std::string, std::string>>& file_sources)
    : pos_(node.pos) {
  YamlMap map(node, "claims");
  claim_ = map.text("claim");
  setup_ = map.text_or("setup", "");
  unit_ = map.text_or("unit", "");
  expression_ = map.text("value");
  expression_pos_ = map.pos("value");
  if (map.has("shortfall")) {
    YamlMap shortfall = map.map("shortfall");
    known_failures_ = shortfall.integer("lines", 1);
    cause_ = std::array{FailureCause::thesis, FailureCause::input,
                        FailureCause::mechanism}[shortfall.choice("cause", causes)];
    shortfall_ = shortfall.text("reason");
    shortfall.finish();
  }
  role_ = std::array{ClaimRole::test, ClaimRole::calibrated, ClaimRole::fit}[map.choice_or("role", roles, 0)];
  stated_in_ =
      std::array{StatedIn::abstract, StatedIn::table, StatedIn::ours}[map.choice("stated_in", places)];
  std::vector<std::string> keys;
  for (const auto& [key, text] : file_sources) keys.push_back(key);
  if (stated_in_ != StatedIn::ours)
    source_ = keys.at(map.has("source") ? map.choice("source", keys) : map.choice_or("source", keys, 0));
  cells_ = read_cells(map, "for");
  over_ = read_cells(map, "over");
  if (map.has("over"))
    take_ =
        std::array{"max", "min", "mean", "lower_95"}[map.choice("take", {"max", "min", "mean", "lower_95"})];
  select_ = map.node("select");
  if (const YamlNode* published = map.find("published")) published_ = *published;
  if (map.has("accept"))
    read_accept(map);
  else if (stated_in_ != StatedIn::ours)
    map.fail("a claim that a source states needs 'accept'");
  if (const YamlNode* wrong = map.find("fails_if")) {
    const bool several = wrong->kind == YamlNode::Kind::sequence;
    for (YamlMap& one : several ? map.maps("fails_if") : std::vector{map.map("fails_if")})
      wrong_inputs_.push_back(read_wrong_input(one));
  } else if (!accept_.empty()) {
    map.fail("a claim with a verdict needs 'fails_if', a wrong input under which it fails");
  }
  map.finish();
}

void ClaimSpec::read_accept(YamlMap& map) {
  YamlMap accept = map.map("accept");
  bool plain = true;
  for (const char* key : {"at_most", "at_least", "within"})
    if (const YamlNode* bound = accept.find(key)) {
      accept_[key] = *bound;
      plain = plain && (bound->scalar == "0" || bound->scalar == "1");
    }
  because_ = accept.text_or("because", "");
  accept.finish();
  if (accept_.empty()) map.fail("accept", "expected at_most, at_least or within");
  if (accept_.contains("within") && !published_) map.fail("accept", "within needs a published figure");
  if (because_.empty() && !plain)
    map.fail("accept", "needs 'because', why so much and no more: only bounds of 0 and 1 go without");
}

ClaimSpec::WrongInput ClaimSpec::read_wrong_input(YamlMap& map) {
  WrongInput wrong;
  if (map.has("scale")) {
    YamlMap scale = map.map("scale");
    for (const std::string& name : scale.keys()) wrong.scale[name] = scale.number(name, 0);
  }
  if (const YamlNode* instead = map.find("select")) wrong.instead = *instead;
  map.finish();
  return wrong;
}

std::string ClaimSpec::WrongInput::text() const {
  std::vector<std::string> told;
  for (const auto& [name, factor] : scale)
    told.push_back(fmt::format("{} x {:.3g}", name, std::pow(factor, power)));
  for (const auto& [alias, selection] : instead.entries)
    told.push_back(fmt::format("{} of {}", alias, to_flow(selection)));
  return fmt::format("{}", fmt::join(told, ", "));
}

double ClaimSpec::value(const RecordTables& tables, const Scope& cell, const WrongInput* wrong) const {
  std::map<std::string, const Record*> records;
  const YamlNode select = substitute(select_, cell);
  for (const auto& [alias, selection] : select.entries) {
    YamlNode wanted = selection;
    if (const YamlNode* instead = wrong ? wrong->instead.find(alias) : nullptr)
      for (const auto& [key, value] : substitute(*instead, cell).entries) {
        std::erase_if(wanted.entries, [&key = key](const auto& entry) { return entry.first == key; });
        wanted.entries.emplace_back(key, value);
      }
    records[alias] = &find_record(tables, wanted, alias);
  }
  return evaluate_expression(expression_, expression_pos_, [&](const std::string& name) {
    if (const auto variable = cell.find(name); variable != cell.end())
      if (const auto number = parse_number(variable->second.scalar)) return *number;
    const std::size_t dot = name.find('.');
    const auto record = records.find(name.substr(0, dot));
    if (record == records.end() || dot == std::string::npos)
      throw InputError(expression_pos_,
                       fmt::format("'{}' is neither a cell's number nor a selected record's", name));
    const auto number = record->second->numbers.find(name.substr(dot + 1));
    if (number == record->second->numbers.end())
      throw InputError(expression_pos_, fmt::format("{} ({}) has no number '{}'", record->first,
                                                    record->second->name(), name));
    const bool scaled = wrong && wrong->scale.contains(name);
    return number->second * (scaled ? std::pow(wrong->scale.at(name), wrong->power) : 1);
  });
}

std::string ClaimSpec::told(const std::string& text, const Scope& cell) const {
  std::string result = text;
  for (const auto& [name, value] : cell) {
    const std::string wanted = "{" + name + "}";
    const std::string written = value.kind == YamlNode::Kind::scalar ? value.scalar : to_flow(value);
    for (std::size_t at = result.find(wanted); at != std::string::npos; at = result.find(wanted))
      result.replace(at, wanted.size(), written);
  }
  return result;
}

std::string ClaimSpec::searched(const std::vector<double>& each) const {
  if (each.size() < 2) return {};
  const auto [least, greatest] = std::minmax_element(each.begin(), each.end());
  const char* what = take_ == "max"    ? "greatest"
                     : take_ == "min"  ? "least"
                     : take_ == "mean" ? "mean"
                                       : "lower end of the mean";
  return fmt::format("{} of {}, {:.3g} to {:.3g}", what, each.size(), *least, *greatest);
}

JudgedClaim ClaimSpec::judge_cell(const RecordTables& tables, const Scope& cell,
                                  const WrongInput* wrong) const {
  JudgedClaim judged;
  Scope shown = cell;
  std::vector<double> each;
  for (std::size_t i = 0; i < over_.size(); ++i) {
    Scope inner = cell;
    inner.insert(over_[i].begin(), over_[i].end());
    const double one = each.emplace_back(value(tables, inner, wrong));
    if (!wrong && !std::isfinite(one))
      throw InputError(expression_pos_, fmt::format("value of '{}' ({}) is {}: what it divides by is 0",
                                                    told(claim_, inner), told(setup_, inner), one));
    if (i == 0 || (take_ == "max" ? one > judged.ours : one < judged.ours)) {
      judged.ours = one;
      shown = inner;
    }
  }
  if (take_ == "mean" || take_ == "lower_95")
    judged.ours = std::accumulate(each.begin(), each.end(), 0.0) / static_cast<double>(each.size()) -
                  (take_ == "mean" ? 0 : half_width_of_mean(each));
  judged.title = claim_;
  judged.claim = told(claim_, shown);
  judged.setup = told(setup_, shown);
  judged.unit = unit_;
  judged.source = source_;
  judged.role = role_;
  judged.stated_in = stated_in_;
  judged.because = because_;
  judged.searched = searched(each);
  judged.shortfall = shortfall_;
  judged.cause = cause_;
  const auto number = [&](const YamlNode& node) {
    return evaluate_expression(node.scalar, node.pos, [&](const std::string& name) -> double {
      throw InputError(node.pos, fmt::format("'{}': names are not allowed here", name));
    });
  };
  if (published_) {
    YamlNode figure = *published_;
    if (const YamlNode* by = figure.find("by")) {
      const YamlNode& axis = cell.at(by->scalar);
      const YamlNode* entry = figure.find(axis.scalar);
      if (!entry)
        throw InputError(published_->pos, fmt::format("published has no entry for '{}'", axis.scalar));
      const YamlNode copy = *entry;
      figure = copy;
    }
    judged.published = number(figure);
  }
  if (const auto bound = accept_.find("at_most"); bound != accept_.end()) judged.high = number(bound->second);
  if (const auto bound = accept_.find("at_least"); bound != accept_.end()) judged.low = number(bound->second);
  if (const auto bound = accept_.find("within"); bound != accept_.end()) {
    const std::string& text = bound->second.scalar;
    const bool relative = text.ends_with("%");
    const auto width = parse_number(relative ? text.substr(0, text.find_last_not_of(" %") + 1) : text);
    if (!width) throw InputError(bound->second.pos, "within: expected a number, or a share such as '15 %'");
    const double allowed = relative ? *width / 100 * std::abs(*judged.published) : *width;
    judged.low = *judged.published - allowed;
    judged.high = *judged.published + allowed;
  }
  return judged;
}

std::string ClaimSpec::smallest_failure(const RecordTables& tables, const Scope& cell) const {
  constexpr int most = 16;
  for (WrongInput wrong : wrong_inputs_)
    for (wrong.power = 1; wrong.power <= (wrong.scale.empty() ? 1 : most); ++wrong.power)
      if (judge_cell(tables, cell, &wrong).verdict() == Verdict::failed) return wrong.text();
  return {};
}

std::vector<JudgedClaim> ClaimSpec::judge(const RecordTables& tables) const {
  std::vector<JudgedClaim> judged;
  for (const Scope& cell : cells_) {
    JudgedClaim& line = judged.emplace_back(judge_cell(tables, cell, nullptr));
    if (line.verdict() == Verdict::passed) line.fails_under = smallest_failure(tables, cell);
  }
  const auto failed = std::count_if(judged.begin(), judged.end(), [](const JudgedClaim& line) {
    return line.verdict() == Verdict::failed;
  });
  if (known_failures_ > 0 && failed != known_failures_)
    for (JudgedClaim& line : judged) {
      line.miscounted =
          fmt::format("{} lines fail, and {} are listed (shortfall.lines)", failed, known_failures_);
      line.shortfall.clear();
    }
  return judged;
}

namespace {

AbstractSentence read_sentence(YamlMap& map, const std::vector<ClaimSpec>& claims) {
  AbstractSentence sentence{map.text("says"), {}, map.text_or("not_judged", ""), map.text_or("not_said", "")};
  if (const YamlNode* judged_by = map.find("judged_by"))
    for (const YamlNode& item : judged_by->items) {
      sentence.judged_by.push_back(read_text(item, "abstract.judged_by"));
      const std::string& title = sentence.judged_by.back();
      if (std::none_of(claims.begin(), claims.end(), [&](const ClaimSpec& c) { return c.title() == title; }))
        throw InputError(item.pos, fmt::format("abstract.judged_by: there is no claim '{}'", title));
    }
  if (sentence.judged_by.empty() && !sentence.not_said.empty())
    map.fail("not_said", "is for sentences that claims judge");
  if (sentence.judged_by.empty() == sentence.not_judged.empty())
    map.fail("a sentence needs 'judged_by', the claims that judge it, or 'not_judged', why none does");
  map.finish();
  return sentence;
}

void read_abstract(YamlMap& map, ClaimFile& claims) {
  for (YamlMap& sentence : map.maps("abstract"))
    claims.sentences.push_back(read_sentence(sentence, claims.claims));
  for (const ClaimSpec& claim : claims.claims) {
    const bool named =
        std::any_of(claims.sentences.begin(), claims.sentences.end(), [&](const AbstractSentence& sentence) {
          return std::find(sentence.judged_by.begin(), sentence.judged_by.end(), claim.title()) !=
                 sentence.judged_by.end();
        });
    if (claim.stated_in() == StatedIn::abstract && !named)
      map.fail("abstract",
               fmt::format("no sentence is judged by '{}', which the abstract states", claim.title()));
  }
}

}  // namespace

ClaimFile read_claims(const std::string& file) {
  const YamlNode root = load_yaml(file);
  YamlMap map(root, "");
  ClaimFile claims;
  claims.name = map.text("thesis");
  claims.title = map.text("title");
  claims.note = map.text("note");
  YamlMap sources = map.map("sources");
  for (const std::string& key : sources.keys()) claims.sources.emplace_back(key, sources.text(key));
  YamlMap records = map.map("records");
  for (const std::string& key : records.keys()) claims.records.emplace_back(key, records.node(key));
  const YamlNode& list = map.node("claims");
  if (list.kind != YamlNode::Kind::sequence) map.fail("claims", "expected a list of claims");
  for (const YamlNode& claim : list.items) claims.claims.emplace_back(claim, claims.sources);
  read_abstract(map, claims);
  map.finish();
  return claims;
}

}  // namespace convoy::studies
