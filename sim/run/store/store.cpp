// SPDX-License-Identifier: MIT
#include "sim/run/store/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <utility>

#include "sim/base/clean_text.h"
#include "sim/base/digest.h"
#include "sim/results/columns.h"
#include "sim/results/field_text.h"

namespace convoy::inline runs {
namespace {

constexpr std::int64_t application_id = 0x63766f79;  // "cvoy"
constexpr std::int64_t store_version = 4;
constexpr std::chrono::milliseconds longest_transaction{200};

struct Table {
  const char *name, *sql;
};
constexpr std::array<Table, 6> tables{
    {{"about", "CREATE TABLE about(name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID"},
     {"sweep", "CREATE TABLE sweep(position INTEGER PRIMARY KEY, key BLOB NOT NULL)"},
     {"results",
      "CREATE TABLE results(digest BLOB PRIMARY KEY, network_model TEXT NOT NULL, result BLOB NOT NULL)"},
     {"points", "CREATE TABLE points(key BLOB PRIMARY KEY, result BLOB NOT NULL, digest BLOB NOT NULL)"},
     {"failures",
      "CREATE TABLE failures(key BLOB PRIMARY KEY, kind TEXT NOT NULL, reason TEXT NOT NULL, "
      "digest BLOB NOT NULL)"},
     {"traces", "CREATE TABLE traces(key BLOB PRIMARY KEY, trace BLOB NOT NULL, digest BLOB NOT NULL)"}}};

}  // namespace

Store::Store() : database_("", Database::Mode::write) { make_tables(); }

Store::Store(const std::string& file, Database::Mode mode, const std::string& name)
    : database_(file, mode, name) {
  const std::int64_t id = database_.number("PRAGMA application_id");
  if (id == 0 && mode == Database::Mode::write && database_.number("PRAGMA schema_version") == 0) {
    make_tables();
  } else if (id != application_id) {
    throw OutputError(fmt::format("{}: is not convoy's; `convoy run --fresh` replaces it", database_.name()));
  } else if (database_.number("PRAGMA user_version") != store_version) {
    throw OutputError(fmt::format(
        "{}: was written by another version of convoy; `convoy run --fresh` begins anew", database_.name()));
  }
  // Committed transactions survive the process; after a power cut, only the last of them may have to be
  // computed again.
  if (mode == Database::Mode::write) database_.run("PRAGMA synchronous=NORMAL");
  check_tables();
  load_subject();
}

Store::~Store() {
  try {
    commit();
  } catch (const OutputError&) {  // has been reported where it was asked for
  }
}

/// All or nothing: a store whose creation was not finished is created again.
void Store::make_tables() {
  database_.run("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
  std::string sql;
  for (const Table& table : tables) sql += std::string(table.sql) + ';';
  database_.run(fmt::format("BEGIN; PRAGMA application_id={}; PRAGMA user_version={};{}COMMIT;",
                            application_id, store_version, sql));
}

/// Nobody would miss rows that a damaged page has lost; so pages are checked before rows are read.
void Store::check_tables() {
  const auto damaged = [&](std::string_view why) {
    throw DamagedStore(fmt::format("{}: {}", database_.name(), why));
  };
  std::size_t found = 0;
  Statement schema(database_,
                   "SELECT name, sql FROM sqlite_schema WHERE type <> 'index' OR name NOT LIKE "
                   "'sqlite_autoindex_%'");
  while (schema.step()) {
    const std::string_view name = schema.text(0), sql = schema.text(1);
    const auto table =
        std::find_if(tables.begin(), tables.end(), [&](const Table& row) { return row.name == name; });
    if (table != tables.end() && table->sql == sql)
      ++found;
    else if (name != "runs" || !sql.starts_with("CREATE TABLE runs("))
      damaged(fmt::format("'{}' is no table of convoy's", clean(std::string(name))));
  }
  if (found != tables.size()) damaged("tables are missing");
  Statement check(database_, "PRAGMA integrity_check(1)");
  if (!check.step() || check.text(0) != "ok") damaged("pages are damaged");
}

void Store::load_subject() {
  StoreSubject subject;
  std::map<std::string, std::string> values;
  Statement about(database_, "SELECT name, value FROM about");
  while (about.step()) values.emplace(about.text(0), about.text(1));
  const auto damaged = [&] {
    return DamagedStore(fmt::format("{}: the list of its points is damaged", database_.name()));
  };
  const std::string &manifest = values["manifest"], &sweep = values["sweep"], &origin = values["origin"];
  subject.experiment = values["experiment"], subject.jobs = values["jobs"];
  subject.options = values["options"];
  subject.points.reserve(static_cast<std::size_t>(database_.number("SELECT count(*) FROM sweep")));
  Statement points(database_, "SELECT position, key FROM sweep ORDER BY position");
  while (points.step()) {
    const std::optional<PointKey> key = PointKey::read(points.bytes(1));
    if (!key) throw damaged();
    subject.points.push_back({static_cast<std::size_t>(points.integer(0)) - 1, *key});
  }
  if (values["digest"].empty() && subject.points.empty()) return;
  subject_digest_ = digest_of(subject, manifest, sweep, origin);
  if (values["digest"] != subject_digest_) throw damaged();
  try {
    subject.manifest = from_text<Manifest>(manifest, manifest_fields);
    subject.sweep = std::make_shared<const SweepPoints>(SweepPoints::from_text(sweep));
    if (!origin.empty()) subject.origin = from_text<Origin>(origin, origin_fields);
  } catch (const std::runtime_error& error) {
    throw DamagedStore(
        fmt::format("{}: what its points were computed from: {}", database_.name(), error.what()));
  }
  if (!subject.points.empty() && subject.points.back().position >= subject.sweep->size()) throw damaged();
  subject_ = std::move(subject);
}

void Store::set_subject(StoreSubject subject) {
  if (subject_ && subject_->points != subject.points &&
      difference_of(*subject_, subject) == SubjectDifference::none)
    subject = united({*subject_, std::move(subject)});
  const std::string manifest = to_text(subject.manifest, manifest_fields), sweep = subject.sweep->text();
  const std::string origin = subject.origin ? to_text(*subject.origin, origin_fields) : std::string{};
  const std::string digest = digest_of(subject, manifest, sweep, origin);
  if (subject_ && digest == subject_digest_) return;
  changed();
  database_.run(
      "DELETE FROM about WHERE name NOT IN ('queues', 'dictionary'); DROP TABLE IF EXISTS runs; "
      "DELETE FROM sweep");
  Statement about(database_, "INSERT INTO about VALUES(?, ?)");
  about.bind(0, "experiment").bind(1, subject.experiment).finish();
  about.bind(0, "manifest").bind(1, manifest).finish();
  about.bind(0, "jobs").bind(1, subject.jobs).finish();
  about.bind(0, "sweep").bind(1, sweep).finish();
  about.bind(0, "options").bind(1, subject.options).finish();
  if (!origin.empty()) about.bind(0, "origin").bind(1, origin).finish();
  about.bind(0, "digest").bind(1, digest).finish();
  subject_digest_ = digest;
  Statement row(database_, "INSERT INTO sweep VALUES(?, ?)");
  for (const SweepPoint& point : subject.points)
    row.bind(0, static_cast<std::int64_t>(point.position + 1)).bind_bytes(1, point.key.bytes()).finish();
  subject_ = std::move(subject);
  commit();
}

void Store::changed() {
  commit_old();
  if (in_transaction_) return;
  end_reading();
  database_.run("BEGIN IMMEDIATE; DELETE FROM about WHERE name = 'written'");
  in_transaction_ = true;
  begun_ = std::chrono::steady_clock::now();
}

void Store::begin_reading() {
  if (in_transaction_ || is_reading_) return;
  database_.run("BEGIN");
  is_reading_ = true;
}

void Store::end_reading() {
  if (std::exchange(is_reading_, false)) database_.run("COMMIT");
}

Store::Reading::~Reading() {
  try {
    store_.end_reading();
  } catch (const OutputError&) {  // of a transaction that has written nothing
  }
}

void Store::commit_old() {
  if (in_transaction_ && std::chrono::steady_clock::now() - begun_ > longest_transaction) commit();
}

void Store::commit() {
  if (!in_transaction_) return;
  database_.run("COMMIT");
  in_transaction_ = false;
}

bool Store::has_any() { return Statement(database_, "SELECT 1 FROM points LIMIT 1").step(); }

void Store::put(const PointKey& key, const StoredRun& run) {
  changed();
  points_.put({key.bytes(), results_.put(run)});
  if (!run.trace.empty()) traces_.put({key.bytes(), of_traces_.compressed(run.trace)});
}

void Store::put(const PointKey& key, const PointFailure& failure) {
  changed();
  failures_.put({key.bytes(), failure.kind, failure.reason});
}

std::optional<StoredRun> Store::run(const PointKey& key, bool with_trace) {
  const std::optional<std::vector<std::string>> point = points_.find(key.bytes());
  if (!point) return std::nullopt;
  found_digest_ = points_.found_digest();
  std::optional<StoredRun> run = results_.find((*point)[1]);
  if (!run) points_.note_damaged(key.bytes());
  if (!run || !with_trace) return run;
  const std::optional<std::vector<std::string>> trace = traces_.find(key.bytes());
  if (!trace) return std::nullopt;
  std::optional<std::string> text = of_traces_.text((*trace)[1]);
  if (!text) {
    traces_.note_damaged(key.bytes());
    return std::nullopt;
  }
  run->trace = std::move(*text);
  return run;
}

std::optional<PointFailure> Store::failure(const PointKey& key) {
  std::optional<std::vector<std::string>> row = failures_.find(key.bytes());
  if (!row) return std::nullopt;
  found_digest_ = failures_.found_digest();
  return PointFailure{std::move((*row)[1]), std::move((*row)[2])};
}

bool Store::is_damaged(const PointKey& key) const {
  return std::ranges::any_of(std::array{&points_, &traces_, &failures_},
                             [&](const CheckedRows* rows) { return rows->is_damaged(key.bytes()); });
}

void Store::drop(const PointKey& key) {
  changed();
  for (CheckedRows* rows : {&points_, &failures_, &traces_}) rows->drop(key.bytes());
}

std::size_t Store::add_points_of(Store& other) {
  changed();
  const std::size_t damaged = results_.add(other.results_) + points_.add(other.points_) +
                              failures_.add(other.failures_) + traces_.add(other.traces_);
  commit();
  return damaged;
}

std::int64_t Store::salvage(const std::string& file, const std::string& name) {
  try {
    Database damaged(file, Database::Mode::read, name);
    KeptResults results(damaged);
    CheckedRows points(damaged, "points", {ColumnKind::bytes, ColumnKind::bytes}),
        traces(damaged, "traces", {ColumnKind::bytes, ColumnKind::bytes});
    changed();
    results_.salvage(results);
    points_.salvage(points);
    traces_.salvage(traces);
    database_.run("DELETE FROM points WHERE result NOT IN (SELECT digest FROM results)");
    commit();
  } catch (const DamagedStore&) {  // no row can be reached
  }
  return database_.number("SELECT count(*) FROM points");
}

void Store::drop_traces() {
  changed();
  database_.run("DELETE FROM traces");
}

void Store::keep_queues(const std::string& text) {
  changed();
  const std::string digest = Sha256().add_field(subject_digest_).add_field(text).text();
  Statement(database_, "INSERT OR REPLACE INTO about VALUES('queues', ?)").bind(0, digest + text).finish();
}

std::optional<std::string> Store::queues() {
  Statement row(database_, "SELECT value FROM about WHERE name = 'queues'");
  if (!row.step()) return std::nullopt;
  const std::string kept(row.text(0));
  constexpr std::size_t digest_size = 64;
  if (kept.size() < digest_size) return std::nullopt;
  std::string text = kept.substr(digest_size);
  if (Sha256().add_field(subject_digest_).add_field(text).text() != kept.substr(0, digest_size))
    return std::nullopt;
  return text;
}

void Store::note_written(const std::string& files) {
  if (read_digest_.empty() || files.empty()) return;
  changed();
  Statement(database_, "INSERT OR REPLACE INTO about VALUES('written', ?)")
      .bind(0, read_digest_ + files)
      .finish();
  commit();
}

bool Store::is_written(const std::string& files) {
  if (in_transaction_ || read_digest_.empty() || files.empty()) return false;
  Statement row(database_, "SELECT value FROM about WHERE name = 'written'");
  return row.step() && row.text(0) == read_digest_ + files;
}

void Store::write_table(const RunTable& table, const std::function<void(const AddRow&)>& fill) {
  changed();
  std::string columns, parameters;
  for (const RunTable::Header& header : table.header()) {
    columns += fmt::format("{}{} {}", columns.empty() ? "" : ", ", quoted_name(header.name), header.sql_type);
    parameters += parameters.empty() ? "?" : ", ?";
  }
  database_.run(fmt::format("DROP TABLE IF EXISTS runs; CREATE TABLE runs({})", columns));
  Statement insert(database_, fmt::format("INSERT INTO runs VALUES({})", parameters));
  const AddRow add = [&](const std::vector<RunTable::Cell>& row) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      const auto parameter = static_cast<int>(c);
      if (const auto* number = std::get_if<double>(&row[c]))
        insert.bind(parameter, *number);
      else if (const auto* whole = std::get_if<std::int64_t>(&row[c]))
        insert.bind(parameter, *whole);
      else if (std::holds_alternative<std::monostate>(row[c]))
        insert.bind_null(parameter);
      else
        insert.bind(parameter, std::string_view(csv_text(row[c])));
    }
    insert.finish();
  };
  try {
    fill(add);
  } catch (...) {  // better no table than a part of one
    database_.run("DROP TABLE runs");
    throw;
  }
  commit();
}

}  // namespace convoy::runs
