// SPDX-License-Identifier: MIT
#include "sim/calibration/measured_hosts.h"

#include "sim/base/csv.h"
#include "sim/base/data_path.h"

namespace convoy::inline calibration {

MeasuredHosts read_measured_hosts() {
  const std::vector<std::string> columns{"repository", "device", "issue_factor", "rows"};
  const CsvTable table(data_path("results/published") + "/hosts.csv", columns, columns);
  MeasuredHosts hosts;
  for (const CsvRow& row : table.rows())
    hosts[{table.text(row, "repository"), table.text(row, "device")}] =
        table.number(row, "issue_factor", true);
  return hosts;
}

}  // namespace convoy::calibration
