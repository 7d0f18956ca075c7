// SPDX-License-Identifier: MIT
#include "sim/run/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "sim/base/quantity.h"
#include "sim/results/field_text.h"
#include "sim/run/questions.h"
#include "sim/run/simulate.h"
#include "sim/run/workers.h"

namespace convoy::inline runs {
namespace {

/// What a simulation with a change came to.
struct Reply {
  double step_time_s = 0, images = 0, peak_memory_bytes = 0;
  bool fits = true;
  std::optional<double> usd_per_epoch;
};

constexpr auto reply_fields = [](auto& archive, auto& reply) {
  archive.field("step_time_s", reply.step_time_s);
  archive.field("images", reply.images);
  archive.field("peak_memory_bytes", reply.peak_memory_bytes);
  archive.field("fits", reply.fits);
  archive.nullable("usd_per_epoch", reply.usd_per_epoch);
};

/// The point's tree with its strategy decided, and without what only intervals and repetitions need.
YamlNode decided(YamlNode tree, const YamlNode* strategy) {
  std::erase_if(tree.entries,
                [](const auto& entry) { return entry.first == "spread" || entry.first == "variability"; });
  if (strategy) set_path(tree, "strategy", *strategy);
  return tree;
}

/// The reason of an error without the place in a file, which is that of what was replaced.
std::string reason_of(const std::string& error) {
  const std::size_t place = error.find_first_of(" \n");
  const bool has_place =
      place != std::string::npos && place > 0 && error[place - 1] == ':' &&
      std::count(error.begin(), error.begin() + static_cast<std::ptrdiff_t>(place), ':') > 2;
  return has_place ? error.substr(place + 1) : error;
}

}  // namespace

Explanation::Explanation(Preparer& preparer, const YamlNode& point, const YamlNode* strategy,
                         std::size_t jobs) {
  const YamlNode tree = decided(point, strategy);
  const Point asked = read_point(tree);
  std::vector<Question> questions = questions_of(tree, asked, preparer.cluster(asked.cluster));
  for (const Question& question : questions)
    if (!question.refused.empty()) refused_.push_back({question.change, question.refused});
  std::erase_if(questions, [](const Question& question) { return !question.refused.empty(); });
  std::vector<std::optional<Row>> rows(questions.size());
  const FirstHalf work = [&](std::size_t i) -> SecondHalf {
    auto run = std::make_shared<PreparedRun>(
        preparer.prepare(changed(tree, questions[i]), nullptr, questions[i].machine));
    run->doubts.clear();  // these two only widen the interval
    run->on_ideal_network = nullptr;
    return [run] {
      const RunResult result = simulate(*run, false).result;
      return to_text(Reply{result.step_time_s, result.global_batch, result.peak_memory_bytes, result.fits,
                           result.cost_usd_per_epoch},
                     reply_fields);
    };
  };
  std::map<std::size_t, std::string> failed;
  const auto answered = [&](std::size_t i, WorkerAnswer answer) {
    if (answer.kind != WorkerAnswer::Kind::done) {  // a batch that does not divide, a fabric that is full
      failed.emplace(i, reason_of(answer.bytes));
      return;
    }
    const auto reply = from_text<Reply>(answer.bytes, reply_fields);
    Row& row = rows[i].emplace();
    row.family = questions[i].family;
    row.result.change = questions[i].change;
    row.result.step_time_s = reply.step_time_s;
    row.result.global_batch = reply.images;
    row.result.peak_memory_bytes = reply.peak_memory_bytes;
    row.result.fits = reply.fits;
    row.usd_per_epoch = reply.usd_per_epoch;
  };
  run_in_workers(questions.size(), jobs, work, answered, {.apart = preparer.replays_apart()});
  for (std::optional<Row>& row : rows)
    if (row) rows_.push_back(std::move(*row));
  for (auto& [i, reason] : failed) refused_.push_back({questions[i].change, std::move(reason)});
}

void Explanation::add_to(RunResult& result) const {
  const auto gain_s = [&](const Row& row) {
    return result.step_time_s - row.result.step_time_s * result.global_batch / row.result.global_batch;
  };
  std::map<std::string, const Row*> best;  // of each family
  for (const Row& row : rows_) {
    if (row.family.empty()) continue;
    const Row*& of_family = best[row.family];
    if (!of_family || row.result.step_time_s < of_family->result.step_time_s) of_family = &row;
  }
  for (const Row& row : rows_) {
    if (!row.family.empty() && best.at(row.family) != &row) continue;
    Counterfactual counterfactual = row.result;
    // What the run has is among the algorithms, and among nothing else.
    if (!row.family.empty())
      counterfactual.change = (row.family == "algorithm" ? "best " : "best other ") + row.result.change;
    if (row.family == "algorithm" && !result.algorithms.empty())
      counterfactual.change += fmt::format(" (auto chose {})", fmt::join(result.algorithms, ", "));
    counterfactual.gain_s = gain_s(row);
    if (result.cost_usd_per_epoch && row.usd_per_epoch)
      counterfactual.gain_usd_per_epoch = *result.cost_usd_per_epoch - *row.usd_per_epoch;
    result.counterfactuals.push_back(std::move(counterfactual));
  }
  std::stable_sort(result.counterfactuals.begin(), result.counterfactuals.end(),
                   [](const Counterfactual& a, const Counterfactual& b) { return a.gain_s > b.gain_s; });
  result.refused_changes = refused_;
  const auto algorithm = best.find("algorithm");
  if (algorithm == best.end() || result.bottleneck.kind != "latency") return;
  if (const double gain = gain_s(*algorithm->second); gain > 0)
    result.bottleneck.text +=
        fmt::format("; {} would save {}", algorithm->second->result.change, format_time(gain));
}

}  // namespace convoy::runs
