// SPDX-License-Identifier: MIT
#include "sim/studies/regions/border.h"

#include <fmt/format.h>

#include <algorithm>

namespace convoy::inline studies {
namespace {

/// Positions that are tried of an input before halving.
std::vector<double> first_positions(const StudyInput& input, double from) {
  std::vector<double> positions{from};
  const std::size_t levels = input.levels();
  constexpr std::size_t steps = 4;
  if (levels > 0 && (!input.is_range() || levels <= steps + 1))
    for (std::size_t level = 0; level < levels; ++level) positions.push_back(input.position_of_level(level));
  else
    for (std::size_t i = 0; i <= steps; ++i) positions.push_back(static_cast<double>(i) / steps);
  std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  return positions;
}

StudyPoint moved(StudyPoint point, std::size_t input, double position) {
  point[input] = position;
  return point;
}

/// The possible point nearest to the middle at which the claim holds.
std::optional<StudyPoint> start_of(const StudyResult& study, const StudyRuns& runs, const StudyPoint& middle,
                                   std::size_t claim) {
  if (runs.at(middle).holds(study.spec, claim)) return middle;
  std::optional<StudyPoint> best;
  for (std::size_t i = 0; i < study.outcomes.size(); ++i) {
    const StudyPoint& point = study.sample.points[i];
    if (!study.outcomes[i].holds(study.spec, claim)) continue;
    if (!best || distance_from_middle(study.spec, point) < distance_from_middle(study.spec, *best))
      best = point;
  }
  return best;
}

/// Whether there is another value between the two positions, so that halving has a meaning.
bool can_halve(const StudyInput& input, double a, double b) {
  const double middle = 0.5 * (a + b);
  return input.is_range() && input.text_at(middle) != input.text_at(a) &&
         input.text_at(middle) != input.text_at(b);
}

/// Of the positions along one input next to each other those of which one alone holds.
void add_brackets(const StudyResult& study, const StudyRuns& runs, const StudyPoint& start, std::size_t claim,
                  std::size_t input, std::vector<StudyBorder>& borders) {
  const std::vector<double> positions = first_positions(study.spec.inputs[input], start[input]);
  for (std::size_t i = 1; i < positions.size(); ++i) {
    const StudyOutcome& before = runs.at(moved(start, input, positions[i - 1]));
    const StudyOutcome& after = runs.at(moved(start, input, positions[i]));
    if (!before.possible || !after.possible) continue;
    const bool first = before.holds(study.spec, claim);
    if (first == after.holds(study.spec, claim)) continue;
    borders.push_back({input, start, positions[first ? i - 1 : i], positions[first ? i : i - 1]});
  }
}

}  // namespace

bool find_borders(StudyResult& study, StudyRuns& runs) {
  const StudySpec& spec = study.spec;
  const StudyPoint middle = middle_point(spec);
  if (!runs.compute({middle})) return false;
  std::vector<std::optional<StudyPoint>> starts;
  std::vector<StudyPoint> wanted;
  for (std::size_t c = 0; c < spec.claims.size(); ++c) {
    starts.push_back(start_of(study, runs, middle, c));
    for (std::size_t d = 0; starts[c] && d < spec.inputs.size(); ++d)
      if (spec.inputs[d].is_ordered() && spec.claims[c].depends_on[d])
        for (const double position : first_positions(spec.inputs[d], (*starts[c])[d]))
          wanted.push_back(moved(*starts[c], d, position));
  }
  if (!runs.compute(wanted)) return false;
  for (std::size_t c = 0; c < spec.claims.size(); ++c)
    for (std::size_t d = 0; starts[c] && d < spec.inputs.size(); ++d)
      if (spec.inputs[d].is_ordered() && spec.claims[c].depends_on[d])
        add_brackets(study, runs, *starts[c], c, d, study.regions[c].borders);
  for (std::int64_t step = 0; step < spec.refine; ++step) {
    wanted.clear();
    for (const ClaimRegion& region : study.regions)
      for (const StudyBorder& border : region.borders)
        if (can_halve(spec.inputs[border.input], border.holds, border.fails))
          wanted.push_back(moved(border.at, border.input, 0.5 * (border.holds + border.fails)));
    if (wanted.empty()) break;
    if (!runs.compute(wanted)) return false;
    for (std::size_t c = 0; c < spec.claims.size(); ++c)
      for (StudyBorder& border : study.regions[c].borders) {
        if (!can_halve(spec.inputs[border.input], border.holds, border.fails)) continue;
        const double half = 0.5 * (border.holds + border.fails);
        const StudyOutcome& outcome = runs.at(moved(border.at, border.input, half));
        if (!outcome.possible) continue;
        (outcome.holds(spec, c) ? border.holds : border.fails) = half;
      }
  }
  return true;
}

std::string text_of(const StudySpec& spec, const StudyBorder& border) {
  const StudyInput& input = spec.inputs[border.input];
  std::string others;
  for (std::size_t d = 0; d < spec.inputs.size(); ++d)
    if (d != border.input)
      others += fmt::format("{}{} {}", others.empty() ? ", with " : ", ", spec.inputs[d].name,
                            spec.inputs[d].text_at(border.at[d]));
  return border.holds < border.fails
             ? fmt::format("{} up to {} (no longer at {}){}", input.name, input.text_at(border.holds),
                           input.text_at(border.fails), others)
             : fmt::format("{} from {} on (not yet at {}){}", input.name, input.text_at(border.holds),
                           input.text_at(border.fails), others);
}

}  // namespace convoy::studies
