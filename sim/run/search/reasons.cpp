// SPDX-License-Identifier: MIT
#include "sim/run/search/reasons.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/base/quantity.h"
#include "sim/base/ties.h"
#include "sim/costs/residuals.h"
#include "sim/search/more_text.h"

namespace convoy::inline search {
namespace {

/// The part of the critical device's step that grows most: computing, exposed communication or idle time.
std::string what_grows(const RunResult& loser, const RunResult& best, double scale) {
  const std::array<std::pair<const char*, double>, 3> parts{
      {{"computing", loser.compute_s * scale - best.compute_s},
       {"exposed communication", loser.exposed_comm_s * scale - best.exposed_comm_s},
       {"idle time", loser.idle_s * scale - best.idle_s}}};
  const auto most = std::max_element(parts.begin(), parts.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return fmt::format("{} {} more", most->first, format_time(std::max(0.0, most->second)));
}

}  // namespace

std::string why_beaten(Objective objective, const RunResult& loser, const RunResult& best) {
  const double scale = loser.global_batch > 0 ? best.global_batch / loser.global_batch : 1;
  const Rank its = rank_of(objective, loser), bests = rank_of(objective, best);
  const bool as_good = ties_with_best(its.value, bests.value);
  if (as_good && ties_with_best(its.time_s, bests.time_s)) return "as good; of equals the first is taken";
  const std::string why = fmt::format("{}{}; {}", what_grows(loser, best, scale),
                                      scale == 1 ? "" : fmt::format(" for {:g} images", best.global_batch),
                                      loser.bottleneck.text);
  switch (objective) {
    case Objective::memory:
      if (as_good)
        return fmt::format("as little memory, but {} slower: {}", more_text(its.time_s, bests.time_s), why);
      return fmt::format("needs {} more memory", format_bytes(its.value - bests.value));
    case Objective::cost:
      return fmt::format("{} dearer: {}", more_text(its.value, bests.value), why);
    case Objective::energy:
      return fmt::format("{} more energy: {}", more_text(its.value, bests.value), why);
    case Objective::step_time:
    case Objective::throughput:
      break;
  }
  return fmt::format("{} slower: {}", more_text(its.value, bests.value), why);
}

std::string why_pruned(Objective objective, const Assessment& pruned, const RunResult& best) {
  if (objective == Objective::memory && pruned.peak_bytes > best.peak_memory_bytes)
    return fmt::format("needs {} more memory", format_bytes(pruned.peak_bytes - best.peak_memory_bytes));
  const char* const less = objective == Objective::cost     ? "cannot be cheaper"
                           : objective == Objective::energy ? "cannot need less energy"
                           : objective == Objective::memory ? "as little memory, but cannot be faster"
                                                            : "cannot be faster";
  return fmt::format("{}: {}", less, bound_text(pruned, best));
}

std::string bound_text(const Assessment& assessment, const RunResult& best) {
  if (assessment.images == 0 || assessment.images == best.global_batch) return assessment.bound_text;
  return fmt::format("{}; its step has {:g} images, the best one's {:g}", assessment.bound_text,
                     assessment.images, best.global_batch);
}

std::string why_too_large(const Assessment& assessment) {
  return fmt::format("does not fit: {} of {} on {}", format_bytes(assessment.process_bytes),
                     format_bytes(assessment.fullest_size_bytes), assessment.fullest);
}

namespace {

double error_of(double spread) { return std::expm1(quantile_80 * spread); }

/// If a step is longer than the best one by `longer_s` (negative: shorter) for one reason, by how much it may
/// be shorter relative to the best one: an additional part may be smaller by the error, and a missing part
/// larger.
double error_against_s(double spread, double longer_s) {
  return std::expm1(std::copysign(quantile_80 * spread, -longer_s)) * -longer_s;
}

/// @pre best.interval
bool is_memory_tie(const Rank& rank, const RunResult& best) {
  return rank.value > 0 && rank.value <= best.interval->peak_memory_bytes[1];
}

/// How much longer the step with this rank is than the best one, for the same number of images: in proportion
/// to its value.
double longer_s(Objective objective, const Rank& rank, const RunResult& best) {
  const double least = rank_of(objective, best).value;
  return least > 0 && rank.value > 0 ? (rank.value / least - 1) * best.step_time_s
                                     : std::numeric_limits<double>::infinity();
}

double own_part_s(const RunResult& result, double step_s, const StepSpreads& spreads) {
  return result.comm_bytes > 0 ? error_of(spreads.devices) * step_s : 0;
}

}  // namespace

bool is_tie(Objective objective, const RunResult& other, const RunResult& best, const StepSpreads& spreads) {
  const Rank rank = rank_of(objective, other);
  if (!best.interval) return false;
  if (objective == Objective::memory) return is_memory_tie(rank, best);
  const double scale = other.global_batch > 0 ? best.global_batch / other.global_batch : 1;
  const double own_s = std::hypot(own_part_s(best, best.step_time_s, spreads),
                                  own_part_s(other, other.step_time_s * scale, spreads));
  return longer_s(objective, rank, best) <=
         std::hypot(error_against_s(spreads.compute, other.compute_s * scale - best.compute_s),
                    error_against_s(spreads.comm, other.exposed_comm_s * scale - best.exposed_comm_s), own_s);
}

bool may_be_tie(Objective objective, const Rank& bound, const RunResult& best, const StepSpreads& spreads) {
  if (!best.interval) return false;
  if (objective == Objective::memory) return is_memory_tie(bound, best);
  const double difference_s = longer_s(objective, bound, best);
  const double own_s = error_of(spreads.devices) * (best.step_time_s + difference_s);
  return difference_s <= std::hypot(error_of(spreads.comm) * difference_s,
                                    own_part_s(best, best.step_time_s, spreads), own_s);
}

double shown_value(Objective objective, double rank_value, double images) {
  switch (objective) {
    case Objective::step_time:
    case Objective::energy:
      return rank_value * images;
    case Objective::throughput:
      return rank_value > 0 ? 1 / rank_value : 0;
    case Objective::cost:
    case Objective::memory:
      break;
  }
  return rank_value;
}

}  // namespace convoy::search
