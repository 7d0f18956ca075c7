// SPDX-License-Identifier: MIT
#include "sim/studies/regions/together.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace convoy::inline studies {
namespace {

/// By how much the claims' values lie outside what is accepted, each in its bound's size; 0: all hold.
double miss_of(const StudySpec& spec, const StudyOutcome& outcome) {
  if (!outcome.possible) return std::numeric_limits<double>::infinity();
  double miss = 0;
  for (std::size_t c = 0; c < spec.claims.size(); ++c) {
    const StudyClaim& claim = spec.claims[c];
    const auto beyond = [&](double by, double bound) {
      constexpr double least_size = 1e-12;
      if (by > 0) miss += by / std::max(std::abs(bound), least_size);
    };
    if (claim.low) beyond(*claim.low - outcome.values[c], *claim.low);
    if (claim.high) beyond(outcome.values[c] - *claim.high, *claim.high);
  }
  return miss;
}

std::vector<StudyPoint> neighbours(const StudySpec& spec, const StudyPoint& point, double step) {
  std::vector<StudyPoint> found;
  for (std::size_t d = 0; d < point.size(); ++d) {
    const auto add = [&](double position) {
      found.push_back(point);
      found.back()[d] = position;
    };
    if (spec.inputs[d].is_range()) {
      add(std::max(0.0, point[d] - step));
      add(std::min(1.0, point[d] + step));
    } else {
      for (std::size_t v = 0; v < spec.inputs[d].levels(); ++v) add(spec.inputs[d].position_of_level(v));
    }
  }
  return found;
}

/// Moves from a point to the neighbour that misses by the least while one is better.
bool descend(const StudySpec& spec, StudyRuns& runs, StudyPoint& point) {
  constexpr int most_moves = 40;
  double step = 0.25;
  for (int move = 0; move < most_moves && step > std::ldexp(0.25, -static_cast<int>(spec.refine)); ++move) {
    const double here = miss_of(spec, runs.at(point));
    if (here == 0) return true;
    const std::vector<StudyPoint> around = neighbours(spec, point, step);
    if (!runs.compute(around)) return false;
    const auto best = std::min_element(around.begin(), around.end(), [&](const auto& a, const auto& b) {
      return miss_of(spec, runs.at(a)) < miss_of(spec, runs.at(b));
    });
    if (miss_of(spec, runs.at(*best)) < here)
      point = *best;
    else
      step /= 2;
  }
  return true;
}

/// Moves each input as near to the middle as all claims still hold, by halves of the way.
bool approach_middle(const StudySpec& spec, StudyRuns& runs, StudyPoint& point) {
  for (std::size_t d = 0; d < point.size(); ++d) {
    if (!spec.inputs[d].is_range()) continue;
    std::vector<StudyPoint> tried;
    for (const double share : {1.0, 0.5, 0.25}) {
      tried.push_back(point);
      tried.back()[d] += share * (0.5 - point[d]);
    }
    if (!runs.compute(tried)) return false;
    for (const StudyPoint& other : tried)
      if (runs.at(other).all_hold(spec)) {
        point = other;
        break;
      }
  }
  return true;
}

/// Indices of the sample's possible points, those that miss by the least first.
std::vector<std::size_t> by_miss(const StudyResult& study) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < study.outcomes.size(); ++i)
    if (study.outcomes[i].possible) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return miss_of(study.spec, study.outcomes[a]) < miss_of(study.spec, study.outcomes[b]);
  });
  return order;
}

}  // namespace

bool find_together(StudyResult& study, StudyRuns& runs) {
  const StudySpec& spec = study.spec;
  StudyTogether& together = study.together;
  for (std::size_t i = 0; i < study.outcomes.size(); ++i) {
    const StudyPoint& point = study.sample.points[i];
    if (!study.outcomes[i].all_hold(spec)) continue;
    if (!together.set || distance_from_middle(spec, point) < distance_from_middle(spec, *together.set))
      together.set = point;
  }
  if (!together.set) {
    constexpr std::size_t starts = 4;
    const std::vector<std::size_t> order = by_miss(study);
    together.searched = true;
    for (std::size_t s = 0; s < std::min(starts, order.size()); ++s) {
      StudyPoint point = study.sample.points[order[s]];
      if (!descend(spec, runs, point)) return false;
      if (together.nearest.empty() ||
          miss_of(spec, runs.at(point)) < miss_of(spec, runs.at(together.nearest)))
        together.nearest = point;
    }
    if (runs.at(together.nearest).all_hold(spec)) together.set = together.nearest;
  }
  if (together.set && !approach_middle(spec, runs, *together.set)) return false;
  study.together_values = runs.at(together.set ? *together.set : together.nearest).values;
  return true;
}

}  // namespace convoy::studies
