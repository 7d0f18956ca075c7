// SPDX-License-Identifier: MIT
#include "sim/studies/regions/region.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/median.h"
#include "sim/run/manifest.h"
#include "sim/studies/regions/border.h"
#include "sim/studies/regions/together.h"

namespace convoy::inline studies {
namespace {

/// Counts the points at which `holds` is true among those that are possible.
template <class Holds>
StudyShare share_of(const StudyResult& study, const Holds& holds) {
  const std::size_t parts = study.sample.parts, each = study.outcomes.size() / parts;
  StudyShare share;
  std::vector<double> shares;
  for (std::size_t part = 0; part < parts; ++part) {
    StudyShare of_part;
    for (std::size_t i = part * each; i < (part + 1) * each; ++i) {
      if (!study.outcomes[i].possible) continue;
      ++of_part.of;
      of_part.count += holds(study.outcomes[i]) ? 1 : 0;
    }
    share.count += of_part.count, share.of += of_part.of;
    if (of_part.of) shares.push_back(of_part.share());
  }
  if (study.spec.grid) return share;
  double squares = 0;
  for (const double one : shares) squares += std::pow(one - share.share(), 2);
  const double count = static_cast<double>(shares.size());
  share.standard_error = std::max(count > 1 ? std::sqrt(squares / (count - 1) / count) : 0.0,
                                  1 / (static_cast<double>(share.of) + 2));
  return share;
}

/// The class of a position for an index: a value of a list or a short range, or one of equal parts.
std::size_t class_of(const StudyInput& input, double position, std::size_t classes) {
  if (!input.is_range()) return static_cast<std::size_t>(position * static_cast<double>(input.levels()));
  return std::min(classes - 1, static_cast<std::size_t>(position * static_cast<double>(classes)));
}

/// The share of the variance of 0 and 1 between the classes of one input.
double first_order(const StudyInput& input, std::size_t d, const std::vector<StudyPoint>& points,
                   const std::vector<bool>& holds) {
  constexpr std::size_t least_classes = 4, most_classes = 16, points_a_class = 32;
  const std::size_t classes = input.is_range()
                                  ? std::clamp(points.size() / points_a_class, least_classes, most_classes)
                                  : input.levels();
  std::vector<double> holding(classes), count(classes);
  double all_holding = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::size_t c = class_of(input, points[i][d], classes);
    holding[c] += holds[i] ? 1 : 0, ++count[c];
    all_holding += holds[i] ? 1 : 0;
  }
  const double all = static_cast<double>(points.size()), mean = all_holding / all;
  double between = 0, used = 0;
  for (std::size_t c = 0; c < classes; ++c)
    if (count[c] > 0) between += count[c] * std::pow(holding[c] / count[c] - mean, 2), ++used;
  const double ratio = between / (all * mean * (1 - mean));
  if (all <= used) return std::max(0.0, ratio);
  return std::clamp(1 - (1 - ratio) * (all - 1) / (all - used), 0.0, 1.0);
}

ClaimRegion region_of(const StudyResult& study, std::size_t claim) {
  ClaimRegion region;
  region.share = share_of(study, [&](const StudyOutcome& o) { return o.holds(study.spec, claim); });
  std::vector<StudyPoint> points;
  std::vector<bool> holds;
  std::vector<double> values;
  for (std::size_t i = 0; i < study.outcomes.size(); ++i)
    if (study.outcomes[i].possible) {
      points.push_back(study.sample.points[i]);
      holds.push_back(study.outcomes[i].holds(study.spec, claim));
      values.push_back(study.outcomes[i].values[claim]);
    }
  std::sort(values.begin(), values.end());
  region.least = values.front(), region.greatest = values.back(), region.median = median(values);
  region.sentence = describe_region(study.spec, study.spec.claims[claim].depends_on, points, holds);
  if (region.share.count > 0 && region.share.count < region.share.of)
    for (std::size_t d = 0; d < study.spec.inputs.size(); ++d)
      region.first_order.push_back(
          study.spec.claims[claim].depends_on[d] ? first_order(study.spec.inputs[d], d, points, holds) : 0.0);
  return region;
}

/// Reasons why points are not possible, without what is of the one point.
std::vector<std::pair<std::string, std::size_t>> reasons_of(const std::vector<StudyOutcome>& outcomes) {
  std::map<std::string, std::size_t> counts;
  for (const StudyOutcome& outcome : outcomes)
    if (!outcome.possible) ++counts[outcome.why_not];
  std::vector<std::pair<std::string, std::size_t>> reasons(counts.begin(), counts.end());
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return reasons;
}

}  // namespace

StudyResult run_study(const Experiment& experiment, const StudySpec& spec, Store& store,
                      const StudyOptions& options) {
  StudyResult study;
  study.experiment = experiment.name();
  study.spec = spec;
  study.sample = sample_points(spec);
  study.manifest = make_manifest(experiment, options.file, options.settings);
  StudyRuns runs(experiment, spec, store, options);
  const auto stopped = [&] {
    study.simulated = runs.simulated();
    study.whole = false;
    return study;
  };
  if (!runs.compute(study.sample.points)) return stopped();
  for (const StudyPoint& point : study.sample.points) study.outcomes.push_back(runs.at(point));
  study.impossible = reasons_of(study.outcomes);
  if (std::none_of(study.outcomes.begin(), study.outcomes.end(),
                   [](const StudyOutcome& o) { return o.possible; }))
    throw InputError(spec.pos, fmt::format("study: none of {} points is possible; {}", study.outcomes.size(),
                                           study.impossible.front().first));
  for (std::size_t c = 0; c < spec.claims.size(); ++c) study.regions.push_back(region_of(study, c));
  study.together.share = share_of(study, [&](const StudyOutcome& o) { return o.all_hold(spec); });
  if (!find_borders(study, runs) || !find_together(study, runs)) return stopped();
  runs.keep_subject();
  study.simulated = runs.simulated();
  return study;
}

}  // namespace convoy::studies
