// SPDX-License-Identifier: MIT
#include "sim/studies/reproduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <tuple>

#include "sim/base/median.h"
#include "sim/calibration/calibration.h"
#include "sim/results/json_writer.h"
#include "sim/run/workers.h"

namespace convoy::inline studies {
namespace {

/// A summary without names.
ErrorSummary summary_of(std::vector<double> errors) {
  ErrorSummary summary;
  summary.rows = errors.size();
  if (errors.empty()) return summary;
  const double count = static_cast<double>(errors.size());
  for (const double error : errors) {
    summary.bias += error / count;
    summary.mean += std::abs(error) / count;
  }
  for (double& error : errors) error = std::abs(error);
  std::sort(errors.begin(), errors.end());
  summary.median = median(errors);
  summary.ninety = errors[errors.size() * 9 / 10];
  return summary;
}

template <class Counts>
double mean_of(const std::vector<ReproducedRow>& rows, Counts counts) {
  double sum = 0;
  std::size_t count = 0;
  for (const ReproducedRow& row : rows)
    if (counts(row)) sum += std::abs(row.error), ++count;
  return count ? sum / static_cast<double>(count) : 0;
}

}  // namespace

double Reproduction::mean_error() const {
  return mean_of(rows, [](const ReproducedRow& row) { return row.tested(); });
}

double Reproduction::median_error() const {
  std::vector<double> errors;
  for (const ReproducedRow& row : rows)
    if (row.tested()) errors.push_back(std::abs(row.error));
  return summary_of(std::move(errors)).median;
}

bool Reproduction::passed() const {
  return as_listed() &&
         std::all_of(gates.begin(), gates.end(), [](const Gate& gate) { return gate.inside(); });
}

bool Reproduction::as_listed() const {
  return outdated_shortfalls.empty() &&
         std::all_of(gates.begin(), gates.end(), [](const Gate& gate) { return gate.as_listed(); });
}

std::optional<double> Reproduction::coverage() const {
  double tested = 0, inside = 0;
  for (const ReproducedRow& row : rows) {
    if (!row.tested() || row.sets_interval || !row.interval) continue;
    ++tested;
    if ((*row.interval)[0] <= row.published && row.published <= (*row.interval)[1]) ++inside;
  }
  if (tested == 0) return std::nullopt;
  return inside / tested;
}

OrderCount right_order(const std::vector<ReproducedRow>& rows) {
  constexpr double apart = 1.03;
  OrderCount count;
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = i + 1; j < rows.size(); ++j) {
      const ReproducedRow &a = rows[i], &b = rows[j];
      if (!a.tested() || !b.tested() || a.group.empty() || a.table == b.table) continue;
      if (std::tie(a.group, a.model, a.setup) != std::tie(b.group, b.model, b.setup)) continue;
      const auto [less, more] = std::minmax({a.published, b.published});
      if (more <= apart * less) continue;
      ++count.pairs;
      if ((a.published < b.published) == (a.predicted < b.predicted)) ++count.right;
    }
  return count;
}

double Reproduction::fitted_error() const {
  return mean_of(rows, [](const ReproducedRow& row) { return row.fitted; });
}

double Reproduction::worst_error() const {
  double worst = 0;
  for (const ReproducedRow& row : rows)
    if (row.tested() && row.shortfall.empty()) worst = std::max(worst, std::abs(row.error));
  return worst;
}

std::vector<ErrorSummary> summaries_by_group(ErrorGroups groups) {
  std::vector<ErrorSummary> summaries;
  for (auto& [key, errors] : groups) {
    ErrorSummary& summary = summaries.emplace_back(summary_of(std::move(errors)));
    summary.role = key[0];
    summary.group = key[1];
    summary.name = key[2];
  }
  return summaries;
}

double KernelReproduction::worst() const {
  double worst = 0;
  for (const KernelAccuracy& row : rows)
    if (row.kind == "all") worst = std::max(worst, row.test_error);
  return worst;
}

KernelReproduction reproduce_kernels() { return {worst_median_of_kernels(), kernel_cross_validation()}; }

namespace {

std::string to_line(const Prediction& prediction) {
  const auto word = [](const std::string& text) { return text.empty() ? "-" : text; };
  std::string line =
      fmt::format("{} {} {}", shortest(prediction.value), word(prediction.kind), word(prediction.transport));
  if (prediction.interval)
    line += " " + shortest((*prediction.interval)[0]) + " " + shortest((*prediction.interval)[1]);
  return line;
}

void from_line(const std::string& line, ReproducedRow& row) {
  std::istringstream words(line);
  std::string value, low, high;
  words >> value >> row.kind >> row.transport;
  row.predicted = std::stod(value);
  for (std::string* text : {&row.kind, &row.transport})
    if (*text == "-") text->clear();
  if (words >> low >> high) row.interval = {std::stod(low), std::stod(high)};
}

}  // namespace

void predict_rows(Reproduction& reproduction, std::size_t jobs,
                  const std::function<Prediction(std::size_t, Preparer&)>& predict) {
  std::vector<ReproducedRow>& rows = reproduction.rows;
  std::string failure;
  Preparer preparer;  // each worker continues with its own copy
  const FirstHalf predict_row = [&](std::size_t i) -> SecondHalf {
    return [&, i] { return to_line(predict(i, preparer)); };
  };
  const auto answered = [&](std::size_t i, WorkerAnswer answer) {
    if (answer.kind != WorkerAnswer::Kind::done)
      failure = answer.bytes;
    else
      from_line(answer.bytes, rows[i]);
    rows[i].error = rows[i].predicted / rows[i].published - 1;
  };
  run_in_workers(rows.size(), jobs, predict_row, answered);
  if (!failure.empty()) throw std::runtime_error(failure);
}

}  // namespace convoy::studies
