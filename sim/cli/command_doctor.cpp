// SPDX-License-Identifier: MIT
#include <optional>
#include <ostream>
#include <utility>

#include "sim/cli/commands.h"
#include "sim/run/output_folder.h"
#include "sim/studies/doctor.h"

namespace convoy::inline cli {

Exit doctor_command(const DoctorArguments& arguments) {
  const Experiment experiment = Experiment::load(arguments.file, arguments.settings);
  std::optional<Progress> progress(std::in_place, arguments.progress, "simulating");
  const auto told = [&](std::size_t done, std::size_t all) { (*progress)(done, all); };
  const Diagnosis diagnosis =
      diagnose_file(experiment, arguments.prices, arguments.jobs, told, {arguments.draws, arguments.seed});
  progress.reset();
  write_stdout([&](std::ostream& out) {
    if (arguments.json)
      write_doctor(diagnosis, out);
    else
      out << doctor_text(diagnosis);
  });
  return diagnosis.runs.empty() ? Exit::check_failed : Exit::done;
}

}  // namespace convoy::cli
