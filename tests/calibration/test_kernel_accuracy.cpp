// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sim/base/data_path.h"
#include "sim/calibration/calibration.h"
#include "sim/calibration/kernel_accuracy.h"
#include "tests/support/approx.h"

using namespace convoy;

TEST_CASE("kernels that were not fitted are predicted within 20 % (median) on every device and precision") {
  std::set<std::string> devices;
  std::size_t tested = 0;
  for (const KernelAccuracy& row : kernel_cross_validation()) {
    CAPTURE(row.device);
    CAPTURE(row.precision);
    CAPTURE(row.measured_by);
    if (row.kind != "all") continue;
    devices.insert(row.device + row.precision);
    tested += row.tested;
    CHECK(row.fitted >= (row.precision == "bf16" ? 150 : 250));
    CHECK(row.tested >= 100);
    CHECK(row.fit_error <= 0.20);
    CHECK(row.test_error <= 0.20);
  }
  CHECK(devices.size() == 14);
  CHECK(tested >= 1500);
}

TEST_CASE("no kernel shape is both fitted and tested, whatever its batch, step, device and precision") {
  std::map<std::string, std::set<bool>> roles;
  for (const char* file : {"/layers.csv", "/layers_bf16.csv"})
    for (const Measurement& m : read_measurements(data_path("results/published") + file))
      roles[m.kernel].insert(m.fitted());
  CHECK(roles.size() >= 100);
  for (const auto& [kernel, fit] : roles) {
    CAPTURE(kernel);
    CHECK(fit.size() == 1);
  }
  // Of PipeDream's profiles whole networks are kept for testing.
  std::map<std::string, std::set<bool>> networks;
  for (const Measurement& m : read_measurements(data_path("results/published") + "/layers_pipedream.csv"))
    networks[m.source].insert(m.fitted());
  CHECK(networks.size() == 12);
  for (const auto& [network, fit] : networks) CHECK(fit.size() == 1);
}

TEST_CASE("the medians are those of the rows, counted a second time") {
  const std::string path = data_path("results/published") + "/layers.csv";
  const CalibrationReport report = calibrate({path}, "m40");
  std::vector<double> errors;
  for (const AccuracyRow& row : report.rows)
    if (row.role == "test" && row.kind == "matmul")
      errors.push_back(std::abs(row.published / row.predicted - 1));
  std::sort(errors.begin(), errors.end());
  REQUIRE(errors.size() == 55);
  for (const KernelAccuracy& row : kernel_cross_validation())
    if (row.device == "m40" && row.kind == "matmul") {
      CHECK(row.tested == 55);
      CHECK(row.test_error == approx(errors[27]).epsilon(1e-12));
    }
}
