// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "sim/prove/gradient_prover.h"

namespace convoy::inline prove {
namespace gradients {

void GradientProver::check_scatters(std::uint32_t r, const BucketMeaning& bucket, const BucketUse& use) {
  std::vector<std::vector<std::int64_t>> taken(use.scatters.size());
  for (const std::size_t p : bucket.parameters) {
    std::vector<Event> events = gradients_of(r, p);
    std::size_t next = 0;
    for (std::size_t i = 0; i < use.scatters.size(); ++i) {
      std::vector<std::int64_t> own;
      for (; next < events.size() && events[next].place < order(r).begins[use.scatters[i]]; ++next)
        // Some layers take the images of a micro-batch in several parts.
        if (own.empty() || own.back() != events[next].micro_batch) own.push_back(events[next].micro_batch);
      if (p == bucket.parameters.front()) taken[i] = own;
      if (own.empty() || own != taken[i])
        throw Refuted(fmt::format("{}: it begins without the gradient of {} of a micro-batch that it sums",
                                  at(r, use.scatters[i]), graph_.parameters[p].name));
    }
    if (next < events.size())
      throw Refuted(fmt::format("{}: {} reaches no replica: no message takes it",
                                name_of(plan_.roles[r], machine_), gradient_text(p, events[next])));
    for (const Event& update : updates_of(r, p))
      for (const TaskId scatter : use.scatters) check_waits(r, update, scatter, p);
  }
}

void GradientProver::check_gather_after(std::uint32_t r, const BucketMeaning& bucket, const BucketUse& use) {
  if (use.gathers.size() != 1)
    throw Refuted(fmt::format("{}: the new shares of {} are gathered {} times",
                              name_of(plan_.roles[r], machine_), list_text(bucket), use.gathers.size()));
  if (is_before_all_reads(r, bucket, use.gathers[0])) return;
  for (const std::size_t p : bucket.parameters)
    for (const Event& update : updates_of(r, p))
      if (update.place >= order(r).begins[use.gathers[0]])
        throw Refuted(fmt::format("{}: does not wait for the update of {}", at(r, use.gathers[0]),
                                  graph_.parameters[p].name));
}

void GradientProver::check_shared_states(std::uint32_t r, const BucketMeaning& bucket, const BucketUse& use) {
  const std::size_t updates = updates_of(r, bucket.parameters.front()).size();
  for (const auto* tasks : {&use.scatters, &use.gathers})
    if (tasks->size() != updates)
      throw Refuted(fmt::format("{}: {} are {} {} times for {}", name_of(plan_.roles[r], machine_),
                                list_text(bucket), tasks == &use.scatters ? "scattered" : "gathered",
                                tasks->size(), count_of(updates, "update")));
  for (const std::size_t p : bucket.parameters) {
    const std::uint32_t layer = graph_.parameters[p].layer;
    for (const Event& event : gradients_of(r, p)) {
      const std::size_t k = update_of(r, layer, event);
      if (k < updates && event.place >= order(r).begins[use.scatters[k]])
        throw Refuted(
            fmt::format("{}: does not wait for {}", at(r, use.scatters[k]), gradient_text(p, event)));
    }
    std::set<std::int64_t> begun;  // micro-batches, which keep the version that they began with
    for (const Event& read : uses_[r].reads[layer])
      if (const std::size_t k = update_of(r, layer, read); begun.insert(read.micro_batch).second && k > 0)
        check_waits(r, read, use.gathers[k - 1], p);
    for (std::size_t k = 0; k < updates; ++k) {
      const Event& update = updates_of(r, p)[k];
      check_waits(r, update, use.scatters[k], p);
      if (update.place >= order(r).begins[use.gathers[k]])
        throw Refuted(fmt::format("{}: does not wait for the update of {}", at(r, use.gathers[k]),
                                  graph_.parameters[p].name));
    }
  }
}

bool GradientProver::is_before_all_reads(std::uint32_t r, const BucketMeaning& bucket, TaskId gather) {
  return std::all_of(bucket.parameters.begin(), bucket.parameters.end(), [&](std::size_t p) {
    const std::vector<Event>& reads = uses_[r].reads[graph_.parameters[p].layer];
    return !reads.empty() && std::all_of(reads.begin(), reads.end(), [&](const Event& read) {
      return read.place >= order(r).ends[gather];
    });
  });
}

void GradientProver::check_gathers_before(std::uint32_t r, const BucketMeaning& bucket,
                                          const BucketUse& use) {
  for (const std::size_t p : bucket.parameters) {
    for (const Event& read : uses_[r].reads[graph_.parameters[p].layer]) {
      const auto gone = static_cast<std::size_t>(
          std::count_if(use.forgets.begin(), use.forgets.end(),
                        [&](const Event& forget) { return forget.number < read.number; }));
      if (gone >= use.gathers.size())
        throw Refuted(fmt::format("{}: {} reads {}, which is no longer there: no message gathers it again",
                                  at(r, read.task), graph_.operations[read.operation].name,
                                  graph_.parameters[p].name));
      check_waits(r, read, use.gathers[gone], p);
    }
    for (const Event& update : updates_of(r, p))
      for (const TaskId gather : use.gathers) check_waits(r, update, gather, p);
  }
}

}  // namespace gradients

}  // namespace convoy::prove
