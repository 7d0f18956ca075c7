// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "sim/run/output_folder.h"

struct sqlite3;
struct sqlite3_stmt;

namespace convoy::inline runs {

/// A file is no database that convoy has written, or is one no longer.
struct DamagedStore : OutputError {
  using OutputError::OutputError;
};

/// An SQLite database. All functions of it and of its statements throw OutputError with the file's name.
/// What somebody else has written can do nothing but hold rows: it is not opened through links, its triggers
/// and views do not run, and it names no other files.
class Database {
 public:
  enum class Mode { read, write };
  /// @param file "": in memory, gone with this object
  /// @param name by which errors call it, where that is not `file`
  Database(const std::string& file, Mode mode, const std::string& name = "");
  void run(const std::string& sql);
  /// The first column of a query's first row; 0 where there is none.
  std::int64_t number(const std::string& sql);
  const std::string& name() const { return name_; }

 private:
  friend class Statement;
  struct Close {
    void operator()(sqlite3* database) const;
  };
  std::string name_;
  std::unique_ptr<sqlite3, Close> handle_;
};

/// A prepared statement: bound from the left, parameters and columns counted from 0.
class Statement {
 public:
  Statement(Database& database, const std::string& sql);
  Statement& bind(int parameter, std::string_view text);
  Statement& bind(int parameter, std::int64_t number);
  Statement& bind(int parameter, double number);
  Statement& bind_null(int parameter);
  /// The next row; false after the last one.
  bool step();
  /// Runs it to its end and makes it ready for other values.
  void finish();
  void reset();
  std::string_view text(int column) const;  ///< valid until the next step
  std::int64_t integer(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Database& database_;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

/// "name" as SQL writes a column's name.
std::string quoted_name(std::string_view name);

}  // namespace convoy::runs
