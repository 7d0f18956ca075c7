// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/keys.h"

namespace convoy::inline base {

// Keys whose values are mappings, either with a table of their own or passed on as they are.

/// Refuses the first key of the mapping that is not one of `names`. Called before the keys are read, so that
/// a misspelt key is reported rather than that the key it was meant to be is missing. @throws InputError
inline void refuse_unknown_keys(YamlMap map, const std::vector<std::string>& names) {
  for (const std::string& name : names) map.find(name);
  map.finish();
}

inline std::vector<std::string> names_of(const std::vector<KeyText>& keys) {
  std::vector<std::string> names;
  for (const KeyText& key : keys) names.push_back(key.name);
  return names;
}

/// Reads a whole mapping into a part of the options, by the table of its keys. A part that has a `pos` gets
/// the position of the mapping. @throws InputError, also for an unknown key
template <class Part>
void read_part(const Keys<Part>& keys, YamlMap map, Part& part) {
  refuse_unknown_keys(map, names_of(keys));
  if constexpr (requires { part.pos; }) part.pos = map.pos();
  read_keys(keys, map, part);
  map.finish();
}

/// A mapping with a table of its own, read if the key is present.
/// @param part_of returns its part of the options, which it may have to create first: Part& (Options&)
template <class Options, class Part, class PartOf>
Key<Options> mapping_key(std::string name, std::string otherwise, std::string meaning, Keys<Part> keys,
                         PartOf part_of) {
  std::vector<KeyText> parts = texts_of(keys);
  Key<Options> key{key_text(name, std::move(otherwise), forms::parts(keys_detail::mapping_text(parts)),
                            std::move(meaning)),
                   [name, keys = std::move(keys), part_of](YamlMap& map, Options& options) {
                     if (map.find(name)) read_part(keys, map.map(name), std::invoke(part_of, options));
                   }};
  return std::move(key).with_parts(std::move(parts));
}

/// A list of such mappings, empty if the key is absent. @param example "[{host: n0, at: 2h}]"
template <class Options, class Part, class Field>
Key<Options> mappings_key(std::string name, std::string example, std::string meaning, Keys<Part> keys,
                          Field field) {
  std::vector<KeyText> parts = texts_of(keys);
  Key<Options> key{
      key_text(name, "none", keys_detail::list_of_parts(parts), std::move(meaning)),
      [name, example = std::move(example), keys = std::move(keys), field](YamlMap& map, Options& options) {
        if (!map.find(name)) return;
        for (YamlMap& item : keys_detail::read_list(map, name, example))
          read_part(keys, std::move(item), std::invoke(field, options).emplace_back());
      }};
  return std::move(key).with_parts(std::move(parts));
}

/// A value that another reader takes as it is.
/// @param field a YamlNode, or what is made of one
template <class Options, class Node>
Key<Options> node_key(std::string name, ValueForm form, std::string meaning, Node Options::*field) {
  return {key_text(name, "", std::move(form), std::move(meaning)),
          [name, field](YamlMap& map, Options& options) {
            if (const YamlNode* node = map.find(name)) options.*field = *node;
          }};
}

}  // namespace convoy::base
