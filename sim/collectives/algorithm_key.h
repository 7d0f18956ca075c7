// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "sim/base/keys.h"
#include "sim/collectives/table.h"

namespace convoy::inline collectives {

/// `ring`, `{file: my.yaml}` or `{auto: [ring, {file: my.yaml}]}`; ring where the key is absent.
SumAlgorithm read_algorithm(YamlMap& map, std::string_view key);
/// What may be written, and its name, for documentation.
KeyText algorithm_text(std::string name, std::string meaning);

/// A key `algorithm`, of what sums.
/// @param algorithm_of returns its place in the options: SumAlgorithm& (Options&)
template <class Options, class Field>
Key<Options> algorithm_key(std::string name, std::string meaning, Field algorithm_of) {
  return {algorithm_text(name, std::move(meaning)), [name, algorithm_of](YamlMap& map, Options& options) {
            std::invoke(algorithm_of, options) = read_algorithm(map, name);
          }};
}

}  // namespace convoy::collectives
