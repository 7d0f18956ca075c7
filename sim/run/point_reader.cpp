// SPDX-License-Identifier: MIT
#include "sim/run/point_reader.h"

#include <algorithm>
#include <utility>

#include "sim/run/sweep_hint.h"

namespace convoy::inline runs {
namespace {

/// What read_point() makes of each part of the file.
void copy_part(const std::string& name, const Point& from, Point& to) {
  if (name == "model") to.model = from.model;
  if (name == "training") to.training = from.training;
  if (name == "cluster") to.cluster = from.cluster;
  if (name == "strategy") to.strategy = from.strategy;
  if (name == "variability") to.variability = from.variability;
  if (name == "spread") to.spreads = from.spreads;
  if (name == "numerics") to.numerics = from.numerics, to.numerics_identity = from.numerics_identity;
}

/// A spread is of numbers elsewhere in the file, and what numerics may be depends on the strategy.
bool is_made_of_others(const std::string& part) { return part == "spread" || part == "numerics"; }

}  // namespace

const PointReader::Last& PointReader::read(std::size_t index) {
  if (last_ && last_->index == index) return *last_;
  std::optional<YamlNode> tree;
  std::shared_ptr<const Point> whole;
  const auto read_whole = [&] {
    if (whole) return;
    tree = experiment_->resolved(index);
    whole = std::make_shared<const Point>(
        hinting_at_sweep(*experiment_, index, [&] { return read_point(*tree); }));
  };
  if (parts_.empty()) {
    read_whole();
    for (const auto& [name, node] : tree->entries) {
      if (name != "experiment" && name != "jobs") parts_.emplace_back(name);
      if (is_made_of_others(name)) apart_ = false;
    }
  }
  Last last{index, {}, {}};
  for (Part& part : parts_) {
    const Place place{apart_ ? experiment_->place_of(part.name, index) : index};
    last.values.push_back(part.values.of(place, [&](const Place&) {
      read_whole();
      return std::make_shared<const Value>(
          Value{whole, part.name + ':' + fingerprint(*tree->find(part.name)) + '\n'});
    }));
    copy_part(part.name, *last.values.back()->point, last.point);
  }
  last_ = std::move(last);
  return *last_;
}

std::string PointReader::content(std::size_t index) {
  std::string text;
  for (const std::shared_ptr<const Value>& value : read(index).values) text += value->line;
  return text;
}

}  // namespace convoy::runs
