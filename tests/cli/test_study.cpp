// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace {

const std::string example = std::string(CONVOY_SOURCE) + "/configs/examples/study.yaml";

}  // namespace

TEST_CASE("study: the example in words, as JSON of schema convoy.study/1, and a second time from its store") {
  const Workplace place;
  const std::vector<std::string> command{"study", example,
                                         "--set", "study.points=16",
                                         "--set", "study.refine=1",
                                         "--set", "study.inputs.nodes.values=[2, 4]",
                                         "--out", "o"};
  const Finished words = place.convoy(command);
  CAPTURE(words.err);
  REQUIRE(words.exit_code == 0);
  CHECK(words.out.find("the ring is at least as fast as a server on every machine") != std::string::npos);
  const nlohmann::json study = nlohmann::json::parse(place.read("o/study.json"));
  CHECK(study["schema"] == "convoy.study/1");
  CHECK(study["sample"].size() == 16);
  for (std::size_t index = 0; index < study["claims"].size(); ++index) {
    const nlohmann::json& claim = study["claims"][index];
    std::size_t holds = 0, of = 0;
    for (const nlohmann::json& point : study["sample"]) {
      if (!point.contains("values")) continue;
      ++of;
      const double value = point["values"][index];
      holds += (claim["at_least"].is_null() || value >= claim["at_least"]) &&
                       (claim["at_most"].is_null() || value <= claim["at_most"])
                   ? 1
                   : 0;
    }
    CHECK(claim["share"]["count"] == holds);
    CHECK(claim["share"]["of"] == of);
  }
  CHECK(place.read("o/report.html").find("<svg") != std::string::npos);
  const std::string before = place.read("o/study.json");
  REQUIRE(place.convoy(command).out == words.out);
  CHECK(place.read("o/study.json") == before);
  std::vector<std::string> printed = command;
  printed.emplace_back("--json");
  CHECK(place.convoy(printed).out == before);
}

TEST_CASE("study: other commands say whose a study is") {
  const Workplace place;
  const Finished run = place.convoy({"run", example});
  CHECK(run.exit_code == 2);
  CHECK(run.err.find("use `convoy study FILE`") != std::string::npos);
  CHECK(place.convoy({"check", example}).out ==
        "study: 3 claims at 256 points of 4 inputs, of 3 variants each\n");
  const Finished none = place.convoy({"study", std::string(CONVOY_SOURCE) + "/configs/quickstart.yaml"});
  CHECK(none.exit_code == 2);
  CHECK(none.err.find("study: is missing") != std::string::npos);
  const Finished where = place.convoy({"reproduce", "memory", "--where"});
  CHECK(where.exit_code == 2);
  CHECK(where.err.find("has no study of unknown inputs; those that have one are eserol2019, kaist2019") !=
        std::string::npos);
}
