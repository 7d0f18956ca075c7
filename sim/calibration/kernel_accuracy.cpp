// SPDX-License-Identifier: MIT
#include "sim/calibration/kernel_accuracy.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/data_path.h"
#include "sim/base/median.h"
#include "sim/calibration/calibration.h"

namespace convoy::inline calibration {
namespace {

// |predicted/measured time - 1| of a row in images/s.
double time_error(const AccuracyRow& row) { return std::abs(row.published / row.predicted - 1); }

template <class Value>
void add_once(std::vector<Value>& list, const Value& value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

// `rows` and `catalogue` are the same rows, predicted by the fit and by the catalogue.
KernelAccuracy accuracy_of(const std::vector<AccuracyRow>& rows, const std::vector<AccuracyRow>& catalogue,
                           const std::string& precision, const std::string& kind) {
  KernelAccuracy result;
  result.device = rows.front().device;
  result.precision = precision;
  result.kind = kind;
  std::vector<double> fit, test, as_catalogued;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].precision != precision || (kind != "all" && rows[i].kind != kind)) continue;
    (rows[i].role == "fit" ? fit : test).push_back(time_error(rows[i]));
    if (rows[i].role == "test") as_catalogued.push_back(time_error(catalogue[i]));
  }
  result.fitted = fit.size();
  result.tested = test.size();
  result.fit_error = median(std::move(fit));
  result.test_error = median(std::move(test));
  result.catalogue_error = median(std::move(as_catalogued));
  return result;
}

}  // namespace

std::vector<KernelAccuracy> kernel_cross_validation() {
  struct File {
    const char *name, *measured_by;
  };
  static constexpr std::array files{File{"layers.csv", "DeepBench"},
                                    File{"layers_pipedream.csv", "PipeDream"},
                                    File{"layers_bf16.csv", "aiconfigurator"}};
  std::vector<KernelAccuracy> result;
  for (const File& file : files) {
    const std::string path = data_path("results/published") + "/" + file.name;
    const std::vector<AccuracyRow> all = kernel_accuracy(path);
    std::vector<std::string> devices;
    for (const AccuracyRow& row : all) add_once(devices, row.device);
    for (const std::string& device : devices) {
      std::vector<AccuracyRow> catalogue;
      std::copy_if(all.begin(), all.end(), std::back_inserter(catalogue),
                   [&](const AccuracyRow& row) { return row.device == device; });
      const std::vector<AccuracyRow> rows = calibrate({path}, device).rows;
      std::vector<std::string> precisions, kinds;
      for (const AccuracyRow& row : rows) {
        add_once(precisions, row.precision);
        add_once(kinds, row.kind);
      }
      kinds.emplace_back("all");
      for (const std::string& precision : precisions)
        for (const std::string& kind : kinds) {
          result.push_back(accuracy_of(rows, catalogue, precision, kind));
          result.back().measured_by = file.measured_by;
        }
    }
  }
  return result;
}

}  // namespace convoy::calibration
