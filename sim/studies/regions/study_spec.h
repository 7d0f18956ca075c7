// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/keys.h"
#include "sim/run/experiment.h"
#include "sim/studies/regions/study_input.h"

namespace convoy::inline studies {

/// Dotted paths of the experiment and the values that they get; `$input` stands for an input's value.
using StudySettings = std::vector<std::pair<std::string, YamlNode>>;

/// An experiment of the study whose results claims name: `ring.step_time_s`.
struct StudyVariant {
  std::string name;
  StudySettings settings;  ///< those of the whole study and of inputs come before them
};

/// Arithmetic over inputs and results of variants, checked for names when it is read.
struct StudyExpression {
  std::string text;
  SourcePos pos;
};

struct StudyClaim {
  std::string claim;
  StudyExpression value;
  std::optional<double> low, high;  ///< accepted values; at least one of them
  std::optional<double> published;  ///< a figure that somebody states, to be shown beside ours
  SourcePos pos;
  /// Whether each input can change the value: it is named in the expression, sets a path, or stands in a
  /// setting of a variant that the expression names.
  std::vector<bool> depends_on;
  bool holds(double at) const { return (!low || *low <= at) && (!high || at <= *high); }
};

/// `study:` of an experiment: for which inputs do the claims hold?
struct StudySpec {
  std::vector<StudyInput> inputs;
  StudySettings settings;
  std::vector<StudyVariant> variants;
  std::vector<StudyClaim> claims;
  std::vector<StudyExpression> possible_if;  ///< not 0 where a point is one that could be
  std::int64_t points = 256;                 ///< of the sample, in `replicates` independent parts
  std::optional<std::int64_t> grid;          ///< so many values of each range instead of a sample
  std::int64_t seed = 1;
  std::int64_t refine = 6;  ///< halvings of the distance between two values with the border between them
  SourcePos pos;

  static constexpr std::size_t replicates = 8;
};

/// @throws InputError: also for an expression that names neither an input nor a variant, and for an
/// experiment with a sweep
StudySpec read_study(const Experiment& experiment);

/// The keys of `study:`, for documentation.
KeySection study_keys();

}  // namespace convoy::studies
