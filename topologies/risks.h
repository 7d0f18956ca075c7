// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/sources.h"

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
  double least_per_host_h = 0, most_per_host_h = 0;  ///< four of five machines lie between
  double lost_at_once = 1;                ///< machines that go together, on average
  std::optional<double> wait_h;           ///< until all are there again, mean of the trace; nothing: not told
  std::string period, source, note;
  Grade grade = Grade::given;
};

/// Rates of topologies/catalog/interruptions.csv, in its order. A published share p of machines that are
/// interrupted in a month is the rate -ln(1 - p) / 730 h; a range counts with its middle. "More than 20 %" is not 20 %:
/// machines' rates are taken as exponentially distributed, with the mean by which as many of the published rows lie
/// beyond, and the median of those beyond counts.
const std::vector<InterruptionRate>& interruption_rates();

/// What counts for a server's spot machines in a region.
struct SpotRisk {
  double per_host_h = 0;            ///< machines lost in an hour, of one machine
  double lost_at_once = 1;          ///< machines that go together, on average
  double wait_h = 0;                ///< until all are there again
  double least_per_host_h = 0, most_per_host_h = 0;  ///< between which the rate lies four times of five
  std::vector<std::string> doubts;  ///< which of these are figures of other machines or regions
};

/// The rate of a server in a region ("": in any). A figure that is not in the table is not zero: it is the
/// nearest one's, and a doubt says so. Nearest is, first, the same server, one of its family (the name
/// without its size: "aws-p3", "gcp-a2-highgpu"), of its provider, any; then, of these, the same region (a
/// zone of it, or none in particular), the same area ("us-east"), the same continent ("us"), elsewhere. Of
/// several that are equally near the harshest counts. The time until machines are back is that of the rate's
/// own row, else the nearest trace's; the provider's figures have none. Nothing where no row is of this kind.
std::optional<SpotRisk> find_spot_risk(const std::vector<InterruptionRate>& rates, std::string_view server,
                                       std::string_view region, RiskKind kind);

/// "aws-p3" of "aws-p3.2xlarge" and of "aws-p3.*", "gcp-n1-standard-v100" of "gcp-n1-standard-8-v100x8": a
/// server's name, or a pattern of names, without what tells its size.
std::string server_family(std::string_view server);

/// Failures of a host with eight GPUs in a day.
struct FailureRate {
  std::string cluster, device;  ///< "RSC-1 (Meta)", "a100"
  double per_host_day = 0;
  std::string date, source, note;
  Grade grade = Grade::given;
};

/// topologies/catalog/failures.csv, in its order.
const std::vector<FailureRate>& failure_rates();

/// That of the first cluster in the table with such devices ("a100-sxm4-80gb" has those of a100), else that
/// of RSC-1, the longest record of all.
const FailureRate& failure_rate_of(std::string_view device);

}  // namespace convoy::topologies
