// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>

#include "sim/base/key_parts.h"
#include "sim/base/names.h"
#include "sim/collectives/msccl.h"
#include "sim/collectives/schedule.h"

namespace convoy::inline collectives {
namespace {

constexpr std::int64_t most_ranks = 1 << 20;

ValueForm number_form() { return forms::text("a whole number | $name | $(formula)"); }

struct ScheduleDraft {
  std::string summary;
  SumSchedule::Requirement requirement;
  YamlNode let, chunks, scratch, rounds, reduce_scatter, all_gather;
};
struct RoundDraft {
  YamlNode repeat, send;
};
struct SendDraft {
  YamlNode each, when, from, to, chunk, count, into, op;
};

const Keys<SumSchedule::Requirement>& requirement_keys() {
  using R = SumSchedule::Requirement;
  static const Keys<R> keys{
      optional_integer_key<R>("least", "1", 1, most_ranks, "so many at least", &R::least),
      optional_integer_key<R>("most", "any number", 1, most_ranks, "so many at most", &R::most),
      optional_integer_key<R>("multiple_of", "1", 1, most_ranks, "a multiple of this", &R::multiple_of),
      flag_key<R>("power_of_two", "1, 2, 4, 8, ...", &R::power_of_two),
      flag_key<R>("equal_hosts", "as many on each host", &R::equal_hosts)};
  return keys;
}

const Keys<SendDraft>& send_keys() {
  using D = SendDraft;
  static const Keys<D> keys{
      node_key<D>(
          "for", forms::entries(number_form(), "{name: count, ...}"),
          "the message is sent for each value of each name, from 0 up to below its count; a count may "
          "use the names before it",
          &D::each),
      node_key<D>("when", number_form(), "it is not sent where this is 0", &D::when),
      std::move(node_key<D>("from", number_form(), "rank that sends", &D::from)).required(),
      std::move(node_key<D>("to", number_form(),
                            "rank that receives; the same rank: it moves the chunk for "
                            "itself, in no time",
                            &D::to))
          .required(),
      std::move(node_key<D>("chunk", number_form(),
                            "the first chunk sent (or slot of scratch, counted on "
                            "behind the chunks)",
                            &D::chunk))
          .required(),
      node_key<D>("count", number_form(), "consecutive chunks; 1 unless given", &D::count),
      node_key<D>("into", number_form(), "the receiver's slot for the first; the same unless given",
                  &D::into),
      node_key<D>("op", forms::exact_name({"reduce", "copy"}),
                  "whether the receiver adds what it gets to what it has, or puts it there; required in "
                  "rounds, and known in the halves",
                  &D::op)};
  return keys;
}

const Keys<RoundDraft>& round_keys() {
  using D = RoundDraft;
  static const Keys<D> keys{
      node_key<D>("repeat", number_form(), "how often; step counts from 0; 1 unless given", &D::repeat),
      std::move(
          node_key<D>("send",
                      forms::either({forms::parts("{from, to, chunk, ...}"),
                                     forms::list(forms::parts("{from, to, chunk, ...}"),
                                                 "a list of mappings {from, to, chunk, ...}", 1)}),
                      "messages that start together, each with what was there before the step; what one rank "
                      "sends another in a step is one message",
                      &D::send)
              .with_parts(texts_of(send_keys())))
          .required()};
  return keys;
}

Key<ScheduleDraft> rounds_key(std::string name, std::string meaning, YamlNode ScheduleDraft::*field) {
  return node_key<ScheduleDraft>(
      std::move(name), forms::list(forms::parts("{repeat, send}"), "a list of mappings {repeat, send}"),
      std::move(meaning), field);
}

const Keys<ScheduleDraft>& schedule_keys() {
  using D = ScheduleDraft;
  static const Keys<D> keys{
      std::move(optional_text_key<D>("schedule", "", "a text", "what it is, in a line", &D::summary))
          .required(),
      mapping_key<D>("ranks", "any number", "how many ranks it is for", requirement_keys(),
                     [](D& draft) -> SumSchedule::Requirement& { return draft.requirement; }),
      node_key<D>("let", forms::entries(number_form(), "{name: number, ...}"),
                  "names for numbers, beside ranks, hosts and ranks_per_host", &D::let),
      std::move(node_key<D>("chunks",
                            forms::either({number_form(),
                                           forms::list(forms::number(0, 1), "a list of their shares", 1)}),
                            "into how many equal chunks the data is cut, or the share of each", &D::chunks))
          .required(),
      node_key<D>("scratch", number_form(), "slots beside the chunks, which begin empty; 0 unless given",
                  &D::scratch),
      rounds_key("rounds", "the whole all-reduce, in order", &D::rounds).with_parts(texts_of(round_keys())),
      rounds_key(
          "reduce_scatter",
          "in place of rounds, with all_gather: rounds after which each rank has its share of the sums",
          &D::reduce_scatter)
          .with_parts(texts_of(round_keys())),
      rounds_key("all_gather", "rounds after which each rank has all sums", &D::all_gather)
          .with_parts(texts_of(round_keys()))};
  return keys;
}

const YamlNode& number_node(const char* text) {
  static const auto make = [](const char* scalar) {
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.scalar = scalar;
    return node;
  };
  static const YamlNode zero = make("0"), one = make("1");
  return *text == '0' ? zero : one;
}

bool is_given(const YamlNode& node) { return node.kind != YamlNode::Kind::null; }

/// A name that formulas can use and that nothing else has.
void check_name(const YamlNode& value, const std::string& name, const std::string& path,
                const std::vector<std::string>& taken) {
  const bool is_word = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
                       std::all_of(name.begin(), name.end(), [](char c) {
                         return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
                       });
  if (!is_word)
    throw InputError(value.key_pos, fmt::format("{}.{}: a name has letters, digits and _ only", path, name));
  if (name == "step" || std::find(taken.begin(), taken.end(), name) != taken.end())
    throw InputError(value.key_pos, fmt::format("{}.{}: there is a '{}' already", path, name, name));
}

std::vector<double> read_shares(const YamlNode& node) {
  std::vector<double> shares;
  for (std::size_t i = 0; i < node.items.size(); ++i)
    shares.push_back(read_number(node.items[i], fmt::format("chunks[{}]", i), 0, 1));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (std::abs(sum - 1) > 1e-9)
    throw InputError(node.pos, fmt::format("chunks: the shares add up to {:.12g}; they have to make 1", sum));
  return shares;
}

}  // namespace

SumSchedule::Term::Term(const YamlNode& node, std::string path, const std::vector<std::string>& names)
    : node_(node), path_(std::move(path)) {
  const bool is_formula = node.kind == YamlNode::Kind::scalar && !node.quoted && node.scalar.starts_with('$');
  if (!is_formula) {
    read_integer(node, path_, 0, YamlMap::max_integer);
    node_.scalar = node.scalar;
  }
  const Formula::Fail fail = [&](const std::string& message) {
    throw InputError(node.pos, fmt::format("{}: '{}' {}", path_, node.scalar, message));
  };
  const std::string& text = node.scalar;
  if (text.size() > 200) fail("is longer than 200 characters");
  const bool in_parentheses = text.starts_with("$(");
  formula_.emplace(text, in_parentheses ? 2 : is_formula ? 1 : 0, fail);
  std::size_t end = formula_->end();
  if (in_parentheses) {
    if (end == text.size() || text[end] != ')') fail("lacks a ')'");
    ++end;
  } else if (is_formula && formula_->names() != std::vector<std::string>{text.substr(1)}) {
    fail("needs parentheses: write $name or $(2*name + 1)");
  }
  if (end != text.size()) fail(fmt::format("has '{}' left over", text.substr(end)));
  for (const std::string& name : formula_->names()) {
    const auto known = std::find(names.begin(), names.end(), name);
    if (known == names.end())
      fail(fmt::format("uses '{}', which nothing defines here{}; known: {}", name, suggestion(name, names),
                       list_of(names)));
    uses_.push_back(static_cast<std::size_t>(known - names.begin()));
  }
}

std::int64_t SumSchedule::Term::value(const std::vector<std::int64_t>& values, std::int64_t least,
                                      std::int64_t most) const {
  constexpr std::size_t most_used = 64;
  std::array<std::int64_t, most_used> used;
  const Formula::Fail fail = [&](const std::string& message) {
    throw InputError(node_.pos, fmt::format("{}: '{}' {}", path_, node_.scalar, message));
  };
  if (uses_.size() > most_used) fail("uses more than 64 names");
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    used[i] = values[uses_[i]];
    if (used[i] == std::numeric_limits<std::int64_t>::min())
      fail(
          "uses ranks_per_host, and the hosts have different numbers of these ranks; write ranks: "
          "{equal_hosts: true}");
  }
  const std::int64_t result = formula_->value({used.data(), uses_.size()}, fail);
  if (result < least || result > most)
    fail(fmt::format("is {}; {} to {} are allowed here", result, least, most));
  return result;
}

SumSchedule::Send SumSchedule::read_send(const YamlNode& node, const std::string& path,
                                         std::optional<bool> adds) const {
  SendDraft draft;
  read_part(send_keys(), YamlMap(node, path), draft);
  Send send;
  send.path = path;
  send.pos = node.pos;
  std::vector<std::string> names = names_;
  names.emplace_back("step");
  if (is_given(draft.each)) {
    YamlMap each(draft.each, path + ".for");
    for (const std::string& name : each.keys()) {
      check_name(each.node(name), name, path + ".for", names);
      send.loops.emplace_back(each.node(name), each.path_of(name), names);
      names.push_back(name);
    }
  }
  const auto term = [&](const YamlNode& value, const char* key) {
    return Term(value, path + "." + key, names);
  };
  if (is_given(draft.when)) send.when = term(draft.when, "when");
  if (is_given(draft.into)) send.into = term(draft.into, "into");
  send.from = term(draft.from, "from");
  send.to = term(draft.to, "to");
  send.chunk = term(draft.chunk, "chunk");
  send.count = is_given(draft.count) ? term(draft.count, "count") : term(number_node("1"), "count");
  if (adds && is_given(draft.op))
    throw InputError(draft.op.pos, fmt::format("{}.op: is known here: a reduce-scatter reduces, and an "
                                               "all-gather copies; leave it out",
                                               path));
  YamlMap map(node, path);
  send.adds = adds.value_or(false) || (!adds && map.choice("op", {"reduce", "copy"}) == 0);
  return send;
}

void SumSchedule::read_rounds(const YamlNode& node, const std::string& path, std::optional<bool> adds,
                              bool is_gather) {
  if (node.kind != YamlNode::Kind::sequence)
    throw InputError(node.pos, fmt::format("{}: expected a list of rounds such as [{{send: {{from: 0, to: 1, "
                                           "chunk: 0}}}}], found {}",
                                           path, describe(node)));
  std::vector<std::string> names = names_;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", path, i);
    RoundDraft draft;
    read_part(round_keys(), YamlMap(node.items[i], at), draft);
    RoundRule rule;
    rule.is_gather = is_gather;
    rule.repeat = Term(is_given(draft.repeat) ? draft.repeat : number_node("1"), at + ".repeat", names);
    if (draft.send.kind == YamlNode::Kind::sequence) {
      for (std::size_t k = 0; k < draft.send.items.size(); ++k)
        rule.sends.push_back(read_send(draft.send.items[k], fmt::format("{}.send[{}]", at, k), adds));
    } else {
      rule.sends.push_back(read_send(draft.send, at + ".send", adds));
    }
    rules_.push_back(std::move(rule));
  }
}

SumSchedule::SumSchedule(const YamlNode& node, std::string name) : name_(std::move(name)), pos_(node.pos) {
  ScheduleDraft draft;
  read_part(schedule_keys(), YamlMap(node, ""), draft);
  summary_ = draft.summary;
  requirement_ = draft.requirement;
  names_ = {"ranks", "hosts", "ranks_per_host"};
  if (is_given(draft.let)) {
    YamlMap let(draft.let, "let");
    for (const std::string& key : let.keys()) {
      check_name(let.node(key), key, "let", names_);
      if (key == "chunks") let.fail(key, "is what the key chunks says; take another name");
      let_.emplace_back(let.node(key), let.path_of(key), names_);
      names_.push_back(key);
    }
  }
  if (draft.chunks.kind == YamlNode::Kind::sequence)
    shares_ = read_shares(draft.chunks);
  else
    chunks_ = Term(draft.chunks, "chunks", names_);
  names_.emplace_back("chunks");
  if (is_given(draft.scratch)) scratch_ = Term(draft.scratch, "scratch", names_);
  has_halves_ = is_given(draft.reduce_scatter) || is_given(draft.all_gather);
  if (has_halves_ == is_given(draft.rounds) || is_given(draft.reduce_scatter) != is_given(draft.all_gather))
    throw InputError(pos_, "a schedule has rounds, or both reduce_scatter and all_gather");
  if (has_halves_) {
    read_rounds(draft.reduce_scatter, "reduce_scatter", true, false);
    read_rounds(draft.all_gather, "all_gather", false, true);
  } else {
    read_rounds(draft.rounds, "rounds", std::nullopt, false);
  }
}

std::shared_ptr<const SumSchedule> SumSchedule::load(const std::string& file) {
  const std::string name = std::filesystem::path(file).filename().string();
  return std::make_shared<SumSchedule>(name.ends_with(".xml") ? read_msccl(file) : load_yaml(file), name);
}

std::vector<KeyText> SumSchedule::key_texts() { return texts_of(schedule_keys()); }

}  // namespace convoy::collectives
