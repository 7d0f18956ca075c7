// SPDX-License-Identifier: MIT
#include <optional>
#include <ostream>

#include "sim/cli/commands.h"
#include "sim/cli/tell.h"
#include "sim/run/output_folder.h"
#include "sim/studies/validation.h"

namespace convoy::inline cli {
Exit validate_command(const ValidateArguments& arguments) {
  std::optional<Progress> progress(std::in_place, arguments.progress, "predicting");
  const Validation validation = validate_rows(
      arguments.file, arguments.jobs, [&](std::size_t done, std::size_t all) { (*progress)(done, all); });
  progress.reset();
  write_stdout([&](std::ostream& out) {
    if (arguments.json)
      write_validation(validation, out);
    else
      out << validation_text(validation);
  });
  if (!arguments.out.empty())
    for (const std::string& file : write_validation_files(validation, arguments.out))
      tell("written: {}\n", file);
  return Exit::done;
}

}  // namespace convoy::cli
