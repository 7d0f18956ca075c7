// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "tests/support/approx.h"
#include "topologies/price_age.h"

using namespace convoy;

namespace {

Price price(const char* provider, const char* server, double usd, const char* from, const char* until) {
  Price row;
  row.server = server, row.provider = provider, row.region = "r";
  row.usd_per_hour = usd, row.from = from, row.until = until;
  return row;
}

}  // namespace

TEST_CASE("price age: years between days, of months and years their middle") {
  CHECK(years_between("2024-07-20", "2025-07-20") == approx(365 / 365.25));
  CHECK(years_between("2025-09", "2025-09-15") == 0);
  CHECK(years_between("2025", "2025-07-01") == 0);
  CHECK(years_between("2025-09", "2026-07-20") == approx(308 / 365.25));
}

TEST_CASE("price age: changes over the years in which machines were seen, providers alike") {
  // By hand: a doubles once in 4 machine-years; b never moves in 2.
  const std::vector<Price> rows{
      price("a", "a-1", 1, "2021-01-01", "2022-01-01"), price("a", "a-1", 2, "2022-06-01", "2023-01-01"),
      price("a", "a-2", 5, "2021-01-01", "2023-01-01"), price("b", "b-1", 7, "2021-01-01", "2023-01-01"),
      price("c", "c-1", 7, "2021", "")};  // seen once: says nothing
  const double of_a = std::log(2) * std::log(2) / (4 * 730 / 730.5);
  CHECK(price_variance_a_year(rows, Market::on_demand) == approx(of_a / 2));
  CHECK(price_variance_a_year(rows, Market::on_demand, "a") == 0);
  CHECK(price_variance_a_year(rows, Market::on_demand, "b") == approx(of_a));
  CHECK(price_variance_a_year(rows, Market::spot) == 0);
}

TEST_CASE("price age: the program's table, and what each of its providers says of the others") {
  const std::vector<Price>& prices = PriceTable::shipped().prices();
  CHECK(price_reach(Market::on_demand, 0) == 0);
  CHECK(price_reach(Market::on_demand, 4) == approx(2 * price_reach(Market::on_demand, 1)));
  // docs/planning.md says so
  CHECK(std::exp(price_reach(Market::on_demand, 1)) == approx(1.43).epsilon(5e-3));
  CHECK(std::exp(price_reach(Market::spot, 1)) == approx(6.9).epsilon(5e-3));
  // Student's t below which nine of ten of its values lie, by degrees of freedom (any table of it).
  const std::map<std::size_t, double> nine_of_ten{{1, 3.078}, {2, 1.886}, {3, 1.638}};
  for (const Market market : {Market::on_demand, Market::spot}) {
    const std::size_t providers = price_providers(prices, market);
    CHECK(providers == (market == Market::spot ? 1 : 3));
    CHECK(price_reach(market, 1) ==
          approx(nine_of_ten.at(providers) * std::sqrt(price_variance_a_year(prices, market))).epsilon(1e-3));
  }
  // Fitted without a provider, four of five of its machines' prices should lie inside when they were seen again: so
  // they do of AWS and Azure, which reprice seldom. Lambda raised all of its prices by more than the others ever did.
  const auto share_inside = [&](const std::string& provider, double variance) {
    double seen = 0, inside = 0;
    for (const Price& first : prices)
      for (const Price& later : prices) {
        if (first.provider != provider || first.market != Market::on_demand || first.server != later.server ||
            first.region != later.region || later.market != first.market)
          continue;
        if (&first == &later ? first.until.empty() || first.until == first.from : later.from <= first.from)
          continue;
        const double years =
            &first == &later ? years_between(first.from, first.until) : years_between(first.from, later.from);
        ++seen;
        inside += std::abs(std::log(later.usd_per_hour / first.usd_per_hour)) <=
                  nine_of_ten.at(2) * std::sqrt(variance * years);
      }
    return inside / seen;
  };
  for (const char* provider : {"aws", "azure"})
    CHECK(share_inside(provider, price_variance_a_year(prices, Market::on_demand, provider)) > 0.8);
  CHECK(share_inside("lambda", price_variance_a_year(prices, Market::on_demand, "lambda")) == 0);
}
