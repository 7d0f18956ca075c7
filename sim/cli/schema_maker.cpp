// SPDX-License-Identifier: MIT
#include "sim/cli/schema_maker.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/algorithm/string/case_conv.hpp>
#include <boost/algorithm/string/replace.hpp>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "models/model.h"
#include "sim/base/spellings.h"
#include "sim/cli/show_keys.h"
#include "sim/run/experiment.h"
#include "topologies/catalog.h"

namespace convoy::inline cli {
namespace {

using Kind = ValueForm::Kind;

/// How the keys of a mapping are to be taken.
struct Mode {
  bool complete = true;      ///< required keys must be there; false: a base or a sweep may say them
  bool expressions = false;  ///< any value may be an expression of a model's parameters, such as $width
  bool lists = false;        ///< a list of values stands for each of them, as in candidates of strategies

  std::string suffix() const {
    return fmt::format("{}{}{}", complete ? "" : "-changes", expressions ? "-expressions" : "",
                       lists ? "-lists" : "");
  }
};

class SchemaMaker {
 public:
  Json make(const std::string& section, Json schema) {
    schema["allOf"] = Json::array({reference(section, {})});
    schema["definitions"] = std::move(definitions_);
    return schema;
  }

 private:
  /// Refers to a definition, which is made when it is first asked for and may refer to itself.
  template <class Make>
  Json defined(const std::string& name, const Make& make) {
    if (!definitions_.contains(name)) {
      definitions_[name] = nullptr;
      Json made = make();
      definitions_[name] = std::move(made);
    }
    return {{"$ref", "#/definitions/" + name}};
  }

  Json reference(const std::string& section, Mode mode) {
    if (section == "layer" || section == "model-file") mode = {true, true, false};
    if (section == "strategies") return reference("strategy", {true, false, true});
    if (section == "named server") return named_server();
    return defined(section + mode.suffix(), [&] {
      if (section == "sweep") return sweep();
      if (section == "experiment") return experiment();
      if (section == "model-file") return mapping(key_section("model").variants[2], {});
      return of_section(key_section(section), mode);
    });
  }

  /// A server in a list, where nothing but its own key says its name.
  Json named_server() {
    return {
        {"allOf", Json::array({reference("described-server", {}),
                               {{"required", Json::array({"name"})},
                                {"properties", {{"name", {{"type", {"string", "number", "boolean"}}}}}}}})}};
  }

  Json of_section(const KeySection& section, Mode mode) {
    if (!section.derived) return mapping(section, mode);
    KeySection changes = section;
    changes.keys.push_back(key_text("base", "",
                                    forms::text("a name", section.name == "device" ? "devices" : "servers"),
                                    "of what it is but for these keys"));
    Json of_changes = mapping(changes, changes_only);
    of_changes["patternProperties"] = Json{{"\\.", Json::object()}};
    if (!mode.complete) return of_changes;
    return if_has("base", std::move(of_changes), mapping(section, mode));
  }

  /// @param then where a mapping has the key, with a value @param otherwise where it has not
  static Json if_has(const std::string& key, Json then, Json otherwise) {
    return {{"if",
             {{"type", "object"},
              {"required", Json::array({key})},
              {"properties", {{key, {{"not", {{"type", "null"}}}}}}}}},
            {"then", std::move(then)},
            {"else", std::move(otherwise)}};
  }

  Json mapping(const KeySection& section, Mode mode) {
    if (section.variants.empty()) return object(section.keys, mode, section);
    if (section.decided_by.empty()) return mode.complete ? by_presence(section, mode) : merged(section, mode);
    return by_value(section, mode);
  }

  Json object(const std::vector<KeyText>& keys, Mode mode, const KeySection& section) {
    Json properties = Json::object(), required = Json::array();
    for (const KeyText& key : keys) {
      add_property(properties[key.name], property(key, keys, mode));
      const bool listed = std::find(required.begin(), required.end(), Json(key.name)) != required.end();
      if (key.required && mode.complete && !listed) required.push_back(key.name);
    }
    Json schema{{"type", "object"}};
    if (section.further) {
      const Json further = any_of(alternatives(*section.further, {}, keys, mode));
      if (section.further_names.empty()) schema["additionalProperties"] = further;
      for (const std::string& name : section.further_names)
        if (!properties.contains(name)) properties[name] = further;
    }
    if (!schema.contains("additionalProperties")) schema["additionalProperties"] = false;
    schema["properties"] = std::move(properties);
    if (!required.empty()) schema["required"] = std::move(required);
    return schema;
  }

  /// Keys of a section that all of its variants have.
  static std::vector<KeyText> common_keys(const KeySection& section) {
    std::vector<KeyText> common;
    for (const KeyText& key : section.keys)
      if (std::none_of(section.variants.begin(), section.variants.end(),
                       [&](const KeySection& variant) { return find_key(variant.keys, key.name); }))
        common.push_back(key);
    return common;
  }

  static std::vector<KeyText> joined(std::vector<KeyText> keys, const std::vector<KeyText>& more) {
    keys.insert(keys.end(), more.begin(), more.end());
    return keys;
  }

  /// A key that several variants have may be what any of them takes.
  static void add_property(Json& property, Json of_key) {
    if (property.is_null() || property == of_key) {
      property = std::move(of_key);
      return;
    }
    if (property.contains("description")) property = {{"anyOf", Json::array({std::move(property)})}};
    Json& alternatives = property["anyOf"];
    if (std::find(alternatives.begin(), alternatives.end(), of_key) == alternatives.end())
      alternatives.push_back(std::move(of_key));
  }

  /// The keys of all variants, for a mapping that does not say which it is.
  Json merged(const KeySection& section, Mode mode, const std::vector<KeyText>& outer = {}) {
    return defined(section.name + mode.suffix() + "-of-any-kind", [&] {
      KeySection all = section;
      all.keys = joined(outer, common_keys(section));
      for (const KeySection& variant : section.variants) {
        for (const KeyText& key : variant.keys) {
          all.keys.push_back(key);
          all.keys.back().required = false;
        }
        if (variant.further) all.further = forms::anything("");
      }
      return object(all.keys, mode, all);
    });
  }

  Json by_value(const KeySection& section, Mode mode, std::vector<KeyText> outer = {}) {
    const std::vector<KeyText> common = joined(std::move(outer), common_keys(section));
    const KeyText& decides = *find_key(section.keys, section.decided_by);
    const std::vector<std::string> patterns =
        decides.form.spelled ? spelling_patterns(decides.form.names) : std::vector<std::string>{};
    Json schema{{"type", "object"}, {"properties", {{decides.name, property(decides, {}, mode)}}}};
    if (mode.complete) schema["required"] = Json::array({decides.name});
    Json rules = Json::array();
    for (const KeySection& variant : section.variants) {
      const auto row = static_cast<std::size_t>(
          std::find(decides.form.names.begin(), decides.form.names.end(), variant.name) -
          decides.form.names.begin());
      const Json is_it = any_of(
          of_names(std::span(decides.form.names).subspan(row, 1),
                   patterns.empty() ? std::span<const std::string>{} : std::span(patterns).subspan(row, 1)));
      rules.push_back(
          {{"if", {{"properties", {{decides.name, is_it}}}, {"required", Json::array({decides.name})}}},
           {"then", variant.decided_by.empty() ? object(joined(common, variant.keys), mode, variant)
                                               : by_value(variant, mode, common)}});
    }
    const Json undecided = {{"not",
                             {{"properties", {{decides.name, {{"not", {{"type", "array"}}}}}}},
                              {"required", Json::array({decides.name})}}}};
    if (!mode.complete || mode.lists)
      rules.push_back({{"if", undecided}, {"then", merged(section, mode, common)}});
    schema["allOf"] = std::move(rules);
    return schema;
  }

  Json by_presence(const KeySection& section, Mode mode) {
    Json schema;
    for (std::size_t v = section.variants.size(); v-- > 0;) {
      const KeySection& variant = section.variants[v];
      Json of_variant = mapping(variant, mode);
      if (v + 1 == section.variants.size())
        schema = std::move(of_variant);
      else
        schema = if_has(variant.name, std::move(of_variant), std::move(schema));
    }
    return schema;
  }

  /// The schema of a key's value, with its description and default.
  Json property(const KeyText& key, const std::vector<KeyText>& siblings, Mode mode) {
    std::string meaning = boost::replace_all_copy(key.meaning, "\n", " ");
    std::vector<Json> values = alternatives(key.form, key, siblings, mode);
    if (mode.lists) {
      Json list{{"type", "array"}, {"minItems", 1}, {"items", any_of(values)}};
      values.push_back(std::move(list));
    }
    if (mode.expressions) add_if_new(values, {{"type", "string"}, {"pattern", "^\\$"}});
    if (!key.required || !mode.complete) add_if_new(values, {{"type", "null"}});
    Json schema;
    const std::optional<Json> otherwise = default_of(key);
    schema["description"] = otherwise || key.otherwise.empty() || key.otherwise == "none"
                                ? std::move(meaning)
                                : fmt::format("{} (without it: {})", meaning, key.otherwise);
    if (otherwise) schema["default"] = *otherwise;
    schema["anyOf"] = std::move(values);
    return schema;
  }

  /// What is written out for a key that is left out, where a value can be.
  static std::optional<Json> default_of(const KeyText& key) {
    const ValueForm& form = key.form;
    std::string why;
    if (form.kind == Kind::name &&
        std::find(form.names.begin(), form.names.end(), key.otherwise) != form.names.end())
      return plain_value(key.otherwise);
    if (const auto number = parse_number(key.otherwise);
        number && (form.kind == Kind::whole || form.kind == Kind::number || form.kind == Kind::either))
      return *number == std::floor(*number) ? Json(static_cast<std::int64_t>(*number)) : Json(*number);
    if (form.kind == Kind::quantity && parse_quantity(key.otherwise, form.dimension, why))
      return key.otherwise;
    return std::nullopt;
  }

  std::vector<Json> alternatives(const ValueForm& form, const KeyText& key,
                                 const std::vector<KeyText>& siblings, Mode mode) {
    const auto inner = [&] {
      std::vector<Json> values = alternatives(form.inner.front(), key, siblings, mode);
      if (mode.expressions) add_if_new(values, {{"type", "string"}, {"pattern", "^\\$"}});
      return any_of(std::move(values));
    };
    switch (form.kind) {
      case Kind::anything:
        return {Json::object()};
      case Kind::text: {
        std::vector<Json> values;
        if (!form.section.empty())
          values.push_back(defined("names-of-" + form.section, [&] {
            return Json{{"enum", names_to_show(form.section)}};
          }));
        values.push_back({{"type", {"string", "number", "boolean"}}});
        return values;
      }
      case Kind::name:
        if (!form.spelled) return of_names(form.names, {});
        return {defined(fmt::format("one-of-{}", fmt::join(form.names, "-")),
                        [&] { return any_of(of_names(form.names, spelling_patterns(form.names))); })};
      case Kind::whole:
        return {bounded("integer", form)};
      case Kind::number:
        return {bounded("number", form)};
      case Kind::quantity:
        return {defined(quantity_name(form), [&] { return any_of(of_quantity(form)); })};
      case Kind::list: {
        Json list{{"type", "array"}, {"items", inner()}};
        if (form.min > 0) list["minItems"] = static_cast<std::int64_t>(form.min);
        if (form.max < std::numeric_limits<double>::max())
          list["maxItems"] = static_cast<std::int64_t>(form.max);
        return {std::move(list)};
      }
      case Kind::parts:
        return {object(key.parts, mode, {})};
      case Kind::before:
        return {object(keys_before(key, siblings), mode, {})};
      case Kind::entries:
        return {entries(form, key, siblings, mode)};
      case Kind::section:
        if (!form.changes) return {reference(form.section, mode)};
        return {{{"allOf",
                  Json::array(
                      {reference(form.section, changes_only),
                       {{"not", {{"required", Json::array({key_section(form.section).decided_by})}}}}})}}};
      case Kind::either: {
        std::vector<Json> values;
        for (const ValueForm& each : form.inner)
          for (Json& value : alternatives(each, key, siblings, mode)) add_if_new(values, std::move(value));
        return values;
      }
    }
    return {};
  }

  static std::vector<KeyText> keys_before(const KeyText& key, const std::vector<KeyText>& siblings) {
    std::vector<KeyText> before;
    for (const KeyText& sibling : siblings) {
      if (sibling.name == key.name) break;
      if (!sibling.required && sibling.form.kind != Kind::before) before.push_back(sibling);
    }
    return before;
  }

  Json entries(const ValueForm& form, const KeyText& key, const std::vector<KeyText>& siblings, Mode mode) {
    const ValueForm& value = form.inner.front();
    // The keys of an entry of any name, which `convoy show keys` lists under a word in capitals.
    const bool any_name =
        key.parts.size() == 1 && boost::algorithm::to_upper_copy(key.parts[0].name) == key.parts[0].name;
    Json schema{{"type", "object"},
                {"additionalProperties",
                 any_of(alternatives(value, any_name ? key.parts.front() : key, siblings, mode))}};
    // An entry by a name of the catalogue is that with what differs.
    if (value.kind != Kind::section || (value.section != "device" && value.section != "server"))
      return schema;
    const Json changes = reference(value.section, changes_only);
    for (const std::string& name : names_to_show(value.section + "s")) schema["properties"][name] = changes;
    return schema;
  }

  /// What a sweep may set: parts of the experiment by dotted paths, each with a list of values.
  Json sweep() {
    Axes axes;
    const KeySection& experiment = key_section("experiment");
    for (const std::string& part : sweepable_parts()) {
      const KeyText& key = *find_key(experiment.keys, part);
      add_axes(part, key, property(key, {}, changes_only), axes);
    }
    Json schema{{"type", "object"}, {"properties", std::move(axes.properties)}};
    for (const std::string& path : axes.open)
      schema["patternProperties"]["^" + boost::replace_all_copy(path, ".", "\\.") + "\\."] =
          Json{{"type", "array"}, {"minItems", 1}};
    schema["additionalProperties"] = false;
    return schema;
  }

  static constexpr Mode changes_only{.complete = false, .expressions = false, .lists = false};

  struct Axes {
    Json properties = Json::object();
    std::vector<std::string> open;  ///< behind them come indices of lists, or names that the document chooses
  };

  void add_axes(const std::string& path, const KeyText& key, Json value, Axes& axes) {
    if (axes.properties.contains(path)) return;
    axes.properties[path] = {{"type", "array"}, {"minItems", 1}, {"items", std::move(value)}};
    const std::vector<ValueForm> forms =
        key.form.kind == Kind::either ? key.form.inner : std::vector{key.form};
    for (const ValueForm& form : forms) {
      if (form.kind == Kind::parts)
        for (const KeyText& part : key.parts)
          add_axes(path + "." + part.name, part, property(part, key.parts, changes_only), axes);
      if (form.kind == Kind::section) add_axes_of_section(path, form.section, axes);
      if (form.kind == Kind::list || form.kind == Kind::entries) axes.open.push_back(path);
    }
  }

  void add_axes_of_section(const std::string& path, const std::string& name, Axes& axes) {
    // What may hold itself ends somewhere.
    if (name == "strategies" || (name == "strategy" && path.find('.') != std::string::npos)) {
      axes.open.push_back(path);
      return;
    }
    const KeySection& section = key_section(name);
    std::string place = reference(name, changes_only)["$ref"];
    std::vector<KeyText> keys = section.keys;
    bool open = section.derived;
    if (!section.variants.empty()) {
      place = merged(section, changes_only)["$ref"];
      keys = common_keys(section);
      for (const KeySection& variant : section.variants) {
        keys = joined(std::move(keys), variant.keys);
        open = open || variant.further;
        for (const KeyText& key :
             variant.keys)  // a list in one kind may be a number in another (cluster.nodes)
          if (key.form.kind == Kind::list || key.form.kind == Kind::entries)
            axes.open.push_back(path + "." + key.name);
      }
    }
    if (open) axes.open.push_back(path);
    for (const KeyText& key : keys)
      add_axes(path + "." + key.name, key, {{"$ref", place + "/properties/" + key.name}}, axes);
  }

  /// What the sweep sets is not looked at, and where it sets a part of something the rest need not be
  /// complete.
  Json experiment() {
    const KeySection& section = key_section("experiment");
    std::vector<KeyText> keys = section.keys;
    const std::vector<std::string> swept = sweepable_parts();
    Json rules = Json::array();
    for (KeyText& key : keys) {
      if (std::find(swept.begin(), swept.end(), key.name) == swept.end()) continue;
      const auto if_sweep = [](Json condition, Json then, Json otherwise) {
        condition["type"] = "object";
        return Json{
            {"if", {{"properties", {{"sweep", std::move(condition)}}}, {"required", Json::array({"sweep"})}}},
            {"then", std::move(then)},
            {"else", std::move(otherwise)}};
      };
      Json whole{{"properties", {{key.name, property(key, keys, {})}}}};
      if (key.required) whole["required"] = Json::array({key.name});
      const Json changes{{"properties", {{key.name, property(key, keys, changes_only)}}}};
      const Json no_part{{"pattern", fmt::format("^(?!{}\\.)", key.name)}};
      rules.push_back(if_sweep({{"required", Json::array({key.name})}}, Json::object(),
                               if_sweep({{"not", {{"propertyNames", no_part}}}}, changes, std::move(whole))));
      key.form = forms::anything("");
      key.required = false;
    }
    Json schema = object(keys, {}, section);
    schema["allOf"] = std::move(rules);
    return schema;
  }

  Json definitions_ = Json::object();
};

}  // namespace

Json schema_of_section(const std::string& section, Json begin) {
  return SchemaMaker().make(section, std::move(begin));
}

}  // namespace convoy::cli
