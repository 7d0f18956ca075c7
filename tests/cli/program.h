// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

/// What a run of the program left behind.
struct Finished {
  int exit_code = -1;  ///< 128 + the signal where one ended it
  std::string out, err;
};

/// An empty folder that the program is run in, removed at the end.
class Workplace {
 public:
  Workplace();
  ~Workplace();
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Writes a file into the folder and returns its name.
  std::string file(const std::string& name, const std::string& content) const;
  std::string read(const std::string& name) const;
  /// Runs build/convoy, or another program, in the folder.
  Finished convoy(const std::vector<std::string>& arguments) const;
  Finished run(const std::string& program, const std::vector<std::string>& arguments) const;
  /// Runs a line of shell in the folder; $CONVOY is the program.
  Finished shell(const std::string& line) const;
  std::vector<std::string> files() const;  ///< everything below, sorted

 private:
  std::filesystem::path path_;
};

/// A small experiment that has every part and runs in milliseconds: 4 ideal devices on a switch.
std::string small_experiment();

/// The same for two batches, two strategies and one to eight hosts: 16 points.
std::string swept_experiment();

/// The same for these batches ("[8, 16]") and one to four hosts.
std::string sweep_over_batches(const std::string& batches);

/// Replaces the first `old`; it has to be there.
std::string replaced(std::string text, const std::string& old, const std::string& fresh);

/// What a run without options writes beside its store.
inline constexpr const char* written_files[] = {"results.json", "results.csv", "report.html"};

/// The number that a query of a results folder's store gives.
std::int64_t count_in_store(const Workplace& place, const std::string& folder, const std::string& query);

/// Makes every stored run of a results folder known again by the name of its network's model.
void mark_runs(const Workplace& place, const std::string& folder);
