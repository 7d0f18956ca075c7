// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>

#include "sim/base/unexpected_value.h"

namespace convoy::inline runs {

class Experiment;

/// "; a sweep tries several values: sweep: {strategy.algorithm: [...]}", where the list that was given in place
/// of one value stands in a part of the experiment that a sweep can set; "" elsewhere, as in files that the
/// experiment names.
std::string sweep_hint(const Experiment& experiment, std::size_t index, const SourcePos& list);

/// What `read` returns, which reads point `index` of the experiment. @throws InputError of `read`, with the hint
/// at a sweep if it is about a list
template <class Read>
auto hinting_at_sweep(const Experiment& experiment, std::size_t index, const Read& read) {
  try {
    return read();
  } catch (const ListGiven& error) {
    throw InputError(error.pos(), error.message() + sweep_hint(experiment, index, error.pos()));
  }
}

}  // namespace convoy::runs
