// SPDX-License-Identifier: MIT
// Simulates an experiment in the program: simulate FILE
#include <fmt/format.h>

#include "sim/base/data_folder.h"
#include "sim/base/input_error.h"
#include "sim/cli/commands.h"

int main(int, char** argv) {
  convoy::use_data_folder(CONVOY_DATA_FOLDER);
  try {
    const convoy::Experiment experiment = convoy::Experiment::load(argv[1], {"training.batch_per_device=32"});
    const convoy::RunArguments arguments;
    const convoy::FinishedRun run =
        convoy::run_points(experiment, arguments, "", convoy::sweep_options(arguments));
    for (const convoy::RunFigures& point : run.results.runs)  // run.results.whole(i) has all of point i
      fmt::print("{} {:.6g} s\n", point.words.strategy, point.step_time_s);
  } catch (const convoy::InputError& error) {
    fmt::print("{}\n", error.what());
    return 2;
  }
}
