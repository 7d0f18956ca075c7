// SPDX-License-Identifier: MIT
#include "sim/studies/claims/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/results/write_json.h"

namespace convoy::inline studies {
namespace {

using nlohmann::json;

void flatten(const json& value, const std::string& path, Record& record) {
  if (value.is_object()) {
    for (const auto& [key, item] : value.items())
      flatten(item, path.empty() ? key : path + "." + key, record);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) flatten(value[i], fmt::format("{}.{}", path, i), record);
    if (!value.empty()) flatten(value.back(), path + ".last", record);
  } else if (value.is_number()) {
    record.numbers[path] = value.get<double>();
  } else if (value.is_boolean()) {
    record.numbers[path] = value.get<bool>() ? 1 : 0;
  } else if (value.is_string()) {
    record.texts[path] = value.get<std::string>();
  }
}

std::string underscored(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return !std::isalpha(static_cast<unsigned char>(c)); }, '_');
  return text;
}

}  // namespace

std::string Record::name() const {
  std::string text;
  for (const char* key : {"model", "strategy", "policy"})
    if (const auto it = texts.find(key); it != texts.end()) text += fmt::format("{} {}, ", key, it->second);
  for (const char* key : {"devices", "global_batch", "parts", "seed"})
    if (const auto it = numbers.find(key); it != numbers.end())
      text += fmt::format("{} {}, ", key, it->second);
  return text.substr(0, text.size() - std::min<std::size_t>(2, text.size()));
}

std::vector<Record> records_of(std::vector<RunResult> runs) {
  std::vector<std::vector<std::pair<std::string, YamlNode>>> points;
  std::vector<std::vector<Counterfactual>> gains;
  for (RunResult& run : runs) {
    run.per_device.clear();
    run.per_link.clear();
    run.layouts.clear();
    points.push_back(std::move(run.point));
    gains.push_back(run.counterfactuals);
    run.point.clear();
  }
  std::ostringstream text;
  write_json(Results{"", std::move(runs), {}}, text);
  std::vector<Record> records;
  const json written = json::parse(text.str());
  for (const json& run : written.at("runs")) {
    flatten(run, "", records.emplace_back());
    for (const Counterfactual& counterfactual : gains[records.size() - 1])
      records.back().numbers["gain_s." + underscored(counterfactual.change)] = counterfactual.gain_s;
    for (const auto& [path, value] : points[records.size() - 1])
      records.back().texts["point." + path] = to_flow(value);
  }
  return records;
}

std::vector<Record> records_of(const std::vector<ScheduleResult>& schedules) {
  std::vector<Record> records;
  for (const ScheduleResult& schedule : schedules) {
    Record& record = records.emplace_back();
    record.texts["policy"] = schedule.policy;
    record.numbers = {{"seed", static_cast<double>(schedule.seed)},
                      {"jobs", static_cast<double>(schedule.jobs)},
                      {"mean_interval_s", schedule.mean_interval_s},
                      {"mean_completion_s", schedule.mean_completion_s},
                      {"makespan_s", schedule.makespan_s},
                      {"busy_share", schedule.busy_share},
                      {"changes", static_cast<double>(schedule.changes)}};
    if (schedule.deadlines_met) record.numbers["deadlines_met"] = *schedule.deadlines_met;
    if (schedule.scattered_share) record.numbers["scattered_share"] = *schedule.scattered_share;
    if (schedule.sharing_loss) record.numbers["sharing_loss"] = *schedule.sharing_loss;
  }
  return records;
}

std::string to_json(const std::vector<Record>& records) {
  json list = json::array();
  for (const Record& record : records) list.push_back({{"numbers", record.numbers}, {"texts", record.texts}});
  return list.dump();
}

std::vector<Record> records_from_json(std::string_view text) {
  std::vector<Record> records;
  for (const json& item : json::parse(text)) {
    Record& record = records.emplace_back();
    for (const auto& [key, value] : item.at("numbers").items()) record.numbers[key] = value.get<double>();
    for (const auto& [key, value] : item.at("texts").items()) record.texts[key] = value.get<std::string>();
  }
  return records;
}

}  // namespace convoy::studies
