// SPDX-License-Identifier: MIT
#include "sim/studies/regions/region_tree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>

namespace convoy::inline studies {
namespace {

using Indices = std::vector<std::size_t>;

/// Where a leaf is: of ordered inputs the positions that are its outermost points', of others the values.
struct RegionBox {
  std::vector<std::optional<double>> from, to;
  std::map<std::size_t, std::set<std::string>> among;
};

struct RegionNode {
  std::size_t input = 0;
  double last_left = 0, first_right = 0;  ///< positions of an ordered input
  std::set<std::string> left_values;      ///< of another
  std::unique_ptr<RegionNode> left, right;
  bool holds = false;
  bool leaf() const { return !left; }
};

struct RegionSplit {
  double impurity = 0;
  std::size_t input = 0;
  Indices left, right;
};

class RegionTree {
 public:
  static constexpr int deepest = 3;

  /// @param depth conditions in a row, at most
  RegionTree(const StudySpec& spec, const std::vector<bool>& usable, const std::vector<StudyPoint>& points,
             const std::vector<bool>& holds, int depth)
      : spec_(spec),
        usable_(usable),
        points_(points),
        holds_(holds),
        depth_(depth),
        least_(std::max<std::size_t>(4, points.size() / 50)) {
    Indices all(points.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    least_gain_ = impurity(count_holding(all), static_cast<double>(all.size())) / 50;
    root_ = grow(all, 0);
  }

  bool says(const StudyPoint& point) const {
    const RegionNode* node = root_.get();
    while (!node->leaf()) node = goes_left(*node, point) ? node->left.get() : node->right.get();
    return node->holds;
  }

  /// The leaves where the claim holds, or where it does not.
  std::vector<RegionBox> boxes(bool where_it_holds) const {
    std::vector<RegionBox> found;
    RegionBox whole;
    whole.from.resize(spec_.inputs.size());
    whole.to.resize(spec_.inputs.size());
    for (std::size_t d = 0; d < spec_.inputs.size(); ++d)
      if (!spec_.inputs[d].is_ordered())
        for (std::size_t v = 0; v < spec_.inputs[d].levels(); ++v)
          whole.among[d].insert(name_at(d, spec_.inputs[d].position_of_level(v)));
    collect(*root_, where_it_holds, whole, found);
    return found;
  }

  std::string name_at(std::size_t input, double position) const {
    return spec_.inputs[input].text_at(position);
  }

  /// Share of the points at which it is right.
  double right() const {
    double right = 0;
    for (std::size_t i = 0; i < points_.size(); ++i) right += says(points_[i]) == holds_[i] ? 1 : 0;
    return right / static_cast<double>(points_.size());
  }

 private:
  bool goes_left(const RegionNode& node, const StudyPoint& point) const {
    if (spec_.inputs[node.input].is_ordered())
      return point[node.input] < 0.5 * (node.last_left + node.first_right);
    return node.left_values.contains(name_at(node.input, point[node.input]));
  }

  double count_holding(const Indices& at) const {
    return static_cast<double>(std::count_if(at.begin(), at.end(), [&](std::size_t i) { return holds_[i]; }));
  }

  /// Gini's impurity times the number of points.
  static double impurity(double holding, double count) {
    return count > 0 ? 2 * holding * (count - holding) / count : 0;
  }

  std::unique_ptr<RegionNode> grow(const Indices& at, int depth) const {
    auto node = std::make_unique<RegionNode>();
    const double holding = count_holding(at), count = static_cast<double>(at.size());
    node->holds = 2 * holding > count;
    if (depth == depth_) return node;
    const std::optional<RegionSplit> split = best_split(at, impurity(holding, count));
    if (!split) return node;
    std::unique_ptr<RegionNode> left = grow(split->left, depth + 1), right = grow(split->right, depth + 1);
    if (left->leaf() && right->leaf() && left->holds == right->holds) return node;
    node->input = split->input;
    node->last_left = 0, node->first_right = 1;
    for (const std::size_t i : split->left) {
      node->last_left = std::max(node->last_left, points_[i][node->input]);
      node->left_values.insert(name_at(node->input, points_[i][node->input]));
    }
    for (const std::size_t i : split->right)
      node->first_right = std::min(node->first_right, points_[i][node->input]);
    node->left = std::move(left);
    node->right = std::move(right);
    return node;
  }

  std::optional<RegionSplit> best_split(const Indices& at, double before) const {
    std::optional<RegionSplit> best;
    for (std::size_t d = 0; d < spec_.inputs.size(); ++d)
      if (usable_[d]) try_input(d, sorted(at, d), before, best);
    return best;
  }

  /// By position; where there is no order, by how often the claim holds with a value (which of two sets of
  /// values is best is found so, too: Breiman et al., section 9.4).
  Indices sorted(Indices at, std::size_t d) const {
    std::map<std::string, std::pair<double, double>> rates;
    if (!spec_.inputs[d].is_ordered())
      for (const std::size_t i : at) {
        auto& [holding, count] = rates[name_at(d, points_[i][d])];
        holding += holds_[i] ? 1 : 0, ++count;
      }
    std::vector<std::pair<double, double>> keys(points_.size());
    for (const std::size_t i : at) {
      const double level = points_[i][d];
      if (rates.empty()) {
        keys[i] = {0, level};
      } else {
        const auto& [holding, count] = rates.at(name_at(d, level));
        keys[i] = {holding / count, level};
      }
    }
    std::stable_sort(at.begin(), at.end(), [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
    return at;
  }

  void try_input(std::size_t d, const Indices& at, double before, std::optional<RegionSplit>& best) const {
    const double all = count_holding(at), count = static_cast<double>(at.size());
    double left = 0;
    for (std::size_t i = 1; i < at.size(); ++i) {
      left += holds_[at[i - 1]] ? 1 : 0;
      if (i < least_ || at.size() - i < least_) continue;
      if (name_at(d, points_[at[i - 1]][d]) == name_at(d, points_[at[i]][d])) continue;
      const auto size = static_cast<double>(i);
      const double after = impurity(left, size) + impurity(all - left, count - size);
      if (after >= (best ? best->impurity : before - least_gain_)) continue;
      const auto middle = at.begin() + static_cast<std::ptrdiff_t>(i);
      best = RegionSplit{after, d, {at.begin(), middle}, {middle, at.end()}};
    }
  }

  void collect(const RegionNode& node, bool where_it_holds, const RegionBox& box,
               std::vector<RegionBox>& found) const {
    if (node.leaf()) {
      if (node.holds == where_it_holds) found.push_back(box);
      return;
    }
    RegionBox left = box, right = box;
    if (spec_.inputs[node.input].is_ordered()) {
      left.to[node.input] = node.last_left;
      right.from[node.input] = node.first_right;
    } else {
      std::erase_if(left.among[node.input],
                    [&](const std::string& value) { return !node.left_values.contains(value); });
      std::erase_if(right.among[node.input],
                    [&](const std::string& value) { return node.left_values.contains(value); });
    }
    collect(*node.left, where_it_holds, left, found);
    collect(*node.right, where_it_holds, right, found);
  }

  const StudySpec& spec_;
  const std::vector<bool>& usable_;
  const std::vector<StudyPoint>& points_;
  const std::vector<bool>& holds_;
  int depth_;
  std::size_t least_;
  double least_gain_ = 0;
  std::unique_ptr<RegionNode> root_;
};

/// "a", "a or b", "a, b or c"
std::string joined(const std::vector<std::string>& texts, const char* last) {
  std::string text;
  for (std::size_t i = 0; i < texts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == texts.size() ? fmt::format(" {} ", last) : ", ") + texts[i];
  return text;
}

/// "vgg16 or resnet50"; where fewer values are not among them, "other than alexnet".
std::string names_text(const StudyInput& input, const std::set<std::string>& among) {
  std::vector<std::string> in(among.begin(), among.end()), others;
  for (std::size_t v = 0; v < input.levels(); ++v)
    if (std::string name = input.text_at(input.position_of_level(v)); !among.contains(name))
      others.push_back(std::move(name));
  std::sort(others.begin(), others.end());
  return others.size() < in.size() ? "other than " + joined(others, "and") : joined(in, "or");
}

/// One text a condition: "rate at most 3 Gbps", "network vgg16 or resnet50".
std::vector<std::string> conditions_of_box(const StudySpec& spec, const RegionBox& box) {
  std::vector<std::string> conditions;
  for (std::size_t d = 0; d < spec.inputs.size(); ++d) {
    const StudyInput& input = spec.inputs[d];
    const auto value = [&](double position) { return input.text_at(position); };
    if (!input.is_ordered()) {
      const std::set<std::string>& among = box.among.at(d);
      if (among.size() < input.levels())
        conditions.push_back(fmt::format("{} {}", input.name, names_text(input, among)));
    } else if (box.from[d] && box.to[d]) {
      const std::string from = value(*box.from[d]), to = value(*box.to[d]);
      conditions.push_back(from == to ? fmt::format("{} {}", input.name, from)
                                      : fmt::format("{} from {} to {}", input.name, from, to));
    } else if (box.to[d]) {
      conditions.push_back(fmt::format("{} at most {}", input.name, value(*box.to[d])));
    } else if (box.from[d]) {
      conditions.push_back(fmt::format("{} at least {}", input.name, value(*box.from[d])));
    }
  }
  return conditions;
}

/// What is said of several boxes at once, and how much a reader has to keep in mind for it.
struct RegionWords {
  std::vector<std::string> common;  ///< conditions of all cases
  std::vector<std::string> cases;   ///< what else holds in each of several
  std::size_t conditions = 0;
};

RegionWords words_of(const StudySpec& spec, const std::vector<RegionBox>& boxes) {
  std::vector<std::vector<std::string>> all;
  for (const RegionBox& box : boxes) all.push_back(conditions_of_box(spec, box));
  RegionWords words;
  if (all.empty()) return words;
  const auto in_all = [&](const std::string& condition) {
    return std::all_of(all.begin(), all.end(), [&](const std::vector<std::string>& conditions) {
      return std::find(conditions.begin(), conditions.end(), condition) != conditions.end();
    });
  };
  std::copy_if(all.front().begin(), all.front().end(), std::back_inserter(words.common), in_all);
  words.conditions = words.common.size();
  for (std::vector<std::string>& conditions : all) {
    std::erase_if(conditions, [&](const std::string& condition) {
      return std::find(words.common.begin(), words.common.end(), condition) != words.common.end();
    });
    words.conditions += conditions.size();
    words.cases.push_back(joined(conditions, "and"));
  }
  return words;
}

/// "for a and b", "for a, and there (1) for b or (2) for c", "(1) for a and b or (2) for c"
std::string text_of_cases(const RegionWords& words) {
  // Values that read the same may leave a case nothing of its own: then the others are within it.
  if (std::any_of(words.cases.begin(), words.cases.end(), [](const std::string& own) { return own.empty(); }))
    return "for " + joined(words.common, "and");
  std::string text =
      words.common.empty() ? "" : fmt::format("for {}, and there ", joined(words.common, "and"));
  for (std::size_t i = 0; i < words.cases.size(); ++i)
    text += fmt::format("{}({}) for {}", i ? " or " : "", i + 1, words.cases[i]);
  return text;
}

/// The tree with the fewest conditions in a row that is right at nearly as many points as the deepest: at no more than
/// a fiftieth of all fewer, and a quarter of those that the words gain over "always" or "never".
/// @param otherwise share of the points at which the better of these is right
std::unique_ptr<RegionTree> shortest_tree(const StudySpec& spec, const std::vector<bool>& usable,
                                          const std::vector<StudyPoint>& points,
                                          const std::vector<bool>& holds, double otherwise) {
  auto best = std::make_unique<RegionTree>(spec, usable, points, holds, RegionTree::deepest);
  const double least = best->right() - std::min(1.0 / 50, (best->right() - otherwise) / 4);
  for (int depth = RegionTree::deepest - 1; depth > 0; --depth) {
    auto shorter = std::make_unique<RegionTree>(spec, usable, points, holds, depth);
    if (shorter->right() < least) break;
    best = std::move(shorter);
  }
  return best;
}

}  // namespace

RegionSentence describe_region(const StudySpec& spec, const std::vector<bool>& usable,
                               const std::vector<StudyPoint>& points, const std::vector<bool>& holds) {
  const auto holding = static_cast<std::size_t>(std::count(holds.begin(), holds.end(), true));
  if (holding == points.size()) return {"everywhere"};
  if (holding == 0) return {"nowhere"};
  const auto count = static_cast<double>(points.size());
  RegionSentence sentence;
  sentence.otherwise = static_cast<double>(std::max(holding, points.size() - holding)) / count;
  const std::unique_ptr<RegionTree> tree = shortest_tree(spec, usable, points, holds, sentence.otherwise);
  sentence.right = tree->right();
  const RegionWords inside = words_of(spec, tree->boxes(true)), outside = words_of(spec, tree->boxes(false));
  if (inside.cases.empty())
    sentence.text = "at single points, which no three conditions describe";
  else if (outside.cases.empty())
    sentence.text = "nearly everywhere; no three conditions describe where it does not";
  else if (outside.cases.size() < inside.cases.size() ||
           (outside.cases.size() == inside.cases.size() && outside.conditions < inside.conditions))
    sentence.text = "except " + text_of_cases(outside);
  else
    sentence.text = text_of_cases(inside);
  return sentence;
}

}  // namespace convoy::studies
