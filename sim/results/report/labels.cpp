// SPDX-License-Identifier: MIT
#include "sim/results/report/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "sim/base/quantity.h"
#include "sim/page/text.h"
#include "sim/results/coordinates.h"

namespace convoy::inline results {
namespace {

bool has(const std::vector<std::size_t>& list, std::size_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

/// Whether two of the runs of a series have the same place.
bool collide(const std::vector<RunSeries>& all, const std::function<double(std::size_t)>& x) {
  for (const RunSeries& series : all) {
    std::set<double> seen;
    for (const std::size_t run : series.runs)
      if (!seen.insert(x(run)).second) return true;
  }
  return false;
}

void sort_by(std::vector<RunSeries>& all, const std::function<double(std::size_t)>& x) {
  for (RunSeries& series : all)
    std::stable_sort(series.runs.begin(), series.runs.end(),
                     [&](std::size_t a, std::size_t b) { return x(a) < x(b); });
}

void append(std::string& label, const std::string& part) {
  if (part.empty()) return;
  if (!label.empty()) label += ", ";
  label += part;
}

}  // namespace

RunLabels::RunLabels(const std::vector<RunFigures>& runs) : runs_(runs) {
  std::set<std::string> seen;
  for (const RunFigures& run : runs)
    if (seen.insert(run.words.model).second) models_.push_back(run.words.model);
  if (runs.empty()) return;
  for (std::size_t c = 0; c < runs.front().point.size(); ++c) {
    const std::string first = to_flow(runs.front().point[c].second);
    if (std::any_of(runs.begin(), runs.end(),
                    [&](const RunFigures& r) { return to_flow(r.point[c].second) != first; }))
      varying_.push_back(c);
  }
}

std::vector<std::size_t> RunLabels::of_model(const std::string& model) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < runs_.size(); ++i)
    if (runs_[i].words.model == model) found.push_back(i);
  return found;
}

std::string RunLabels::name_of(std::size_t coordinate) const { return last_key(path_of(coordinate)); }

std::string RunLabels::value_text(std::size_t run, std::size_t coordinate) const {
  return to_flow(runs_[run].point[coordinate].second);
}

std::optional<double> RunLabels::value_of(std::size_t run, std::size_t coordinate) const {
  const YamlNode& value = runs_[run].point[coordinate].second;
  if (value.kind != YamlNode::Kind::scalar) return std::nullopt;
  if (const std::optional<double> number = parse_number(value.scalar)) return number;
  std::string why;
  for (const Dimension dimension :
       {Dimension::bytes, Dimension::bandwidth, Dimension::time, Dimension::flop_rate, Dimension::power,
        Dimension::price, Dimension::fraction})
    if (const std::optional<double> number = parse_quantity(value.scalar, dimension, why)) return number;
  return std::nullopt;
}

bool RunLabels::sweeps(std::string_view path) const {
  return std::any_of(varying_.begin(), varying_.end(), [&](std::size_t c) { return path_of(c) == path; });
}

std::vector<std::string> RunLabels::worded(const std::vector<std::size_t>& wanted,
                                           const std::vector<std::size_t>& runs,
                                           const std::vector<std::size_t>& without, bool with_devices) const {
  if (wanted.empty()) return {};
  using Part = std::function<std::string(std::size_t)>;
  std::vector<Part> parts{[&](std::size_t r) { return runs_[r].words.model; }};
  // A cluster's name may contain its number of nodes, which is shown separately.
  if (sweeps("cluster")) parts.push_back([&](std::size_t r) { return runs_[r].words.cluster; });
  parts.push_back([&](std::size_t r) { return runs_[r].words.strategy; });
  std::vector<Part> more;  // shown if the others do not suffice
  for (const std::size_t c : varying_) {
    const std::string& path = path_of(c);
    if (has(without, c) || path == "model" || path == "cluster" || path == "strategy") continue;
    const Part part = [this, c](std::size_t r) { return fmt::format("{} {}", name_of(c), value_text(r, c)); };
    (path.starts_with("strategy.") || counts_devices(path) ? more : parts).push_back(part);
  }
  if (with_devices)
    parts.push_back([&](std::size_t r) {
      return fmt::format("{} {}", runs_[r].devices, runs_[r].devices == 1 ? "device" : "devices");
    });
  more.push_back([&](std::size_t r) { return fmt::format("run {}", runs_[r].id); });

  std::vector<Part> said;
  const auto say = [&](const Part& part) {
    const std::string first = part(runs.front());
    if (std::ranges::any_of(runs, [&](std::size_t r) { return part(r) != first; })) said.push_back(part);
  };
  const auto label = [&](std::size_t r) {
    std::string text;
    for (const Part& part : said) append(text, part(r));
    return text;
  };
  // A million labels would fill the memory that their hashes fit in; two that meet by chance are told apart once more.
  const auto are_different = [&] {
    std::vector<std::size_t> hashes;
    for (const std::size_t r : runs) hashes.push_back(std::hash<std::string>{}(label(r)));
    std::ranges::sort(hashes);
    return std::ranges::adjacent_find(hashes) == hashes.end();
  };
  for (const Part& part : parts) say(part);
  for (const Part& part : more) {
    if (are_different()) break;
    say(part);
  }
  std::vector<std::string> labels;
  for (const std::size_t r : wanted) {
    labels.push_back(label(r));
    if (labels.back().empty()) labels.back() = runs_[r].words.strategy;
  }
  return labels;
}

std::vector<std::string> RunLabels::labels(const std::vector<std::size_t>& runs) const {
  return worded(runs, runs, {}, true);
}

std::string RunLabels::label(std::size_t run, const std::vector<std::size_t>& runs) const {
  return worded({run}, runs, {}, true).front();
}

std::vector<RunSeries> RunLabels::grouped(const std::vector<std::size_t>& runs,
                                          const std::vector<std::size_t>& without, bool over_devices) const {
  std::map<std::string, std::size_t> index;
  std::vector<RunSeries> all;
  for (const std::size_t r : runs) {
    const RunFigures& run = runs_[r];
    std::string key = fmt::format("{}\n{}\n{}\n{}", run.words.model, run.words.servers, run.words.device_type,
                                  run.words.strategy);
    for (const std::size_t c : varying_) {
      const bool named = over_devices && path_of(c) == "cluster";  // by the name of its servers
      if (!has(without, c) && !named) key += fmt::format("\n{}", value_text(r, c));
    }
    const auto [it, fresh] = index.emplace(std::move(key), all.size());
    if (fresh) all.emplace_back();
    all[it->second].runs.push_back(r);
  }
  return all;
}

std::vector<RunSeries> RunLabels::over_devices(const std::vector<std::size_t>& runs) const {
  const auto devices = [&](std::size_t r) { return static_cast<double>(runs_[r].devices); };
  std::vector<std::size_t> counts;
  for (const std::size_t c : varying_)
    if (counts_devices(path_of(c))) counts.push_back(c);
  std::vector<RunSeries> all = grouped(runs, counts, true);
  // Several counts may be swept at once: then the series go over one of them.
  for (std::size_t i = 0; i < counts.size() && collide(all, devices); ++i)
    all = grouped(runs, {counts[i]}, true);
  if (collide(all, devices)) all = grouped(runs, {}, false);
  sort_by(all, devices);
  std::vector<std::size_t> firsts;
  for (const RunSeries& series : all) firsts.push_back(series.runs.front());
  const std::vector<std::string> labels = worded(firsts, firsts, counts, false);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].label = labels[i];
  return all;
}

std::vector<RunSeries> RunLabels::over(std::size_t coordinate, const std::vector<std::size_t>& runs) const {
  std::vector<std::size_t> numbers;
  for (const std::size_t r : runs)
    if (value_of(r, coordinate)) numbers.push_back(r);
  std::vector<std::size_t> without{coordinate};
  std::vector<RunSeries> all = grouped(numbers, without, false);
  sort_by(all, [&](std::size_t r) { return *value_of(r, coordinate); });
  std::vector<std::size_t> firsts;
  for (const RunSeries& series : all) firsts.push_back(series.runs.front());
  const std::vector<std::string> labels = worded(firsts, firsts, without, true);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].label = labels[i];
  return all;
}

}  // namespace convoy::results
