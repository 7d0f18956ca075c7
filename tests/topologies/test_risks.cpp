// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "tests/support/approx.h"
#include "topologies/prices.h"
#include "topologies/regions.h"
#include "topologies/risks.h"

using namespace convoy;

namespace {

SpotRisk risk_of(std::string_view server, std::string_view region, RiskKind kind) {
  return find_spot_risk(interruption_rates(), server, region, kind).value();
}

/// Rows of two families of one provider and of another provider, in regions and zones of three areas.
std::vector<InterruptionRate> random_rates(std::mt19937& random) {
  const std::vector<std::string> servers{"aws-p3.2xlarge", "aws-p3.8xlarge", "aws-p3.*", "aws-g4dn.xlarge",
                                         "gcp-a2-highgpu-1g"};
  const std::vector<std::string> regions{"us-east-1", "us-east-1c", "us-east-2a",
                                         "us-west-2", "eu-west-1",  ""};
  std::vector<InterruptionRate> rates(1 + random() % 10);
  for (InterruptionRate& rate : rates) {
    rate.server = servers[random() % servers.size()];
    rate.region = regions[random() % regions.size()];
    rate.kind = random() % 2 ? RiskKind::trace : RiskKind::advisor;
    rate.per_host_h = static_cast<double>(1 + random() % 20) / 100;
    if (rate.kind == RiskKind::trace && random() % 2)
      rate.wait_h = static_cast<double>(1 + random() % 20) / 4;
  }
  return rates;
}

}  // namespace

TEST_CASE("interruptions: what is not told of a server is within what is told of its family") {
  int of_family = 0;
  for (unsigned seed = 1; seed <= 3000; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const std::vector<InterruptionRate> rates = random_rates(random);
    const RiskKind kind = random() % 2 ? RiskKind::trace : RiskKind::advisor;
    const std::string region = random() % 2 ? "us-east-1" : "ap-south-1";
    const std::optional<SpotRisk> risk = find_spot_risk(rates, "aws-p3.16xlarge", region, kind);
    std::vector<double> family_rates, family_waits, waits;
    bool any = false;
    for (const InterruptionRate& rate : rates) {
      const bool family = rate.server.starts_with("aws-p3.");
      any = any || rate.kind == kind;
      if (family && rate.kind == kind) family_rates.push_back(rate.per_host_h);
      if (rate.wait_h) waits.push_back(*rate.wait_h);
      if (family && rate.wait_h) family_waits.push_back(*rate.wait_h);
    }
    CHECK(risk.has_value() == any);
    if (!risk) continue;
    CHECK(risk->per_host_h > 0);
    const auto within = [](double figure, const std::vector<double>& all) {
      if (all.empty()) return true;
      const auto [least, most] = std::minmax_element(all.begin(), all.end());
      return *least <= figure && figure <= *most;
    };
    CHECK(within(risk->per_host_h, family_rates));
    CHECK(within(risk->wait_h, family_waits.empty() ? waits : family_waits));
    if (family_waits.empty()) CHECK_FALSE(risk->doubts.empty());  // a wait of nothing, or of others
    of_family += !family_rates.empty();
  }
  CHECK(of_family > 500);
}

TEST_CASE(
    "interruptions: without a figure nothing is better than the best of the family, nor less doubtful") {
  int compared = 0;
  for (unsigned seed = 1; seed <= 3000; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::vector<InterruptionRate> rates = random_rates(random);
    const RiskKind kind = random() % 2 ? RiskKind::trace : RiskKind::advisor;
    const std::optional<SpotRisk> before = find_spot_risk(rates, "aws-p3.2xlarge", "us-east-1", kind);
    const auto gone = rates.begin() + static_cast<std::ptrdiff_t>(random() % rates.size());
    double least_rate = INFINITY, least_wait = INFINITY;
    for (const InterruptionRate& rate : rates) {
      if (!rate.server.starts_with("aws-p3.")) continue;
      if (rate.kind == kind && &rate != &*gone) least_rate = std::min(least_rate, rate.per_host_h);
      if (rate.wait_h && &rate != &*gone) least_wait = std::min(least_wait, *rate.wait_h);
    }
    if (gone->wait_h && random() % 2) {
      if (gone->kind == kind && gone->server.starts_with("aws-p3."))
        least_rate = std::min(least_rate, gone->per_host_h);
      gone->wait_h.reset();
    } else {
      rates.erase(gone);
    }
    const std::optional<SpotRisk> after = find_spot_risk(rates, "aws-p3.2xlarge", "us-east-1", kind);
    if (!after) continue;
    REQUIRE(before);
    ++compared;
    if (std::isfinite(least_rate)) CHECK(after->per_host_h >= least_rate);
    if (std::isfinite(least_wait)) CHECK(after->wait_h >= least_wait);
    CHECK(after->doubts.size() >= before->doubts.size());
  }
  CHECK(compared > 1000);
}

TEST_CASE("interruptions: the nearest of family and region, and which it is") {
  const RiskKind trace = RiskKind::trace, advisor = RiskKind::advisor;
  // The two sizes whose times were 111-fold apart: Bamboo's trace of P3 tells no wait, SkyPilot's of
  // p3.2xlarge do.
  const SpotRisk small = risk_of("aws-p3.2xlarge", "us-east-1", trace),
                 large = risk_of("aws-p3.8xlarge", "us-east-1", trace);
  CHECK(small.wait_h == 2.88);
  CHECK(small.doubts.empty());
  CHECK(large.per_host_h == 0.611);
  CHECK(large.wait_h == 3.71);
  CHECK(large.doubts ==
        std::vector<std::string>{"how long it takes until aws-p3.8xlarge in us-east-1 is back is not "
                                 "known: 3.71 h, as aws-p3.2xlarge in us-east-1f"});
  // p4de is listed in us-east-1 and us-west-2 only.
  const SpotRisk next = risk_of("aws-p4de.24xlarge", "us-east-2", advisor);
  CHECK(next.per_host_h == risk_of("aws-p4de.24xlarge", "us-east-1", advisor).per_host_h);
  CHECK(
      next.doubts.front() ==
      "how often aws-p4de.24xlarge in us-east-2 is taken away is not known: as often as aws-p4de.24xlarge in "
      "us-east-1");
  CHECK(risk_of("aws-p4de.24xlarge", "us-east-1", advisor).doubts.size() == 1);  // no wait of p4de
  // A stated size in none of the regions; another provider's; a region whose name begins like another's.
  CHECK(risk_of("gcp-a2-highgpu-8g", "us-east1", trace).per_host_h == 0.0995);
  CHECK(risk_of("gcp-a2-ultragpu-1g", "us-east1", trace).doubts.size() == 2);
  CHECK(risk_of("azure-nc24rs-v3", "eastus", advisor).per_host_h > 0);
  std::vector<InterruptionRate> two(2);
  two[0].server = two[1].server = "azure-nc24rs-v3";
  two[0].region = "eastus2", two[0].per_host_h = 0.5;
  two[1].region = "eastus", two[1].per_host_h = 0.1;
  CHECK(find_spot_risk(two, "azure-nc24rs-v3", "eastus", advisor)->per_host_h == 0.1);
  for (const auto& [name, family] : {std::pair{"aws-p3.2xlarge", "aws-p3"},
                                     {"aws-p3.*", "aws-p3"},
                                     {"gcp-a2-highgpu-8g", "gcp-a2-highgpu"},
                                     {"gcp-a2-highgpu-*", "gcp-a2-highgpu"},
                                     {"gcp-n1-standard-64-v100x8", "gcp-n1-standard-v100"},
                                     {"gcp-n1-standard-*-v100*", "gcp-n1-standard-v100"}})
    CHECK(server_family(name) == family);
}

TEST_CASE(
    "interruptions: a share of a month is a rate, a range counts with its middle, an open one with its "
    "median") {
  for (const InterruptionRate& row : interruption_rates()) {
    CAPTURE(row.server);
    CAPTURE(row.region);
    CHECK(row.per_host_h > 0);
    CHECK(row.low_per_host_h <= row.per_host_h);
    CHECK(row.least_per_host_h <= row.per_host_h);
    CHECK(row.most_per_host_h >= row.per_host_h);
    if (row.high_per_host_h) CHECK(row.per_host_h <= *row.high_per_host_h);
    CHECK(row.lost_at_once >= 1);
    if (row.kind == RiskKind::advisor) {
      // In 730 hours, fewer than half of the machines are interrupted.
      CHECK(1 - std::exp(-730 * row.per_host_h) < 0.5);
      if (!row.high_per_host_h) {
        // 119 of 166 published rows say more than 20 %: rates beyond it, in a month, are exponential with this mean.
        const double mean = -std::log(0.8) / std::log(166.0 / 119.0);
        CHECK(1 - std::exp(-730 * row.low_per_host_h) == approx(0.2));
        CHECK(730 * row.per_host_h == approx(-std::log(0.8) + mean * std::log(2.0)));
        CHECK(730 * row.least_per_host_h == approx(-std::log(0.8) - mean * std::log(0.9)));
        CHECK(730 * row.most_per_host_h == approx(-std::log(0.8) - mean * std::log(0.1)));
      }
    }
  }
}

TEST_CASE("interruptions: recorded traces are far harsher than the provider's figures") {
  CHECK(risk_of("aws-p3.2xlarge", "us-east-1", RiskKind::trace).per_host_h >
        100 * risk_of("aws-p3.2xlarge", "us-east-1", RiskKind::advisor).per_host_h);
  // Bamboo's trace of P3 (size not stated): 0.611 a machine and hour, 2.11 machines at once.
  const SpotRisk bamboo = risk_of("aws-p3.16xlarge", "", RiskKind::trace);
  CHECK(bamboo.per_host_h == 0.611);
  CHECK(bamboo.lost_at_once == 2.11);
  CHECK(risk_of("aws-p3.2xlarge", "us-west-2", RiskKind::trace).per_host_h == 0.611);
}

TEST_CASE("failures of hosts by device") {
  CHECK(failure_rate_of("a100-sxm4-80gb").per_host_day == 0.0065);   // RSC-1
  CHECK(failure_rate_of("h100-sxm5-80gb").per_host_day == 0.00379);  // 419 of 2,048 hosts in 54 days
  CHECK(419.0 / 2048 / 54 == approx(0.00379).epsilon(0.01));
  CHECK(failure_rate_of("k80").per_host_day == 0.0065);
}

TEST_CASE("carbon of a region: energy x PUE x grid") {
  const GridRegion* region = find_grid_region("gcp", "us-central1");
  REQUIRE(region);
  CHECK(region->carbon_kg(3.6e6 * 100) == approx(100 * 1.11 * 0.5663));
  const GridRegion* other = find_grid_region("aws", "us-east-1");
  REQUIRE(other);
  CHECK_FALSE(other->pue);
  CHECK(other->carbon_kg(3.6e6) == approx(assumed_pue * 0.3678));
  CHECK(find_grid_region("aws", "mars-1") == nullptr);
  double sum = 0, count = 0;
  std::set<std::pair<std::string, std::string>> names;
  for (const GridRegion& row : grid_regions()) {
    CHECK(names.emplace(row.provider, row.region).second);
    CHECK(row.source.size() > 10);
    if (row.pue) sum += *row.pue, count += 1;
  }
  CHECK(assumed_pue == approx(sum / count).epsilon(0.005));
}

TEST_CASE("every region with prices of a large provider has a carbon figure") {
  for (const Price& price : PriceTable::shipped().prices())
    if (price.provider == "aws" || price.provider == "azure" || price.provider == "gcp") {
      CAPTURE(price.region);
      CHECK(find_grid_region(price.provider, price.region) != nullptr);
    }
}
