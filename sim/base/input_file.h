// SPDX-License-Identifier: MIT
#pragma once

#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace convoy::inline base {

/// Opens a file that a user names. All readers of users' files open them here, so that InputRecord sees them.
/// If the file cannot be opened, the stream says so, as std::ifstream does.
std::ifstream open_input(const std::string& file, std::ios::openmode mode = std::ios::binary);

/// The same for callers that read by descriptor, and close it. Negative, with errno set, if the file cannot
/// be opened.
int open_input_descriptor(const std::string& file);

/// Records the contents of the files that are opened during its lifetime: what was read depends on nothing
/// else that may change between two runs of this program. The program's own data (data_path) are left out,
/// since they are read once per process and cannot change later.
class InputRecord {
 public:
  InputRecord();
  ~InputRecord();
  InputRecord(const InputRecord&) = delete;
  InputRecord& operator=(const InputRecord&) = delete;

  /// Digests of the files' content in the order in which they were opened, a line each; "": none were.
  std::string digests() const;
  /// The same files with their names, as they were opened.
  const std::vector<std::pair<std::string, std::string>>& files() const { return files_; }

 private:
  friend void note_input(const std::string& file);
  std::vector<std::pair<std::string, std::string>> files_;
  InputRecord* outer_;  ///< the record that was under way, which goes on
};

}  // namespace convoy::base
