// SPDX-License-Identifier: MIT
#pragma once

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "sim/replay/replay.h"
#include "tests/support/hand.h"

namespace convoy::replayed {

constexpr double ms = 1e-3, us = 1e-6, MB = 1e6;

inline ReplayResult run(const Plan& plan, const Machine& machine, bool fold = true) {
  return replay(plan, machine, CostModel(Precision::fp32), {fold});
}

inline std::string error_of(const Plan& plan, const Machine& machine) {
  try {
    run(plan, machine);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

/// `pairs` of one group as a send/receive pattern; every message the whole communication.
inline Pattern messages(std::vector<EndpointId> group,
                        std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs) {
  return {{std::move(group)}, {{std::move(pairs), {1.0}, 1}}};
}

/// Two workers, the second `late_ms` later, and an all-reduce of 1 MB in a ring of two.
inline Plan two_rank_ring(double late_ms, Fidelity fidelity, double overhead_s) {
  Plan plan;
  plan.patterns = {{{{0, 1}}, {hand::ring_round(2, 0.5, 2)}}};
  plan.communications = {{"sum", 0, MB, fidelity, overhead_s}};
  plan.roles = {
      hand::role("early", {0}, {hand::message(Task::Kind::collective, "sum", 0, {}, 1)}),
      hand::role("late", {1},
                 {hand::compute("work", late_ms), hand::message(Task::Kind::collective, "sum", 0, {0}, 1)})};
  return plan;
}

}  // namespace convoy::replayed
