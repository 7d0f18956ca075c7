// SPDX-License-Identifier: MIT
#include "topologies/risks.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>

#include "sim/base/csv.h"
#include "sim/base/data_path.h"
#include "topologies/table_grade.h"

namespace convoy::inline topologies {
namespace {

constexpr double hours_per_month = 730;  // 365 x 24 / 12

double rate_of_share(double share_per_month) { return -std::log1p(-share_per_month) / hours_per_month; }

/// Four of five lie between the tenth and the nine tenths.
constexpr double one_tenth = 0.1;

void set_range(InterruptionRate& rate) {
  const double width = *rate.high_per_host_h - rate.low_per_host_h;
  rate.least_per_host_h = rate.low_per_host_h + one_tenth * width;
  rate.most_per_host_h = *rate.high_per_host_h - one_tenth * width;
}

InterruptionRate read_interruption(const CsvTable& table, const CsvRow& row) {
  InterruptionRate rate;
  rate.provider = table.text(row, "provider");
  rate.server = table.text(row, "server");
  rate.region = table.text(row, "region");
  rate.period = table.text(row, "period");
  rate.source = table.text(row, "source");
  rate.note = table.text(row, "note");
  rate.grade = read_grade(table, row);
  if (table.text(row, "kind") == "advisor") {
    const double low = table.number(row, "share_per_month_low", false);
    rate.low_per_host_h = rate_of_share(low);
    double typical = low;
    if (table.find(row, "share_per_month_high")) {
      const double high = table.number(row, "share_per_month_high", true);
      rate.high_per_host_h = rate_of_share(high);
      typical = (low + high) / 2;
    }
    rate.per_host_h = rate_of_share(typical);
    if (rate.high_per_host_h) set_range(rate);
    return rate;
  }
  rate.kind = RiskKind::trace;
  rate.per_host_h = rate.low_per_host_h = table.number(row, "per_host_hour", true);
  rate.high_per_host_h = rate.per_host_h;
  set_range(rate);
  rate.lost_at_once = table.number(row, "lost_at_once", true);
  if (table.find(row, "wait_h")) rate.wait_h = table.number(row, "wait_h", true);
  return rate;
}

/// The rows that say "more than", by how often rows do: of exponentially distributed rates a share e^(-x / mean) is
/// beyond x, and what is beyond has the same distribution from there on.
void set_open_ranges(std::vector<InterruptionRate>& rates) {
  double published = 0, open = 0, beyond = 0;
  for (const InterruptionRate& rate : rates) {
    if (rate.kind != RiskKind::advisor) continue;
    ++published;
    if (rate.high_per_host_h) continue;
    ++open;
    beyond = std::max(beyond, rate.low_per_host_h);
  }
  if (open == 0) return;
  // Where no row has a range, nothing tells the mean: that of half of all machines beyond.
  const double mean = beyond / -std::log(open < published ? open / published : 0.5);
  for (InterruptionRate& rate : rates) {
    if (rate.high_per_host_h) continue;
    rate.per_host_h = rate.low_per_host_h + mean * std::log(2);
    rate.least_per_host_h = rate.low_per_host_h - mean * std::log(1 - one_tenth);
    rate.most_per_host_h = rate.low_per_host_h - mean * std::log(one_tenth);
  }
}

std::vector<InterruptionRate> read_interruptions(const std::string& file) {
  const std::vector<std::string> columns{"provider",
                                         "server",
                                         "region",
                                         "kind",
                                         "share_per_month_low",
                                         "share_per_month_high",
                                         "per_host_hour",
                                         "lost_at_once",
                                         "wait_h",
                                         "period",
                                         "source",
                                         "note",
                                         "grade"};
  const CsvTable table(file, columns, columns);
  std::vector<InterruptionRate> rates;
  for (const CsvRow& row : table.rows()) rates.push_back(read_interruption(table, row));
  set_open_ranges(rates);
  return rates;
}

std::vector<FailureRate> read_failures(const std::string& file) {
  const CsvTable table(file,
                       {"cluster", "device", "hosts", "days", "what", "failures_per_host_day", "date",
                        "source", "note", "grade"},
                       {"cluster", "device", "failures_per_host_day", "date", "source"});
  std::vector<FailureRate> rates;
  for (const CsvRow& row : table.rows())
    rates.push_back({fmt::format("{}, {}", table.text(row, "cluster"), table.text(row, "what")),
                     table.text(row, "device"), table.number(row, "failures_per_host_day", true),
                     table.text(row, "date"), table.text(row, "source"), table.text(row, "note"),
                     read_grade(table, row)});
  return rates;
}

/// The region's name up to where it counts: "us-east" of "us-east-1c" and "us-east1", "eastus" of "eastus2".
std::string_view area_of(std::string_view region) {
  region = region.substr(0, region.find_first_of("0123456789"));
  return region.ends_with('-') ? region.substr(0, region.size() - 1) : region;
}

/// Whether it is that region or a zone of it: "us-east-1c" is in "us-east-1", "eastus2" not in "eastus".
bool is_in(std::string_view zone, std::string_view region) {
  if (!zone.starts_with(region)) return false;
  return zone.size() == region.size() || !std::isdigit(static_cast<unsigned char>(zone[region.size()]));
}

/// How far a row is from what was asked for, the server first; smaller is nearer.
struct Distance {
  int server = 0, region = 0;
  auto operator<=>(const Distance&) const = default;
  /// Whether the row says it of this server, and of this region or of none in particular.
  bool stated() const { return server == 0 && region <= 1; }
};

Distance distance(const InterruptionRate& rate, const std::string& server, std::string_view region) {
  Distance far;
  const auto provider = [](std::string_view name) { return name.substr(0, name.find('-')); };
  if (fnmatch(rate.server.c_str(), server.c_str(), 0) != 0)
    far.server = server_family(rate.server) == server_family(server) ? 1
                 : provider(rate.server) == provider(server)         ? 2
                                                                     : 3;
  const auto continent = [](std::string_view name) { return name.substr(0, name.find('-')); };
  if (region.empty() || is_in(rate.region, region)) return far;
  if (rate.region.empty())  // a trace of no stated place is as good as one of the place
    far.region = rate.kind == RiskKind::trace ? 0 : 1;
  else
    far.region = area_of(rate.region) == area_of(region)       ? 2
                 : continent(rate.region) == continent(region) ? 3
                                                               : 4;
  return far;
}

/// Of the rows that count the nearest, of several the one with the most.
/// @param counts whether a row has the figure
/// @param figure what there may be most of
const InterruptionRate* nearest_rate(const std::vector<InterruptionRate>& rates, const std::string& server,
                                     std::string_view region,
                                     const std::function<bool(const InterruptionRate&)>& counts,
                                     const std::function<double(const InterruptionRate&)>& figure) {
  const InterruptionRate* found = nullptr;
  Distance least;
  for (const InterruptionRate& rate : rates) {
    if (!counts(rate)) continue;
    const Distance far = distance(rate, server, region);
    if (found && (least < far || (least == far && figure(rate) <= figure(*found)))) continue;
    found = &rate;
    least = far;
  }
  return found;
}

/// " in us-east-1", or "" where it is not told.
std::string in_region(std::string_view region) { return region.empty() ? "" : fmt::format(" in {}", region); }

}  // namespace

const std::vector<InterruptionRate>& interruption_rates() {
  static const std::vector<InterruptionRate> rates =
      read_interruptions(data_path("topologies/catalog") + "/interruptions.csv");
  return rates;
}

std::string server_family(std::string_view server) {
  std::string family(server.substr(0, server.find('.')));
  if (family.size() < server.size()) return family;  // "p3.2xlarge": the size stands behind the dot
  std::string rest = std::move(family);
  family.clear();
  while (!rest.empty()) {
    const std::size_t dash = std::min(rest.find('-'), rest.size());
    std::string part = rest.substr(0, dash);
    rest.erase(0, dash + 1);
    part.erase(std::min(part.find('*'), part.size()));
    // "v100x8": so many of them
    const std::size_t last = part.find_last_not_of("0123456789");
    if (last != std::string::npos && last > 0 && last + 1 < part.size() && part[last] == 'x')
      part.erase(last);
    if (part.empty() || std::isdigit(static_cast<unsigned char>(part.front()))) continue;
    family += (family.empty() ? "" : "-") + part;
  }
  return family;
}

std::optional<SpotRisk> find_spot_risk(const std::vector<InterruptionRate>& rates, std::string_view server,
                                       std::string_view region, RiskKind kind) {
  const std::string name(server);
  const InterruptionRate* rate = nearest_rate(
      rates, name, region, [&](const InterruptionRate& row) { return row.kind == kind; },
      [](const InterruptionRate& row) { return row.per_host_h; });
  if (!rate) return std::nullopt;
  SpotRisk risk{rate->per_host_h, rate->lost_at_once, 0, rate->least_per_host_h, rate->most_per_host_h, {}};
  if (!distance(*rate, name, region).stated())
    risk.doubts.push_back(fmt::format("how often {}{} is taken away is not known: as often as {}{}", name,
                                      in_region(region), rate->server, in_region(rate->region)));
  const InterruptionRate* wait = rate;
  if (!wait->wait_h)
    wait = nearest_rate(
        rates, name, region, [](const InterruptionRate& row) { return row.wait_h.has_value(); },
        [](const InterruptionRate& row) { return *row.wait_h; });
  if (!wait) {
    risk.doubts.push_back(fmt::format("how long it takes until {}{} is back is not known: no wait is counted",
                                      name, in_region(region)));
    return risk;
  }
  risk.wait_h = *wait->wait_h;
  if (!distance(*wait, name, region).stated())
    risk.doubts.push_back(fmt::format("how long it takes until {}{} is back is not known: {:g} h, as {}{}",
                                      name, in_region(region), risk.wait_h, wait->server,
                                      in_region(wait->region)));
  return risk;
}

const std::vector<FailureRate>& failure_rates() {
  static const std::vector<FailureRate> rates =
      read_failures(data_path("topologies/catalog") + "/failures.csv");
  return rates;
}

const FailureRate& failure_rate_of(std::string_view device) {
  const std::vector<FailureRate>& rates = failure_rates();
  const auto of = [&](std::string_view name) {
    return std::find_if(rates.begin(), rates.end(),
                        [&](const FailureRate& rate) { return name.starts_with(rate.device); });
  };
  const auto own = of(device);
  return own != rates.end() ? *own : *of("a100");
}

}  // namespace convoy::topologies
