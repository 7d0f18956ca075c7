// SPDX-License-Identifier: MIT
#include "sim/studies/regions/study_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/base/key_parts.h"
#include "sim/base/names.h"
#include "sim/base/quantity.h"
#include "sim/studies/claims/claim.h"

namespace convoy::inline studies {
namespace {

constexpr double log_from_ratio = 10;  // ranges this wide are even in the logarithm unless told otherwise

std::string checked_name(const std::string& name, const SourcePos& pos, const std::string& what) {
  const auto letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) ||
      !std::all_of(name.begin(), name.end(), letter))
    throw InputError(pos, fmt::format("{}: '{}' cannot stand in an expression; names have letters, digits "
                                      "and '_', and begin with no digit",
                                      what, name));
  return name;
}

/// Whether a path is one of the experiment's that may change from point to point.
void check_path(const std::string& path, const SourcePos& pos, const std::string& key) {
  const std::string step = path.substr(0, path.find('.'));
  const std::vector<std::string>& parts = sweepable_parts();
  if (std::find(parts.begin(), parts.end(), step) == parts.end())
    throw InputError(pos, fmt::format("{}: '{}' is not a path that can be set; it begins with one of {}{}",
                                      key, path, list_of(parts), suggestion(step, parts)));
}

void read_sets(YamlMap& map, StudyInput& input) {
  const YamlNode* node = map.find("sets");
  if (!node) return;
  if (node->kind == YamlNode::Kind::sequence)
    for (const YamlNode& item : node->items) {
      input.sets.push_back(read_text(item, map.path_of("sets")));
      check_path(input.sets.back(), item.pos, map.path_of("sets"));
    }
  else
    check_path(input.sets.emplace_back(map.text("sets")), node->pos, map.path_of("sets"));
}

/// The number, and the unit that stands behind it.
std::pair<double, std::string> range_end(const YamlMap& map, const YamlNode& node) {
  const std::optional<double> number = number_of(node);
  if (!number)
    throw InputError(node.pos, fmt::format("{}: expected a number or a quantity, found {}",
                                           map.path_of("range"), describe(node)));
  const std::size_t unit = node.scalar.find_first_not_of("0123456789.eE+-");
  return {*number, unit == std::string::npos ? "" : node.scalar.substr(unit)};
}

void read_range(YamlMap& map, StudyInput& input) {
  const YamlNode* node = map.find("range");
  if (!node) return;
  if (node->kind != YamlNode::Kind::sequence || node->items.size() != 2)
    map.fail("range", "expected its two ends, such as [1Gbps, 100Gbps]");
  const auto [low, unit] = range_end(map, node->items[0]);
  const double high = range_end(map, node->items[1]).first;
  if (dimension_of(node->items[0]) != dimension_of(node->items[1]))
    map.fail("range",
             "its ends are of different dimensions; write both with a unit such as 1Gbps, or both without");
  if (low >= high) map.fail("range", "its second end has to be more than its first");
  input.low = low;
  input.high = high;
  if (!unit.empty()) {
    YamlNode one;
    one.kind = YamlNode::Kind::scalar;
    one.scalar = "1" + unit;
    input.unit = unit;
    input.unit_size = number_of(one).value_or(1);
  }
  input.log = low > 0 && high / low >= log_from_ratio;
  input.whole = unit.empty() && low == std::floor(low) && high == std::floor(high);
}

void read_values(YamlMap& map, StudyInput& input) {
  const YamlNode* node = map.find("values");
  if (!node) return;
  if (node->kind != YamlNode::Kind::sequence || node->items.empty())
    map.fail("values", "expected a list of values such as [resnet50, vgg16]");
  std::set<std::string> seen;
  for (const YamlNode& value : node->items)
    if (!seen.insert(fingerprint(value)).second)
      throw InputError(value.pos, fmt::format("{}: {} stands twice", map.path_of("values"), to_flow(value)));
  input.values = node->items;
}

void read_scale(YamlMap& map, StudyInput& input) {
  if (!map.has("scale")) return;
  input.log = map.choice("scale", {"linear", "log"}) == 1;
  if (input.log && input.low <= 0) map.fail("scale", "log needs a range above 0");
}

void read_whole(YamlMap& map, StudyInput& input) {
  if (!map.has("whole")) return;
  input.whole = map.flag_or("whole", input.whole);
  if (input.whole &&
      (!input.unit.empty() || input.low != std::floor(input.low) || input.high != std::floor(input.high)))
    map.fail("whole", "the ends of the range are no whole numbers");
}

const Keys<StudyInput>& input_keys_of_study() {
  using I = StudyInput;
  static const Keys<I> keys{
      custom_key<I>("sets", "none: `$NAME` in settings alone",
                    forms::either({forms::text("a dotted path"),
                                   forms::list(forms::text("a dotted path"), "a list of paths", 1)}),
                    "of the experiment, that get its value", &read_sets),
      list_key<I>("range", "none",
                  forms::list(forms::anything("a number or quantity"), "[least, greatest]", 2),
                  "that it may have; whole numbers where both ends are", &read_range),
      list_key<I>("values", "none", forms::list(forms::anything("any value"), "a list", 1),
                  "that it may have, in place of a range", &read_values),
      custom_key<I>("scale", "log where the ends differ tenfold", forms::name({"linear", "log"}),
                    "in which a range is evenly tried", &read_scale),
      custom_key<I>("whole", "where both ends are", forms::flag(), "only whole numbers of a range",
                    &read_whole),
      optional_text_key<I>("because", "", "a sentence", "why it may have these values, and no others",
                           &I::because)
          .required()};
  return keys;
}

StudyInput read_input(YamlMap map, const std::string& name) {
  StudyInput input;
  input.name = name;
  read_part(input_keys_of_study(), map, input);
  if (map.has("range") == map.has("values"))
    map.fail("expected either 'range', two ends, or 'values', a list");
  if (!input.is_range() && (map.has("scale") || map.has("whole")))
    map.fail(map.has("scale") ? "scale" : "whole", "is of a range, and this is a list");
  return input;
}

void read_inputs(YamlMap& map, StudySpec& spec) {
  if (!map.has("inputs")) map.fail("lacks 'inputs', what is not known, each with its values");
  YamlMap inputs = map.map("inputs");
  for (const std::string& name : inputs.keys()) {
    checked_name(name, inputs.node(name).key_pos, "study.inputs");
    spec.inputs.push_back(read_input(inputs.map(name), name));
  }
  if (spec.inputs.empty()) map.fail("inputs", "expected at least one input");
}

StudySettings settings_of(YamlMap map) {
  StudySettings settings;
  for (const std::string& path : map.keys()) {
    check_path(path, map.node(path).key_pos, map.path());
    settings.emplace_back(path, map.node(path));
  }
  return settings;
}

void read_settings(YamlMap& map, StudySpec& spec) {
  if (map.has("set")) spec.settings = settings_of(map.map("set"));
}

void read_variants(YamlMap& map, StudySpec& spec) {
  if (!map.has("variants")) map.fail("lacks 'variants', experiments by name whose results claims name");
  YamlMap variants = map.map("variants");
  for (const std::string& name : variants.keys()) {
    checked_name(name, variants.node(name).key_pos, "study.variants");
    spec.variants.push_back({name, settings_of(variants.map(name))});
  }
  if (spec.variants.empty()) map.fail("variants", "expected at least one variant");
}

template <std::optional<double> StudyClaim::*field>
void read_bound(YamlMap& map, StudyClaim& claim, const char* key) {
  if (map.has(key)) claim.*field = map.number(key, -std::numeric_limits<double>::max());
}

const Keys<StudyClaim>& claim_keys_of_study() {
  using C = StudyClaim;
  static const Keys<C> keys{
      optional_text_key<C>("claim", "", "a sentence", "what it says", &C::claim).required(),
      custom_key<C>("value", "", forms::text("an expression"),
                    "over `VARIANT.FIGURE` and inputs, in SI units: + - * / ^ ( ) min max && || < <= == ?:",
                    [](YamlMap& map, C& claim) {
                      claim.value = {map.text("value"), map.pos("value")};
                    })
          .told_required(),
      custom_key<C>("at_least", "none", forms::number(-std::numeric_limits<double>::max()).said("a number"),
                    "accepted of the value",
                    [](YamlMap& map, C& claim) { read_bound<&C::low>(map, claim, "at_least"); }),
      custom_key<C>("at_most", "none", forms::number(-std::numeric_limits<double>::max()).said("a number"),
                    "accepted of the value; one of the two is required",
                    [](YamlMap& map, C& claim) { read_bound<&C::high>(map, claim, "at_most"); }),
      custom_key<C>("published", "none", forms::number(-std::numeric_limits<double>::max()).said("a number"),
                    "what somebody states, shown beside ours",
                    [](YamlMap& map, C& claim) { read_bound<&C::published>(map, claim, "published"); })};
  return keys;
}

void read_claims_of_study(YamlMap& map, StudySpec& spec) {
  if (!map.has("claims")) map.fail("lacks 'claims', a list of {claim, value, at_least or at_most}");
  for (YamlMap& item : map.maps("claims")) {
    StudyClaim& claim = spec.claims.emplace_back();
    read_part(claim_keys_of_study(), item, claim);
    if (!claim.low && !claim.high) item.fail("expected at_least or at_most, between which the claim holds");
    if (claim.low && claim.high && *claim.low > *claim.high)
      item.fail("at_least", "is more than at_most, so that no value is accepted");
  }
  if (spec.claims.empty()) map.fail("claims", "expected at least one claim");
}

void read_possible_if(YamlMap& map, StudySpec& spec) {
  const YamlNode* node = map.find("possible_if");
  if (!node) return;
  if (node->kind != YamlNode::Kind::sequence) map.fail("possible_if", "expected a list of expressions");
  for (const YamlNode& item : node->items)
    spec.possible_if.push_back({read_text(item, map.path_of("possible_if")), item.pos});
}

void read_grid(YamlMap& map, StudySpec& spec) {
  if (!map.has("grid")) return;
  if (map.has("points")) map.fail("grid", "takes the place of 'points'; write one of them");
  spec.grid = map.integer("grid", 1, 1000);
}

const Keys<StudySpec>& study_key_table() {
  using S = StudySpec;
  const auto settings_form = [] {
    return forms::entries(forms::anything("any value"), "{path: value, ...}");
  };
  static const Keys<S> keys{
      custom_key<S>("inputs", "", forms::entries(forms::parts("{range | values, because}"), "{NAME: {...}}"),
                    "what is not known; names stand in expressions and, as `$NAME`, in settings",
                    &read_inputs)
          .told_required()
          .with_parts({[] {
            std::vector<KeyText> parts = texts_of(input_keys_of_study());
            KeyText text = key_text("NAME", "", forms::parts(keys_detail::mapping_text(parts)),
                                    "of an input by its name");
            text.parts = std::move(parts);
            return text;
          }()}),
      custom_key<S>("set", "none", settings_form(),
                    "dotted paths of the experiment; `$NAME` and `$(2*NAME)` are inputs", &read_settings),
      custom_key<S>("variants", "", forms::entries(settings_form(), "{NAME: {path: value, ...}}"),
                    "experiments that differ in these settings, whose results claims compare", &read_variants)
          .told_required(),
      list_key<S>("claims", "", keys_detail::list_of_parts(texts_of(claim_keys_of_study())),
                  "for which the region of inputs is asked", &read_claims_of_study)
          .told_required()
          .with_parts(texts_of(claim_keys_of_study())),
      list_key<S>("possible_if", "none", forms::list(forms::text("an expression"), "a list of expressions"),
                  "each has to be other than 0; points where one is 0 count for nothing", &read_possible_if),
      integer_key<S>("points", 16, 100'000, "that are sampled, rounded to eight equal parts", &S::points),
      custom_key<S>("grid", "none", forms::whole(1, 1000),
                    "so many values of every range, all combinations, in place of a sample", &read_grid),
      integer_key<S>("seed", 0, YamlMap::max_integer, "of the sample", &S::seed),
      integer_key<S>("refine", 0, 40, "halvings by which borders are found along each input", &S::refine)};
  return keys;
}

/// Every name of an expression is an input that is a number, or a figure of a variant.
void check_expression(const StudyExpression& expression, const StudySpec& spec) {
  std::vector<std::string> known;
  for (const StudyVariant& variant : spec.variants) known.push_back(variant.name);
  for (const StudyInput& input : spec.inputs) known.push_back(input.name);
  evaluate_expression(expression.text, expression.pos, [&](const std::string& name) {
    const std::size_t dot = name.find('.');
    const std::string first = name.substr(0, dot);
    const auto wrong = [&](const std::string& why) -> InputError {
      return InputError(expression.pos, fmt::format("'{}': {}", expression.text, why));
    };
    if (dot != std::string::npos) {
      for (const StudyVariant& variant : spec.variants)
        if (variant.name == first) return 1.0;
      throw wrong(fmt::format("there is no variant '{}'{}; names here are {}", first,
                              suggestion(first, known), list_of(known)));
    }
    for (const StudyInput& input : spec.inputs)
      if (input.name == name) {
        for (std::size_t level = 0; level < input.values.size(); ++level)
          if (!number_of(input.values[level]))
            throw wrong(fmt::format("the input '{}' has values that are no numbers", name));
        return 1.0;
      }
    for (const StudyVariant& variant : spec.variants)
      if (variant.name == name)
        throw wrong(
            fmt::format("'{}' is a variant; write one of its figures, such as {}.step_time_s", name, name));
    throw wrong(fmt::format("there is no input or variant '{}'{}; names here are {}", name,
                            suggestion(name, known), list_of(known)));
  });
}

/// Whether `$NAME`, or an expression with it, stands anywhere in a value.
bool mentions(const YamlNode& node, const std::string& name) {
  if (node.kind == YamlNode::Kind::scalar && !node.quoted && node.scalar.starts_with('$')) {
    const std::string& text = node.scalar;
    const auto in_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
      const std::size_t end = at + name.size();
      if (!in_name(text[at - 1]) && (end == text.size() || !in_name(text[end]))) return true;
    }
  }
  return std::any_of(node.items.begin(), node.items.end(),
                     [&](const YamlNode& item) { return mentions(item, name); }) ||
         std::any_of(node.entries.begin(), node.entries.end(),
                     [&](const auto& entry) { return mentions(entry.second, name); });
}

bool mentioned_in(const StudySettings& settings, const std::string& name) {
  return std::any_of(settings.begin(), settings.end(),
                     [&](const auto& setting) { return mentions(setting.second, name); });
}

void find_dependences(const StudySpec& spec, StudyClaim& claim) {
  std::set<std::string> named;
  evaluate_expression(claim.value.text, claim.value.pos, [&](const std::string& name) {
    named.insert(name.substr(0, name.find('.')));
    return 1.0;
  });
  for (const StudyInput& input : spec.inputs) {
    bool depends = named.contains(input.name);
    for (const StudyVariant& variant : spec.variants)
      if (named.contains(variant.name))
        depends = depends || !input.sets.empty() || mentioned_in(spec.settings, input.name) ||
                  mentioned_in(variant.settings, input.name);
    claim.depends_on.push_back(depends);
  }
}

}  // namespace

StudySpec read_study(const Experiment& experiment) {
  const YamlNode* node = experiment.study();
  if (!node)
    throw InputError(experiment.tree().pos,
                     "study: is missing; `convoy study` takes an experiment that says for which inputs it "
                     "asks (docs/studies.md)");
  if (experiment.swept())
    throw InputError(
        node->key_pos,
        "study: an experiment with a study has no sweep; make what is swept an input of the study");
  StudySpec spec;
  read_part(study_key_table(), YamlMap(*node, "study"), spec);
  for (const StudyClaim& claim : spec.claims) check_expression(claim.value, spec);
  for (const StudyExpression& expression : spec.possible_if) check_expression(expression, spec);
  for (StudyClaim& claim : spec.claims) find_dependences(spec, claim);
  return spec;
}

KeySection study_keys() {
  return {"study", "for which inputs claims hold, which `convoy study` answers", texts_of(study_key_table())};
}

}  // namespace convoy::studies
