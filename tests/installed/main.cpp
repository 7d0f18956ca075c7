// SPDX-License-Identifier: MIT
// convoy with a strategy, a layout and an all-reduce algorithm of one's own.
#include "sim/base/data_folder.h"
#include "sim/cli/commands.h"
#include "sim/collectives/add_all_reduce.h"
#include "strategies/add_strategy.h"
#include "strategies/hybrid/add_layout.h"
#include "tests/extending/dealt_layout.h"
#include "tests/extending/one_device.h"
#include "tests/extending/star_all_reduce.h"

int main(int argc, char** argv) {
  convoy::use_data_folder(CONVOY_DATA_FOLDER);
  convoy::add_all_reduce(
      "star", [](const convoy::CollectiveCall& call) { return convoy::star_all_reduce(call.ranks); });
  convoy::add_layout(convoy::dealt_layout());
  convoy::add_strategy(convoy::one_device_entry());
  return static_cast<int>(convoy::convoy_main(argc, argv));
}
