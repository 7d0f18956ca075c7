// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>
#include <utility>

namespace convoy::inline calibration {

/// How long hosts of published figures take to issue an operation, relative to the typical one
/// (HostType::issue_factor), by repository of the figure (Measurement::repository) and device.
using MeasuredHosts = std::map<std::pair<std::string, std::string>, double>;

/// results/published/hosts.csv, which a fit of the catalogue writes. @throws InputError where it is wrong
MeasuredHosts read_measured_hosts();

}  // namespace convoy::calibration
