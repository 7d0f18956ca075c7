// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "strategies/partition/paging.h"
#include "tests/partition/graphs.h"
#include "tests/support/approx.h"

using namespace convoy;

TEST_CASE("paging: a graph that fits takes its work and moves nothing") {
  const Dag dag({{10, 100, 0}, {20, 100, 0}, {5, 0, 0}}, {{0, 1}, {1, 2}});
  const PagedRun run = run_paged(dag, 200, 1);
  CHECK(run.makespan_us == 35);
  CHECK(run.in_bytes == 0);
  CHECK(run.out_bytes == 0);
}

TEST_CASE("paging: an output that makes room goes to the host and comes back for its reader") {
  // a and b are made, c reads b, d reads a and c; 2 outputs of 100 bytes fit. For c's output a has to go; for
  // d, a comes back, and nothing has to go, since b is dead.
  const Dag dag({{1, 100, 0}, {1, 100, 0}, {1, 100, 0}, {1, 0, 0}}, {{0, 3}, {1, 2}, {2, 3}});
  const PagedRun run = run_paged(dag, 200, 10);
  CHECK(run.out_bytes == 100);
  CHECK(run.in_bytes == 100);
  CHECK(run.makespan_us == approx(4 + 10 + 10));
}

TEST_CASE("paging: variables that do not fit together change places in every step") {
  // Two variables of 100 bytes, each read by an operation; memory of 150. In each step both come in once.
  const Dag dag({{0, 0, 100}, {1, 0, 0}, {0, 0, 100}, {1, 0, 0}}, {{0, 1}, {2, 3}});
  const PagedRun run = run_paged(dag, 150, 10);
  CHECK(run.in_bytes == 200);
  CHECK(run.out_bytes == 200);
  CHECK(run.makespan_us == approx(2 + 20));
}

TEST_CASE(
    "paging: the time is at least the work and at most the work and all bytes, and what fits moves none") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const Dag dag = graphs::any(seed, 100).dag();
    for (const double memory : {1e12, 1e8, 1e7, 1e6, 1e5}) {
      const PagedRun run = run_paged(dag, memory, 12000);
      if (memory == 1e12) CHECK(run.in_bytes + run.out_bytes == 0);
      CHECK(run.makespan_us >= dag.total_time_us() * (1 - 1e-12));
      CHECK(run.makespan_us <= dag.total_time_us() + (run.in_bytes + run.out_bytes) / 12000 + 1e-6);
    }
  }
}
