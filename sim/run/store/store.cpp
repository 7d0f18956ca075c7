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
constexpr std::int64_t store_version = 3;
constexpr std::chrono::milliseconds longest_transaction{200};

struct Table {
  const char *name, *sql;
};
constexpr std::array<Table, 5> tables{
    {{"about", "CREATE TABLE about(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"},
     {"sweep", "CREATE TABLE sweep(position INTEGER PRIMARY KEY, point TEXT NOT NULL, key TEXT NOT NULL)"},
     {"points",
      "CREATE TABLE points(key TEXT PRIMARY KEY, network_model TEXT NOT NULL, result TEXT NOT NULL, "
      "digest TEXT NOT NULL)"},
     {"failures",
      "CREATE TABLE failures(key TEXT PRIMARY KEY, kind TEXT NOT NULL, reason TEXT NOT NULL, "
      "digest TEXT NOT NULL)"},
     {"traces", "CREATE TABLE traces(key TEXT PRIMARY KEY, trace TEXT NOT NULL, digest TEXT NOT NULL)"}}};

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

/// All or nothing: a store whose creation was not finished is created again. Of SQLite's own 4 KiB, the row of a point
/// (2 kB where devices are equal) would fill hardly more than half.
void Store::make_tables() {
  database_.run("PRAGMA page_size=16384; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
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
  const std::string &manifest = values["manifest"], &origin = values["origin"];
  subject.experiment = values["experiment"], subject.jobs = values["jobs"];
  subject.options = values["options"], subject.size = std::strtoull(values["size"].c_str(), nullptr, 10);
  SubjectDigest digest(subject.experiment, manifest, subject.jobs);
  subject.points.reserve(static_cast<std::size_t>(database_.number("SELECT count(*) FROM sweep")));
  Statement sweep(database_, "SELECT position, point, key FROM sweep ORDER BY position");
  while (sweep.step()) {
    const std::optional<PointKey> key = PointKey::read(sweep.text(2));
    if (!key) throw damaged();
    subject.points.push_back({static_cast<std::size_t>(sweep.integer(0)) - 1, *key});
    digest.add(subject.points.back(), sweep.text(1));
  }
  if (values["digest"].empty() && subject.points.empty()) return;
  if (values["digest"] != digest.text(subject.size, subject.options, origin)) throw damaged();
  subject_digest_ = values["digest"];
  try {
    subject.manifest = from_text<Manifest>(manifest, manifest_fields);
    if (!origin.empty()) subject.origin = from_text<Origin>(origin, origin_fields);
  } catch (const JsonError& error) {
    throw DamagedStore(
        fmt::format("{}: what its points were computed from: {}", database_.name(), error.what()));
  }
  subject.text = text_of_points();
  subject_ = std::move(subject);
}

StoreSubject::TextOfPoint Store::text_of_points() {
  return [this](std::size_t position) {
    if (!text_of_point_) text_of_point_.emplace(database_, "SELECT point FROM sweep WHERE position = ?");
    const bool found = text_of_point_->bind(0, static_cast<std::int64_t>(position + 1)).step();
    std::string text(found ? text_of_point_->text(0) : std::string_view());
    text_of_point_->reset();
    return text;
  };
}

void Store::set_subject(StoreSubject subject) {
  const bool joins = subject_ && subject_->points != subject.points &&
                     difference_of(*subject_, subject) == SubjectDifference::none;
  const StoreSubject fresh = subject;
  if (joins) subject = united({*subject_, std::move(subject)});
  const std::string manifest = to_text(subject.manifest, manifest_fields);
  const std::string origin = subject.origin ? to_text(*subject.origin, origin_fields) : std::string{};
  const std::string digest = digest_of(subject, manifest, origin);
  if (subject_ && digest == subject_digest_) return;
  changed();
  database_.run("DELETE FROM about WHERE name <> 'queues'; DROP TABLE IF EXISTS runs;");
  if (!joins) database_.run("DELETE FROM sweep");
  Statement about(database_, "INSERT INTO about VALUES(?, ?)");
  about.bind(0, "experiment").bind(1, subject.experiment).finish();
  about.bind(0, "manifest").bind(1, manifest).finish();
  about.bind(0, "jobs").bind(1, subject.jobs).finish();
  about.bind(0, "size").bind(1, std::to_string(subject.size)).finish();
  about.bind(0, "options").bind(1, subject.options).finish();
  if (!origin.empty()) about.bind(0, "origin").bind(1, origin).finish();
  subject_digest_ = digest;
  about.bind(0, "digest").bind(1, subject_digest_).finish();
  Statement sweep(database_, "INSERT OR REPLACE INTO sweep VALUES(?, ?, ?)");
  for (const SweepPoint& point : fresh.points)
    sweep.bind(0, static_cast<std::int64_t>(point.position + 1))
        .bind(1, fresh.text(point.position))
        .bind(2, point.key.text())
        .finish();
  subject_ = std::move(subject);
  subject_->text = text_of_points();
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

void Store::put(const std::string& key, const StoredRun& run) {
  changed();
  points_.put({key, run.network_model, run.result});
  if (!run.trace.empty()) traces_.put({key, run.trace});
}

void Store::put(const std::string& key, const PointFailure& failure) {
  changed();
  failures_.put({key, failure.kind, failure.reason});
}

std::optional<StoredRun> Store::run(const std::string& key, bool with_trace) {
  std::optional<std::vector<std::string>> point = points_.find(key);
  if (!point) return std::nullopt;
  found_digest_ = points_.found_digest();
  StoredRun run{std::move((*point)[2]), std::move((*point)[1]), {}};
  if (!with_trace) return run;
  std::optional<std::vector<std::string>> trace = traces_.find(key);
  if (!trace) return std::nullopt;
  run.trace = std::move((*trace)[1]);
  return run;
}

std::optional<PointFailure> Store::failure(const std::string& key) {
  std::optional<std::vector<std::string>> row = failures_.find(key);
  if (!row) return std::nullopt;
  found_digest_ = failures_.found_digest();
  return PointFailure{std::move((*row)[1]), std::move((*row)[2])};
}

bool Store::is_damaged(const std::string& key) const {
  return points_.is_damaged(key) || traces_.is_damaged(key) || failures_.is_damaged(key);
}

void Store::drop(const std::string& key) {
  changed();
  for (CheckedRows* rows : {&points_, &failures_, &traces_}) rows->drop(key);
}

std::size_t Store::add_points_of(Store& other) {
  changed();
  const std::size_t damaged =
      points_.add(other.points_) + failures_.add(other.failures_) + traces_.add(other.traces_);
  commit();
  return damaged;
}

std::int64_t Store::salvage(const std::string& file, const std::string& name) {
  try {
    Database damaged(file, Database::Mode::read, name);
    CheckedRows points(damaged, "points", 3), traces(damaged, "traces", 2);
    changed();
    points_.salvage(points);
    traces_.salvage(traces);
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
