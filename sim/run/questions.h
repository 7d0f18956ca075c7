// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/run/experiment.h"
#include "sim/run/what_if.h"
#include "topologies/cluster.h"

namespace convoy::inline runs {

/// A run that differs from a point's in one thing.
struct Question {
  std::string change;       ///< "precision: fp16"
  std::string family = {};  ///< "algorithm": of the questions of a family the best one is told; "": alone
  WhatIf machine = {};
  std::vector<std::pair<std::string, std::string>> keys =
      {};  ///< of the experiment, and their values as YAML
  std::function<void(Point&)> edit = {};
  std::string refused = {};  ///< why it cannot be tried, where that is known at once
};

/// What people, or those who sell machines, could change of a point.
/// @param tree of the point: the experiment with its values filled in and its strategy decided
/// @param point read from it
std::vector<Question> questions_of(const YamlNode& tree, const Point& point, const ClusterSpec& cluster);

/// The point with the change of the question. @throws InputError: it is not possible
Point changed(const YamlNode& tree, const Question& question);

}  // namespace convoy::runs
