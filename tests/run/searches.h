// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/run/search/search.h"
#include "sim/run/wire.h"
#include "sim/run/workers.h"
#include "tests/laws/random_experiment.h"

namespace convoy::searches {

/// An experiment in a file of its own.
class Written {
 public:
  explicit Written(const std::string& text)
      : path_(std::filesystem::temp_directory_path() / fmt::format("convoy-search-{}.yaml", ::getpid())) {
    std::ofstream(path_) << text;
    experiment_.emplace(convoy::Experiment::load(path_, {}));
  }
  ~Written() { std::filesystem::remove(path_); }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;

  const convoy::Experiment& operator*() const { return *experiment_; }
  RunOutput search(std::size_t jobs = 1, bool trace = false) const {
    Preparer preparer(*experiment_);
    return Search(preparer, 0).run(jobs, trace);
  }
  std::string error() const {
    try {
      Preparer preparer(*experiment_);
      Search(preparer, 0);
    } catch (const InputError& error) {
      const std::string message = error.what();
      return message.substr(message.find(".yaml") + 5);
    }
    return "none";
  }

 private:
  std::filesystem::path path_;
  std::optional<convoy::Experiment> experiment_;
};

inline std::string experiment(const std::string& model, const std::string& cluster,
                              const std::string& strategy,
                              const std::string& training = "{global_batch: 16, dataset: {samples: 1000}}") {
  return fmt::format("experiment: e\nmodel: {}\ntraining: {}\ncluster: {}\nstrategy: {}\n", model, training,
                     cluster, strategy);
}

/// All candidates simulated, each in a process of its own.
inline std::vector<std::optional<RunResult>> exhaustive(const convoy::Experiment& experiment,
                                                        const std::vector<YamlNode>& candidates) {
  Preparer preparer(experiment);
  std::vector<std::optional<RunResult>> results(candidates.size());
  run_in_workers(
      candidates.size(), 1,
      [&](std::size_t i) -> SecondHalf {
        auto run = std::make_shared<const PreparedRun>(preparer.prepare(0, &candidates[i]));
        return [run] { return encode(simulate(*run, false)); };
      },
      [&](std::size_t i, WorkerAnswer answer) {
        if (answer.kind == WorkerAnswer::Kind::done) results[i] = decode_output(answer.bytes).result;
      });
  return results;
}

/// Two layers of 2.5 MB of parameters and 3 GFLOP an image at 10 TFLOPS each, on hosts that 1 GB/s joins.
inline std::string two_layers() { return lab::custom_model(2, 625'000); }

inline std::string searched(const std::string& keys, const std::string& training = "{global_batch: 16}",
                            const std::string& bandwidth = "1GB/s") {
  return experiment(two_layers(), lab::star(4, bandwidth, "0us"), fmt::format("{{kind: auto, {}}}", keys),
                    training);
}

}  // namespace convoy::searches
