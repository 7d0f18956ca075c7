// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "sim/calibration/catalogue_fit.h"
#include "sim/calibration/cross_validation.h"
#include "tests/calibration/written_file.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

/// Rows of three devices, of two sources and two families; those of the Titan V are `factor` times as fast.
std::vector<Measurement> rows(double factor) {
  std::string text = "device,model,batch,precision,step,software,images_per_s,role,source\n";
  const auto add = [&](const std::string& device, const std::string& model, double speed,
                       const std::string& source) {
    text += device + "," + model + ",64,fp32,train,pytorch1," + std::to_string(speed) +
            ",fit,github:" + source + "@1:x\n";
  };
  add("v100-sxm2-16gb", "resnet50", 380, "a/a");
  add("v100-sxm2-16gb", "vgg16", 240, "a/a");
  add("titan-v", "resnet50", 320 * factor, "b/b");
  add("titan-v", "vgg16", 200 * factor, "b/b");
  add("gtx-1080-ti", "resnet50", 210, "a/a");
  const WrittenFile file(text);
  return read_measurements(file.path());
}

}  // namespace

TEST_CASE("a row that was left out is predicted the same whatever was measured") {
  for (const auto& [by, name] :
       {std::pair{LeaveOut::device, "titan-v"}, std::pair{LeaveOut::source, "b/b"}}) {
    const std::vector<LeftOutRow> usual = cross_validate(rows(1), by), twice = cross_validate(rows(2), by);
    REQUIRE(usual.size() == 5);
    REQUIRE(twice.size() == 5);
    int left_out = 0;
    for (std::size_t r = 0; r < usual.size(); ++r) {
      if (usual[r].group != name) continue;
      ++left_out;
      CHECK(usual[r].without_s == approx(twice[r].without_s).epsilon(0.02));
      CHECK(usual[r].with_s > 1.15 * twice[r].with_s);  // the fit that has seen it follows it
    }
    CHECK(left_out == 2);
  }
}

TEST_CASE("boards that differ in the size of their memory alone are one device of the fit") {
  std::vector<Measurement> renamed = rows(1);
  renamed[0].device = "v100-sxm2-32gb";
  for (const LeaveOut by : {LeaveOut::device, LeaveOut::source}) {
    const std::vector<LeftOutRow> usual = cross_validate(rows(1), by), other = cross_validate(renamed, by);
    REQUIRE(usual.size() == other.size());
    for (std::size_t r = 0; r < usual.size(); ++r) {
      CHECK(usual[r].group == other[r].group);
      CHECK(usual[r].device_unseen == other[r].device_unseen);
      CHECK(usual[r].with_s == other[r].with_s);
      CHECK(usual[r].without_s == other[r].without_s);
    }
  }
  const CatalogueFit fit = fit_catalogue(renamed);
  CHECK(fit.devices.at("v100-sxm2-16gb") == fit.devices.at("v100-sxm2-32gb"));
  CHECK(fit.devices.at("v100-sxm2-16gb") != fit.devices.at("v100-pcie-16gb"));
}

TEST_CASE("fused operations leave a part of their passes, of every framework that is compiled") {
  const CatalogueFit fit = fit_catalogue(rows(1));
  REQUIRE(!fit.software.empty());
  for (const auto& [framework, text] : fit.software) {
    CAPTURE(framework);
    const std::size_t compiled = text.find("compiled:\n");
    REQUIRE(compiled != std::string::npos);
    const std::size_t fused = text.find("fused: ", compiled);
    REQUIRE(fused != std::string::npos);
    CHECK(std::stod(text.substr(fused + 7)) > 0);
    CHECK(std::stod(text.substr(fused + 7)) < 1);
  }
}

TEST_CASE("rows with role test tell the fit nothing, and are predicted where their source is left out") {
  const auto with_test_rows = [](double factor) {
    std::vector<Measurement> measurements = rows(1);
    for (const char* source : {"github:b/b@1:x", "github:c/c@1:x"}) {
      Measurement more = measurements[2];  // Titan V, ResNet-50
      more.model = "mobilenet_v2";
      more.images_per_s = 250 * factor;
      more.role = RowRole::test;
      more.source = source;
      measurements.push_back(more);
    }
    return measurements;
  };
  const std::vector<LeftOutRow> usual = cross_validate(with_test_rows(1), LeaveOut::source),
                                twice = cross_validate(with_test_rows(2), LeaveOut::source);
  REQUIRE(usual.size() == 7);
  REQUIRE(twice.size() == 7);
  for (std::size_t r = 0; r < usual.size(); ++r) {
    CHECK(usual[r].without_s == twice[r].without_s);
    CHECK(usual[r].host_slope >= 0);
    CHECK(usual[r].host_slope <= 1.001);
    // What each fit has not seen: the only rows of the Titan V are of b/b, the only of PyTorch 1 of both, and
    // none, on whatever device, is of a network with grouped convolutions.
    const bool titan = usual[r].measurement.device == "titan-v", of_b = usual[r].group == "b/b";
    CHECK(usual[r].device_unseen == (titan ? of_b : usual[r].group == "a/a"));
    const bool mobile = usual[r].measurement.model == "mobilenet_v2";
    CHECK(usual[r].networks_unseen == (mobile && !usual[r].device_unseen));
    CHECK(usual[r].convolutions_unseen == mobile);
    CHECK_FALSE(usual[r].software_unseen);
  }
}

TEST_CASE("a framework without rows on Kepler is unknown there, however many others have some") {
  std::vector<Measurement> measurements = rows(1);
  const auto add = [&](Framework framework, double speed, const char* source) {
    Measurement more = measurements[0];  // ResNet-50
    more.device = "k80";
    more.software = framework;
    more.images_per_s = speed;
    more.source = source;
    measurements.push_back(more);
  };
  add(Framework::pytorch1, 45, "github:a/a@1:x");
  add(Framework::tensorflow1, 40, "github:c/c@1:x");
  add(Framework::tensorflow1, 41, "github:d/d@1:x");
  add(Framework::caffe, 42, "github:d/d@1:x");
  for (const LeftOutRow& row : cross_validate(measurements, LeaveOut::source)) {
    const Measurement& m = row.measurement;
    CAPTURE(m.device);
    CAPTURE(row.group);
    CAPTURE(to_string(m.software));
    // TensorFlow 1 has rows of two sources on the K80, the others of one.
    const bool unknown = m.device == "k80" && m.software != Framework::tensorflow1;
    CHECK(row.generation_unseen == unknown);
    CHECK(row.generation_factors.size() == (unknown ? 2 : 0));
    if (unknown)
      CHECK(row.generation_slope > 0.5);  // most of ResNet-50 are products
    else
      CHECK(row.generation_slope == 0);
    CHECK(row.generation_slope < 1.001);
  }
}

TEST_CASE("a step depends on the copy of its batch as far as that takes of it, and not at all without one") {
  std::vector<Measurement> measurements = rows(1);
  Measurement fed = measurements[0];  // ResNet-50
  fed.source = "github:c/c@1:x";
  fed.fed_from_arrays = true;
  measurements.push_back(fed);
  std::size_t count = 0;
  for (const LeftOutRow& row : cross_validate(measurements, LeaveOut::source)) {
    if (!row.measurement.fed_from_arrays) {
      CHECK(row.feed_slope == 0);
      continue;
    }
    // Nothing else tells of copies: 5 GB/s, of values of 4 bytes.
    const double copy_s = row.measurement.batch * 3 * 224 * 224 * 4 / 5e9;
    CHECK(row.feed_slope == approx(copy_s / row.without_s).epsilon(0.04));
    ++count;
  }
  CHECK(count == 1);
}

TEST_CASE("families and generations are left out by their names, test rows not at all") {
  std::vector<Measurement> measurements = rows(1);
  measurements.back().role = RowRole::test;  // GTX 1080 Ti
  const std::vector<LeftOutRow> families = cross_validate(measurements, LeaveOut::family);
  REQUIRE(families.size() == 4);
  CHECK(families.front().group == "resnet");
  CHECK(families.back().group == "vgg");
  for (const LeftOutRow& row : cross_validate(measurements, LeaveOut::generation))
    CHECK(row.group == "volta");
}
