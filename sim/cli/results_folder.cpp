// SPDX-License-Identifier: MIT
#include "sim/cli/results_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <ostream>
#include <set>

#include "sim/base/clean_text.h"
#include "sim/base/digest.h"
#include "sim/cli/tell.h"
#include "sim/results/field_text.h"
#include "sim/results/write_csv.h"
#include "sim/results/write_json.h"
#include "sim/results/write_report.h"
#include "sim/results/write_trace.h"
#include "sim/run/sweep.h"
#include "sim/studies/job_study.h"
#include "sim/studies/shared_links.h"

namespace convoy::inline cli {
namespace {

void write_trace(const SweepResults& results, const std::vector<std::size_t>& indices, Store& store,
                 std::ostream& out) {
  TraceWriter writer(out);
  for (std::size_t i = 0; i < results.runs.size(); ++i) {
    writer.begin_run();
    for (TraceProcess process : load_trace(store, indices[i])) {
      process.name = trace_prefix(results, i) + process.name;
      writer.add(process);
    }
  }
}

/// Places in the sweep of the runs, which may lack some.
std::vector<std::size_t> indices_of(const SweepResults& results) {
  std::vector<std::size_t> indices;
  for (const RunFigures& run : results.runs) indices.push_back(point_index(run.id));
  return indices;
}

/// Carries what can be read of a damaged store to a new one, and says so.
void mend_store(const OutputFolder& folder, const DamagedStore& damage) {
  std::int64_t runs = 0;
  folder.replace_store([&](const std::string& file) {
    runs = Store(file, Database::Mode::write).salvage(folder.store(), folder.store());
  });
  tell("convoy: {}; {} stored {} could be read and {} kept, others are computed again\n",
       clean(damage.what()), runs, runs == 1 ? "run" : "runs", runs == 1 ? "is" : "are");
}

constexpr std::array<const char*, 3> common_files{"results.json", "results.csv", "report.html"};

/// Of the files that every run writes, as they are in the folder; "" where one cannot be read.
std::string digest_of_files(const OutputFolder& folder) try {
  Sha256 digest;
  std::vector<char> piece(1 << 20);
  for (const char* name : common_files) {
    if (!folder.has(name)) return {};
    FileStream in = folder.open(name);
    std::uint64_t size = 0;
    while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())), in.gcount() > 0) {
      digest.add({piece.data(), static_cast<std::size_t>(in.gcount())});
      size += static_cast<std::uint64_t>(in.gcount());
    }
    digest.add_field(fmt::format("{} {}", name, size));
  }
  return digest.text();
} catch (const OutputError&) {
  return {};
}

bool have_common_points(const StoreSubject& a, const StoreSubject& b) {
  std::set<PointKey> keys;
  for (const SweepPoint& point : a.points) keys.insert(point.key);
  return std::ranges::any_of(b.points, [&](const SweepPoint& point) { return keys.contains(point.key); });
}

}  // namespace

ResultsPlace::ResultsPlace() : store_(std::make_unique<Store>()) {}

ResultsPlace::ResultsPlace(const std::string& folder, bool fresh) {
  for (std::filesystem::path path = folder; path.has_relative_path() && !std::filesystem::exists(path);
       path = path.parent_path())
    made_.push_back(path.string());
  folder_.emplace(folder);
  if (!fresh && !folder_->has_store() && std::filesystem::exists(folder + "/results.json"))
    throw OutputError(fmt::format(
        "{}: holds results without their store; add --fresh to replace them, or choose another folder "
        "with --out",
        folder));
  if (fresh)  // never without a store: results that have none belong to nobody
    folder_->replace_store([](const std::string& file) { Store(file, Database::Mode::write); });
  try {
    store_ = std::make_unique<Store>(folder_->store(), Database::Mode::write);
  } catch (const DamagedStore& damage) {
    mend_store(*folder_, damage);
    store_ = std::make_unique<Store>(folder_->store(), Database::Mode::write);
  }
}

ResultsPlace::~ResultsPlace() {
  if (!folder_ || made_.empty() || written_ || !store_ || store_->has_any()) return;
  store_.reset();
  try {
    folder_->remove_store();
  } catch (const OutputError&) {  // the folder stays
  }
  folder_.reset();
  std::error_code error;
  for (const std::string& path : made_) std::filesystem::remove(path, error);  // where it is empty
}

void ResultsPlace::begin(StoreSubject subject) {
  if (!store_->empty()) {
    const StoreSubject& old = store_->subject();
    const bool same =
        old.experiment == subject.experiment &&
        (old.manifest.config_sha256 == subject.manifest.config_sha256 || have_common_points(old, subject));
    if (!same)
      throw OutputError(
          fmt::format("{}: holds results of {}, none of which this experiment has; add --fresh to replace "
                      "them, or choose "
                      "another folder with --out",
                      folder_->path(),
                      old.experiment == subject.experiment ? "other settings"
                                                           : "experiment '" + clean(old.experiment) + "'"));
  }
  store_->set_subject(std::move(subject));
}

void ResultsPlace::write(const SweepResults& results, bool with_trace,
                         const std::vector<RunMonitor>& monitors,
                         const std::function<void(std::size_t done, std::size_t all)>& progress) {
  const bool common_only = !with_trace && monitors.empty();
  if (common_only && store_->is_written(digest_of_files(*folder_))) {
    written_ = true;
    return;
  }
  const std::vector<std::size_t> indices = indices_of(results);
  std::vector<StepTrace> traces;
  if (with_trace)
    for (const std::size_t run : drawn_steps(results))
      traces.push_back({run, load_trace(*store_, indices[run])});
  // One pass through the runs, each of which may have to be read for it.
  const auto write_rows = [&](const OutputFolder::Streams& out) {
    const RunTable table(results);
    CsvWriter csv(table, *out[1]);
    store_->write_table(table, [&](const Store::AddRow& add) {
      write_json(results, *out[0], [&](const RunResult& run, std::size_t index) {
        const std::vector<RunTable::Cell> row = table.row(run, index);
        csv.add(row);
        add(row);
        progress(index + 1, results.runs.size());
      });
    });
  };
  std::vector<OutputFolder::Files> files{
      {{"results.json", "results.csv"}, write_rows},
      {"report.html", [&](std::ostream& out) { write_report(results, traces, monitors, out); }}};
  if (!monitors.empty())
    files.push_back({"monitor.csv", [&](std::ostream& out) { write_monitor(results, monitors, out); }});
  if (with_trace)
    files.push_back({"trace.json", [&](std::ostream& out) { write_trace(results, indices, *store_, out); }});
  else
    store_->drop_traces();
  folder_->replace_all(files);
  if (common_only) store_->note_written(digest_of_files(*folder_));
  written_ = true;
}

std::string default_folder(const std::string& experiment, const std::vector<std::string>& settings) {
  constexpr std::size_t longest = 80;
  const std::string folder = "runs/" + experiment;
  if (settings.empty()) return folder;
  std::string exact, name;
  for (const std::string& setting : settings) {
    exact += (exact.empty() ? "" : ",") + setting;
  }
  for (const char c : exact) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) ||
                       std::string_view("._-=,").find(c) != std::string_view::npos;
    name += plain ? c : '_';
  }
  if (name.front() == '.') name.front() = '_';
  if (name != exact || name.size() > longest)
    name = name.substr(0, longest) + '-' + sha256(exact).substr(0, 8);
  return folder + '/' + name;
}

std::string damaged_points(const std::string& store, const std::vector<std::size_t>& points) {
  constexpr std::size_t named = 10;
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < std::min(points.size(), named); ++i) ids.push_back(point_id(points[i]));
  return fmt::format("{}: what it has of {} {}{} is damaged and computed again", store,
                     points.size() == 1 ? "point" : "points", fmt::join(ids, ", "),
                     points.size() > named ? fmt::format(" and {} more", points.size() - named) : "");
}

OutputError refused(const std::string& folder, const DamagedStore& damage) {
  return OutputError(fmt::format(
      "{}; `convoy check {}` says which points are sound, and `convoy run FILE --out {}` computes "
      "the others again",
      damage.what(), folder, folder));
}

SweepResults results_of(Store& store, const Experiment* experiment, std::size_t most_whole) {
  SweepResults results = load_sweep(store, experiment, most_whole);
  const std::string& jobs = store.subject().jobs;
  if (jobs.empty() || static_cast<std::int64_t>(results.runs.size()) != results.points) return results;
  const YamlNode node = experiment ? *experiment->jobs() : parse_yaml(jobs, "jobs");
  const JobStudy study = read_job_study(node);
  if (!study.cluster) {
    results.schedules = run_job_study(study, job_kinds(results, study, node.pos), node.pos);
    return results;
  }
  if (const std::optional<std::string> kept = store.queues()) {
    results.schedules = from_text<Results>(*kept, kept_schedules_fields).schedules;
    return results;
  }
  if (!experiment) {
    tell(
        "convoy: {}: the queue is missing: its jobs share links (jobs.cluster), and `convoy run FILE` in "
        "this "
        "folder simulates those that meet\n",
        store.name());
    return results;
  }
  results.schedules = run_queues(*experiment, study, job_kinds(results, study, node.pos), node.pos);
  store.keep_queues(to_text(results, kept_schedules_fields));
  return results;
}

SweepResults results_or_refuse(const std::string& folder, Store& store) {
  try {
    return results_of(store);
  } catch (const DamagedStore& damage) {
    throw refused(folder, damage);
  }
}

Exit tell_failures(const SweepResults& results) {
  constexpr std::size_t named = 10;
  const std::vector<FailedPoint>& failed = results.failed;
  for (std::size_t i = 0; i < std::min(failed.size(), named); ++i)
    tell("convoy: {}: {}\n", clean(point_text(point_index(failed[i].id), failed[i].point)),
         clean(failed[i].reason));
  if (failed.size() > named) tell("convoy: and {} more points\n", failed.size() - named);
  for (std::size_t r = 0; r < results.runs.size(); ++r) {
    if (!results.runs[r].has_search) continue;
    const std::shared_ptr<const RunResult> run = results.whole(r);
    for (const CandidateResult& candidate : run->search->ranking) {
      if (candidate.outcome != "failed") continue;
      tell("convoy: run {}: auto: {}: {}\n", run->id, clean(candidate.strategy), clean(candidate.reason));
      return Exit::bug;
    }
  }
  const auto any = [&](std::string_view kind) {
    return std::any_of(failed.begin(), failed.end(),
                       [&](const FailedPoint& point) { return point.kind == kind; });
  };
  if (any("crash")) return Exit::bug;
  if (any("memory") || any("time")) return Exit::out_of_resources;
  return failed.empty() ? Exit::done : Exit::bad_input;
}

}  // namespace convoy::cli
