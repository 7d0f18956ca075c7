// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/numerics/learner.h"
#include "sim/numerics/twin.h"
#include "tests/prove/covered.h"

namespace convoy::lab {

inline constexpr double rate = 0.05;
inline constexpr std::uint64_t twin_seed = 7;

inline DataSpec drawn(std::int64_t images) {
  DataSpec spec;
  spec.kind = DataSpec::Kind::drawn;
  spec.train = images, spec.held_out = 10;
  return spec;
}

/// A class's experiment: the plan, and data for its network.
struct Course {
  Course(const std::string& model, const std::string& cluster, const std::string& strategy,
         const BatchSpec& batch, Optimizer optimizer)
      : it(model, cluster, strategy, batch, with(optimizer)),
        plan(plan_with_meaning(it)),
        data(load_data(drawn(300), it.graph().model.input, 10, twin_seed)),
        index(it.graph()),
        order(twin_seed, data.train.count()),
        lesson{it.graph(), data, index, twin_seed, order} {}
  static TrainingOptions with(Optimizer optimizer) {
    TrainingOptions options;
    options.optimizer = optimizer;
    return options;
  }

  std::int64_t batch() const { return std::llround(plan.images); }
  /// The images that devices work on at a time, of the network's first layer.
  std::vector<ImageShare> shares() const {
    std::set<std::pair<std::int64_t, std::int64_t>> all;
    for (const Role& role : plan.roles)
      for (const Task& task : role.program)
        for (const PlanOp& op : task.ops) {
          if (op.meaning == no_meaning) continue;
          const OpMeaning& means = plan.meaning->operations[op.meaning];
          if (means.operation != 0) continue;
          for (const EndpointId e : role.members) {
            const std::int64_t first =
                std::llround(means.images.first + plan.meaning->lanes[e] * means.images.count);
            IndexRanges own;
            if (means.layout != no_meaning) {
              const PartLayout& layout = plan.meaning->layouts[means.layout];
              own = (layout.size() == 1 ? layout.front() : layout[plan.meaning->positions[e]]).images;
            }
            if (!own) all.emplace(first, std::llround(means.images.count));
            for (const IndexRange& range : own.value_or(std::vector<IndexRange>{}))
              all.emplace(first + range.begin, range.end - range.begin);
          }
        }
    std::vector<ImageShare> shares;
    for (const auto& [first, count] : all) shares.push_back({first, count});
    return shares;
  }

  lab::Experiment it;
  Plan plan;
  LearningData data;
  NetworkIndex index;
  BatchOrder order;
  Lesson lesson;
};

inline double distance(const ParameterValues<double>& a, const ParameterValues<double>& b) {
  double largest = 0;
  for (std::size_t p = 0; p < a.size(); ++p)
    for (std::size_t e = 0; e < a[p].size(); ++e) {
      const double off = std::abs(a[p][e] - b[p][e]) / std::max(1.0, std::abs(b[p][e]));
      if (!(off <= largest)) largest = off;  // NaN as well
    }
  return largest;
}

/// How far a plan's parameters and losses are from those of one device, after three steps.
inline double distance_after_three_steps(const Course& course, const Plan& plan) {
  Learner<double> learner(course.it.graph(), course.data, twin_seed, rate);
  const ReplayResult replayed = replay(plan, course.it.machine(), course.it.cost(), {});
  Twin<double> twin(course.lesson, plan, course.it.machine(), replayed, rate);
  double loss = 0;
  for (int step = 0; step < 3; ++step)
    loss = std::max(loss, std::abs(twin.step() - learner.step(course.batch(), course.shares())));
  return std::max(loss, distance(twin.classroom().parameters(), learner.parameters()));
}

}  // namespace convoy::lab
