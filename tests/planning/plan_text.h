// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "sim/planning/answer.h"
#include "sim/planning/write_plan.h"

namespace convoy::plans {

/// A small network, so that a simulation takes a moment.
inline const std::string& small_model() {
  static const std::string text =
      "{name: small, input: [3, 32, 32], layers: [{name: conv1, kind: conv2d, out_channels: 32, kernel: 3, "
      "padding: "
      "1}, {name: relu1, kind: relu}, {name: conv2, kind: conv2d, out_channels: 64, kernel: 3, stride: 2, "
      "padding: 1}, "
      "{name: relu2, kind: relu}, {name: flat, kind: flatten}, {name: fc, kind: linear, out_features: "
      "1000}]}";
  return text;
}

/// A table of epochs by batch as a file, as long as it lives.
struct WrittenTable {
  explicit WrittenTable(const std::string& text)
      : file((std::filesystem::temp_directory_path() / fmt::format("convoy-epochs-{}.csv", ::getpid()))
                 .string()) {
    std::ofstream(file) << text;
  }
  ~WrittenTable() { std::filesystem::remove(file); }
  WrittenTable(const WrittenTable&) = delete;
  WrittenTable& operator=(const WrittenTable&) = delete;
  std::string file;
};

/// A plan's file with its `goal` and `plan` as given, read.
inline PlanSpec spec_of(const std::string& goal, const std::string& plan,
                        const std::string& training = "{dataset: {samples: 100000}}",
                        const std::string& model = small_model()) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("convoy-plan-{}.yaml", ::getpid());
  std::ofstream(path) << fmt::format("experiment: p\nmodel: {}\ntraining: {}\ngoal: {}\nplan: {}\n", model,
                                     training, goal, plan);
  struct Removed {
    std::filesystem::path file;
    ~Removed() { std::filesystem::remove(file); }
  } removed{path};
  return read_plan(Experiment::load(path, {}));
}

/// Files decoded as slowly as this make the step: so many machines take so much less time at the same cost.
inline const std::string input_bound = "{dataset: {samples: 100000}, input: {kind: jpeg, library: pil}}";

/// What reading it says, without the file's name; "none".
inline std::string error_of(const std::string& goal, const std::string& plan,
                            const std::string& training = "{dataset: {samples: 100000}}") {
  try {
    spec_of(goal, plan, training);
  } catch (const InputError& error) {
    const std::string message = error.what();
    return message.substr(message.find(".yaml") + 5);
  }
  return "none";
}

inline Trials trials_of(const PlanSpec& spec, std::size_t jobs = 1) {
  return Trials(spec, jobs, [](const std::string&, std::size_t, std::size_t) {});
}

/// All candidates of a plan, simulated, in the order of its space.
inline std::vector<CandidateResultOfPlan> results_of_all(const PlanSpec& spec) {
  Trials trials = trials_of(spec);
  Planner planner(trials);
  const Scenario scenario = scenario_of(spec);
  planner.simulate_all(scenario);
  std::vector<CandidateResultOfPlan> results;
  for (std::size_t c = 0; c < trials.space().candidates.size(); ++c)
    results.push_back(result_of(planner, c, scenario));
  return results;
}

inline PlanAnswer answer_of(const PlanSpec& spec, bool exhaustive, std::size_t jobs = 2) {
  PlanOptions options;
  options.jobs = jobs;
  options.exhaustive = exhaustive;
  return make_plan(spec, options);
}

/// The answer as JSON without what tells how it was found.
inline std::string found(const PlanAnswer& answer) {
  PlanAnswer plain = answer;
  plain.planned = plain.simulated = 0;
  plain.pruned.clear();
  std::ostringstream out;
  write_json(plain, out);
  return out.str();
}

}  // namespace convoy::plans
