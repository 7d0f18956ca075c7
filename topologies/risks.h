// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::inline topologies {

/// Where a rate of interruptions is from: what the provider says of the last month, or what others recorded
/// when they rented many machines at once, which is far harsher.
enum class RiskKind { advisor, trace };

/// How often spot machines of a kind are taken away.
struct InterruptionRate {
  std::string provider;
  std::string server;  ///< name in the catalogue, or a pattern of names ("aws-p3.*")
  std::string region;  ///< region or zone; "": not stated
  RiskKind kind = RiskKind::advisor;
  double per_host_h = 0;                  ///< machines lost in an hour, of one machine
  double low_per_host_h = 0;              ///< where a range is published, its ends;
  std::optional<double> high_per_host_h;  ///< nothing: "more than"
  double lost_at_once = 1;                ///< machines that go together, on average
  std::optional<double> wait_h;           ///< until all are there again, mean of the trace
  std::string period, source, note;
};

/// Rates of topologies/catalog/interruptions.csv, in its order. A published share p of machines that are
/// interrupted in a month is the rate -ln(1 - p) / 730 h; a range counts with its middle, "more than 20 %"
/// with the 20 %.
const std::vector<InterruptionRate>& interruption_rates();

/// The rate of a server in a region ("" for the first that the table lists), or where the table has none of
/// the region that which it states for none in particular. Of several traces the harshest.
std::optional<InterruptionRate> find_interruption_rate(std::string_view server, std::string_view region,
                                                       RiskKind kind);

/// Failures of a host with eight GPUs in a day.
struct FailureRate {
  std::string cluster, device;  ///< "RSC-1 (Meta)", "a100"
  double per_host_day = 0;
  std::string date, source, note;
};

/// topologies/catalog/failures.csv, in its order.
const std::vector<FailureRate>& failure_rates();

/// That of the first cluster in the table with such devices ("a100-sxm4-80gb" has those of a100), else that
/// of RSC-1, the longest record of all.
const FailureRate& failure_rate_of(std::string_view device);

}  // namespace convoy::topologies
