// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/prices.h"

namespace convoy::inline topologies {

/// Years from a day of a price table to another: "2025-09-01"; of "2025-09" and "2025" the middle counts.
double years_between(std::string_view from, std::string_view to);

/// The last day on which a price was seen listed, as far as it is known.
std::string_view last_seen(const Price& price);

/// The last day of a table, by which one sees how old its prices are; "" of an empty one.
std::string newest_day(const PriceTable& table);

/// How prices of machines on a market move: as a random walk of log(price), whose variance grows by this much a
/// year. Of each provider it is the sum of the squared changes of log(price) over the years in which its machines
/// were listed (on demand), or between which they were seen (spot), whether their price changed or not; providers, whose machines are repriced together, count the
/// same. @param without a provider that is left out. 0 where no machine was seen twice
double price_variance_a_year(const std::vector<Price>& prices, Market market, std::string_view without = "");

/// How many providers price_variance_a_year() is the mean of.
std::size_t price_providers(const std::vector<Price>& prices, Market market, std::string_view without = "");

/// Four of five prices that were last seen so many years ago are by now within this much, as log(price), of what
/// they were, by the program's own table. So few providers tell their variance with a doubt of its own, so that it is
/// as many deviations as Student's t distribution has, with as many degrees of freedom as there are providers. 0 for
/// a price that is not old.
double price_reach(Market market, double age_years);

}  // namespace convoy::topologies
