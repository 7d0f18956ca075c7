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

namespace {

/// Where an entry is. The first ones are looked at one by one: jobs that hold GPUs, whose figures change, come first in most orders.
template <class Iterator>
Iterator place_of(Iterator begin, Iterator end, const JobOrder::Entry& entry) {
  constexpr std::ptrdiff_t first = 32;
  const Iterator middle = begin + std::min(first, end - begin);
  const Iterator found =
      std::find_if(begin, middle, [&](const JobOrder::Entry& each) { return each.job == entry.job; });
  return found != middle ? found : std::lower_bound(middle, end, entry);
}

}  // namespace

void JobOrder::insert(Entry entry) {
  entries_.insert(std::lower_bound(entries_.begin(), entries_.end(), entry), entry);
}

void JobOrder::erase(Entry entry) { entries_.erase(place_of(entries_.begin(), entries_.end(), entry)); }

void JobOrder::change(Entry entry, double figure) {
  const Entry now{figure, entry.job};
  const auto at = place_of(entries_.begin(), entries_.end(), entry);
  auto to = at;  // whoever is between the two makes room
  if (at != entries_.begin() && now < *(at - 1)) {
    to = std::lower_bound(entries_.begin(), at, now);
    std::move_backward(to, at, at + 1);
  } else if (at + 1 != entries_.end() && *(at + 1) < now) {
    to = std::lower_bound(at + 1, entries_.end(), now) - 1;
    std::move(at + 1, to + 1, at);
  }
  *to = now;
}

void JobOrder::sort_anew(const std::function<double(std::size_t job)>& figure) {
  for (Entry& entry : entries_) entry.figure = figure(entry.job);
  std::sort(entries_.begin(), entries_.end());
}

}  // namespace convoy::schedule
