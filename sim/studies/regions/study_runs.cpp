// SPDX-License-Identifier: MIT
#include "sim/studies/regions/study_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "models/expression.h"
#include "sim/base/names.h"
#include "sim/run/out_of_resources.h"
#include "sim/studies/claims/claim.h"
#include "sim/studies/claims/configs.h"
#include "sim/studies/claims/kernel_records.h"

namespace convoy::inline studies {
namespace {

std::string text_of_coordinates(const Experiment::Coordinates& coordinates) {
  std::string text;
  for (const auto& [path, value] : coordinates) text += path + ':' + fingerprint(value) + '\n';
  return text;
}

/// A setting replaces earlier ones of the same path and of paths inside it.
void put(Experiment::Coordinates& coordinates, const std::string& path, YamlNode value) {
  std::erase_if(coordinates, [&](const auto& earlier) {
    return earlier.first == path || earlier.first.starts_with(path + ".");
  });
  coordinates.emplace_back(path, std::move(value));
}

}  // namespace

Experiment::Coordinates coordinates_of(const StudySpec& spec, const StudyPoint& point,
                                       const StudyVariant& variant) {
  Experiment::Coordinates coordinates;
  Scope scope;
  for (std::size_t d = 0; d < point.size(); ++d) {
    const YamlNode value = scope[spec.inputs[d].name] = spec.inputs[d].value_at(point[d]);
    for (const std::string& path : spec.inputs[d].sets) put(coordinates, path, value);
  }
  for (const StudySettings* settings : {&spec.settings, &variant.settings})
    for (const auto& [path, value] : *settings) put(coordinates, path, substitute(value, scope));
  return coordinates;
}

std::string check_study(const Experiment& experiment, const StudySpec& spec, std::size_t jobs) {
  std::vector<Experiment::Coordinates> points;
  const StudyPoint middle = middle_point(spec);
  for (const StudyVariant& variant : spec.variants) points.push_back(coordinates_of(spec, middle, variant));
  check_sweep(experiment.at_points(points), jobs, std::numeric_limits<double>::infinity());
  return fmt::format("{}: {} claims at {} points of {} inputs, of {} variants each\n", experiment.name(),
                     spec.claims.size(), sample_points(spec).points.size(), spec.inputs.size(),
                     spec.variants.size());
}

bool StudyOutcome::all_hold(const StudySpec& spec) const {
  if (!possible) return false;
  for (std::size_t c = 0; c < spec.claims.size(); ++c)
    if (!holds(spec, c)) return false;
  return true;
}

StudyRuns::StudyRuns(const Experiment& experiment, const StudySpec& spec, Store& store, StudyOptions options)
    : experiment_(experiment),
      spec_(spec),
      store_(store),
      options_(std::move(options)),
      current_(experiment.at_points({{}})) {
  const auto names_shares = [](const StudyExpression& expression) {
    return expression.text.find(".share.") != std::string::npos;
  };
  wants_shares_ = std::any_of(spec.claims.begin(), spec.claims.end(),
                              [&](const StudyClaim& claim) { return names_shares(claim.value); }) ||
                  std::any_of(spec.possible_if.begin(), spec.possible_if.end(), names_shares);
}

std::string StudyRuns::identity(const StudyPoint& point) const {
  std::string text;
  for (std::size_t d = 0; d < point.size(); ++d) text += fingerprint(spec_.inputs[d].value_at(point[d]));
  return text;
}

bool StudyRuns::simulate_new(const std::vector<Experiment::Coordinates>& points) {
  if (points.empty()) return true;
  current_ = experiment_.at_points(points);
  current_.use(experiment_.network_model());
  preparer_.turn_to(current_);
  StoreSubject subject =
      make_subject(preparer_, options_.file, options_.settings,
                   options_.store_options.empty() ? std::nullopt : std::optional(options_.store_options));
  if (options_.store_options.empty())  // keys that are different in every round
    for (SweepPoint& point : subject.points) point.key = PointKey::of(point_id(all_.size() + point.position));
  if (!begun_ && options_.begin)
    options_.begin(std::move(subject));
  else
    store_.set_subject(std::move(subject));
  begun_ = true;
  all_.insert(all_.end(), points.begin(), points.end());
  if (!run_sweep(preparer_, options_.sweep, store_)) return false;
  Results results = load_results(store_, &current_);
  std::vector<std::string> ids;
  for (const RunResult& run : results.runs) ids.push_back(run.id);
  std::vector<Record> records = records_of(std::move(results.runs));
  if (wants_shares_) add_shares(records, ids);
  for (std::size_t i = 0; i < ids.size(); ++i)
    records_[text_of_coordinates(points[point_index(ids[i])])].record = std::move(records[i]);
  for (const FailedPoint& failed : results.failed) {
    const std::string told =
        fmt::format("{}: {}", point_text(point_index(failed.id), failed.point), failed.reason);
    if (failed.kind == "memory" || failed.kind == "time")
      throw OutOfResources(failed.kind == "memory" ? told + "; with fewer --jobs each may take more" : told);
    if (failed.kind == "crash") throw std::runtime_error(told);
    records_[text_of_coordinates(points[point_index(failed.id)])].failure = failed.reason;
  }
  return true;
}

void StudyRuns::add_shares(std::vector<Record>& records, const std::vector<std::string>& ids) {
  const std::vector<std::string> answers = answers_of_workers(
      ids.size(), options_.sweep.jobs,
      [&](std::size_t i) { return to_json({kernel_shares(preparer_, point_index(ids[i]))}); });
  for (std::size_t i = 0; i < answers.size(); ++i)
    records[i].numbers.merge(records_from_json(answers[i]).front().numbers);
}

bool StudyRuns::compute(const std::vector<StudyPoint>& points) {
  std::vector<Experiment::Coordinates> wanted;
  std::set<std::string> asked;
  std::vector<const StudyPoint*> fresh;
  for (const StudyPoint& point : points) {
    if (known_.contains(identity(point))) continue;
    fresh.push_back(&point);
    for (const StudyVariant& variant : spec_.variants) {
      Experiment::Coordinates at = coordinates_of(spec_, point, variant);
      const std::string text = text_of_coordinates(at);
      if (!records_.contains(text) && asked.insert(text).second) wanted.push_back(std::move(at));
    }
  }
  if (!simulate_new(wanted)) return false;
  for (const StudyPoint* point : fresh) known_.try_emplace(identity(*point), outcome(*point));
  return true;
}

std::optional<double> StudyRuns::evaluated(const StudyExpression& expression, const StudyPoint& point,
                                           const std::vector<const Record*>& records) const {
  const double value = evaluate_expression(expression.text, expression.pos, [&](const std::string& name) {
    const std::size_t dot = name.find('.');
    if (dot == std::string::npos) {
      for (std::size_t d = 0; d < point.size(); ++d)
        if (spec_.inputs[d].name == name) return *spec_.inputs[d].number_at(point[d]);
      throw std::logic_error("an expression's name was not checked");
    }
    std::size_t variant = 0;
    while (spec_.variants[variant].name != name.substr(0, dot)) ++variant;
    const Record& record = *records[variant];
    const auto number = record.numbers.find(name.substr(dot + 1));
    if (number != record.numbers.end()) return number->second;
    std::vector<std::string> known;
    for (const auto& [figure, of_it] : record.numbers) known.push_back(figure);
    throw InputError(expression.pos,
                     fmt::format("'{}': '{}' has no figure '{}'{}; the figures are those of results.json "
                                 "(docs/results.md), such as {}",
                                 expression.text, name.substr(0, dot), name.substr(dot + 1),
                                 suggestion(name.substr(dot + 1), known), list_of(known, 6)));
  });
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

StudyOutcome StudyRuns::outcome(const StudyPoint& point) const {
  StudyOutcome outcome;
  std::vector<const Record*> records;
  for (const StudyVariant& variant : spec_.variants) {
    const Ran& ran = records_.at(text_of_coordinates(coordinates_of(spec_, point, variant)));
    if (!ran.failure.empty()) {
      outcome.why_not = fmt::format("{}: {}", variant.name, ran.failure);
      return outcome;
    }
    records.push_back(&ran.record);
  }
  for (const StudyExpression& expression : spec_.possible_if)
    if (evaluated(expression, point, records).value_or(0) == 0) {
      outcome.why_not = fmt::format("possible_if: {} is 0", expression.text);
      return outcome;
    }
  for (const StudyClaim& claim : spec_.claims) {
    const std::optional<double> value = evaluated(claim.value, point, records);
    if (!value) {
      outcome.why_not = fmt::format("{} is no number", claim.value.text);
      outcome.values.clear();
      return outcome;
    }
    outcome.values.push_back(*value);
  }
  outcome.possible = true;
  return outcome;
}

const StudyOutcome& StudyRuns::at(const StudyPoint& point) const { return known_.at(identity(point)); }

void StudyRuns::keep_subject() {
  if (options_.store_options.empty() || all_.empty()) return;
  current_ = experiment_.at_points(all_);
  current_.use(experiment_.network_model());
  preparer_.turn_to(current_);
  store_.set_subject(make_subject(preparer_, options_.file, options_.settings, options_.store_options));
}

}  // namespace convoy::studies
