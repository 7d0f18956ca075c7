// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <array>
#include <map>

#include "sim/calibration/calibration.h"
#include "sim/studies/reproduce.h"

namespace convoy::inline studies {
namespace {

std::string batch_range(double batch) {
  if (batch <= 8) return "1 to 8";
  if (batch <= 16) return "9 to 16";
  if (batch <= 64) return "17 to 64";
  return batch <= 256 ? "65 to 256" : "257 and more";
}

std::vector<ErrorSummary> summaries_of(const std::vector<AccuracyRow>& rows) {
  ErrorGroups groups;
  for (const AccuracyRow& row : rows) {
    const std::array<std::pair<std::string, std::string>, 7> keys{{{"", "all"},
                                                                   {"batch", batch_range(row.batch)},
                                                                   {"device", row.device},
                                                                   {"family", network_family(row.model)},
                                                                   {"part", std::string(to_string(row.step))},
                                                                   {"precision", row.precision},
                                                                   {"software", row.software}}};
    for (const auto& [group, name] : keys) groups[{row.role, group, name}].push_back(row.error);
    groups[{row.role, "host", row.host_known ? "fitted (hosts.csv)" : "typical"}].push_back(row.error);
    groups[{row.role, "host", "every row as on a typical one"}].push_back(
        row.on_typical_host / row.published - 1);
  }
  return summaries_by_group(std::move(groups));
}

}  // namespace

Reproduction reproduce_single_device() {
  Reproduction result{"single-device", "Throughput of one device, from the cost model alone"};
  const std::vector<AccuracyRow> rows = single_device_accuracy();
  for (const AccuracyRow& row : rows) {
    ReproducedRow& reproduced = result.rows.emplace_back();
    reproduced.table = fmt::format("{} {}", row.device, row.precision);
    reproduced.model = row.model;
    reproduced.setup =
        fmt::format("batch {}, {}, {} ({})", row.batch, to_string(row.step), row.software, row.framework);
    reproduced.published = row.published;
    reproduced.predicted = row.predicted;
    reproduced.error = row.error;
    reproduced.source = row.source;
    reproduced.fitted = row.role == to_string(RowRole::fit);
    reproduced.outside = row.role == to_string(RowRole::outside);
    reproduced.interval = {row.low, row.high};
  }
  result.summaries = summaries_of(rows);
  return result;
}

}  // namespace convoy::studies
