// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/base/value_form.h"
#include "sim/base/yaml_map.h"

namespace convoy::inline base {

/// The name of a key of a mapping, what may be written and what it means. `convoy show`, the reference pages
/// and everything that looks up keys read it. The factories below make it together with the function that
/// reads the key.
struct KeyText {
  std::string name;                       ///< as it is written
  std::string values;                     ///< what may be written; the default comes first
  std::string meaning;                    ///< for people, without a full stop
  std::vector<std::string> choices = {};  ///< all names, if the value is one of several names
  bool takes_list = false;                ///< its value is always a list, not one of several values to try
  std::vector<KeyText> parts = {};  ///< the keys of its value, if that is a mapping or a list of mappings
  ValueForm form = {};              ///< what may be written, for schemas
  std::string otherwise = {};       ///< what applies without the key; "" where nothing does
  bool required = false;            ///< wherever the mapping is written
};

/// @param otherwise what applies without the key: "none", "25MiB", "the device's"; "" for a required key
KeyText key_text(std::string name, std::string otherwise, ValueForm form, std::string meaning);

/// The key of that name, or nullptr if there is none.
const KeyText* find_key(const std::vector<KeyText>& keys, std::string_view name);

/// The keys of a mapping under the name by which `convoy show keys` lists it.
struct KeySection {
  std::string name;           ///< "training"; of a variant the value or the key that decides for it
  std::string summary;        ///< one line
  std::vector<KeyText> keys;  ///< those of all variants merged, where there are any
  /// The key whose value decides which variant a mapping is ("kind"); "": the first variant whose name is a
  /// key of the mapping, else the last.
  std::string decided_by = {};
  std::vector<KeySection> variants = {};  ///< each with all keys that it takes
  /// Further keys, whose names the document chooses, have values of this form; nothing: there are none.
  std::optional<ValueForm> further = {};
  std::vector<std::string> further_names = {};  ///< all names that those keys may have; none: any
  bool derived = false;  ///< may be {base: NAME} with what differs, by dotted paths too
};

/// A key of a mapping that is read into `Options`. It is defined once, both for reading YAML and for the
/// documentation. Defaults are those of a fresh `Options{}`.
template <class Options>
struct Key {
  KeyText text;  ///< its documentation
  /// Reads the key from the mapping into the options. @throws InputError
  std::function<void(YamlMap& map, Options& options)> read;

  /// Also stores the position of the value (of the mapping, if the key is absent), for later errors.
  template <class Field>
  Key at(Field field) && {
    read = [inner = std::move(read), name = text.name, field](YamlMap& map, Options& options) {
      std::invoke(field, options) = map.pos(name);
      inner(map, options);
    };
    return std::move(*this);
  }

  /// Also stores whether the key is present.
  template <class Field>
  Key given(Field field) && {
    read = [inner = std::move(read), name = text.name, field](YamlMap& map, Options& options) {
      std::invoke(field, options) = map.has(name);
      inner(map, options);
    };
    return std::move(*this);
  }

  /// The key must be present: it has no default.
  /// @param names its possible values, for the error, if the table does not list them as `choices`
  Key required(std::vector<std::string> (*names)() = nullptr) && {
    text.required = true;
    text.meaning += "; required";
    read = [inner = std::move(read), name = text.name, choices = text.choices, names](YamlMap& map,
                                                                                      Options& options) {
      if (map.node(name, names != nullptr ? names() : choices).kind == YamlNode::Kind::null)
        map.fail(name, "expected a value, found nothing");
      inner(map, options);
    };
    return std::move(*this);
  }

  /// The same of a key whose own reader says that it is missing.
  Key told_required() && {
    text.required = true;
    text.meaning += "; required";
    return std::move(*this);
  }

  /// Documents the keys of the mapping that the value is, or may be.
  Key with_parts(std::vector<KeyText> parts) && {
    text.parts = std::move(parts);
    return std::move(*this);
  }

  /// The key is an error unless `applies` to the options as the keys before it have set them.
  /// @param with "method: hypergraph"; the meaning begins with it
  Key only(std::string with, bool (*applies)(const Options&)) && {
    text.meaning = "with " + with + ", " + text.meaning;
    text.required = false;
    read = [inner = std::move(read), name = text.name, with = std::move(with), applies](YamlMap& map,
                                                                                        Options& options) {
      if (!applies(options)) {
        if (map.has(name)) map.fail(name, "goes with " + with + " only; leave it out");
      } else {
        inner(map, options);
      }
    };
    return std::move(*this);
  }
};

template <class Options>
using Keys = std::vector<Key<Options>>;

/// Reads every key, in the order of the table. @throws InputError
template <class Options>
void read_keys(const Keys<Options>& keys, YamlMap& map, Options& options) {
  for (const Key<Options>& key : keys) key.read(map, options);
}

template <class Options>
std::vector<KeyText> texts_of(const Keys<Options>& keys) {
  std::vector<KeyText> texts;
  for (const Key<Options>& key : keys) texts.push_back(key.text);
  return texts;
}

template <class Options>
std::vector<std::string> names_of(const Keys<Options>& keys) {
  std::vector<std::string> names;
  for (const Key<Options>& key : keys) names.push_back(key.text.name);
  return names;
}

/// Appends more keys to those of a table.
template <class Options>
void append_keys(Keys<Options>& keys, Keys<Options> more) {
  for (Key<Options>& key : more) keys.push_back(std::move(key));
}

/// The keys of a part, read into the field of the whole that contains it.
template <class Whole, class Part, class Field>
Keys<Whole> keys_of_part(const Keys<Part>& keys, Field field) {
  Keys<Whole> lifted;
  for (const Key<Part>& key : keys)
    lifted.push_back(
        {key.text, [key, field](YamlMap& map, Whole& whole) { key.read(map, std::invoke(field, whole)); }});
  return lifted;
}

/// The enumerator for a key's value, which is one of `names` in the order of the enumeration. @throws
/// InputError
template <class Enum>
Enum read_choice(YamlMap& map, std::string_view key, const std::vector<std::string>& names) {
  return static_cast<Enum>(map.choice(key, names));
}
/// The same for a key that may be absent.
template <class Enum>
Enum read_choice(YamlMap& map, std::string_view key, const std::vector<std::string>& names, Enum fallback) {
  return static_cast<Enum>(map.choice_or(key, names, static_cast<std::size_t>(fallback)));
}

namespace keys_detail {
template <class Options, class Field>
using Value = std::remove_cvref_t<std::invoke_result_t<Field, Options&>>;
/// The type that an optional contains; any other type itself.
template <class T>
struct ContentOf {
  using type = T;
};
template <class T>
struct ContentOf<std::optional<T>> {
  using type = T;
};
template <class T>
using Content = typename ContentOf<T>::type;
/// One of `names`, of which the second may be the default: "b | a | c".
KeyText choice_text(std::string name, const std::vector<std::string>& names, std::size_t fallback,
                    std::string meaning);
/// true or false.
KeyText flag_text(std::string name, bool fallback, std::string meaning);
/// "{time, every}"
std::string mapping_text(const std::vector<KeyText>& parts);
/// One or more mappings of these keys.
ValueForm list_of_parts(const std::vector<KeyText>& parts);
/// The items of a list of mappings. @param example an example of such a list, for messages
std::vector<YamlMap> read_list(YamlMap& map, std::string_view key, const std::string& example);
std::string number_text(double value);
}  // namespace keys_detail

/// One of several names: of an enumeration in the same order, or of a bool as {name of false, name of true}.
template <class Options, class Field>
Key<Options> choice_key(std::string name, const std::vector<std::string>& names, std::string meaning,
                        Field field) {
  using Enum = keys_detail::Value<Options, Field>;
  Options fresh{};
  const auto fallback = static_cast<std::size_t>(std::invoke(field, fresh));
  return {keys_detail::choice_text(name, names, fallback, std::move(meaning)),
          [name, names, fallback, field](YamlMap& map, Options& options) {
            std::invoke(field, options) = static_cast<Enum>(map.choice_or(name, names, fallback));
          }};
}

/// The same with a default that follows from the options that were read before.
/// @param default_text "the framework's"
template <class Options, class Field>
Key<Options> derived_choice_key(std::string name, std::string default_text,
                                const std::vector<std::string>& names, std::string meaning, Field field,
                                keys_detail::Value<Options, Field> (*otherwise)(const Options&)) {
  return {key_text(name, std::move(default_text), forms::name(names), std::move(meaning)),
          [name, names, field, otherwise](YamlMap& map, Options& options) {
            std::invoke(field, options) =
                read_choice<keys_detail::Value<Options, Field>>(map, name, names, otherwise(options));
          }};
}

/// true or false.
template <class Options, class Field>
Key<Options> flag_key(std::string name, std::string meaning, Field field) {
  Options fresh{};
  const bool fallback = std::invoke(field, fresh);
  return {keys_detail::flag_text(name, fallback, std::move(meaning)),
          [name, fallback, field](YamlMap& map, Options& options) {
            std::invoke(field, options) = map.flag_or(name, fallback);
          }};
}

/// A whole number in [min, max].
template <class Options, class Field>
Key<Options> integer_key(std::string name, std::int64_t min, std::int64_t max, std::string meaning,
                         Field field) {
  using Integer = keys_detail::Value<Options, Field>;
  Options fresh{};
  const auto fallback = static_cast<std::int64_t>(std::invoke(field, fresh));
  return {key_text(name, std::to_string(fallback), forms::whole(min, max), std::move(meaning)),
          [name, min, max, fallback, field](YamlMap& map, Options& options) {
            std::invoke(field, options) = static_cast<Integer>(map.integer_or(name, fallback, min, max));
          }};
}

/// A whole number in [min, max]; if the key is absent, the field keeps its value or stays unset.
/// @param otherwise what then applies: "all devices"
template <class Options, class Field>
Key<Options> optional_integer_key(std::string name, std::string otherwise, std::int64_t min, std::int64_t max,
                                  std::string meaning, Field field) {
  using Integer = keys_detail::Content<keys_detail::Value<Options, Field>>;
  return {key_text(name, std::move(otherwise), forms::whole(min, max), std::move(meaning)),
          [name, min, max, field](YamlMap& map, Options& options) {
            if (map.find(name))
              std::invoke(field, options) = static_cast<Integer>(map.integer(name, min, max));
          }};
}

/// A number without a unit in [min, max].
template <class Options, class Field>
Key<Options> number_key(std::string name, double min, double max, std::string meaning, Field field) {
  Options fresh{};
  const double fallback = std::invoke(field, fresh);
  return {key_text(name, keys_detail::number_text(fallback), forms::number(min, max), std::move(meaning)),
          [name, min, max, fallback, field](YamlMap& map, Options& options) {
            std::invoke(field, options) = map.number_or(name, fallback, min, max);
          }};
}

/// A number without a unit in [min, max]; if the key is absent, the field keeps its value or stays unset.
/// @param otherwise what then applies; "" for a key that is required
template <class Options, class Field>
Key<Options> optional_number_key(std::string name, std::string otherwise, double min, double max,
                                 std::string meaning, Field field) {
  return {key_text(name, std::move(otherwise), forms::number(min, max), std::move(meaning)),
          [name, min, max, field](YamlMap& map, Options& options) {
            if (map.find(name)) std::invoke(field, options) = map.number(name, min, max);
          }};
}

/// The same for a text.
/// @param values what may be written: "the name of a device"
template <class Options, class Field>
Key<Options> optional_text_key(std::string name, std::string otherwise, std::string values,
                               std::string meaning, Field field) {
  return {key_text(name, std::move(otherwise), forms::text(std::move(values)), std::move(meaning)),
          [name, field](YamlMap& map, Options& options) {
            if (map.find(name)) std::invoke(field, options) = map.text(name);
          }};
}

/// The same for a quantity in SI base units. @param positive zero is an error
template <class Options, class Field>
Key<Options> optional_quantity_key(std::string name, std::string otherwise, Dimension dimension,
                                   bool positive, std::string meaning, Field field) {
  return {key_text(name, std::move(otherwise), forms::quantity(dimension, positive), std::move(meaning)),
          [name, dimension, positive, field](YamlMap& map, Options& options) {
            if (map.find(name)) std::invoke(field, options) = map.quantity(name, dimension, positive);
          }};
}

/// The same for a share, up to 100 %. @param positive zero is an error
template <class Options, class Field>
Key<Options> share_key(std::string name, std::string otherwise, bool positive, std::string meaning,
                       Field field) {
  return {key_text(name, std::move(otherwise), forms::share(positive), std::move(meaning)),
          [name, positive, field](YamlMap& map, Options& options) {
            if (!map.find(name)) return;
            const double share = map.quantity(name, Dimension::fraction, positive);
            if (share > 1) map.fail(name, "is a share; at most 100% is allowed");
            std::invoke(field, options) = share;
          }};
}

/// A quantity above zero, in SI base units; if the key is absent, the value of `otherwise`.
/// @param default_text describes that value: "25MiB", "the device's"
template <class Options, class Field>
Key<Options> quantity_key(std::string name, std::string default_text, Dimension dimension,
                          std::string meaning, Field field,
                          keys_detail::Value<Options, Field> (*otherwise)(const Options&)) {
  return {key_text(name, std::move(default_text), forms::quantity(dimension, true), std::move(meaning)),
          [name, dimension, field, otherwise](YamlMap& map, Options& options) {
            std::invoke(field, options) =
                map.find(name) ? map.quantity(name, dimension, true) : otherwise(options);
          }};
}

/// A key that is read by a function of its own.
/// @param otherwise what applies without it; "" if nothing does, or if the form tells it
template <class Options>
Key<Options> custom_key(std::string name, std::string otherwise, ValueForm form, std::string meaning,
                        void (*read)(YamlMap& map, Options& options)) {
  return {key_text(std::move(name), std::move(otherwise), std::move(form), std::move(meaning)), read};
}

/// The same for a key whose value is a list, or may be one that is not several values to try.
template <class Options>
Key<Options> list_key(std::string name, std::string otherwise, ValueForm form, std::string meaning,
                      void (*read)(YamlMap& map, Options& options)) {
  Key<Options> key =
      custom_key<Options>(std::move(name), std::move(otherwise), std::move(form), std::move(meaning), read);
  key.text.takes_list = true;
  return key;
}

/// The keys of a mapping of which one key decides which others there are. A key that is the same in all
/// variants is listed once; otherwise its meaning names the variants to which it applies, with what may be
/// written in each.
std::vector<KeyText> texts_of_variants(
    const std::vector<std::pair<std::string, std::vector<KeyText>>>& variants);

}  // namespace convoy::base
