// SPDX-License-Identifier: MIT
#include <filesystem>
#include <ostream>

#include "sim/base/input_error.h"
#include "sim/base/input_file.h"
#include "sim/cli/commands.h"
#include "sim/cli/compared.h"
#include "sim/cli/results_folder.h"
#include "sim/results/read_json.h"
#include "sim/run/output_folder.h"
#include "sim/run/store/store_source.h"

namespace convoy::inline cli {
namespace {

namespace fs = std::filesystem;

ComparedResults of_store(const std::string& place, const std::string& folder) {
  const StoreSource source(folder);
  try {
    Store store(source.file(), Database::Mode::write, source.name());
    if (store.empty()) throw OutputError(source.name() + ": has no results yet");
    return {place, results_of(store, nullptr, store.subject().points.size()).take(), store.subject().origin};
  } catch (const DamagedStore& damage) {
    throw refused(folder, damage);
  }
}

ComparedResults of_json(const std::string& place, const std::string& file) {
  std::ifstream in = open_input(file);
  if (!in) throw InputError({file, 0, 0}, "cannot be opened");
  return {place, read_json(in, file), {}};
}

}  // namespace

ComparedResults read_compared(const std::string& place) {
  const fs::path path = place;
  if (fs::is_directory(path)) {
    if (fs::exists(path / "study.json"))
      throw InputError({place, 0, 0}, "this is the folder of a study; `convoy compare` takes folders of runs");
    if (fs::exists(path / "results.sqlite")) return of_store(place, place);
    if (fs::exists(path / "results.json")) return of_json(place, (path / "results.json").string());
    if (fs::exists(path / "plan.json"))
      throw InputError({place, 0, 0}, "this is the folder of a plan; `convoy compare` takes folders of runs");
    throw InputError({place, 0, 0}, "has no results.sqlite and no results.json of a run");
  }
  if (!fs::is_regular_file(path))
    throw InputError({place, 0, 0},
                     "is not there; `convoy compare` takes folders of finished runs, results.sqlite or "
                     "results.json");
  if (path.filename() == "results.sqlite")
    return of_store(place, path.has_parent_path() ? path.parent_path().string() : ".");
  return of_json(place, place);
}

Exit compare_command(const CompareArguments& arguments) {
  const Comparison comparison = compare(read_compared(arguments.a), read_compared(arguments.b));
  write_stdout([&](std::ostream& out) {
    if (arguments.json)
      write_json(comparison, out);
    else if (arguments.html)
      write_page(comparison, out);
    else
      out << comparison_text(comparison);
  });
  return Exit::done;
}

}  // namespace convoy::cli
