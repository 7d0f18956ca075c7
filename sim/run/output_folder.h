// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <iosfwd>
#include <stdexcept>
#include <string>

namespace convoy {

/// The machine refuses what the user asked for: a folder that cannot be written, a full disk, a closed pipe.
class OutputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A folder of results that is being written. Each file appears under its name only when it is complete.
class OutputFolder {
 public:
  /// Makes the folder where it is not there. @throws OutputError: it cannot be made, or holds something that
  /// convoy did not write.
  explicit OutputFolder(std::string path);
  /// @throws OutputError when writing fails.
  void write(const std::string& name, const std::function<void(std::ostream&)>& content);
  /// Removes a file of former results that these do not have.
  void remove(const std::string& name);
  const std::string& path() const { return path_; }

  /// What the constructor would refuse, without making anything: to be called before a long run.
  static void check(const std::string& path);

 private:
  std::string path_;
};

/// Writes to standard output. @throws OutputError when writing fails.
void write_stdout(const std::function<void(std::ostream&)>& content);

}  // namespace convoy
