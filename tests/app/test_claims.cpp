// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "sim/app/claims.h"

using namespace convoy;

TEST_CASE("claims: a figure passes within its limits, both included, and counts from what is stated") {
  Claim claim{"what", "setup", true, 6, 7.5, "x", 4.5, 7.5, "source"};
  CHECK(claim.passed());
  CHECK(claim.error() == doctest::Approx(0.25));
  claim.ours = 7.51;
  CHECK(!claim.passed());
  claim.ours = 4.49;
  CHECK(!claim.passed());
  CHECK(!Claims{"name", "title", {{"a", "", true, 1, 1, "", 1, 1, ""}, claim}}.passed());
}

TEST_CASE("claims: elastic training, all figures") {
  const Claims claims = reproduce_kaist2019(1);
  REQUIRE(claims.rows.size() == 6);
  for (const Claim& row : claims.rows) {
    CAPTURE(row.what);
    CAPTURE(row.ours);
    CHECK(row.passed());
  }
}

TEST_CASE("claims: sharing a cluster, all figures") {
  for (const Claim& row : reproduce_afs(1).rows) {
    CAPTURE(row.what);
    CAPTURE(row.ours);
    CHECK(row.passed());
  }
}
