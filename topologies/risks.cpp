// SPDX-License-Identifier: MIT
#include "topologies/risks.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "sim/base/csv.h"
#include "sim/base/data_path.h"

namespace convoy::inline topologies {
namespace {

constexpr double hours_per_month = 730;  // 365 x 24 / 12

double rate_of_share(double share_per_month) { return -std::log1p(-share_per_month) / hours_per_month; }

InterruptionRate read_interruption(const CsvTable& table, const CsvRow& row) {
  InterruptionRate rate;
  rate.provider = table.text(row, "provider");
  rate.server = table.text(row, "server");
  rate.region = table.text(row, "region");
  rate.period = table.text(row, "period");
  rate.source = table.text(row, "source");
  rate.note = table.text(row, "note");
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
    return rate;
  }
  rate.kind = RiskKind::trace;
  rate.per_host_h = rate.low_per_host_h = table.number(row, "per_host_hour", true);
  rate.high_per_host_h = rate.per_host_h;
  rate.lost_at_once = table.number(row, "lost_at_once", true);
  if (table.find(row, "wait_h")) rate.wait_h = table.number(row, "wait_h", true);
  return rate;
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
                                         "note"};
  const CsvTable table(file, columns, columns);
  std::vector<InterruptionRate> rates;
  for (const CsvRow& row : table.rows()) rates.push_back(read_interruption(table, row));
  return rates;
}

std::vector<FailureRate> read_failures(const std::string& file) {
  const CsvTable table(
      file, {"cluster", "device", "hosts", "days", "what", "failures_per_host_day", "date", "source", "note"},
      {"cluster", "device", "failures_per_host_day", "date", "source"});
  std::vector<FailureRate> rates;
  for (const CsvRow& row : table.rows())
    rates.push_back({fmt::format("{}, {}", table.text(row, "cluster"), table.text(row, "what")),
                     table.text(row, "device"), table.number(row, "failures_per_host_day", true),
                     table.text(row, "date"), table.text(row, "source"), table.text(row, "note")});
  return rates;
}

/// Whether a rate of region "us-east-1c" or "us-east-1" holds for "us-east-1".
bool is_in(const InterruptionRate& rate, std::string_view region) {
  return region.empty() || rate.region.empty() || std::string_view(rate.region).starts_with(region);
}

}  // namespace

const std::vector<InterruptionRate>& interruption_rates() {
  static const std::vector<InterruptionRate> rates =
      read_interruptions(data_path("topologies/catalog") + "/interruptions.csv");
  return rates;
}

std::optional<InterruptionRate> find_interruption_rate(std::string_view server, std::string_view region,
                                                       RiskKind kind) {
  const InterruptionRate* found = nullptr;
  const std::string name(server);
  for (const InterruptionRate& rate : interruption_rates()) {
    if (rate.kind != kind || !is_in(rate, region) || fnmatch(rate.server.c_str(), name.c_str(), 0) != 0)
      continue;
    const bool nearer = found && found->region.empty() && !rate.region.empty() && !region.empty();
    const bool harsher = found && rate.per_host_h > found->per_host_h;
    if (!found || (kind == RiskKind::trace ? harsher : nearer)) found = &rate;
  }
  return found ? std::optional(*found) : std::nullopt;
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
