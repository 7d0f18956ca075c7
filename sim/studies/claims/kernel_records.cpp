// SPDX-License-Identifier: MIT
#include "sim/studies/claims/kernel_records.h"

#include <string>

#include "sim/studies/claims/configs.h"

namespace convoy::inline studies {

Record kernel_shares(Preparer& preparer, std::size_t index) {
  const PreparedRun run = preparer.prepare(index);
  const DeviceType& type = run.machine.device_types[run.machine.devices[0].type];
  Record record;
  record.texts["device_type"] = type.name;
  for (const auto& [path, value] : preparer.experiment().coordinates(index))
    record.texts["point." + path] = to_flow(value);
  double all_s = 0;
  for (const Operation& operation : run.graph->operations) {
    const double images = operation.phase == Phase::update ? 1 : run.plan.images;
    const double time_s = run.cost.time_s(operation.work, images, type);
    record.numbers["share." + std::string(to_string(operation.work.kind))] += time_s;
    all_s += time_s;
  }
  for (auto& [kind, share] : record.numbers) share /= all_s;
  return record;
}

std::vector<Record> kernel_share_records(YamlMap& map, std::size_t jobs) {
  const Experiment experiment =
      load_config(map.text("kernel_shares"), {"sweep=" + to_yaml(map.node("sweep"))});
  std::vector<Record> records;
  for (const std::string& answer : answers_of_workers(experiment.size(), jobs, [&](std::size_t i) {
         Preparer preparer(experiment);
         return to_json({kernel_shares(preparer, i)});
       }))
    records.push_back(records_from_json(answer).front());
  return records;
}

}  // namespace convoy::studies
