// SPDX-License-Identifier: MIT
#include "sim/base/keys.h"

#include <fmt/format.h>

#include <algorithm>

namespace convoy::inline base {
namespace {

using Variants = std::vector<std::pair<std::string, std::vector<KeyText>>>;

/// "ring, torus: of a cable; switch (1 | 1 to 8): of a NIC": what a key means in the variants that have it.
/// Variants with the same meaning are listed together, with what may be written if that is not `values`.
std::string meanings_by_variant(const Variants& variants, const std::string& name,
                                const std::string& values) {
  std::vector<std::pair<std::string, const KeyText*>> told;  // variants, and the key in each of them
  for (const auto& [variant, keys] : variants) {
    const KeyText* its = find_key(keys, name);
    if (!its) continue;
    const auto alike = std::find_if(told.begin(), told.end(), [&](const auto& other) {
      return other.second->meaning == its->meaning && other.second->values == its->values;
    });
    if (alike == told.end())
      told.emplace_back(variant, its);
    else
      alike->first += ", " + variant;
  }
  std::string text;
  for (const auto& [those, key] : told)
    text += fmt::format("{}{}{}: {}", text.empty() ? "" : "; ", those,
                        key->values == values ? "" : fmt::format(" ({})", key->values), key->meaning);
  return text;
}

}  // namespace

const KeyText* find_key(const std::vector<KeyText>& keys, std::string_view name) {
  const auto it = std::find_if(keys.begin(), keys.end(), [&](const KeyText& k) { return k.name == name; });
  return it == keys.end() ? nullptr : &*it;
}

KeyText key_text(std::string name, std::string otherwise, ValueForm form, std::string meaning) {
  KeyText text;
  text.name = std::move(name);
  text.values = otherwise.empty() ? form.values : fmt::format("{} | {}", otherwise, form.values);
  text.meaning = std::move(meaning);
  if (form.kind == ValueForm::Kind::name) text.choices = form.names;
  text.takes_list = form.kind == ValueForm::Kind::list;
  text.form = std::move(form);
  text.otherwise = std::move(otherwise);
  return text;
}

namespace keys_detail {

KeyText choice_text(std::string name, const std::vector<std::string>& names, std::size_t fallback,
                    std::string meaning) {
  std::string values = names.at(fallback);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (i != fallback) values += " | " + names[i];
  KeyText text = key_text(std::move(name), names[fallback], forms::name(names), std::move(meaning));
  text.values = std::move(values);
  return text;
}

KeyText flag_text(std::string name, bool fallback, std::string meaning) {
  KeyText text = key_text(std::move(name), fallback ? "true" : "false", forms::flag(), std::move(meaning));
  text.values = fallback ? "true | false" : "false | true";
  return text;
}

std::string mapping_text(const std::vector<KeyText>& parts) {
  std::string names;
  for (const KeyText& part : parts) names += (names.empty() ? "" : ", ") + part.name;
  return "{" + names + "}";
}

ValueForm list_of_parts(const std::vector<KeyText>& parts) {
  const std::string mapping = mapping_text(parts);
  return forms::list(forms::parts(mapping), "a list of " + mapping, 1);
}

std::vector<YamlMap> read_list(YamlMap& map, std::string_view key, const std::string& example) {
  const YamlNode& list = map.node(key);
  if (list.kind != YamlNode::Kind::sequence || list.items.empty())
    map.fail(key, fmt::format("expected a list such as {}, found {}", example,
                              list.kind == YamlNode::Kind::sequence ? "an empty list" : describe(list)));
  return map.maps(key);
}

std::string number_text(double value) { return fmt::format("{:g}", value); }

}  // namespace keys_detail

std::vector<KeyText> texts_of_variants(
    const std::vector<std::pair<std::string, std::vector<KeyText>>>& variants) {
  std::vector<KeyText> merged;
  for (const auto& [variant, texts] : variants)
    for (const KeyText& text : texts) {
      if (find_key(merged, text.name)) continue;
      merged.push_back(text);
      const bool same = std::all_of(variants.begin(), variants.end(), [&](const auto& other) {
        const KeyText* its = find_key(other.second, text.name);
        return its && its->meaning == text.meaning && its->values == text.values;
      });
      if (same) continue;
      merged.back().meaning = meanings_by_variant(variants, text.name, text.values);
    }
  return merged;
}

}  // namespace convoy::base
