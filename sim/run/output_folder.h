// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <iosfwd>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/run/folder_files.h"

namespace convoy::inline runs {

/// The machine does not allow what the user asked for: a folder that cannot be written, a full disk, a closed
/// pipe.
class OutputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A folder of results that only this process writes, during the lifetime of the object. Its files are
/// replaced together: they are created and synchronised to disk beside the old ones, and what a crash leaves
/// in between is finished, or removed, by the next process that opens the folder. Files are found by name in
/// the opened folder and never through links, so that nothing outside it changes, whatever somebody else has
/// put there.
class OutputFolder {
 public:
  using Streams = std::vector<std::ostream*>;
  /// Files that one function writes, side by side. Their names are among results.json, results.csv, report.html, trace.json,
  /// monitor.csv, plan.json and study.json.
  struct Files {
    std::vector<const char*> names;
    std::function<void(const Streams&)> write;  ///< into a stream for each name

    Files(std::vector<const char*> all_names, std::function<void(const Streams&)> write_all)
        : names(std::move(all_names)), write(std::move(write_all)) {}
    Files(const char* name, std::function<void(std::ostream&)> write_one)
        : names{name}, write([content = std::move(write_one)](const Streams& out) { content(*out[0]); }) {}
  };

  /// Creates the folder if it does not exist, and locks it. @throws OutputError: it cannot be created,
  /// contains something that convoy did not write, or is being written.
  explicit OutputFolder(std::string path);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  /// Replaces all results of the folder by these; files of former results that are not among them are
  /// removed.
  /// @throws OutputError if writing fails: the former results are then still there.
  void replace_all(const std::vector<Files>& files) const;
  /// Replaces these and does not touch the others.
  void replace(const Files& files) const;

  const std::string& path() const { return path_; }
  std::string store() const { return path_ + "/results.sqlite"; }
  bool has(const char* name) const;  ///< whether there is anything of that name
  bool has_store() const { return has("results.sqlite"); }
  void remove_store() const;
  /// Puts another store, which `make_store` writes and closes, in the place of the existing one.
  void replace_store(const std::function<void(const std::string& file)>& make_store) const;
  /// Opens a file of the folder for reading. @throws OutputError: it does not exist, or is not a file
  FileStream open(const char* name) const;

  /// Reports what the constructor would refuse, without creating anything; to be called before a long run.
  static void check(const std::string& path);

 private:
  void lock();
  void put_in_place() const;
  void make(const std::vector<Files>& files, bool all) const;
  [[noreturn]] void cannot_write(const char* name) const;  ///< @throws OutputError with the words of errno

  std::string path_;
  Descriptor folder_, lock_;
};

/// Writes to standard output. @throws OutputError when writing fails, save where the reader of a pipe is
/// gone: it has seen enough.
void write_stdout(const std::function<void(std::ostream&)>& content);

/// Replaces a file of any name. @throws OutputError when writing fails
void write_file(const std::string& path, const std::function<void(std::ostream&)>& content);

/// For before anything is computed. @param inputs what the command reads, of which some may be no files
/// @throws OutputError: writing the file would replace one of them
void refuse_input(const std::string& path, const std::vector<std::string>& inputs);

}  // namespace convoy::runs
