// SPDX-License-Identifier: MIT
#include "sim/schedule/assignment.h"

#include <algorithm>
#include <limits>
#include <queue>

namespace convoy::inline schedule {
namespace {

constexpr double least_saving = 1e-12;
constexpr std::size_t most_choices_exchanged = 20'000;  // of all jobs: beyond them exchanges take too long

class Assignment {
 public:
  Assignment(const std::vector<std::vector<Choice>>& choices, const std::vector<GpuPool>& pools)
      : choices_(choices), chosen_(choices.size(), 0) {
    for (const GpuPool& pool : pools) free_.push_back(pool.gpus);
  }

  std::vector<std::size_t> solve() {
    take_best_steps();
    std::size_t all = 0;
    for (const auto& of : choices_) all += of.size();
    constexpr int most_rounds = 8;
    for (int round = 0; round < most_rounds && all <= most_choices_exchanged && improve(); ++round) {
    }
    return std::move(chosen_);
  }

 private:
  const Choice& now(std::size_t j) const { return choices_[j][chosen_[j]]; }
  double saving(std::size_t j, std::size_t c) const { return now(j).cost - choices_[j][c].cost; }

  /// The number of GPUs of `kind` that are missing for job j to take choice c; 0 or less: it can take it.
  std::int64_t missing(std::size_t j, std::size_t c) const {
    const Allocation& wanted = choices_[j][c].allocation;
    const std::uint32_t held = now(j).allocation.kind == wanted.kind ? now(j).allocation.gpus : 0;
    return std::int64_t{wanted.gpus} - held - free_[wanted.kind];
  }

  void take(std::size_t j, std::size_t c) {
    free_[now(j).allocation.kind] += now(j).allocation.gpus;
    chosen_[j] = c;
    free_[now(j).allocation.kind] -= now(j).allocation.gpus;
  }

  struct Step {
    double worth = 0;  ///< cost saved per additional GPU; steps that need none are worth most
    std::size_t job = 0, choice = 0;
    bool operator<(const Step& other) const {
      return worth < other.worth || (worth == other.worth && job > other.job);
    }
  };

  /// The best step of one job for which there are GPUs; worth 0: there is none.
  Step best_step(std::size_t j) const {
    Step best{0, j, 0};
    for (std::size_t c = 0; c < choices_[j].size(); ++c) {
      if (saving(j, c) <= least_saving || missing(j, c) > 0) continue;
      const std::int64_t more = std::int64_t{choices_[j][c].allocation.gpus} - now(j).allocation.gpus;
      const double worth =
          more > 0 ? saving(j, c) / static_cast<double>(more) : std::numeric_limits<double>::max();
      if (worth > best.worth) best = {worth, j, c};
    }
    return best;
  }

  /// Takes the best step of all, again and again. A step for which GPUs are no longer available is computed
  /// again.
  void take_best_steps() {
    std::priority_queue<Step> steps;
    const auto offer = [&](std::size_t j) {
      if (const Step step = best_step(j); step.worth > 0) steps.push(step);
    };
    for (std::size_t j = 0; j < choices_.size(); ++j) offer(j);
    while (!steps.empty()) {
      const Step step = steps.top();
      steps.pop();
      if (missing(step.job, step.choice) <= 0) take(step.job, step.choice);
      offer(step.job);
    }
  }

  /// Moves of a job, alone or together with the cheapest job that makes room for it.
  bool improve() {
    bool improved = false;
    for (std::size_t j = 0; j < choices_.size(); ++j)
      for (std::size_t c = 0; c < choices_[j].size(); ++c) {
        const double saved = saving(j, c);
        if (saved <= least_saving) continue;
        if (missing(j, c) <= 0) {
          take(j, c);
          improved = true;
        } else if (make_room(j, c, saved)) {
          improved = true;
        }
      }
    return improved;
  }

  bool make_room(std::size_t j, std::size_t c, double saved) {
    const std::uint32_t kind = choices_[j][c].allocation.kind;
    const std::int64_t wanted = missing(j, c);
    double best = saved - least_saving;
    std::size_t other = choices_.size(), choice = 0;
    for (std::size_t o = 0; o < choices_.size(); ++o) {
      if (o == j || now(o).allocation.kind != kind || now(o).allocation.gpus < wanted) continue;
      for (std::size_t d = 0; d < choices_[o].size(); ++d) {
        const Allocation& to = choices_[o][d].allocation;
        const std::int64_t freed = std::int64_t{now(o).allocation.gpus} - (to.kind == kind ? to.gpus : 0);
        if (freed < wanted || (to.kind != kind && to.gpus > room_for(to.kind, j)) || -saving(o, d) >= best)
          continue;
        best = -saving(o, d);
        other = o;
        choice = d;
      }
    }
    if (other == choices_.size()) return false;
    take(other, choice);
    take(j, c);
    return true;
  }

  /// GPUs of a kind that are free once job j has left it.
  std::int64_t room_for(std::uint32_t kind, std::size_t j) const {
    return free_[kind] + (now(j).allocation.kind == kind ? now(j).allocation.gpus : 0);
  }

  const std::vector<std::vector<Choice>>& choices_;
  std::vector<std::size_t> chosen_;
  std::vector<std::int64_t> free_;
};

}  // namespace

std::vector<std::size_t> assign(const std::vector<std::vector<Choice>>& choices,
                                const std::vector<GpuPool>& pools) {
  return Assignment(choices, pools).solve();
}

}  // namespace convoy::schedule
