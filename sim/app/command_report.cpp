// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "sim/app/commands.h"
#include "sim/app/output_folder.h"
#include "sim/base/input_error.h"
#include "sim/results/read_json.h"
#include "sim/results/write_report.h"

namespace convoy {

Exit report_command(const ReportArguments& arguments) {
  const std::string file = (std::filesystem::path(arguments.folder) / "results.json").string();
  std::ifstream in(file, std::ios::binary);
  if (!in || std::filesystem::is_directory(file))
    throw InputError({file, 0, 0}, "cannot be opened; `convoy report` takes the folder of a finished run");
  const Results results = read_json(in, file);
  OutputFolder(arguments.folder).write("report.html", [&](std::ostream& out) { write_report(results, out); });
  write_stdout([&](std::ostream& out) {
    out << fmt::format("report of {}: {}\n", results.experiment,
                       (std::filesystem::path(arguments.folder) / "report.html").string());
  });
  return Exit::done;
}

}  // namespace convoy
