// SPDX-License-Identifier: MIT
#include "sim/studies/claims/configs.h"

#include <fmt/format.h>

#include <stdexcept>

#include "sim/base/data_path.h"
#include "sim/run/workers.h"

namespace convoy::inline studies {

Experiment load_config(const std::string& name, const std::vector<std::string>& settings) {
  return Experiment::load(fmt::format("{}/{}.yaml", data_path("configs"), name), settings);
}

std::vector<std::string> answers_of_workers(std::size_t count, std::size_t jobs,
                                            const std::function<std::string(std::size_t)>& work) {
  std::vector<std::string> answers(count);
  std::string failure;
  run_in_workers(
      count, jobs, [&](std::size_t i) -> SecondHalf { return [&work, i] { return work(i); }; },
      [&](std::size_t i, WorkerAnswer answer) {
        (answer.kind == WorkerAnswer::Kind::done ? answers[i] : failure) = std::move(answer.bytes);
      });
  if (!failure.empty()) throw std::runtime_error(failure);
  return answers;
}

}  // namespace convoy::studies
