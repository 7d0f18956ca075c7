// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "sim/cli/prove_experiment.h"
#include "tests/cli/program.h"

namespace {

/// A sum that sends more than it needs to.
constexpr const char* everyone_to_everyone =
    "schedule: everyone to everyone\nchunks: 1\nscratch: $ranks\nrounds:\n"
    "  - send: {for: {r: $ranks, d: $(ranks - 1)}, from: $r, to: $((r + d + 1) % ranks), chunk: 0, "
    "into: $(1 + r), op: copy}\n"
    "  - repeat: $(ranks - 1)\n"
    "    send: {for: {r: $ranks}, from: $r, to: $r, chunk: $(1 + (r + step + 1) % ranks), into: 0, "
    "op: reduce}\n";

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

  const Finished codes =
      proved(place, "{kind: data_parallel, sync: all_reduce, compression: {kind: quantised, bits: 4}}");
  CHECK_MESSAGE(codes.exit_code == 0, codes.err);
  CHECK_MESSAGE(codes.out.find("(allowed: gradients rounded on the way)") != std::string::npos, codes.out);

  for (const std::string sync : {"sync: all_reduce, sync_every: 3", "sync: gossip"}) {
    const Finished averaged = proved(place, "{kind: data_parallel, " + sync + "}");
    CHECK_MESSAGE(averaged.exit_code == 0, averaged.err);
    CHECK_MESSAGE(averaged.out.find("train replicas that are averaged") != std::string::npos, averaged.out);
    CHECK_MESSAGE(averaged.out.find("(allowed: parameters averaged") != std::string::npos, averaged.out);
    CHECK(averaged.out.find("what one device does") == std::string::npos);
  }

  place.file("star.yaml",
             "schedule: star\nchunks: 1\nrounds:\n"
             "  - send: {for: {r: $(ranks - 1)}, from: $(r + 1), to: 0, chunk: 0, op: reduce}\n"
             "  - send: {for: {r: $(ranks - 1)}, from: 0, to: $(r + 1), chunk: 0, op: copy}\n");
  const Finished schedule =
      proved(place, "{kind: data_parallel, sync: all_reduce, algorithm: {file: star.yaml}}");
  CHECK_MESSAGE(schedule.exit_code == 0, schedule.err);
  CHECK_MESSAGE(begins(schedule.out, "proved: "), schedule.out);

  place.file("everyone.yaml", everyone_to_everyone);
  const Finished everyone =
      proved(place, "{kind: data_parallel, sync: all_reduce, algorithm: {file: everyone.yaml}}");
  CHECK(everyone.exit_code == 2);
  CHECK_MESSAGE(everyone.out.find("sends 12 times its bytes, and 6 are enough") != std::string::npos,
                everyone.out);

  const Finished servers = proved(place, "{kind: data_parallel, sync: parameter_server, servers: 1}");
  CHECK_MESSAGE(servers.exit_code == 0, servers.err);
  CHECK_MESSAGE(begins(servers.out, "proved: "), servers.out);
  CHECK(servers.out.find("allowed") == std::string::npos);

  const Finished ahead = proved(
      place, "{kind: data_parallel, sync: parameter_server, servers: 1, mode: ssp, staleness: 3}");
  CHECK_MESSAGE(ahead.exit_code == 0, ahead.err);
  CHECK_MESSAGE(ahead.out.find("(allowed: updates with the gradients of one worker at a time, which is at "
                               "most 3 steps ahead of the slowest)") != std::string::npos,
                ahead.out);

  const Finished hybrid = proved(place, "{kind: hybrid, fc: pairs}");
  CHECK_MESSAGE(hybrid.exit_code == 0, hybrid.err);
  CHECK_MESSAGE(begins(hybrid.out, "proved: "), hybrid.out);

  const Finished search = proved(place, "{kind: auto}");
  CHECK(search.exit_code == 2);
  CHECK_MESSAGE(begins(search.out, "not proved: "), search.out);
}

TEST_CASE("check --prove: a sweep has a line for each point, and ends as the worst of them") {
  const Workplace place;
  const std::string file = place.file("experiment.yaml", small_experiment());
  place.file("everyone.yaml", everyone_to_everyone);
  const Finished both =
      place.convoy({"check", file, "--prove", "--set",
                    "sweep={strategy: [{kind: data_parallel, sync: all_reduce}, {kind: "
                    "data_parallel, sync: all_reduce, algorithm: {file: everyone.yaml}}]}"});
  CHECK_MESSAGE(both.exit_code == 2, both.err);
  CHECK_MESSAGE(begins(both.out, "1  proved: "), both.out);
  CHECK_MESSAGE(both.out.find("\n2  not proved: ") != std::string::npos, both.out);
}

TEST_CASE("check --prove: ends with 1 where a plan is refuted, whatever the others are") {
  using enum convoy::Proof::Outcome;
  CHECK(convoy::exit_for({proved, proved}) == convoy::Exit::done);
  CHECK(convoy::exit_for({proved, not_covered}) == convoy::Exit::bad_input);
  CHECK(convoy::exit_for({refuted, proved}) == convoy::Exit::check_failed);
  CHECK(convoy::exit_for({not_covered, refuted, not_covered}) == convoy::Exit::check_failed);
}

TEST_CASE("check --prove: what is no experiment with a strategy is refused, with its place") {
  const Workplace place;
  place.file("network.yaml",
             "name: net\nnetwork: {kind: recurrent, layers: 1, steps: 2, hidden: 8, vocabulary: 10}\n"
             "device: v100-sxm2-32gb\nbatch: 4\noptimizer: sgd\n");
  CHECK(place.convoy({"check", "network.yaml"}).exit_code == 0);
  place.file("results/empty", "");
  place.file("jobs.yaml", small_experiment() + "jobs: {}\n");
  for (const auto& [file, at] : {std::pair{"network.yaml", "network.yaml:2:10: "},
                                 {"results", "results: "},
                                 {"jobs.yaml", "jobs.yaml:"}}) {
    const Finished run = place.convoy({"check", file, "--prove"});
    CAPTURE(run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.out == "");
    CHECK(run.err.find(at) != std::string::npos);
    CHECK(run.err.find("--prove takes an experiment with ") != std::string::npos);
  }
}

TEST_CASE("check --prove: warns as check does, and counts the devices that are used") {
  const Workplace place;
  const std::string file = place.file("experiment.yaml", small_experiment());
  std::vector<std::string> check{"check", file,      "--set", "training.batch_per_device=100000000",
                                 "--set", "sweep={}"};
  const Finished plain = place.convoy(check);
  check.push_back("--prove");
  const Finished proof = place.convoy(check);
  CHECK(plain.err.find("this run would fail") != std::string::npos);
  CHECK(proof.err == plain.err);

  const Finished single = proved(place, "{kind: single}");
  CHECK_MESSAGE(single.out.find(" on 1 device compute ") != std::string::npos, single.out);
}

TEST_CASE("check --prove: nothing is wrong with the plans of the project's own experiments") {
  const Workplace place;
  const std::filesystem::path configs = std::filesystem::path(CONVOY_SOURCE) / "configs";
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(configs / "examples"))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  // Filters of Torch7's sizes, whose workers release what they sent before they take in what is larger.
  for (const char* name : {"marques2016.yaml", "marques2016-networks.yaml", "marques2016-energy.yaml"})
    files.push_back(configs / "papers" / name);
  std::size_t all_proved = 0;
  for (const std::filesystem::path& file : files) {
    CAPTURE(file);
    const Finished check = place.convoy({"check", file.string(), "--prove"});
    CHECK_MESSAGE(check.exit_code != 1, check.out);
    all_proved += check.exit_code == 0;
  }
  CHECK(2 * all_proved > files.size());
}
