// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "sim/base/data_path.h"
#include "sim/run/preparer.h"
#include "sim/run/simulate.h"
#include "sim/studies/claims/claim.h"
#include "sim/studies/claims/kernel_records.h"
#include "sim/studies/claims/monitored_records.h"
#include "sim/studies/claims/training_records.h"
#include "sim/studies/thesis.h"
#include "tests/support/approx.h"
#include "tests/support/working_file.h"

using namespace convoy;

namespace {

const std::vector<std::pair<std::string, std::string>> sources{{"abstract", "a thesis"}, {"table", "a page"}};

/// Runs of two strategies on 1 to 4 devices; the first takes 8 / devices seconds, the second twice as long.
RecordTables tables() {
  RecordTables result;
  for (const double devices : {1.0, 2.0, 4.0})
    for (const double slow : {1.0, 2.0}) {
      Record& record = result["runs"].emplace_back();
      record.numbers = {{"devices", devices}, {"step_time_s", slow * 8 / devices}};
      record.texts = {{"strategy", slow > 1 ? "slow" : "fast"}};
    }
  return result;
}

std::vector<JudgedClaim> judge(const std::string& yaml) {
  const YamlNode node = parse_yaml(yaml, "claims.yaml");
  return ClaimSpec(node, sources).judge(tables());
}

const std::string speedup = R"(
claim: speedup
stated_in: table
source: table
for: {n: [2, 4]}
setup: "{n} devices"
select:
  many: {from: runs, strategy: fast, devices: $n}
  one: {from: runs, strategy: fast, devices: $(n - n + 1)}
value: one.step_time_s / many.step_time_s / n
published: {by: n, 2: 1.0, 4: 6/8}
accept: {within: 20 %, because: a test}
fails_if: {select: {many: {strategy: slow}}}
)";

std::string error_of(const std::string& yaml) {
  try {
    judge(yaml);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

}  // namespace

TEST_CASE("claims: a line a cell, with its own published figure and what is accepted about it") {
  const std::vector<JudgedClaim> claims = judge(speedup);
  REQUIRE(claims.size() == 2);
  CHECK(claims[0].setup == "2 devices");
  CHECK(claims[0].ours == 1.0);
  CHECK(claims[0].verdict() == Verdict::passed);
  CHECK(claims[1].published == 0.75);
  CHECK(*claims[1].low == approx(0.6).epsilon(1e-12));
  CHECK(*claims[1].high == approx(0.9).epsilon(1e-12));
  CHECK(claims[1].ours == 1.0);
  CHECK(claims[1].verdict() == Verdict::failed);
}

TEST_CASE("claims: so many lines are known to fail, no more and no fewer") {
  const std::vector<JudgedClaim> listed =
      judge(speedup + "shortfall: {lines: 1, cause: mechanism, reason: flat}\n");
  CHECK(listed[1].verdict() == Verdict::failed);
  CHECK(listed[1].shortfall == "flat");
  CHECK(listed[1].cause == FailureCause::mechanism);
  CHECK(error_of(speedup + "shortfall: {lines: 1, reason: flat}\n").find("'cause' is missing") !=
        std::string::npos);
  CHECK(listed[1].miscounted.empty());
  for (const JudgedClaim& line : judge(speedup + "shortfall: {lines: 2, cause: mechanism, reason: flat}\n")) {
    CHECK(line.miscounted == "1 lines fail, and 2 are listed (shortfall.lines)");
    CHECK(line.shortfall.empty());
  }
}

TEST_CASE("claims: another run in a run's place, and figures that are scaled until a line fails") {
  // Published are 1 and 0.75, ours is 1, accepted 0.8 to 1.2 and 0.6 to 0.9: the second line fails as it is.
  const std::vector<JudgedClaim> swapped = judge(speedup);
  CHECK(swapped[0].fails_under == "many of {strategy: slow}");  // 1/2
  CHECK(swapped[1].fails_under.empty());
  const auto scaled = [](const char* factor) {
    const std::string wrong = fmt::format("{{scale: {{many.step_time_s: {}}}}}", factor);
    return judge(replaced(speedup, "{select: {many: {strategy: slow}}}", wrong))[0].fails_under;
  };
  CHECK(scaled("2") == "many.step_time_s x 2");
  CHECK(scaled("0.9") == "many.step_time_s x 0.81");  // 1/0.9 = 1.11 is inside, 1/0.81 = 1.23 is not
  CHECK(scaled("1.1") == "many.step_time_s x 1.33");  // 1/1.21 = 0.826 is inside, 1/1.331 = 0.751 is not
  CHECK(scaled("1.01").empty());                      // 1/1.01^16 = 0.853
}

TEST_CASE("claims: the worst of several cells names itself in the setup") {
  const char* worst = R"(
claim: slower, worst
stated_in: ours
over: {n: [1, 2, 4], strategy: [fast, slow]}
take: max
setup: "{n} {strategy}"
select: {run: {from: runs, strategy: $strategy, devices: $n}}
value: run.step_time_s
accept: {at_most: 15, because: a test}
fails_if: {scale: {run.step_time_s: 2}}
)";
  const std::vector<JudgedClaim> claims = judge(worst);
  REQUIRE(claims.size() == 1);
  CHECK(claims[0].ours == 16);
  CHECK(claims[0].setup == "1 slow");
  CHECK(claims[0].searched == "greatest of 6, 2 to 16");
  CHECK(claims[0].because == "a test");
  CHECK(claims[0].verdict() == Verdict::failed);
  CHECK(judge(replaced(worst, "take: max", "take: min"))[0].ours == 2);
  CHECK(judge(replaced(worst, "take: max", "take: min"))[0].searched == "least of 6, 2 to 16");
  CHECK(judge(speedup)[0].searched.empty());  // one cell a line
  // (8 + 16 + 4 + 8 + 2 + 4) / 6 = 7
  CHECK(judge(replaced(worst, "take: max", "take: mean"))[0].ours == 7);
}

TEST_CASE("claims: shares of kernels' time add up to one, and convolutions' grows with the filters of both") {
  const YamlNode node = parse_yaml(
      "kernel_shares: papers/marques2016\n"
      "sweep: {cluster.nodes: [[{name: n, count: 1, server: gpu}]],"
      " model.filters: [[50, 500], [150, 800], [500, 1500]]}\n",
      "records.yaml");
  YamlMap map(node, "records");
  const std::vector<Record> records = kernel_share_records(map, 1);
  REQUIRE(records.size() == 3);
  double fewer = 0;
  for (const Record& record : records) {
    double all = 0;
    for (const auto& [name, share] : record.numbers) all += share;
    CHECK(all == approx(1).epsilon(1e-12));
    CHECK(record.texts.at("device_type") == "k20");
    // Products of filters grow faster than what is done once an output.
    CHECK(record.numbers.at("share.convolution") > fewer);
    fewer = record.numbers.at("share.convolution");
  }
}

TEST_CASE(
    "claims: shares of a host's NIC and vCPUs are of what it has, the NIC's in the direction that is used "
    "more") {
  const auto record = [](int vcpus) {
    const runs::Experiment experiment = runs::Experiment::parse(
        fmt::format("experiment: e\nmodel: lenet5\ntraining: {{batch_per_device: 64, optimizer: sgd}}\n"
                    "cluster:\n"
                    "  name: lab\n"
                    "  nodes: [{{name: n, count: 2, server: box}}]\n"
                    "  fabric: {{kind: switch, bandwidth: 1Gbps, latency: 20us, protocol: tcp}}\n"
                    "  servers: {{box: {{devices: [{{device: k80, count: 1}}], interconnect: {{kind: none}}, "
                    "vcpus: {}}}}}\n"
                    // Few gradients go to the server, and all parameters come back.
                    "strategy: {{kind: data_parallel, sync: parameter_server, servers: 1, "
                    "compression: {{kind: top_k, ratio: 0.1}}}}\n",
                    vcpus),
        "e.yaml", {});
    Preparer preparer(experiment);
    std::vector<RunResult> results{simulate(preparer.prepare(0), false).result};
    results.front().id = point_id(0);
    std::vector<Record> records(1);
    add_monitored(experiment, results, records);
    return records[0].numbers;
  };
  const auto eight = record(8), twice = record(16);
  const double nic_Bps = 1e9 / 8;
  CHECK(eight.at("monitor.first.sent_Bps") < 0.5 * eight.at("monitor.first.received_Bps"));
  CHECK(eight.at("monitor.first.nic_share") ==
        approx(eight.at("monitor.first.received_Bps") / nic_Bps).epsilon(1e-12));
  CHECK(eight.at("monitor.busiest.sent_Bps") > 2 * eight.at("monitor.busiest.received_Bps"));
  CHECK(eight.at("monitor.busiest.nic_share") ==
        approx(eight.at("monitor.busiest.sent_Bps") / nic_Bps).epsilon(1e-12));
  CHECK(eight.at("monitor.first.cpu_share") > 0);
  CHECK(eight.at("monitor.first.cpu_share") < 1);
  CHECK(twice.at("monitor.first.cpu_share") ==
        approx(eight.at("monitor.first.cpu_share") / 2).epsilon(1e-12));
}

TEST_CASE("claims: wrong files of claims are refused with the place") {
  CHECK(error_of(replaced(speedup, "strategy: fast, devices: $n", "strategy: fast"))
            .find("many: 3 of 6 records are") != std::string::npos);
  CHECK(error_of(replaced(speedup, "many.step_time_s / n", "many.steptime / n"))
            .find("has no number 'many.steptime'") != std::string::npos);
  CHECK(
      error_of(replaced(speedup, "many.step_time_s / n", "many.step_time_s / (n")).find("is no expression") !=
      std::string::npos);
  CHECK(error_of(replaced(speedup, "fails_if: {select: {many: {strategy: slow}}}", ""))
            .find("needs 'fails_if'") != std::string::npos);
  CHECK(error_of(replaced(speedup, "accept: {within: 20 %, because: a test}", "")).find("needs 'accept'") !=
        std::string::npos);
  CHECK(
      error_of(replaced(speedup, ", because: a test", "")).find("needs 'because', why so much and no more") !=
      std::string::npos);
  CHECK(error_of(replaced(speedup, "{within: 20 %, because: a test}", "{at_least: 1}")).empty());
  CHECK(error_of(replaced(speedup, "from: runs", "from: rows")).find("there are no records 'rows'") !=
        std::string::npos);
  CHECK(error_of(speedup).empty());
}

TEST_CASE("claims: what is divided by 0 is no value that any verdict could be of") {
  for (const char* value :
       {"many.step_time_s / (many.devices - n)", "(many.devices - n) / (many.devices - n)"}) {
    std::string infinite = speedup;
    const std::string finite = "one.step_time_s / many.step_time_s / n";
    infinite.replace(infinite.find(finite), finite.size(), value);
    CHECK(error_of(infinite).find("value of 'speedup' (2 devices) is") != std::string::npos);
    CHECK(error_of(infinite).ends_with("what it divides by is 0"));
  }
}

TEST_CASE("claims: every sentence of an abstract has claims that judge it, or says why it has none") {
  for (const std::string& name : thesis_names()) {
    CAPTURE(name);
    const ClaimFile file = read_claims(data_path("results/published/theses") + "/" + name + ".yaml");
    CHECK_FALSE(file.sentences.empty());
    for (const AbstractSentence& sentence : file.sentences)
      CHECK(sentence.judged_by.empty() != sentence.not_judged.empty());
  }
}

TEST_CASE("claims: sentences that name no claim, and claims that no sentence names, are errors") {
  const auto error = [](const std::string& abstract) -> std::string {
    const WorkingFile file(
        "thesis.yaml",
        "thesis: t\ntitle: t\nnote: t\nsources: {abstract: a}\nrecords: {}\nclaims:\n"
        "  - {claim: faster, stated_in: abstract, select: {}, value: 1 + 1, accept: {at_least: 1}, "
        "fails_if: {scale: {a.b: 1}}}\nabstract:\n" +
            abstract);
    try {
      read_claims(file.name);
    } catch (const InputError& wrong) {
      return wrong.what();
    }
    return "";
  };
  CHECK(error("  - {says: it is faster, judged_by: [faster]}\n").empty());
  CHECK(error("  - {says: it is faster, judged_by: [slower]}\n").find("there is no claim 'slower'") !=
        std::string::npos);
  CHECK(error("  - {says: it is faster}\n").find("needs 'judged_by'") != std::string::npos);
  CHECK(error("  - {says: it is faster, not_judged: no clock}\n").find("no sentence is judged by 'faster'") !=
        std::string::npos);
}

TEST_CASE("claims: a sentence that is not judged has no verdict of which anything is not said") {
  for (const std::string& name : thesis_names())
    for (const AbstractSentence& sentence :
         read_claims(data_path("results/published/theses") + "/" + name + ".yaml").sentences)
      CHECK((sentence.not_said.empty() || !sentence.judged_by.empty()));
}

TEST_CASE("claims: plans that compute what one device computes are told from those that only may") {
  const YamlNode node = parse_yaml(
      "proofs_of: papers/marques2016\n"
      "sweep: {model.filters: [[5, 8]], cluster.nodes: [[{name: n, count: 4, server: gpu}]],"
      " strategy: [{kind: filter_parallel}, {kind: data_parallel, sync: all_reduce},"
      " {kind: data_parallel, sync: all_reduce, compression: {kind: top_k, ratio: 0.01}},"
      " {kind: data_parallel, sync: parameter_server, servers: 1, mode: async}]}\n",
      "records.yaml");
  YamlMap map(node, "records");
  const std::vector<Record> records = proof_records(map, 1);
  REQUIRE(records.size() == 4);
  for (std::size_t i = 0; i < records.size(); ++i) {
    CAPTURE(records[i].texts.at("strategy"));
    CHECK(records[i].numbers.at("devices") == 4);
    CHECK(records[i].numbers.at("exact") == (i < 2 ? 1 : 0));
    CHECK(records[i].numbers.at("proved") >= records[i].numbers.at("exact"));
  }
  CHECK(records[2].numbers.at("proved") == 1);  // it may send a part of the gradients later
}

TEST_CASE("claims: of runs that differ in the learning rate alone the one is kept that is there soonest") {
  const auto records = [](const std::string& more) {
    const YamlNode node = parse_yaml(
        "trained: papers/marques2016-training\n"
        "set: [numerics.steps=20, numerics.every=4,"
        " \"sweep={numerics.learning_rate: [0.001, 0.1, 0.05], numerics.seed: [1, 2]}\"]\n" +
            more,
        "records.yaml");
    YamlMap map(node, "records");
    return trained_records(map, 1);
  };
  const std::vector<Record> all = records("target: 0.25\n"),
                            best = records("target: 0.25\nbest_of: numerics.learning_rate\n");
  REQUIRE(all.size() == 6);
  REQUIRE(best.size() == 2);
  for (const Record& kept : best) {
    double soonest = std::numeric_limits<double>::infinity();
    for (const Record& run : all)
      if (run.texts.at("point.numerics.seed") == kept.texts.at("point.numerics.seed"))
        soonest = std::min(soonest, run.numbers.at("time_to_target_s"));
    CHECK(kept.numbers.at("tried") == 3);
    CHECK(kept.numbers.at("time_to_target_s") == soonest);
    CHECK(kept.numbers.at("time_to_target_s") ==
          approx(kept.numbers.at("steps_to_target") * kept.numbers.at("step_time_s")).epsilon(1e-9));
  }
  for (const Record& run : records("target: 1.1\n"))  // which no network reaches
    CHECK(std::isinf(run.numbers.at("steps_to_target")));
}

TEST_CASE("claims: what is not trained, or not varied, has no time to a target") {
  const auto error = [](const std::string& text) {
    const YamlNode node = parse_yaml(text, "records.yaml");
    YamlMap map(node, "records");
    try {
      trained_records(map, 1);
    } catch (const InputError& wrong) {
      return std::string(wrong.what());
    }
    return std::string();
  };
  CHECK(error("{trained: papers/eserol2019-training-plans, target: 0.9}").find("it has no numerics") !=
        std::string::npos);
  CHECK(error("trained: papers/marques2016-training\nset: [numerics.steps=1, numerics.every=1]\n"
              "target: 0.9\nbest_of: numerics.learning_rate\n")
            .find("the sweep does not vary 'numerics.learning_rate'") != std::string::npos);
}

// Every verdict could have failed: each line that passed fails under a wrong input that its claim states.
#define EVERY_VERDICT_CAN_FAIL(name)                                           \
  TEST_CASE("claims: every verdict of " name " fails under its wrong input") { \
    const ThesisReproduction judged = convoy::judge(run_thesis(name, 2));      \
    CHECK(judged.passed());                                                    \
    for (const JudgedClaim& line : judged.claims) {                            \
      CAPTURE(line.claim);                                                     \
      CAPTURE(line.setup);                                                     \
      CAPTURE(line.ours);                                                      \
      CHECK(line.fails_under.empty() == (line.verdict() != Verdict::passed));  \
    }                                                                          \
  }

EVERY_VERDICT_CAN_FAIL("afs")
EVERY_VERDICT_CAN_FAIL("eserol2019")
EVERY_VERDICT_CAN_FAIL("kaist2019")
EVERY_VERDICT_CAN_FAIL("krizhevsky2014")
EVERY_VERDICT_CAN_FAIL("localsgd-paddle")
EVERY_VERDICT_CAN_FAIL("marques2016")
EVERY_VERDICT_CAN_FAIL("pollux2021")
EVERY_VERDICT_CAN_FAIL("powersgd2019")
EVERY_VERDICT_CAN_FAIL("qararyah2020")
EVERY_VERDICT_CAN_FAIL("sgp2019")
EVERY_VERDICT_CAN_FAIL("shi2019")
EVERY_VERDICT_CAN_FAIL("sia2023")

TEST_CASE("claims: each file of claims is among those whose verdicts were seen to fail above") {
  CHECK(thesis_names() == std::vector<std::string>{"afs", "eserol2019", "kaist2019", "krizhevsky2014",
                                                   "localsgd-paddle", "marques2016", "pollux2021",
                                                   "powersgd2019", "qararyah2020", "sgp2019", "shi2019",
                                                   "sia2023"});
}
