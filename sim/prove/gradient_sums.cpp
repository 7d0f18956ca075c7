// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "models/low_rank_shape.h"
#include "sim/prove/gradient_prover.h"

namespace convoy::inline prove {
namespace gradients {

void GradientProver::check_factors(std::uint32_t r, const BucketMeaning& bucket, const BucketUse& use) const {
  const bool has_matrices =
      bucket.coding == BucketMeaning::Coding::low_rank &&
      std::any_of(bucket.parameters.begin(), bucket.parameters.end(), [&](std::size_t p) {
        const Parameter& parameter = graph_.parameters[p];
        return low_rank_shape(graph_.model, parameter, elements(r, p), bucket.detail).has_value();
      });
  const std::size_t times = has_matrices ? use.sums.size() : 0;
  const std::vector<Event>& made = acts(use, Act::factor);
  if (made.size() != times || use.factor_sums.size() != times)
    throw Refuted(fmt::format("{}: second factors of {} are made {} times and summed {} times; {} is right",
                              name_of(plan_.roles[r], machine_), list_text(bucket), made.size(),
                              use.factor_sums.size(), times));
  for (std::size_t k = 0; k < times; ++k) {
    if (made[k].place < order(r).ends[use.sums[k]])
      throw Refuted(
          fmt::format("{}: does not wait for '{}'", at(r, made[k].task), comm_name(r, use.sums[k])));
    if (made[k].place >= order(r).begins[use.factor_sums[k]])
      throw Refuted(fmt::format("{}: does not wait for '{}'", at(r, use.factor_sums[k]),
                                plan_.roles[r].program[made[k].task].name));
    if (const std::vector<Event>& undone = acts(use, Act::decompress);
        undone.size() == times && undone[k].place < order(r).ends[use.factor_sums[k]])
      throw Refuted(
          fmt::format("{}: does not wait for '{}'", at(r, undone[k].task), comm_name(r, use.factor_sums[k])));
  }
}

void GradientProver::check_sum(std::uint32_t r, const BucketMeaning& bucket, const BucketUse& use) {
  const std::size_t updates = updates_of(r, bucket.parameters.front()).size();
  if (use.sums.size() != updates || !use.scatters.empty() || !use.gathers.empty())
    throw Refuted(fmt::format("{}: the gradients of {} are summed over the replicas {} times for {}",
                              name_of(plan_.roles[r], machine_), list_text(bucket),
                              use.sums.size() + use.scatters.size(), count_of(updates, "update")));
  const bool compressed = bucket.element_bytes != element_bytes(graph_.options.precision);
  check_pairs(r, use, Act::compress, Act::decompress, compressed ? updates : 0);
  check_pairs(r, use, Act::fill, Act::empty, acts(use, Act::fill).empty() ? 0 : updates);
  if (compressed && !acts(use, Act::fill).empty()) check_copies(r, use, updates);
  for (std::size_t k = 0; k < updates; ++k) {
    const TaskId sum = use.sums[k];
    const Communication& comm = plan_.communications[plan_.roles[r].program[sum].comm];
    const bool gathers = meaning_.communications[comm.meaning].kind == Kind::gather_gradients;
    if (gathers != (bucket.element_bytes == 0 && bucket.coding != BucketMeaning::Coding::low_rank))
      throw Refuted(fmt::format("{}: whole gradients are summed on the way, the largest ones are gathered",
                                at(r, sum)));
    for (const std::size_t p : bucket.parameters) check_sum_of(r, p, use, k);
  }
}

void GradientProver::check_sum_of(std::uint32_t r, std::size_t p, const BucketUse& use, std::size_t k) {
  const TaskId sum = use.sums[k];
  const Event& update = updates_of(r, p)[k];
  for (const Event& event : gradients_of(r, p)) {
    const std::size_t of_update = update_of(r, graph_.parameters[p].layer, event);
    if (of_update == k && event.place >= order(r).begins[sum])
      throw Refuted(fmt::format("{}: does not wait for {}", at(r, sum), gradient_text(p, event)));
    for (const Act act : {Act::compress, Act::fill})
      if (!acts(use, act).empty() && of_update == k && event.number > acts(use, act)[k].number)
        throw Refuted(fmt::format("{}: {} is not in what is sent", at(r, acts(use, act)[k].task),
                                  gradient_text(p, event)));
  }
  check_waits(r, update, sum, p);
  for (const Act act : {Act::decompress, Act::empty})
    if (!acts(use, act).empty() && acts(use, act)[k].number > update.number)
      throw Refuted(fmt::format("{}: {} is updated before the sum of its gradients is put back",
                                at(r, update.task), graph_.parameters[p].name));
}

void GradientProver::check_pairs(std::uint32_t r, const BucketUse& use, Act before, Act after,
                                 std::size_t times) {
  if (acts(use, before).size() != times || acts(use, after).size() != times)
    throw Refuted(fmt::format(
        "{}: its gradients are {} {} times before it and {} {} times after it; {} is right",
        at(r, use.sums[0]), before == Act::fill ? "copied" : "compressed", acts(use, before).size(),
        before == Act::fill ? "copied back" : "decompressed", acts(use, after).size(), times));
  for (std::size_t k = 0; k < times; ++k) {
    if (const Event& event = acts(use, before)[k]; event.place >= order(r).begins[use.sums[k]])
      throw Refuted(fmt::format("{}: does not wait for '{}'", at(r, use.sums[k]),
                                plan_.roles[r].program[event.task].name));
    if (const Event& event = acts(use, after)[k]; event.place < order(r).ends[use.sums[k]])
      throw Refuted(fmt::format("{}: does not wait for '{}'", at(r, event.task), comm_name(r, use.sums[k])));
  }
}

void GradientProver::check_copies(std::uint32_t r, const BucketUse& use, std::size_t times) const {
  const auto check = [&](Act first, Act second, const char* what) {
    for (std::size_t k = 0; k < times; ++k)
      if (acts(use, first)[k].number > acts(use, second)[k].number)
        throw Refuted(fmt::format("{}: its gradients are {}", at(r, acts(use, second)[k].task), what));
  };
  check(Act::fill, Act::compress, "compressed before they are copied into the bucket");
  check(Act::decompress, Act::empty, "copied back before they are decompressed");
}

}  // namespace gradients

}  // namespace convoy::prove
