// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <iosfwd>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace convoy::inline runs {

/// The machine refuses what the user asked for: a folder that cannot be written, a full disk, a closed pipe.
class OutputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A folder of results that this process alone writes, until the object is gone. Its files are replaced all
/// at once: they are made and synchronised to disk beside the old ones; what a crash leaves in between is
/// finished, or removed, by who opens the folder next.
class OutputFolder {
 public:
  using File = std::pair<std::string, std::function<void(std::ostream&)>>;  ///< name, and what writes it

  /// Makes the folder where it is not there, and locks it. @throws OutputError: it cannot be made, holds
  /// something that convoy did not write, or is being written.
  explicit OutputFolder(std::string path);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  /// Replaces all of the folder's results by these; files of former results that these do not have are
  /// removed.
  /// @throws OutputError when writing fails: the former ones are then still there.
  void replace_all(const std::vector<File>& files) const;
  /// Replaces one file and leaves the others.
  void replace(const File& file) const;

  const std::string& path() const { return path_; }
  std::string store() const { return path_ + "/results.sqlite"; }
  bool has_store() const;
  void remove_store() const;

  /// What the constructor would refuse, without making anything: to be called before a long run.
  static void check(const std::string& path);

 private:
  void lock();
  void put_in_place() const;
  void make(const std::vector<File>& files, bool all) const;

  std::string path_;
  int lock_ = -1;
};

/// Writes to standard output. @throws OutputError when writing fails.
void write_stdout(const std::function<void(std::ostream&)>& content);

}  // namespace convoy::runs
