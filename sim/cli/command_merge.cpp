// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <ostream>

#include "sim/base/input_error.h"
#include "sim/cli/commands.h"
#include "sim/cli/results_folder.h"
#include "sim/results/write_table.h"

namespace convoy::inline cli {
namespace {

namespace fs = std::filesystem;

/// What the store of a shard is about. @throws InputError: there is none
StoreSubject subject_of(const std::string& folder) {
  const std::string file = folder + "/results.sqlite";
  if (!fs::is_regular_file(file))
    throw InputError({folder, 0, 0},
                     "has no results.sqlite; `convoy merge` takes folders of `convoy run --shard`");
  const Store store(file, Database::Mode::write);
  if (store.empty()) throw InputError({folder, 0, 0}, "its results.sqlite has no sweep");
  return store.subject();
}

void check_equal(const std::string& folder, const StoreSubject& shard, const std::string& first_folder,
                 const StoreSubject& first) {
  if (shard.experiment != first.experiment || shard.points != first.points)
    throw InputError({folder, 0, 0},
                     fmt::format("holds another experiment or another sweep than {}", first_folder));
  if (shard.keys != first.keys)
    throw InputError({folder, 0, 0},
                     fmt::format("its points are not those of {}: settings, files, or the program differed",
                                 first_folder));
}

}  // namespace

Exit merge_command(const MergeArguments& arguments) {
  const StoreSubject subject = subject_of(arguments.folders.front());
  for (const std::string& folder : arguments.folders)
    check_equal(folder, subject_of(folder), arguments.folders.front(), subject);
  ResultsPlace place(arguments.out, arguments.fresh);
  place.begin(subject);
  for (const std::string& folder : arguments.folders)
    if (!fs::equivalent(folder, arguments.out)) place.store().add_points_of(folder + "/results.sqlite");
  const Results results = results_of(place.store());
  place.write(results, false);
  const std::int64_t points = results.points.value_or(0);
  const std::int64_t missing =
      points - static_cast<std::int64_t>(results.runs.size() + results.failed.size());
  write_stdout([&](std::ostream& out) {
    out << table(results)
        << fmt::format("\nresults of {} shards in {}: report.html, results.json, results.csv\n",
                       arguments.folders.size(), arguments.out);
  });
  if (missing > 0)
    fmt::print(stderr,
               "convoy: {} of {} points are in none of the shards; `convoy run FILE --out {}` does them\n",
               missing, points, arguments.out);
  const Exit failed = tell_failures(results);
  return failed == Exit::done && missing > 0 ? Exit::check_failed : failed;
}

}  // namespace convoy::cli
