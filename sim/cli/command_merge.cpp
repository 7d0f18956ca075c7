// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <ostream>

#include "sim/base/input_error.h"
#include "sim/cli/commands.h"
#include "sim/cli/results_folder.h"
#include "sim/cli/tell.h"
#include "sim/results/write_table.h"
#include "sim/run/store/store_source.h"

namespace convoy::inline cli {
namespace {

namespace fs = std::filesystem;

/// A shard's store as far as it can be used.
struct ShardStore {
  explicit ShardStore(const std::string& folder) : source(folder) {
    try {
      store.emplace(source.file(), Database::Mode::write, source.name());
    } catch (const DamagedStore& damage) {
      throw refused(folder, damage);
    }
  }
  StoreSource source;
  std::optional<Store> store;
};

/// What the store of a shard is about. @throws InputError: there is none
StoreSubject subject_of(const std::string& folder) {
  if (!fs::exists(folder + "/results.sqlite"))
    throw InputError({folder, 0, 0},
                     "has no results.sqlite; `convoy merge` takes folders of `convoy run --shard`");
  ShardStore shard(folder);
  if (shard.store->empty()) throw InputError({folder, 0, 0}, "its results.sqlite has no sweep");
  return shard.store->subject();
}

void add_points(const std::string& folder, Store& store) {
  ShardStore shard(folder);
  if (const std::size_t damaged = store.add_points_of(*shard.store); damaged > 0)
    throw refused(folder, DamagedStore(fmt::format("{}: {} of its rows {} damaged", shard.source.name(),
                                                   damaged, damaged == 1 ? "is" : "are")));
}

/// Takes over what can be read of stores, whatever sweeps they are of: points are known by their content.
Exit merge_stores(const MergeArguments& arguments, Progress& progress) {
  ResultsPlace place(arguments.out, arguments.fresh);
  std::size_t joined = 0;
  for (const std::string& folder : arguments.folders) {
    const StoreSource source(folder);
    place.store().salvage(source.file(), source.name());
    progress(++joined, arguments.folders.size());
  }
  place.keep();
  return Exit::done;
}

/// @throws InputError: the shards are not of one sweep, or were not computed in one way
void check_equal(const std::string& folder, const StoreSubject& shard, const std::string& first_folder,
                 const StoreSubject& first) {
  switch (difference_of(first, shard)) {
    case SubjectDifference::none:
      return;
    case SubjectDifference::sweep:
      throw InputError({folder, 0, 0},
                       fmt::format("holds another experiment or another sweep than {}", first_folder));
    case SubjectDifference::inputs:
      throw InputError({folder, 0, 0},
                       fmt::format("its points are not those of {}: settings, files, or the program differed",
                                   first_folder));
  }
}

/// What the shards list together.
StoreSubject subject_of_all(const std::vector<std::string>& folders, Progress& progress) {
  std::vector<StoreSubject> parts;
  for (const std::string& folder : folders) {
    parts.push_back(subject_of(folder));
    check_equal(folder, parts.back(), folders.front(), parts.front());
    progress(parts.size(), folders.size());
    if (parts.size() == 1) continue;
    // What all have in common need not be kept a thousand times.
    parts.back().sweep = parts.front().sweep;
    std::erase_if(parts.back().origin->files, [known = &parts.front().origin->files](const auto& file) {
      return std::ranges::binary_search(*known, file);
    });
  }
  return united(std::move(parts));
}

}  // namespace

Exit merge_command(const MergeArguments& arguments) {
  constexpr const char* joining = "joining shards";
  std::optional<Progress> progress(std::in_place, arguments.progress,
                                   arguments.store_only ? joining : "reading shards");
  if (arguments.store_only) return merge_stores(arguments, *progress);
  StoreSubject subject = subject_of_all(arguments.folders, *progress);
  ResultsPlace place(arguments.out, arguments.fresh);
  place.begin(std::move(subject));
  progress->begin(joining);
  std::size_t joined = 0;
  for (const std::string& folder : arguments.folders) {
    if (!fs::equivalent(folder, arguments.out)) add_points(folder, place.store());
    (*progress)(++joined, arguments.folders.size());
  }
  const SweepResults results = results_or_refuse(arguments.out, place.store());
  progress->begin("writing");
  place.write(results, false, {}, [&](std::size_t done, std::size_t all) { (*progress)(done, all); });
  progress.reset();
  const std::int64_t points = results.points.value_or(0);
  const std::int64_t missing =
      points - static_cast<std::int64_t>(results.runs.size() + results.failed.size());
  write_stdout([&](std::ostream& out) {
    write_table(results, out);
    out << fmt::format("\nresults of {} shards in {}: report.html, results.json, results.csv\n",
                       arguments.folders.size(), arguments.out);
  });
  if (missing > 0)
    tell("convoy: {} of {} points are in none of the shards; `convoy run FILE --out {}` does them\n", missing,
         points, arguments.out);
  const Exit failed = tell_failures(results);
  return failed == Exit::done && missing > 0 ? Exit::check_failed : failed;
}

}  // namespace convoy::cli
