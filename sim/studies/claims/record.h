// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/results/result.h"

namespace convoy::inline studies {

/// One line on which claims are judged: a run's figures as in results.json, or what a study computed, by
/// dotted name ("step_time_s", "phases.0.devices", "phases.last.step_time_s", "partition.method"). A value of
/// the sweep's point is the text "point.PATH".
struct Record {
  std::map<std::string, double, std::less<>> numbers;
  std::map<std::string, std::string, std::less<>> texts;
  /// "model resnet50, devices 8": what distinguishes it from others, for messages.
  std::string name() const;
};

/// Without single devices, links and layouts. Where runs say what would be gained, "gain_s.CHANGE" has the
/// seconds, with "_" for all that is no letter: "gain_s.all_links_twice_as_fast".
std::vector<Record> records_of(std::vector<RunResult> runs);
std::vector<Record> records_of(const std::vector<ScheduleResult>& schedules);

/// As one line of JSON, and back: the answer of a worker process.
std::string to_json(const std::vector<Record>& records);
std::vector<Record> records_from_json(std::string_view json);

}  // namespace convoy::studies
