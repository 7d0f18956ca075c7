// SPDX-License-Identifier: MIT
// What long commands show on a terminal while they work. `script` of util-linux gives them one.
#include <doctest/doctest.h>

#include "program.h"

namespace {

/// What the command writes where its output is a terminal.
std::string on_terminal(const Workplace& place, const std::string& command) {
  const Finished finished = place.shell("script -qec \"" + command + "\" /dev/null");
  CHECK(finished.exit_code == 0);
  return finished.out;
}

}  // namespace

TEST_CASE("progress: each part of a run and of a merge is counted on a terminal") {
  const Workplace place;
  const std::string file = place.file("sweep.yaml", swept_experiment());
  const std::string erased = "\r\033[K";

  const std::string run = on_terminal(place, "$CONVOY run " + file + " --out whole");
  CHECK(run.find("simulating 0/16") != std::string::npos);
  const std::size_t writing = run.find("writing 1/16");
  REQUIRE(writing != std::string::npos);
  const std::size_t end = run.find(erased, writing);
  REQUIRE(end != std::string::npos);
  CHECK(run.find("writing", end) == std::string::npos);

  for (const char* shard : {"1", "2"})
    CHECK(place.convoy({"run", file, "--shard", std::string(shard) + "/2", "--out", shard}).exit_code == 0);
  const std::string merged = on_terminal(place, "$CONVOY merge 1 2 --out joined");
  std::size_t at = 0;
  for (const char* part : {"reading shards 1/2", "joining shards 1/2", "writing 1/16"}) {
    CAPTURE(part);
    at = merged.find(part, at);
    REQUIRE(at != std::string::npos);
  }
  CHECK(on_terminal(place, "$CONVOY merge 1 2 --out stores --store-only").find("joining shards 1/2") !=
        std::string::npos);
}

TEST_CASE("progress: piped output has none") {
  const Workplace place;
  const std::string file = place.file("sweep.yaml", swept_experiment());
  CHECK(place.convoy({"run", file, "--out", "whole"}).err.empty());
  CHECK(place.convoy({"merge", "whole", "--out", "joined"}).err.empty());
}
