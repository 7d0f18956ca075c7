// SPDX-License-Identifier: MIT
#include "sim/run/store/store.h"

#include <fmt/format.h>

#include "sim/results/columns.h"
#include "sim/results/field_text.h"

namespace convoy::inline runs {
namespace {

constexpr std::int64_t application_id = 0x63766f79;  // "cvoy"
constexpr std::int64_t store_version = 1;
constexpr std::chrono::milliseconds longest_transaction{200};

constexpr const char* tables = R"(
CREATE TABLE about(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sweep(position INTEGER PRIMARY KEY, point TEXT NOT NULL, key TEXT NOT NULL);
CREATE TABLE points(key TEXT PRIMARY KEY, network_model TEXT NOT NULL, result TEXT NOT NULL);
CREATE TABLE failures(key TEXT PRIMARY KEY, kind TEXT NOT NULL, reason TEXT NOT NULL);
CREATE TABLE traces(key TEXT PRIMARY KEY, trace TEXT NOT NULL);
)";

std::int64_t pragma(Database& database, const std::string& name) {
  Statement statement(database, "PRAGMA " + name);
  return statement.step() ? statement.integer(0) : 0;
}

}  // namespace

Store::Store() : database_("", Database::Mode::write) { make_tables(); }

Store::Store(const std::string& file, Database::Mode mode) : database_(file, mode) {
  const std::int64_t id = pragma(database_, "application_id");
  if (id == 0 && mode == Database::Mode::write && pragma(database_, "schema_version") == 0) {
    database_.run("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
    make_tables();
  } else if (id != application_id) {
    throw OutputError(fmt::format("{}: is not convoy's; `convoy run --fresh` replaces it", file));
  } else if (pragma(database_, "user_version") != store_version) {
    throw OutputError(
        fmt::format("{}: was written by another version of convoy; `convoy run --fresh` begins anew", file));
  }
  // Committed transactions survive the process; only after a power cut the last of them may be computed
  // again.
  if (mode == Database::Mode::write) database_.run("PRAGMA synchronous=NORMAL");
  load_subject();
}

Store::~Store() {
  try {
    commit();
  } catch (const OutputError&) {  // has been told where it was asked for
  }
}

/// All or nothing: a store that was not finished is begun again.
void Store::make_tables() {
  database_.run(fmt::format("BEGIN; PRAGMA application_id={}; PRAGMA user_version={};{}COMMIT;",
                            application_id, store_version, tables));
}

void Store::load_subject() {
  StoreSubject subject;
  Statement about(database_, "SELECT name, value FROM about");
  bool any = false;
  while (about.step()) {
    any = true;
    const std::string name(about.text(0)), value(about.text(1));
    if (name == "experiment") subject.experiment = value;
    if (name == "jobs") subject.jobs = value;
    if (name == "manifest") subject.manifest = from_text<Manifest>(value, manifest_fields);
  }
  if (!any) return;
  Statement sweep(database_, "SELECT point, key FROM sweep ORDER BY position");
  while (sweep.step()) {
    subject.points.emplace_back(sweep.text(0));
    subject.keys.emplace_back(sweep.text(1));
  }
  subject_ = std::move(subject);
}

void Store::set_subject(StoreSubject subject) {
  changed();
  database_.run("DELETE FROM about; DELETE FROM sweep; DROP TABLE IF EXISTS runs;");
  Statement about(database_, "INSERT INTO about VALUES(?, ?)");
  const std::string manifest = to_text(subject.manifest, manifest_fields);
  about.bind(0, "experiment").bind(1, subject.experiment).finish();
  about.bind(0, "manifest").bind(1, manifest).finish();
  about.bind(0, "jobs").bind(1, subject.jobs).finish();
  Statement sweep(database_, "INSERT INTO sweep VALUES(?, ?, ?)");
  for (std::size_t i = 0; i < subject.points.size(); ++i)
    sweep.bind(0, static_cast<std::int64_t>(i + 1))
        .bind(1, subject.points[i])
        .bind(2, subject.keys[i])
        .finish();
  subject_ = std::move(subject);
  commit();
}

void Store::changed() {
  commit_old();
  if (in_transaction_) return;
  database_.run("BEGIN IMMEDIATE");
  in_transaction_ = true;
  begun_ = std::chrono::steady_clock::now();
}

void Store::commit_old() {
  if (in_transaction_ && std::chrono::steady_clock::now() - begun_ > longest_transaction) commit();
}

void Store::commit() {
  if (!in_transaction_) return;
  database_.run("COMMIT");
  in_transaction_ = false;
}

bool Store::has(const std::string& key, bool with_trace) {
  if (with_trace) return run(key, true).has_value();
  if (!has_) has_.emplace(database_, "SELECT 1 FROM points WHERE key = ?");
  const bool there = has_->bind(0, key).step();
  has_->reset();
  return there;
}

bool Store::has_any() { return Statement(database_, "SELECT 1 FROM points LIMIT 1").step(); }

void Store::put(const std::string& key, const StoredRun& run) {
  changed();
  if (!put_run_) put_run_.emplace(database_, "INSERT OR REPLACE INTO points VALUES(?, ?, ?)");
  put_run_->bind(0, key).bind(1, run.network_model).bind(2, run.result).finish();
  if (run.trace.empty()) return;
  if (!put_trace_) put_trace_.emplace(database_, "INSERT OR REPLACE INTO traces VALUES(?, ?)");
  put_trace_->bind(0, key).bind(1, run.trace).finish();
}

void Store::put(const std::string& key, const PointFailure& failure) {
  changed();
  if (!put_failure_) put_failure_.emplace(database_, "INSERT OR REPLACE INTO failures VALUES(?, ?, ?)");
  put_failure_->bind(0, key).bind(1, failure.kind).bind(2, failure.reason).finish();
}

std::optional<StoredRun> Store::run(const std::string& key, bool with_trace) {
  if (!get_run_) get_run_.emplace(database_, "SELECT network_model, result FROM points WHERE key = ?");
  std::optional<StoredRun> found;
  if (get_run_->bind(0, key).step())
    found = StoredRun{std::string(get_run_->text(1)), std::string(get_run_->text(0)), {}};
  get_run_->reset();
  if (!found || !with_trace) return found;
  if (!get_trace_) get_trace_.emplace(database_, "SELECT trace FROM traces WHERE key = ?");
  if (get_trace_->bind(0, key).step())
    found->trace = get_trace_->text(0);
  else
    found.reset();
  get_trace_->reset();
  return found;
}

std::optional<PointFailure> Store::failure(const std::string& key) {
  if (!get_failure_) get_failure_.emplace(database_, "SELECT kind, reason FROM failures WHERE key = ?");
  std::optional<PointFailure> found;
  if (get_failure_->bind(0, key).step())
    found = PointFailure{std::string(get_failure_->text(0)), std::string(get_failure_->text(1))};
  get_failure_->reset();
  return found;
}

void Store::add_points_of(const std::string& file) {
  commit();
  Statement attach(database_, "ATTACH ? AS other");
  attach.bind(0, file).finish();
  database_.run(
      "BEGIN; INSERT OR IGNORE INTO points SELECT * FROM other.points;"
      "INSERT OR IGNORE INTO failures SELECT * FROM other.failures;"
      "INSERT OR IGNORE INTO traces SELECT * FROM other.traces; COMMIT; DETACH other;");
}

void Store::drop_traces() {
  changed();
  database_.run("DELETE FROM traces");
}

void Store::write_table(const Results& results) {
  changed();
  const RunTable table(results);
  std::string columns, parameters;
  for (const RunTable::Header& header : table.header()) {
    columns += fmt::format("{}{} {}", columns.empty() ? "" : ", ", quoted_name(header.name), header.sql_type);
    parameters += parameters.empty() ? "?" : ", ?";
  }
  database_.run(fmt::format("DROP TABLE IF EXISTS runs; CREATE TABLE runs({})", columns));
  Statement insert(database_, fmt::format("INSERT INTO runs VALUES({})", parameters));
  for (std::size_t run = 0; run < results.runs.size(); ++run) {
    const std::vector<RunTable::Cell> row = table.row(run);
    for (std::size_t c = 0; c < row.size(); ++c) {
      const auto parameter = static_cast<int>(c);
      row[c] ? insert.bind(parameter, std::string_view(*row[c])) : insert.bind_null(parameter);
    }
    insert.finish();
  }
  commit();
}

}  // namespace convoy::runs
