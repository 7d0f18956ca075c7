// SPDX-License-Identifier: MIT
#include "sim/run/store/database.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace convoy::inline runs {
namespace {

/// Whether something failed because of the content of the file, and not because of the machine.
bool is_damage(int code) {
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
    case SQLITE_ERROR:  // its tables are different
    case SQLITE_SCHEMA:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
    case SQLITE_RANGE:
      return true;
    case SQLITE_READONLY:  // it reports this itself: permissions are checked before
      return code != SQLITE_READONLY_DBMOVED;
    default:
      return code == SQLITE_IOERR_SHORT_READ;
  }
}

[[noreturn]] void fail(const std::string& name, sqlite3* database, int code) {
  const int system = database ? sqlite3_system_errno(database) : 0;
  const std::string why = code == SQLITE_FULL || system == ENOSPC ? "No space left on device"
                          : database                              ? sqlite3_errmsg(database)
                                                                  : sqlite3_errstr(code);
  const std::string text = fmt::format("{}: {}", name.empty() ? "results in memory" : name, why);
  const int extended = database ? sqlite3_extended_errcode(database) : code;
  if (is_damage(extended)) throw DamagedStore(text);
  throw OutputError(text);
}

/// The path of the file, without links in that of its folder. @throws OutputError: the file, or one that
/// SQLite keeps beside it, is a link or not a regular file
std::string own_path(const std::string& file, Database::Mode mode, const std::string& name) {
  namespace fs = std::filesystem;
  const fs::path given(file);
  std::error_code error;
  const fs::path folder = fs::canonical(given.has_parent_path() ? given.parent_path() : ".", error);
  if (error) throw OutputError(fmt::format("{}: {}", name, error.message()));
  const fs::path path = folder / given.filename();
  // SQLite's journals may name files to be removed. Stores have a log instead; only a store whose creation
  // was not finished leaves a journal.
  if (mode == Database::Mode::write) fs::remove(path.string() + "-journal", error);
  for (const char* ending : {"", "-journal", "-wal", "-shm"}) {
    struct stat status {};
    if (::lstat((path.string() + ending).c_str(), &status) != 0) continue;
    const char* what = S_ISLNK(status.st_mode)    ? "is a link, through which another file would be written"
                       : !S_ISREG(status.st_mode) ? "is no file"
                       : status.st_nlink > 1 ? "has another name, by which another folder would be written"
                                             : nullptr;
    if (what) throw OutputError(fmt::format("{}{}: {}; remove it, or copy the folder", name, ending, what));
  }
  if (mode == Database::Mode::write && ::access(path.c_str(), F_OK) == 0 && ::access(path.c_str(), W_OK) != 0)
    throw OutputError(fmt::format("{}: {}", name, std::strerror(errno)));
  return path.string();
}

}  // namespace

void Database::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }
void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Database::Database(const std::string& file, Mode mode, const std::string& name)
    : name_(name.empty() ? file : name) {
  sqlite3* handle = nullptr;
  const int flags = mode == Mode::read ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  const std::string path = file.empty() ? ":memory:" : own_path(file, mode, name_);
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags | SQLITE_OPEN_NOFOLLOW, nullptr);
  handle_.reset(handle);
  if (code != SQLITE_OK) fail(name_, handle, code);
  sqlite3_busy_timeout(handle, 10'000);  // somebody may be reading it
  for (const auto& [option, value] : {std::pair{SQLITE_DBCONFIG_DEFENSIVE, 1},
                                      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                      {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                      {SQLITE_DBCONFIG_ENABLE_VIEW, 0}})
    sqlite3_db_config(handle, option, value, nullptr);
}

void Database::run(const std::string& sql) {
  const int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(name_, handle_.get(), code);
}

std::int64_t Database::number(const std::string& sql) {
  Statement statement(*this, sql);
  return statement.step() ? statement.integer(0) : 0;
}

Statement::Statement(Database& database, const std::string& sql) : database_(database) {
  sqlite3_stmt* handle = nullptr;
  const int code =
      sqlite3_prepare_v2(database.handle_.get(), sql.c_str(), static_cast<int>(sql.size()), &handle, nullptr);
  handle_.reset(handle);
  if (code != SQLITE_OK) fail(database.name_, database.handle_.get(), code);
}

Statement& Statement::bind(int parameter, std::string_view text) {
  sqlite3_bind_text64(handle_.get(), parameter + 1, text.data() ? text.data() : "", text.size(),
                      SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}

Statement& Statement::bind_bytes(int parameter, std::string_view bytes) {
  sqlite3_bind_blob64(handle_.get(), parameter + 1, bytes.data() ? bytes.data() : "", bytes.size(),
                      SQLITE_STATIC);
  return *this;
}

Statement& Statement::bind(int parameter, std::int64_t number) {
  sqlite3_bind_int64(handle_.get(), parameter + 1, number);
  return *this;
}

Statement& Statement::bind(int parameter, double number) {
  sqlite3_bind_double(handle_.get(), parameter + 1, number);
  return *this;
}

Statement& Statement::bind_null(int parameter) {
  sqlite3_bind_null(handle_.get(), parameter + 1);
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  sqlite3_reset(handle_.get());  // for the next user
  fail(database_.name_, database_.handle_.get(), code);
}

void Statement::finish() {
  while (step()) {
  }
  reset();
}

void Statement::reset() { sqlite3_reset(handle_.get()); }

std::string_view Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(handle_.get(), column));
  return text ? std::string_view(text, static_cast<std::size_t>(sqlite3_column_bytes(handle_.get(), column)))
              : std::string_view{};
}

std::string_view Statement::bytes(int column) const {
  const void* bytes = sqlite3_column_blob(handle_.get(), column);
  return {static_cast<const char*>(bytes),
          bytes ? static_cast<std::size_t>(sqlite3_column_bytes(handle_.get(), column)) : 0};
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(handle_.get(), column); }

std::string quoted_name(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : name) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

}  // namespace convoy::runs
