// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace {

nlohmann::json compared(const Workplace& place, const std::string& a, const std::string& b) {
  const Finished done = place.convoy({"compare", a, b, "--json"});
  CAPTURE(done.err);
  REQUIRE(done.exit_code == 0);
  CHECK(done.err.empty());
  return nlohmann::json::parse(done.out);
}

}  // namespace

TEST_CASE(
    "compare: folders, stores and results.json say the same of the points, and stores say which key it was") {
  const Workplace place;
  place.file("e.yaml", small_experiment() + "sweep: {cluster.nodes.0.count: [1, 2, 3, 4]}\n");
  place.file("f.yaml", replaced(small_experiment(), "batch_per_device: 8", "batch_per_device: 16") +
                           "sweep: {cluster.nodes.0.count: [2, 4, 8]}\n");
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "a"}).exit_code == 0);
  REQUIRE(place.convoy({"run", "f.yaml", "--out", "b"}).exit_code == 0);
  const nlohmann::json folders = compared(place, "a", "b");
  CHECK(folders["schema"] == "convoy.compare/1");
  CHECK(folders["same"] == 0);
  CHECK(folders["only_a"] ==
        nlohmann::json::parse(R"([{"cluster.nodes.0.count": 1}, {"cluster.nodes.0.count": 3}])"));
  CHECK(folders["only_b"] == nlohmann::json::parse(R"([{"cluster.nodes.0.count": 8}])"));
  REQUIRE(folders["changed"].size() == 2);
  const nlohmann::json results_a = nlohmann::json::parse(place.read("a/results.json"));
  const nlohmann::json results_b = nlohmann::json::parse(place.read("b/results.json"));
  for (const auto& change : folders["changed"]) {
    CHECK(change["because"] == nlohmann::json::parse(R"(["training.batch_per_device: 8 -> 16"])"));
    for (const auto& [results, side] : {std::pair{&results_a, 0}, {&results_b, 1}})
      for (const auto& run : (*results)["runs"])
        if (run["point"] == change["point"]) {
          CHECK(change["step_time_s"][side] == run["step_time_s"]);
          for (const auto& [term, values] : change["terms"].items()) CHECK(values[side] == run[term]);
        }
  }
  nlohmann::json stores = compared(place, "a/results.sqlite", "b/results.sqlite");
  stores["a"] = "a", stores["b"] = "b";
  CHECK(stores == folders);
  nlohmann::json files = compared(place, "a/results.json", "b/results.json");
  for (const auto& change : files["changed"])
    CHECK(change["because"][0].get<std::string>().starts_with("global batch: "));
  CHECK(files["same"] == folders["same"]);
  CHECK(files["changed"][0]["terms"] == folders["changed"][0]["terms"]);
  CHECK(compared(place, "a", "a/results.json")["same"] == 4);
  const Finished page = place.convoy({"compare", "a", "b", "--html"});
  CHECK(page.out.starts_with("<!DOCTYPE html>"));
  CHECK(page.out.find("training.batch_per_device: 8 -&gt; 16") != std::string::npos);
  const std::string only_a = page.out.substr(page.out.find("<h2>Only in a</h2>"));
  for (const char* point : {"cluster.nodes.0.count: 1<", "cluster.nodes.0.count: 3<"})
    CHECK(only_a.find(point) < only_a.find("<h2>Only in b</h2>"));
  CHECK(place.convoy({"compare", "a", "b"}).out.find("  because training.batch_per_device: 8 -> 16\n") !=
        std::string::npos);
}

TEST_CASE("compare: a file that the experiment names is a reason where its content is another") {
  const Workplace place;
  const std::string model = R"(name: toy
input: [3, 8, 8]
layers:
  - {name: flat, kind: flatten}
  - {name: fc, kind: linear, out_features: 10}
)";
  const std::string text = small_experiment();
  const std::size_t begin = text.find("model:"), end = text.find("training:");
  place.file("e.yaml", text.substr(0, begin) + "model: {file: toy.yaml}\n" + text.substr(end));
  place.file("toy.yaml", model);
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "a"}).exit_code == 0);
  place.file("toy.yaml", replaced(model, "10", "1000"));
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "b"}).exit_code == 0);
  CHECK(compared(place, "a", "b")["changed"][0]["because"] ==
        nlohmann::json::parse(R"(["toy.yaml has other content"])"));
}

TEST_CASE("compare: what is no result is wrong input") {
  const Workplace place;
  place.file("e.yaml", small_experiment());
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "a"}).exit_code == 0);
  std::filesystem::create_directory(place.path() / "empty");
  const auto complaint = [&](const std::string& b) {
    const Finished done = place.convoy({"compare", "a", b});
    CHECK(done.exit_code == 2);
    CHECK(done.out.empty());
    return done.err;
  };
  CHECK(complaint("nowhere").starts_with("nowhere: is not there; `convoy compare` takes "));
  CHECK(complaint("empty") == "empty: has no results.sqlite and no results.json of a run\n");
  CHECK(complaint("e.yaml").starts_with("e.yaml: not JSON"));
  place.file("p.yaml",
             "experiment: p\nmodel: alexnet\ntraining: {dataset: {samples: 1000}}\ngoal: {epochs: 1}\n"
             "plan: {servers: [aws-p3.2xlarge], nodes: [1], batch_per_device: [64]}\n");
  REQUIRE(place.convoy({"plan", "p.yaml", "--out", "p"}).exit_code == 0);
  CHECK(complaint("p") == "p: this is the folder of a plan; `convoy compare` takes folders of runs\n");
  CHECK(complaint("p/plan.json") ==
        "p/plan.json: this is the answer of a plan ('convoy.plan/1'), not results of a run\n");
}
