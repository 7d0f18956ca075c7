// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <ostream>

#include "sim/app/commands.h"
#include "sim/app/output_folder.h"
#include "topologies/calibration.h"

namespace convoy {

Exit calibrate_command(const CalibrateArguments& arguments) {
  const CalibrationReport report = calibrate(arguments.profile, arguments.device);
  write_stdout([&](std::ostream& out) { out << report.yaml; });
  for (const AccuracyRow& row : report.rows)
    fmt::print(stderr, "{:<6} {:<24} batch {:<5} {:>9.1f} images/s measured, {:>9.1f} fitted, {:+.1f} %\n",
               row.role, row.model, row.batch, row.published, row.predicted, 100 * row.error);
  fmt::print(stderr, "mean error of the fit {:.1f} %, worst {:.1f} %\n", 100 * report.mean_error,
             100 * report.worst_error);
  return Exit::done;
}

}  // namespace convoy
