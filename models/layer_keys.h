// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/layer.h"
#include "sim/base/keys.h"

namespace convoy::inline models {

// Values and keys that several kinds of layers have.

inline constexpr std::int64_t max_size = 1'000'000'000;
inline constexpr std::int64_t max_axes = 8;

/// One number for both, or [height, width], each in [min, max_size]. @throws InputError
Size2 read_size2(YamlMap& map, std::string_view key, std::int64_t min);
/// What may be written for it.
ValueForm size2_form(std::int64_t min);
/// One number for all, or [depth, height, width]. @throws InputError
Size3 read_size3(YamlMap& map, std::string_view key, std::int64_t min);
ValueForm size3_form(std::int64_t min);
/// A shape of one image. @throws InputError
Shape read_shape(YamlMap& map, std::string_view key);
ValueForm shape_form();
/// Axes of a tensor. @throws InputError
std::vector<std::int64_t> read_axes(YamlMap& map, std::string_view key);

/// Height and width, by default those of a fresh layer, which are equal.
template <class Kind>
Key<Kind> size2_key(std::string name, std::int64_t min, std::string meaning, Size2 Kind::*field) {
  return {key_text(name, std::to_string((Kind{}.*field).h), size2_form(min), std::move(meaning)),
          [name, min, field](YamlMap& map, Kind& layer) {
            if (map.find(name)) layer.*field = read_size2(map, name, min);
          }};
}

template <class Kind>
Key<Kind> required_size2_key(std::string name, std::int64_t min, std::string meaning, Size2 Kind::*field) {
  Key<Kind> key = size2_key<Kind>(std::move(name), min, std::move(meaning), field);
  key.text = key_text(key.text.name, "", size2_form(min), key.text.meaning);
  return std::move(key).required();
}

/// Depth, height and width, by default those of a fresh layer, which are equal.
template <class Kind>
Key<Kind> size3_key(std::string name, std::int64_t min, std::string meaning, Size3 Kind::*field) {
  return {key_text(name, std::to_string((Kind{}.*field).h), size3_form(min), std::move(meaning)),
          [name, min, field](YamlMap& map, Kind& layer) {
            if (map.find(name)) layer.*field = read_size3(map, name, min);
          }};
}

template <class Kind>
Key<Kind> required_size3_key(std::string name, std::int64_t min, std::string meaning, Size3 Kind::*field) {
  Key<Kind> key = size3_key<Kind>(std::move(name), min, std::move(meaning), field);
  key.text = key_text(key.text.name, "", size3_form(min), key.text.meaning);
  return std::move(key).required();
}

template <class Kind>
Key<Kind> required_integer_key(std::string name, std::int64_t min, std::int64_t max, std::string meaning,
                               std::int64_t Kind::*field) {
  return optional_integer_key<Kind>(std::move(name), "", min, max, std::move(meaning), field).required();
}

}  // namespace convoy::models
