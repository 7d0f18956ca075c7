// SPDX-License-Identifier: MIT
#include <ostream>

#include "sim/cli/commands.h"
#include "sim/run/output_folder.h"
#include "sim/studies/diagnose.h"

namespace convoy::inline cli {

Exit diagnose_command(const DiagnoseArguments& arguments) {
  const Experiment experiment = Experiment::load(arguments.file, arguments.settings);
  const std::string& joint = arguments.joint_trace;
  refuse_input(joint, {arguments.trace, arguments.file});
  const TraceDiagnosis diagnosis =
      diagnose_trace(arguments.trace, experiment, arguments.jobs, !joint.empty());
  if (!joint.empty()) write_file(joint, [&](std::ostream& out) { write_joint_trace(diagnosis, out); });
  write_stdout([&](std::ostream& out) {
    if (arguments.json)
      write_diagnosis(diagnosis, out);
    else if (arguments.html)
      write_page(diagnosis, out);
    else
      out << diagnosis_text(diagnosis);
  });
  return Exit::done;
}

}  // namespace convoy::cli
