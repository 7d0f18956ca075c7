// SPDX-License-Identifier: MIT
#include "sim/planning/goal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/key_parts.h"
#include "sim/base/named_file.h"
#include "sim/base/names.h"

namespace convoy::inline planning {
namespace {

constexpr double most_epochs = 1e9, most_samples = 1e15;

/// `goal:` as it is written.
struct WrittenGoal {
  std::string target, table, optimizer;
  std::optional<double> epochs, samples, noise_scale;
  bool extrapolate = true;
  double start_up_s = 0;
  Goal::Pause evaluation, checkpoint;
  SourcePos pos, target_pos, optimizer_pos;
};

Keys<Goal::Pause> pause_keys() {
  using Pause = Goal::Pause;
  return {optional_quantity_key<Pause>("time", "", Dimension::time, false, "that one takes", &Pause::time_s)
              .required(),
          number_key<Pause>("every", 1e-6, most_epochs, "after so many epochs", &Pause::every_epochs)};
}

const Keys<WrittenGoal>& written_goal_keys() {
  using Written = WrittenGoal;
  static const Keys<Written> keys{
      optional_text_key<Written>("target", "", "a name of results/published/convergence.csv",
                                 "a table of epochs by global batch", &Written::target)
          .at(&Written::target_pos),
      custom_key<Written>("table", "", forms::text("a CSV file"), "the same of your own (docs/planning.md)",
                          [](YamlMap& map, Written& goal) {
                            if (map.find("table")) goal.table = named_file(map, "table");
                          }),
      optional_number_key<Written>(
          "noise_scale", "", 1e-3, most_samples,
          "images; epochs (1 + batch / noise_scale) are needed, epochs being those of "
          "the smallest batches",
          &Written::noise_scale),
      optional_number_key<Written>("samples", "", 1, most_samples, "images, whatever the batch",
                                   &Written::samples),
      optional_number_key<Written>("epochs", "", 1e-9, most_epochs,
                                   "whatever the batch; with noise_scale those of the smallest batches",
                                   &Written::epochs),
      optional_text_key<Written>("optimizer", "the table's nearest to that of training",
                                 "a name such as lars", "with target or table: whose rows are taken",
                                 &Written::optimizer)
          .at(&Written::optimizer_pos),
      flag_key<Written>("extrapolate",
                        "with target or table: batches below the table follow the noise scale that fits it, "
                        "with a doubt; false leaves them out, as those above it are",
                        &Written::extrapolate),
      optional_quantity_key<Written>("start_up", "0s", Dimension::time, false, "once, before training",
                                     &Written::start_up_s),
      mapping_key<Written>("evaluation", "none", "between epochs", pause_keys(), &Written::evaluation),
      mapping_key<Written>("checkpoint", "none", "between epochs; what is lost goes back to the last",
                           pause_keys(), &Written::checkpoint)};
  return keys;
}

/// Which of the keys says how long to train.
std::string kind_of_goal(const YamlMap& map) {
  std::string found;
  for (const char* key : {"target", "table", "noise_scale", "samples", "epochs"}) {
    if (!map.has(key)) continue;
    if (found == "noise_scale" && std::string_view(key) == "epochs") continue;
    if (!found.empty()) map.fail(key, fmt::format("'{}' is given too; give one of the two", found));
    found = key;
  }
  if (found.empty())
    map.fail(
        "says nothing to reach: give target: NAME, table: FILE, epochs, samples, or noise_scale with epochs");
  return found;
}

}  // namespace

Goal Goal::read(const YamlNode& node, std::optional<double> samples, Optimizer trained) {
  YamlMap map(node, "goal");
  WrittenGoal written;
  read_part(written_goal_keys(), map, written);
  const std::string kind = kind_of_goal(map);
  Goal goal;
  goal.pos_ = written.pos;
  if (kind == "target" || kind == "table") {
    const OptimizerAsked optimizer{written.optimizer, written.optimizer_pos, trained};
    ConvergenceTable table = kind == "target" ? load_goal(written.target, written.target_pos, optimizer)
                                              : read_convergence(written.table, optimizer);
    if (!samples) samples = table.samples;
    goal.text_ = table.text + (table.optimizer.empty() ? "" : " with " + table.optimizer);
    goal.optimizer_given_ = !written.optimizer.empty();
    goal.length_ = std::move(table);
    goal.extrapolate_ = written.extrapolate;
  }
  for (const char* key : {"extrapolate", "optimizer"})
    if (kind != "target" && kind != "table" && map.has(key))
      map.fail(key, fmt::format("goes with target or table only; '{}' has no rows of runs", kind));
  if (!samples) map.fail("an epoch's number of images is not known: give training.dataset: {samples: N}");
  goal.samples_ = *samples;
  if (kind == "epochs") {
    goal.length_ = *written.epochs;
    goal.text_ = fmt::format("{:g} epochs", *written.epochs);
  } else if (kind == "samples") {
    goal.length_ = *written.samples / *samples;
    goal.text_ = fmt::format("{:g} images", *written.samples);
  } else if (kind == "noise_scale") {
    map.node("epochs");  // required with it
    goal.length_ = NoiseScale{*written.epochs, *written.noise_scale};
    goal.text_ = fmt::format("{:g} epochs at small batches, noise scale of {:g} images", *written.epochs,
                             *written.noise_scale);
  }
  goal.start_up_s_ = written.start_up_s;
  goal.evaluation_ = written.evaluation;
  goal.checkpoint_ = written.checkpoint;
  return goal;
}

KeySection goal_keys() {
  return {"goal", "how long a plan's training goes on: one of target, table, epochs, samples, noise_scale",
          texts_of(written_goal_keys())};
}

double Goal::scale() const {
  const ConvergenceTable* table = std::get_if<ConvergenceTable>(&length_);
  return table && table->samples ? *table->samples / samples_ : 1;
}

std::optional<EpochsNeeded> Goal::epochs(double global_batch) const {
  if (const double* fixed = std::get_if<double>(&length_)) return EpochsNeeded{*fixed, *fixed, *fixed};
  if (const NoiseScale* noise = std::get_if<NoiseScale>(&length_)) {
    const double epochs = noise->at(global_batch);
    return EpochsNeeded{epochs, epochs, epochs};
  }
  std::optional<EpochsNeeded> needed = std::get<ConvergenceTable>(length_).at(global_batch, extrapolate_);
  if (const double factor = scale(); needed && factor != 1)
    needed = EpochsNeeded{needed->epochs * factor, needed->least * factor, needed->most * factor};
  return needed;
}

Goal::Evidence Goal::evidence(double global_batch) const {
  const ConvergenceTable* table = std::get_if<ConvergenceTable>(&length_);
  if (!table) return {};
  Evidence evidence{table->points.front().grade, table->optimizer.empty() ? "" : "with " + table->optimizer};
  const auto add = [&](const std::string& text) {
    evidence.text += (evidence.text.empty() ? "" : ", ") + text;
  };
  if (global_batch < table->smallest()) {
    evidence.grade = Grade::assumed;
    add(fmt::format("extrapolated from the {:.4g} of {:g} images a step",
                    table->envelope().front().needed.epochs, table->smallest()));
  }
  const auto own = std::find_if(table->points.begin(), table->points.end(),
                                [&](const ConvergencePoint& point) { return point.batch == global_batch; });
  if (own != table->points.end() && own->needed.epochs > table->at(global_batch, false)->epochs)
    add(fmt::format(
        "as with a larger batch: runs with {:g} images a step took {:.4g}, with other hyperparameters",
        own->batch, own->needed.epochs));
  if (scale() != 1) {
    evidence.grade = Grade::assumed;
    add(fmt::format("scaled by {:.3g} to see as many images as the table's runs", scale()));
  }
  return evidence;
}

std::vector<std::string> Goal::doubts(const std::string& network, Optimizer optimizer) const {
  std::vector<std::string> doubts;
  const ConvergenceTable* table = std::get_if<ConvergenceTable>(&length_);
  if (!table) return doubts;
  if (!table->network.empty() && !network.empty() && network != table->network)
    doubts.push_back(
        fmt::format("the epochs are those of {}, and this plan trains {}", table->network, network));
  const std::string trained(optimizer_names[static_cast<std::size_t>(optimizer)]);
  // Rows of SGD are of SGD with momentum, as it is trained everywhere.
  const bool same =
      table->optimizer == trained || (table->optimizer == "sgd" && optimizer == Optimizer::momentum);
  if (!table->optimizer.empty() && !optimizer_given_ && !same) {
    std::vector<std::string> others = table->optimizers;
    std::erase_if(others, [&](const std::string& name) { return name.empty() || name == table->optimizer; });
    doubts.push_back(fmt::format(
        "the epochs are those of runs with {}, and this plan trains with {}{}", table->optimizer, trained,
        others.empty() ? "" : fmt::format("; goal.optimizer can be {}", list_of(others))));
  }
  if (scale() != 1)
    doubts.push_back(fmt::format(
        "the epochs are of {:.0f} images each, the data set has {:.0f}: they are scaled by {:.3g}, so that "
        "as many images are seen",
        *table->samples, samples_, scale()));
  return doubts;
}

std::optional<std::string> Goal::batch_doubt(double global_batch) const {
  // Goyal et al., arXiv:1706.02677, figure 1: ResNet-50 on ImageNet keeps its accuracy after 90 epochs up to
  // 8,192 images a step, and loses it beyond.
  constexpr double largest_harmless_batch = 8192;
  if (const ConvergenceTable* table = std::get_if<ConvergenceTable>(&length_);
      table && global_batch < table->smallest())
    return fmt::format("the epochs are extrapolated: the goal's runs begin at {:g} images a step",
                       table->smallest());
  if (!std::holds_alternative<double>(length_) || global_batch <= largest_harmless_batch) return std::nullopt;
  return fmt::format(
      "as many epochs as with small batches, though ResNet-50 loses accuracy beyond {:g} images a step "
      "(arXiv:1706.02677): 'target', 'table' or 'noise_scale' of the goal let epochs grow with the batch",
      largest_harmless_batch);
}

double Goal::Pause::all_s(double epochs) const { return time_s * std::ceil(epochs / every_epochs - 1e-9); }

double Goal::beside_s(double epochs) const {
  return start_up_s_ + evaluation_.all_s(epochs) + checkpoint_.all_s(epochs);
}

std::optional<std::pair<double, double>> Goal::range() const {
  const ConvergenceTable* table = std::get_if<ConvergenceTable>(&length_);
  if (!table) return std::nullopt;
  return std::pair{extrapolate_ ? 0 : table->smallest(), table->largest()};
}

std::vector<double> Goal::batches() const {
  std::vector<double> batches;
  const ConvergenceTable* table = std::get_if<ConvergenceTable>(&length_);
  if (!table) return batches;
  const std::vector<ConvergencePoint> least = table->envelope();
  for (std::size_t i = 0; i < least.size(); ++i)
    if (least[i].needed.epochs == table->points[i].needed.epochs) batches.push_back(least[i].batch);
  return batches;
}

}  // namespace convoy::planning
