// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "sim/schedule/job.h"

namespace convoy::inline schedule {

/// The jobs of a queue that have arrived. They are numbered by arrival, and keep their numbers when others
/// end.
struct ArrivedJobs {
  ArrivedJobs() = default;
  /// All of them present.
  explicit ArrivedJobs(std::vector<ActiveJob> jobs);

  std::vector<ActiveJob> all;        ///< by number; of those that are done, the last that was known
  std::vector<std::size_t> present;  ///< those not done, ascending
  std::vector<std::size_t> holding;  ///< those of them that hold GPUs, ascending

  const ActiveJob& operator[](std::size_t job) const { return all[job]; }
  std::vector<ActiveJob> list_present() const;
};

/// GPUs for one job.
struct Grant {
  std::size_t job = 0;
  Allocation gpus = {};
};

/// A policy at work on one queue. From one decision to the next only jobs that hold GPUs change, and jobs
/// arrive and end; a policy may keep what it knows of all others.
class Sharing {
 public:
  explicit Sharing(const ArrivedJobs& jobs) : jobs_(jobs) {}
  Sharing(const Sharing&) = delete;
  Sharing& operator=(const Sharing&) = delete;
  virtual ~Sharing() = default;
  /// The next number, which is present from now on.
  virtual void arrive(std::size_t job) = 0;
  /// It is as it was at the last decision, or has been trained since.
  virtual void end(std::size_t job) = 0;
  /// The jobs that get GPUs, in any order; for each kind, at most those of its pool in total.
  virtual std::vector<Grant> decide(double now_s) = 0;

 protected:
  const ArrivedJobs& jobs_;
};

/// Jobs by a figure of each, the smallest first, and equal ones by arrival. It stays sorted while the figures
/// of a few jobs change.
class JobOrder {
 public:
  struct Entry {
    double figure = 0;
    std::size_t job = 0;
    bool operator<(const Entry& other) const {
      return figure < other.figure || (figure == other.figure && job < other.job);
    }
  };
  void insert(Entry entry);
  /// @pre it is there
  void erase(Entry entry);
  /// @pre it is there
  void change(Entry entry, double figure);
  /// By other figures of the same jobs. @param figure of a job
  void sort_anew(const std::function<double(std::size_t job)>& figure);
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

}  // namespace convoy::schedule
