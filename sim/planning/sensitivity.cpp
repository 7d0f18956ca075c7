// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/base/ties.h"
#include "sim/page/text.h"
#include "sim/planning/answer.h"
#include "sim/planning/why_not.h"
#include "sim/planning/write_plan.h"

namespace convoy::inline planning {
namespace {

constexpr double price_reach = 16;  ///< prices are followed up and down by this factor
constexpr double bandwidth_reach = 8;
/// Relative precision of what bisection finds: coarse where each step simulates candidates anew.
constexpr double fine = 1e-7, coarse = 0.02;

/// The factor nearest to 1 at which `stays` becomes false, on the way from 1 to `reach` (above or below 1);
/// nothing where it stays all the way. @pre stays(1); the factor returned is the first known one that does
/// not stay
std::optional<double> turning_point(double reach, double precision,
                                    const std::function<bool(double)>& stays) {
  double kept = 1, lost = 1;
  const double stride = reach > 1 ? 2 : 0.5;
  do {
    kept = lost;
    if (kept == reach) return std::nullopt;
    lost = reach > 1 ? std::min(kept * stride, reach) : std::max(kept * stride, reach);
  } while (stays(lost));
  while (std::abs(lost / kept - 1) > precision) {
    const double middle = std::sqrt(kept * lost);
    (stays(middle) ? kept : lost) = middle;
  }
  return lost;
}

class Sensitivity {
 public:
  Sensitivity(Planner& planner, const Scenario& scenario, std::size_t choice)
      : planner_(planner), scenario_(scenario), choice_(choice), now_(planner.figures(choice, scenario)) {}

  std::vector<Change> run(const std::vector<std::size_t>& runners_up) {
    prices(choice_, price_reach);
    for (std::size_t i = 0; i < std::min<std::size_t>(2, runners_up.size()); ++i)
      prices(runners_up[i], 1 / price_reach);
    deadline();
    budget();
    global_batch();
    evaluation();
    input();
    bandwidth();
    return std::move(changes_);
  }

 private:
  void add(std::string text, std::string kind, std::string server, double value, const Scenario& then) {
    Change change{std::move(text), std::move(kind), std::move(server), value, std::nullopt};
    if (const std::optional<std::size_t> next = planner_.best(then))
      change.choice = result_of(planner_, *next, then);
    changes_.push_back(std::move(change));
  }

  /// Scenarios between two, as turning_point() goes through them. Of candidates that may be the best between two of
  /// them, ever fewer may be between two that are nearer to each other.
  /// @param at what differs, by a factor
  /// @returns the factor at which another one is the best
  std::optional<double> turning(double reach, const std::function<Scenario(double)>& at) {
    double kept = 1, end = reach;
    std::shared_ptr<const std::vector<std::size_t>> rivals = planner_.rivals(at(1), at(reach));
    const auto at_rivals = [&](double factor) {
      Scenario then = at(factor);
      then.among = rivals;
      return then;
    };
    return turning_point(reach, fine, [&](double factor) {
      if (end != reach) rivals = planner_.rivals(at_rivals(kept), at_rivals(end));
      const bool stays = planner_.best(at_rivals(factor)) == choice_;
      (stays ? kept : end) = factor;
      return stays;
    });
  }

  /// Of each kind of server of a candidate, where it is rented.
  void prices(std::size_t candidate, double reach) {
    if (planner_.trials().space().candidates[choice_].prices.empty()) return;
    for (const Price& price : planner_.trials().space().candidates[candidate].prices)
      follow(price.server, price.usd_per_hour, reach);
  }

  void follow(const std::string& server, double usd_per_h, double reach) {
    const auto at = [&](double factor) {
      Scenario scenario = scenario_;
      scenario.price_factor[server] = factor;
      return scenario;
    };
    const std::optional<double> factor = turning(reach, at);
    if (!factor) return;
    const double price = usd_per_h * *factor;
    add(fmt::format("the price of {} {} by {} %, to {}/h", server, reach > 1 ? "rises" : "falls",
                    digits_text(100 * std::abs(*factor - 1), 3),
                    price < 0.0995 ? usd_text(price) : fmt::format("{:.3f} USD", price)),
        "price", server, price, at(*factor));
  }

  /// With the least limit above the plan's own with which another candidate is chosen; nothing where there is none.
  /// @param figure which the limit is on, and `least` asks for the least of
  std::optional<Scenario> loosened(std::optional<double> PlanConstraints::*limit, PlanObjective least,
                                   double Figures::*figure) {
    const std::optional<double> now = scenario_.constraints.*limit;
    if (!now) return std::nullopt;
    // A better one that ties and has a doubt is not chosen however loose the limit is.
    for (const bool undoubted : {false, true}) {
      Scenario better = scenario_;
      better.undoubted = undoubted;
      (better.constraints.*limit).reset();
      better.value_below = value_of(scenario_.objective, now_);
      better.objective = least;
      const std::optional<std::size_t> next = planner_.least(better);
      if (!next) return std::nullopt;
      Scenario looser = scenario_;
      looser.constraints.*limit = std::max(*now, planner_.figures(*next, scenario_).*figure);
      if (planner_.best(looser) != choice_) return looser;
    }
    return std::nullopt;
  }

  /// A shorter deadline than the choice takes; and the first longer one with which another is better.
  void deadline() {
    Scenario shorter = scenario_;
    shorter.constraints.deadline_s = now_.time_s * (1 - fine);
    if (scenario_.objective != PlanObjective::time && planner_.best(shorter))
      add(fmt::format("the deadline is below {}", format_time(now_.time_s)), "deadline", "", now_.time_s,
          shorter);
    if (const std::optional<Scenario> longer =
            loosened(&PlanConstraints::deadline_s, PlanObjective::time, &Figures::time_s)) {
      const double deadline_s = *longer->constraints.deadline_s;
      add(fmt::format("the deadline is {} or more", format_time(deadline_s)), "deadline", "", deadline_s,
          *longer);
    }
  }

  void budget() {
    if (!std::isfinite(now_.cost_usd)) return;
    Scenario less = scenario_;
    less.constraints.budget_usd = now_.cost_usd * (1 - fine);
    if (scenario_.objective != PlanObjective::cost && planner_.best(less))
      add(fmt::format("the budget is below {}", limit_text(now_.cost_usd)), "budget", "", now_.cost_usd,
          less);
    if (const std::optional<Scenario> more =
            loosened(&PlanConstraints::budget_usd, PlanObjective::cost, &Figures::cost_usd)) {
      const double budget_usd = *more->constraints.budget_usd;
      add(fmt::format("the budget is {} or more", limit_text(budget_usd)), "budget", "", budget_usd, *more);
    }
  }

  void global_batch() {
    const std::int64_t batch =
        planner_.trials().setup(planner_.trials().space().candidates[choice_].setup).global_batch;
    Scenario smaller = scenario_;
    smaller.constraints.max_global_batch = batch - 1;
    if (planner_.best(smaller))
      add(fmt::format("the global batch has to be below {}", batch), "global_batch", "",
          static_cast<double>(batch), smaller);
    if (!scenario_.constraints.max_global_batch) return;
    Scenario larger = scenario_;
    larger.constraints.max_global_batch.reset();
    const std::optional<std::size_t> next = planner_.best(larger);
    if (!next || *next == choice_) return;
    const std::int64_t needed =
        planner_.trials().setup(planner_.trials().space().candidates[*next].setup).global_batch;
    add(fmt::format("a global batch of {} is allowed", needed), "global_batch", "",
        static_cast<double>(needed), larger);
  }

  /// Evaluations, which cost a price and an idle machine, and no training; in addition to the goal's.
  void evaluation() {
    constexpr double unit_s = 1e-3, a_day_s = 86'400, reach = 1 + a_day_s / unit_s;
    const auto more_of = [](double factor) { return unit_s * (factor - 1); };  // none at factor 1
    const auto at = [&](double factor) {
      Scenario longer = scenario_;
      longer.evaluation_s = more_of(factor);
      return longer;
    };
    const std::optional<double> factor = turning(reach, at);
    if (!factor) return;
    const double more_s = more_of(*factor);
    const Goal::Pause& given = planner_.trials().spec().goal.evaluation();
    add(given.time_s == 0
            ? fmt::format("an evaluation after every epoch takes {} or more", format_time(more_s))
            : fmt::format("{} or more of evaluation are added after every epoch", format_time(more_s)),
        "evaluation", "", more_s, at(*factor));
  }

  /// Images that come from files, where the plan takes them to be there.
  void input() {
    const std::optional<InputSpec>& given = planner_.trials().spec().input;
    if (given && !given->synthetic) return;
    constexpr double most_per_s = 1e5, reach = 1e-5;
    const auto at = [&](double factor) {
      Scenario slower = scenario_;
      slower.input = input_from_files();
      slower.input->library.core_images_per_s = most_per_s * factor;
      return slower;
    };
    const std::optional<double> factor = turning(reach, at);
    if (!factor) return;
    const double rate = most_per_s * *factor;
    add(fmt::format("a core of the hosts makes no more than {} images/s ready", digits_text(rate, 3)),
        "input", "", rate, at(*factor));
  }

  /// Every link of every machine, faster or slower.
  void bandwidth() {
    likely_ = {choice_};
    if (facts().doubtful(choice_)) {
      Scenario sure = scenario_;
      sure.undoubted = true;
      if (const std::optional<std::size_t> least = planner_.least(sure)) likely_.push_back(*least);
    }
    least_on_any_links_ = planner_.least_on_any_links(scenario_);
    bandwidth(bandwidth_reach);
    bandwidth(1 / bandwidth_reach);
  }

  void bandwidth(double reach) {
    std::unique_ptr<Trials> then;  // of the last factor with which another is the best
    std::optional<std::size_t> other;
    const auto stays = [&](double factor) {
      auto changed = std::make_unique<Trials>(planner_.trials().with_bandwidth(factor));
      Planner planner(*changed, planner_);
      const std::optional<std::size_t> best = best_among_likely(planner);
      if (best == choice_) return true;
      then = std::move(changed);
      other = best;
      return false;
    };
    const std::optional<double> factor = turning_point(reach, coarse, stays);
    if (!factor) return;
    Change& change = changes_.emplace_back(Change{
        fmt::format("all links are about {:.2g} times as fast", *factor), "bandwidth", "", *factor, {}});
    if (other) change.choice = result_of(Planner(*then, planner_), *other, scenario_);
  }

  /// The best on other links, of those that can be as good as what was good before.
  std::optional<std::size_t> best_among_likely(Planner& planner) {
    planner.simulate_first(likely_);
    double of_all = std::numeric_limits<double>::infinity(), of_undoubted = of_all;
    for (const std::size_t c : likely_) {
      const std::optional<double> value = planner.value_where_kept(c, scenario_);
      if (!value) continue;
      of_all = std::min(of_all, *value);
      if (!facts().doubtful(c)) of_undoubted = std::min(of_undoubted, *value);
    }
    auto among = std::make_shared<std::vector<std::size_t>>();
    for (const auto& [least, c] : least_on_any_links_)
      if (ties_with_best(least, of_all) || (!facts().doubtful(c) && ties_with_best(least, of_undoubted)))
        among->push_back(c);
    Scenario scenario = scenario_;
    scenario.among = std::move(among);
    return planner.best(scenario);
  }

  const CandidateFacts& facts() const { return planner_.estimates().facts(); }

  Planner& planner_;
  const Scenario& scenario_;
  std::size_t choice_;
  Figures now_;
  std::vector<std::size_t> likely_;  ///< to be good on other links too
  std::vector<std::pair<double, std::size_t>> least_on_any_links_;
  std::vector<Change> changes_;
};

}  // namespace

std::vector<Change> sensitivity_of(Planner& planner, const Scenario& scenario, std::size_t choice,
                                   const std::vector<std::size_t>& runners_up) {
  return Sensitivity(planner, scenario, choice).run(runners_up);
}

}  // namespace convoy::planning
