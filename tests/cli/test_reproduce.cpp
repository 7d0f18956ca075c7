// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

using nlohmann::json;

TEST_CASE("reproduce: published measurements are met within the stated tolerances") {
  const Workplace place;
  const Finished run = place.convoy({"reproduce", "--json"});
  CHECK(run.exit_code == 0);
  const json report = json::parse(run.out);
  REQUIRE(report["reproductions"].size() == 2);
  for (const json& reproduction : report["reproductions"]) {
    CAPTURE(reproduction["name"].get<std::string>());
    double sum = 0, worst = 0;
    int count = 0;
    for (const json& row : reproduction["rows"]) {
      const double error =
          row["predicted_images_per_s"].get<double>() / row["published_images_per_s"].get<double>() - 1;
      CHECK(row["error"].get<double>() == doctest::Approx(error).epsilon(1e-9));
      if (row["anchor"] == true) continue;
      sum += std::abs(error);
      ++count;
      if (row["disputed"] == "") worst = std::max(worst, std::abs(error));
    }
    CHECK(count >= 60);
    CHECK(reproduction["mean_error"].get<double>() == doctest::Approx(sum / count).epsilon(1e-9));
    CHECK(reproduction["worst_error"].get<double>() == doctest::Approx(worst).epsilon(1e-9));
    CHECK(sum / count <= (reproduction["name"] == "scaling" ? 0.05 : 0.10));
    CHECK(worst <= (reproduction["name"] == "scaling" ? 0.15 : 0.20));
  }
}

TEST_CASE(
    "reproduce: from one device to 64, servers on the nodes against the ring: the order of the measured "
    "ones") {
  const Workplace place;
  const json report = json::parse(place.convoy({"reproduce", "scaling", "--json"}).out);
  // A table's larger setups are faster in the measurements; so they are in the predictions.
  const json& rows = report["reproductions"][0]["rows"];
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const json &smaller = rows[i - 1], &larger = rows[i];
    if (larger["anchor"] == true) continue;
    CHECK(smaller["published_images_per_s"] < larger["published_images_per_s"]);
    CHECK(smaller["predicted_images_per_s"] < larger["predicted_images_per_s"]);
  }
}

TEST_CASE("reproduce: a table for people, with the verdict") {
  const Workplace place;
  const Finished run = place.convoy({"reproduce", "scaling"});
  CHECK(run.exit_code == 0);
  CHECK(run.out.find("scaling: mean error ") != std::string::npos);
  CHECK(run.out.find("%): passed\n") != std::string::npos);
}
