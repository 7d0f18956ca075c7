// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "tests/cli/program.h"

namespace {

/// The last line that `convoy check --prove` writes of the small experiment with another strategy.
Finished proved(const Workplace& place, const std::string& strategy) {
  const std::string file = place.file("experiment.yaml", small_experiment());
  return place.convoy({"check", file, "--prove", "--set", "strategy=" + strategy, "--set", "sweep={}"});
}

bool begins(const std::string& text, const std::string& with) { return text.rfind(with, 0) == 0; }

}  // namespace

TEST_CASE("check --prove: 0 and a line where a plan is proved, 2 where the rules do not speak of it") {
  const Workplace place;
  const Finished ring = proved(place, "{kind: data_parallel, sync: all_reduce, algorithm: ring}");
  CHECK_MESSAGE(ring.exit_code == 0, ring.err);
  CHECK_MESSAGE(begins(ring.out, "proved: "), ring.out);
  CHECK(ring.out.find(" on 4 devices") != std::string::npos);
  CHECK(ring.out.find(" tasks") != std::string::npos);

  const Finished largest =
      proved(place, "{kind: data_parallel, sync: all_reduce, compression: {kind: top_k, ratio: 0.01}}");
  CHECK_MESSAGE(largest.exit_code == 0, largest.err);
  CHECK(largest.out.find("(allowed: all but the largest gradients kept for later steps)") !=
        std::string::npos);

  const Finished servers = proved(place, "{kind: data_parallel, sync: parameter_server, servers: 1}");
  CHECK(servers.exit_code == 2);
  CHECK(servers.out == "not proved: the strategy does not say yet what its tasks read and write\n");

  const Finished search = proved(place, "{kind: auto}");
  CHECK(search.exit_code == 2);
  CHECK_MESSAGE(begins(search.out, "not proved: "), search.out);
}

TEST_CASE("check --prove: a sweep has a line for each point, and ends as the worst of them") {
  const Workplace place;
  const std::string file = place.file("experiment.yaml", small_experiment());
  const Finished both = place.convoy({"check", file, "--prove", "--set",
                                      "sweep={strategy: [{kind: data_parallel, sync: all_reduce}, {kind: "
                                      "data_parallel, sync: parameter_server, "
                                      "servers: 1}]}"});
  CHECK_MESSAGE(both.exit_code == 2, both.err);
  CHECK_MESSAGE(begins(both.out, "1  proved: "), both.out);
  CHECK_MESSAGE(both.out.find("\n2  not proved: ") != std::string::npos, both.out);
}
