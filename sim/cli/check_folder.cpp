// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <ostream>

#include "sim/base/clean_text.h"
#include "sim/cli/commands.h"
#include "sim/run/store/store_source.h"
#include "sim/run/sweep.h"

namespace convoy::inline cli {
namespace {

/// What a store says of one of its points; "" where that is a sound run.
std::string trouble_of(Store& store, const PointKey& key) {
  if (const std::optional<StoredRun> run = store.run(key, false)) {
    try {
      run_of_stored(*run);
      return "";
    } catch (const UnreadableRun& error) {
      return error.what();
    }
  }
  const std::optional<PointFailure> failure = store.failure(key);
  if (store.is_damaged(key)) return "is damaged";
  return failure ? "failed: " + failure->reason : "is missing";
}

Exit check_damaged(const std::string& folder, const StoreSource& source, const DamagedStore& damage) {
  Store readable;
  const std::int64_t runs = readable.salvage(source.file(), source.name());
  write_stdout([&](std::ostream& out) {
    out << fmt::format(
        "{}: {} stored {} can be read; `convoy run FILE --out {}` keeps {} and computes the others again\n",
        clean(damage.what()), runs, runs == 1 ? "run" : "runs", folder, runs == 1 ? "it" : "them");
  });
  return Exit::check_failed;
}

}  // namespace

Exit check_folder(const std::string& folder) {
  const StoreSource source(folder);
  std::optional<Store> store;
  try {
    store.emplace(source.file(), Database::Mode::write, source.name());
  } catch (const DamagedStore& damage) {
    return check_damaged(folder, source, damage);
  }
  if (store->empty()) throw OutputError(fmt::format("{}: has no results yet", source.name()));
  const StoreSubject& subject = store->subject();
  std::string troubles;
  std::size_t sound = 0;
  for (const SweepPoint& point : subject.points) {
    const std::string trouble = trouble_of(*store, point.key);
    if (trouble.empty())
      ++sound;
    else
      troubles += fmt::format(
          "  {} {}\n", clean(point_text(point.position, subject.sweep->at(point.position))), clean(trouble));
  }
  write_stdout([&](std::ostream& out) {
    out << fmt::format("{}: {} of {} points are sound\n", clean(subject.experiment), sound,
                       subject.points.size())
        << troubles;
  });
  return troubles.empty() ? Exit::done : Exit::check_failed;
}

}  // namespace convoy::cli
