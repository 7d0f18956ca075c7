// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "models/model.h"

namespace convoy {

/// The model that `text` gives under the key `model` of a file test.yaml.
inline Model model_from(const std::string& text) { return read_model(parse_yaml(text, "test.yaml")); }

/// A model of these layers on an input.
inline Model toy(const std::string& input, const std::string& layers) {
  return model_from("name: toy\ninput: " + input + "\nlayers:\n" + layers);
}

/// The message of the InputError that reading the text ends with; "" where it reads.
inline std::string error_of(const std::string& text) {
  try {
    model_from(text);
    return {};
  } catch (const InputError& error) {
    return error.what();
  }
}

inline std::string layers_error(const std::string& input, const std::string& layers) {
  return error_of("name: toy\ninput: " + input + "\nlayers:\n" + layers);
}

}  // namespace convoy
