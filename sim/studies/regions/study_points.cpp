// SPDX-License-Identifier: MIT
#include "sim/studies/regions/study_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/random/sobol.hpp>
#include <cmath>

#include "sim/run/dice.h"

namespace convoy::inline studies {
namespace {

StudySample grid_points(const StudySpec& spec) {
  constexpr std::size_t most_points = 100'000;  // of a sample, too (StudySpec::points)
  StudySample sample{{{}}, 1};
  for (const StudyInput& input : spec.inputs) {
    const std::size_t levels = input.levels();
    const auto steps = static_cast<std::size_t>(*spec.grid);
    const bool every = levels > 0 && (!input.is_range() || levels <= steps);
    std::vector<StudyPoint> wider;
    for (const StudyPoint& point : sample.points)
      for (std::size_t i = 0; i < (every ? levels : steps); ++i) {
        wider.push_back(point);
        wider.back().push_back(every ? input.position_of_level(i)
                                     : (static_cast<double>(i) + 0.5) / static_cast<double>(steps));
      }
    if (wider.size() > most_points)
      throw InputError(input.pos, fmt::format("study.grid: with '{}' it has {} points; at most {} are tried",
                                              input.name, wider.size(), most_points));
    sample.points = std::move(wider);
  }
  return sample;
}

}  // namespace

StudySample sample_points(const StudySpec& spec) {
  if (spec.grid) return grid_points(spec);
  const std::size_t dimensions = spec.inputs.size();
  const std::size_t each =
      (static_cast<std::size_t>(spec.points) + StudySpec::replicates - 1) / StudySpec::replicates;
  SeededDice dice(static_cast<std::uint64_t>(spec.seed));
  StudySample sample{{}, StudySpec::replicates};
  for (std::size_t part = 0; part < StudySpec::replicates; ++part) {
    std::vector<double> shift(dimensions);
    for (double& by : shift) by = dice.uniform();
    boost::random::sobol sequence(dimensions);
    for (std::size_t i = 0; i < each; ++i) {
      StudyPoint& point = sample.points.emplace_back(dimensions);
      for (std::size_t d = 0; d < dimensions; ++d) {
        const double at = std::ldexp(static_cast<double>(sequence()), -64) + shift[d];
        point[d] = std::min(at - std::floor(at), 1 - 0x1.0p-53);
      }
    }
  }
  return sample;
}

StudyPoint middle_point(const StudySpec& spec) {
  StudyPoint point;
  for (const StudyInput& input : spec.inputs) {
    const std::size_t levels = input.levels();
    point.push_back(levels == 0 || input.is_range()
                        ? 0.5
                        : input.position_of_level(input.is_ordered() ? (levels - 1) / 2 : 0));
  }
  return point;
}

double distance_from_middle(const StudySpec& spec, const StudyPoint& point) {
  double sum = 0, count = 0;
  for (std::size_t d = 0; d < point.size(); ++d)
    if (spec.inputs[d].is_ordered())
      sum += std::pow(spec.inputs[d].distance_from_middle(point[d]), 2), ++count;
  return count > 0 ? std::sqrt(sum / count) : 0;
}

std::string text_of(const StudySpec& spec, const StudyPoint& point) {
  std::string text;
  for (std::size_t d = 0; d < point.size(); ++d)
    text += fmt::format("{}{} {}", d ? ", " : "", spec.inputs[d].name, spec.inputs[d].text_at(point[d]));
  return text;
}

}  // namespace convoy::studies
