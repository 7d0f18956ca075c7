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

/// The file is not a database that convoy has written, or no longer is one.
struct DamagedStore : OutputError {
  using OutputError::OutputError;
};

/// An SQLite database. All functions of it and of its statements throw OutputError with the name of the file.
/// What somebody else has written can only hold rows: it is not opened through links, its triggers and views
/// do not run, and it names no other files.
class Database {
 public:
  enum class Mode { read, write };
  /// @param file "": in memory, gone with this object
  /// @param name the name in errors, if it is not `file`
  Database(const std::string& file, Mode mode, const std::string& name = "");
  void run(const std::string& sql);
  /// The first column of the first row of a query; 0 if there is none.
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

/// A prepared statement; parameters and columns count from 0.
class Statement {
 public:
  Statement(Database& database, const std::string& sql);
  Statement& bind(int parameter, std::string_view text);
  /// Not a text; not copied: they are to stay where they are until the statement has run.
  Statement& bind_bytes(int parameter, std::string_view bytes);
  Statement& bind(int parameter, std::int64_t number);
  Statement& bind(int parameter, double number);
  Statement& bind_null(int parameter);
  /// The next row; false after the last one.
  bool step();
  /// Runs it to its end and prepares it for other values.
  void finish();
  void reset();
  // Valid until the next step.
  ///@{
  std::string_view text(int column) const;
  std::string_view bytes(int column) const;  ///< as they are, of a text as well
  ///@}
  std::int64_t integer(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Database& database_;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

/// "name" as SQL writes the name of a column.
std::string quoted_name(std::string_view name);

}  // namespace convoy::runs
