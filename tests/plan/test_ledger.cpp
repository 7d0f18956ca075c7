// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <stdexcept>

#include "sim/plan/ledger.h"
#include "tests/support/hand.h"

using namespace convoy;

namespace {

constexpr MemoryClass weights = MemoryClass::weights, activations = MemoryClass::activations,
                      workspace = MemoryClass::workspace;

/// Two tasks: a saved activation of 100 bytes, a workspace of 50 in the second operation, one of 70 in the
/// third.
Role small_role() {
  Role role = hand::role("worker", {0}, {hand::compute("forward", 1), hand::compute("backward", 1)});
  role.resident_bytes[static_cast<std::size_t>(weights)] = 1000;
  role.program[0].ops = {hand::op("a", 1, {{activations, 100}}),
                         hand::op("b", 1, {{workspace, 50}, {activations, 10}}, {{workspace, 50}})};
  role.program[1].ops = {hand::op("c", 1, {{workspace, 70}}, {{workspace, 70}, {activations, 110}})};
  return role;
}

}  // namespace

TEST_CASE("the peak is the highest level while operations run: what they allocate, before what they free") {
  // 1000; a: 1100; b: 1160, then 1110; c: 1180.
  const MemoryPeak peak = peak_memory(small_role());
  CHECK(peak.bytes == 1180);
  CHECK(peak.level == MemoryLevel{1000, 0, 0, 110, 70, 0});
  CHECK(total_bytes(peak.level) == peak.bytes);
}

TEST_CASE("a role without operations peaks at its resident memory") {
  Role role = hand::role("worker", {0}, {});
  role.resident_bytes = {1, 2, 4, 8, 16, 32};
  CHECK(peak_memory(role).bytes == 63);
  CHECK(peak_memory(role).level == MemoryLevel{1, 2, 4, 8, 16, 32});
}

TEST_CASE("of equal peaks the first counts") {
  Role role = hand::role("worker", {0}, {hand::compute("forward", 1)});
  role.program[0].ops = {hand::op("a", 1, {{activations, 5}}, {{activations, 5}}),
                         hand::op("b", 1, {{workspace, 5}}, {{workspace, 5}})};
  CHECK(peak_memory(role).level == MemoryLevel{0, 0, 0, 5, 0, 0});
}

TEST_CASE("a program that ends above or below its start is refused") {
  CHECK_NOTHROW(require_balanced_memory(small_role()));
  Role leaks = small_role();
  leaks.program[1].ops[0].frees.pop_back();
  CHECK_THROWS_WITH_AS(require_balanced_memory(leaks),
                       "role 'worker' ends the step with 110 bytes more of activations than it began with",
                       std::logic_error);
  Role frees_twice = small_role();
  frees_twice.program[1].ops[0].frees.push_back({workspace, 70});
  CHECK_THROWS_WITH_AS(require_balanced_memory(frees_twice),
                       "role 'worker' ends the step with -70 bytes more of workspace than it began with",
                       std::logic_error);
  // The classes do not make up for each other.
  Role wrong_class = small_role();
  wrong_class.program[0].ops[1].frees[0].memory_class = activations;
  CHECK_THROWS_AS(require_balanced_memory(wrong_class), std::logic_error);
}
