// SPDX-License-Identifier: MIT
#include "sim/schedule/sharing.h"

#include <algorithm>
#include <utility>

namespace convoy::inline schedule {

ArrivedJobs::ArrivedJobs(std::vector<ActiveJob> jobs) : all(std::move(jobs)) {
  for (std::size_t j = 0; j < all.size(); ++j) {
    present.push_back(j);
    if (all[j].held.gpus > 0) holding.push_back(j);
  }
}

std::vector<ActiveJob> ArrivedJobs::list_present() const {
  std::vector<ActiveJob> jobs;
  jobs.reserve(present.size());
  for (const std::size_t j : present) jobs.push_back(all[j]);
  return jobs;
}

void JobOrder::insert(Entry entry) {
  entries_.insert(std::upper_bound(entries_.begin(), entries_.end(), entry), entry);
}

void JobOrder::erase(Entry entry) {
  entries_.erase(std::lower_bound(entries_.begin(), entries_.end(), entry));
}

void JobOrder::change(Entry entry, double figure) {
  const Entry now{figure, entry.job};
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), entry);
  *at = now;
  if (at != entries_.begin() && now < *(at - 1))
    std::rotate(std::upper_bound(entries_.begin(), at, now), at, at + 1);
  else if (at + 1 != entries_.end() && *(at + 1) < now)
    std::rotate(at, at + 1, std::lower_bound(at + 1, entries_.end(), now));
}

}  // namespace convoy::schedule
