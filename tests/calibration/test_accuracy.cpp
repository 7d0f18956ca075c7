// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/base/data_path.h"
#include "sim/base/yaml_map.h"
#include "sim/calibration/calibration.h"

using namespace convoy;

namespace {

// Published figures that others contradict. Their errors are pinned, not hidden.
struct Exception {
  std::string device, model, precision, framework, why;
  double batch = 0, error = 0;
};

const std::vector<Exception>& exceptions() {
  static const std::vector<Exception> all = [] {
    std::vector<Exception> rows;
    const YamlNode file = load_yaml(data_path("results/published") + "/single_device_disputed.yaml");
    YamlMap root(file, "");
    for (YamlMap& row : root.maps("disputed")) {
      rows.push_back({row.text("device"), row.text("model"), row.text("precision"), row.text("framework"),
                      row.text("why"), row.number("batch", 1), row.number("error", -1)});
      row.finish();
    }
    root.finish();
    return rows;
  }();
  return all;
}

const Exception* exception_for(const AccuracyRow& row) {
  for (const Exception& e : exceptions())
    if (row.device == e.device && row.model == e.model && row.batch == e.batch &&
        row.precision == e.precision && row.framework == e.framework)
      return &e;
  return nullptr;
}

std::string name(const AccuracyRow& row) {
  return fmt::format("{} {} {} batch {} ({}): published {:.1f}, predicted {:.1f} images/s", row.device,
                     row.precision, row.model, row.batch, row.framework, row.published, row.predicted);
}

}  // namespace

TEST_CASE(
    "training throughput of one device is within 20 % of every published figure that others do not "
    "contradict") {
  std::set<const Exception*> used;
  for (const AccuracyRow& row : single_device_accuracy()) {
    INFO(name(row));
    CHECK(row.error == doctest::Approx(row.predicted / row.published - 1));
    const Exception* exception = exception_for(row);
    if (!exception) {
      CHECK(std::abs(row.error) <= 0.20);
      continue;
    }
    INFO(exception->why);
    used.insert(exception);
    CHECK(row.role == "test");
    CHECK(std::abs(row.error) > 0.20);
    CHECK(row.error == doctest::Approx(exception->error).scale(1).epsilon(0.01));
  }
  CHECK(used.size() == exceptions().size());
}

TEST_CASE("the mean error over all published figures, exceptions included, is within 10 %") {
  std::map<std::string, std::pair<double, int>> by_role;
  double sum = 0;
  int count = 0;
  for (const AccuracyRow& row : single_device_accuracy()) {
    sum += std::abs(row.error);
    ++count;
    by_role[row.role].first += std::abs(row.error);
    ++by_role[row.role].second;
  }
  REQUIRE(by_role.at("fit").second >= 60);
  REQUIRE(by_role.at("test").second >= 100);
  MESSAGE(fmt::format("mean error: fitted rows {:.1f} %, rows kept for testing {:.1f} %, all {:.1f} %",
                      100 * by_role.at("fit").first / by_role.at("fit").second,
                      100 * by_role.at("test").first / by_role.at("test").second, 100 * sum / count));
  CHECK(sum / count <= 0.10);
}

TEST_CASE("every device with published figures predicts them within 10 % on average, exceptions aside") {
  std::map<std::string, std::pair<double, int>> by_device;
  for (const AccuracyRow& row : single_device_accuracy()) {
    if (exception_for(row)) continue;
    by_device[row.device].first += std::abs(row.error);
    ++by_device[row.device].second;
  }
  for (const char* device : {"k80", "p100-sxm2-16gb", "v100-sxm2-16gb", "titan-x-maxwell", "gtx-1080-ti",
                             "t4", "a100-sxm4-80gb", "h100-sxm5-80gb", "xeon-e5-2630-v3-dual"})
    CHECK(by_device.contains(device));
  for (const auto& [device, error] : by_device) {
    CAPTURE(device);
    CHECK(error.first / error.second <= 0.10);
  }
}
