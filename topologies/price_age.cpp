// SPDX-License-Identifier: MIT
#include "topologies/price_age.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/base/students_t.h"

namespace convoy::inline topologies {
namespace {

constexpr double days_a_year = 365.25;

/// Days since 1970-01-01; the middle of a month, or of a year, where no more is known.
double day_number(std::string_view day) {
  const auto part = [&](std::size_t at, std::size_t digits, int otherwise) {
    return day.size() < at + digits ? otherwise : std::stoi(std::string(day.substr(at, digits)));
  };
  using namespace std::chrono;
  const year_month_day date{year{part(0, 4, 1970)}, month{static_cast<unsigned>(part(5, 2, 7))},
                            std::chrono::day{static_cast<unsigned>(part(8, 2, day.size() < 7 ? 1 : 15))}};
  return static_cast<double>(sys_days(date).time_since_epoch().count());
}

/// How prices of a provider's machines moved: squares of the changes of log(price), and the years they are of.
struct Moves {
  double squares = 0, years = 0;
};

}  // namespace

double years_between(std::string_view from, std::string_view to) {
  return (day_number(to) - day_number(from)) / days_a_year;
}

std::string_view last_seen(const Price& price) { return price.until.empty() ? price.from : price.until; }

std::string newest_day(const PriceTable& table) {
  std::string day;
  for (const Price& price : table.prices()) day = std::max(day, std::string(last_seen(price)));
  return day;
}

namespace {

/// By provider; those none of whose machines was seen twice are left out.
std::map<std::string, Moves> moves_of_providers(const std::vector<Price>& prices, Market market,
                                                std::string_view without) {
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<const Price*>> machines;
  for (const Price& price : prices)
    if (price.market == market && price.provider != without && price.usd_per_hour > 0)
      machines[{price.provider, price.server, price.region}].push_back(&price);
  std::map<std::string, Moves> providers;
  for (auto& [key, rows] : machines) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Price* a, const Price* b) { return a->from < b->from; });
    // A price on demand is listed from its first day to its last; one of the spot market is that of a moment between.
    const std::string_view first =
        market == Market::spot ? last_seen(*rows.front()) : std::string_view(rows.front()->from);
    const double years = years_between(first, last_seen(*rows.back()));
    if (years <= 0) continue;
    Moves& moves = providers[std::get<0>(key)];
    moves.years += years;
    for (std::size_t i = 1; i < rows.size(); ++i) {
      const double change = std::log(rows[i]->usd_per_hour / rows[i - 1]->usd_per_hour);
      moves.squares += change * change;
    }
  }
  return providers;
}

/// Where four of five prices lie after a year, as log(price).
double reach_of_a_year(Market market) {
  const std::vector<Price>& prices = PriceTable::shipped().prices();
  const std::size_t providers = price_providers(prices, market);
  if (providers == 0) return 0;
  return students_t_quantile(static_cast<double>(providers), 0.9) *
         std::sqrt(price_variance_a_year(prices, market));
}

}  // namespace

double price_variance_a_year(const std::vector<Price>& prices, Market market, std::string_view without) {
  const std::map<std::string, Moves> providers = moves_of_providers(prices, market, without);
  double sum = 0;
  for (const auto& [provider, moves] : providers) sum += moves.squares / moves.years;
  return providers.empty() ? 0 : sum / static_cast<double>(providers.size());
}

std::size_t price_providers(const std::vector<Price>& prices, Market market, std::string_view without) {
  return moves_of_providers(prices, market, without).size();
}

double price_reach(Market market, double age_years) {
  if (age_years <= 0) return 0;
  static const double on_demand = reach_of_a_year(Market::on_demand), spot = reach_of_a_year(Market::spot);
  return (market == Market::spot ? spot : on_demand) * std::sqrt(age_years);
}

}  // namespace convoy::topologies
