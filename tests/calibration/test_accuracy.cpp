// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "sim/base/median.h"
#include "sim/calibration/calibration.h"

using namespace convoy;

namespace {

const std::vector<AccuracyRow>& published_rows() {
  static const std::vector<AccuracyRow> rows = single_device_accuracy();
  return rows;
}

/// Which host a row is predicted on: that of its machine, where hosts.csv has it, or the typical one, as
/// where nothing is known.
enum class OnHost { its_own, typical };
std::vector<double> errors_of(const std::string& role, OnHost host = OnHost::its_own) {
  std::vector<double> errors;
  for (const AccuracyRow& row : published_rows())
    if (row.role == role)
      errors.push_back(
          std::abs(host == OnHost::its_own ? row.error : row.on_typical_host / row.published - 1));
  std::sort(errors.begin(), errors.end());
  return errors;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace

TEST_CASE("figures that nothing was fitted to: half are predicted within 10 %, and 15 % on average") {
  const std::vector<double> test = errors_of("test"), fit = errors_of("fit");
  REQUIRE(fit.size() >= 300);
  REQUIRE(test.size() >= 300);
  MESSAGE(
      fmt::format("fitted rows: median {:.1f} %, mean {:.1f} %; test rows: median {:.1f} %, mean {:.1f} %",
                  100 * median(fit), 100 * mean(fit), 100 * median(test), 100 * mean(test)));
  CHECK(median(test) <= 0.10);
  CHECK(mean(test) <= 0.15);
}

TEST_CASE("the same figures on typical hosts, as they are predicted for who knows nothing of them") {
  const std::vector<double> test = errors_of("test", OnHost::typical);
  CHECK(median(test) <= 0.10);
  CHECK(mean(test) <= 0.15);
  CHECK(mean(test) > mean(errors_of("test")));  // that hosts differ is no invention of the fit's
  std::size_t known = 0;
  for (const AccuracyRow& row : published_rows()) {
    known += row.host_known ? 1 : 0;
    if (!row.host_known) CHECK(row.predicted == row.on_typical_host);
  }
  CHECK(known > 100);
}

TEST_CASE("between 70 and 90 % of the figures that nothing was fitted to lie inside their 80 % interval") {
  double inside = 0, count = 0;
  for (const AccuracyRow& row : published_rows()) {
    CHECK(row.low < row.predicted);
    CHECK(row.predicted < row.high);
    if (row.role != "test") continue;
    ++count;
    if (row.low <= row.published && row.published <= row.high) ++inside;
  }
  CAPTURE(inside / count);
  CHECK(inside / count >= 0.70);
  CHECK(inside / count <= 0.90);
}

TEST_CASE("no device with five test rows or more is biased by more than 15 %, but in what cannot be had") {
  std::map<std::string, std::vector<double>> errors;
  for (const AccuracyRow& row : published_rows()) {
    if (row.role != "test") continue;
    // PyTorch 1.4 computes half precision on GeForce Pascal slower than single: a law forbids that
    // (docs/cost_model.md).
    const bool forbidden =
        row.precision == "fp16" && (row.device == "titan-xp" || row.device == "gtx-1080-ti");
    if (!forbidden) errors[row.device].push_back(row.error);
  }
  for (const auto& [device, all] : errors) {
    if (all.size() < 5) continue;
    CAPTURE(device);
    CHECK(std::abs(mean(all)) <= 0.15);
  }
}
