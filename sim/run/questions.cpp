// SPDX-License-Identifier: MIT
#include "sim/run/questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/base/input_error.h"
#include "sim/base/quantity.h"
#include "sim/costs/input_pipeline.h"
#include "strategies/strategy.h"

namespace convoy::inline runs {
namespace {

std::string scalar_at(const YamlNode& node, std::string_view path) {
  const YamlNode* value = find_path(node, path);
  return value && value->kind == YamlNode::Kind::scalar ? value->scalar : std::string{};
}

/// The value of a key that counts something, and its path; `otherwise` where it is left out.
std::int64_t count_at(const YamlNode& tree, const std::string& path, std::int64_t otherwise) {
  const YamlNode* value = find_path(tree, path);
  return value && value->kind == YamlNode::Kind::scalar ? read_integer(*value, path, 1) : otherwise;
}

/// The path of the count of the cluster's last kind of server; "" if it has none.
std::string servers_path(const YamlNode& tree) {
  const YamlNode* nodes = find_path(tree, "cluster.nodes");
  if (!nodes) return {};
  if (nodes->kind == YamlNode::Kind::scalar) return "cluster.nodes";
  if (nodes->kind != YamlNode::Kind::sequence || nodes->items.empty()) return {};
  const std::string path = fmt::format("cluster.nodes.{}.count", nodes->items.size() - 1);
  return find_path(tree, path) ? path : std::string{};
}

/// Whether hosts need time to issue operations to any of the cluster's devices.
bool has_issue_times(const ClusterSpec& cluster) {
  return std::any_of(cluster.servers.begin(), cluster.servers.end(), [](const ServerSpec& server) {
    return std::any_of(server.devices.begin(), server.devices.end(),
                       [](const auto& devices) { return devices.first.issue_factor > 0; });
  });
}

bool all_run(const ClusterSpec& cluster, Precision precision) {
  return std::all_of(cluster.servers.begin(), cluster.servers.end(), [&](const ServerSpec& server) {
    return std::all_of(server.devices.begin(), server.devices.end(),
                       [&](const auto& devices) { return devices.first.runs(precision); });
  });
}

class Questions {
 public:
  Questions(const YamlNode& tree, const Point& point, const ClusterSpec& cluster)
      : tree_(tree), point_(point), cluster_(cluster) {}

  std::vector<Question> all() && {
    ask_machine();
    ask_software();
    ask_batch();
    ask_communication();
    ask_input();
    ask_hosts();
    return std::move(questions_);
  }

 private:
  void ask_machine() {
    add("all links twice as fast").machine.bandwidth = 2;
    add("no latency").machine.no_latency = true;
    add("all devices twice as fast").machine.compute = 2;
    if (has_issue_times(cluster_)) add("hosts issue operations twice as fast").machine.issue = 2;
  }

  /// Ways of execution that issue less than the present one (prepared graphs and compilers, where the
  /// framework has one), precisions, layouts.
  void ask_software() {
    const TrainingOptions& options = point_.training.options;
    const Framework framework = options.framework;
    const std::string measured =
        point_.training.anchor ? "training.anchor was measured with the software that the experiment states"
        : point_.training.profile
            ? "training.profile was measured with the software that the experiment states"
            : "";
    const auto ask = [&](const char* key, std::string_view value) {
      Question& question = add(fmt::format("{}: {}", key, value));
      question.keys = {{fmt::format("training.{}", key), std::string(value)}};
      question.refused = measured;
    };
    if (has_issue_times(cluster_)) {
      const bool has_compiler = framework == Framework::pytorch || framework == Framework::tensorflow ||
                                framework == Framework::tensorflow1;
      if (options.execution == ExecutionMode::eager) ask("execution", to_string(ExecutionMode::graph));
      if (options.execution != ExecutionMode::compiled && has_compiler)
        ask("execution", to_string(ExecutionMode::compiled));
    }
    // As simulate.cpp decides what the experiment leaves to the framework.
    const Precision present = point_.training.precision_given
                                  ? options.precision
                                  : default_precision(framework, all_run(cluster_, Precision::tf32));
    for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::tf32}) {
      const std::string name(to_string(precision));
      if (precision == present || (precision == Precision::tf32 && present != Precision::fp32)) continue;
      ask("precision", name);
      if (!all_run(cluster_, precision))
        questions_.back().refused = fmt::format("a device of the cluster cannot run {}", name);
    }
    const Layout laid_out =
        point_.training.layout_given ? options.layout : default_layout(framework, present);
    ask("layout", to_string(laid_out == Layout::nchw ? Layout::nhwc : Layout::nchw));
  }

  void ask_batch() {
    const std::string path =
        find_path(tree_, "training.batch_per_device") ? "training.batch_per_device" : "training.global_batch";
    const std::int64_t batch = count_at(tree_, path, 1);
    add("batch twice as large").keys = {{path, std::to_string(2 * batch)}};
    Question& half = add("batch half as large");
    half.keys = {{path, std::to_string(batch / 2)}};
    if (batch % 2 != 0)
      half.refused = batch == 1 ? "the batch is one image" : fmt::format("{} images cannot be halved", batch);
    Question& accumulated = add("batch twice as large, accumulated in twice as many micro-batches");
    if (has_key("micro_batches"))
      accumulated.keys = {
          {path, std::to_string(2 * batch)},
          {"strategy.micro_batches", std::to_string(2 * count_at(tree_, "strategy.micro_batches", 1))}};
    else
      accumulated.refused = "the strategy has no micro_batches";
  }

  void ask_communication() {
    const std::string kind = scalar_at(tree_, "strategy.kind");
    if (kind != "data_parallel" || scalar_at(tree_, "strategy.sync") != "all_reduce") {
      add("another all-reduce algorithm, bucket or compression").refused =
          "the strategy is no data_parallel with sync: all_reduce";
      return;
    }
    const KeyText* algorithm = find_key(strategy_entry(kind).keys, "algorithm");
    for (const std::string& name : algorithm->choices)
      if (name != "auto") ask_strategy("algorithm", "algorithm", name);
    if (scalar_at(tree_, "strategy.overlap") != "false") {
      std::string text = scalar_at(tree_, "strategy.bucket"), why;
      if (text.empty()) text = "25MiB";  // PyTorch's, and the strategy's default
      if (const std::optional<double> bytes = parse_quantity(text, Dimension::bytes, why))
        for (const double factor : {0.25, 4.0})
          ask_strategy("bucket", "bucket", fmt::format("{:.0f}B", *bytes * factor));
    }
    const std::string compression = scalar_at(tree_, "strategy.compression");
    if (const YamlNode* now = find_path(tree_, "strategy.compression"); now && compression != "none") return;
    ask_strategy("", "compression", "fp16");
    ask_strategy("", "compression", "{kind: top_k, ratio: 0.01}");
  }

  void ask_input() {
    const InputSpec& input = point_.training.input;
    if (input.synthetic) return;
    add("input pipeline unlimited").edit = [](Point& point) { point.training.input = InputSpec{}; };
    const std::int64_t workers = input.workers_per_device.value_or(input.library.workers_per_device);
    Question& more = add("twice as many loader workers a device");
    if (workers > 0)
      more.edit = [workers](Point& point) { point.training.input.workers_per_device = 2 * workers; };
    else
      more.refused = "the loader already uses all cores";
    for (const std::string& name : input_library_names()) {
      if (name == input.library.name) continue;
      Question& other = add("library: " + name);
      other.family = "library";
      if (input.rate_given)
        other.refused = "training.input.core_images_per_s was measured with the present library";
      other.edit = [name](Point& point) { point.training.input.library = load_input_library(name, {}); };
    }
  }

  void ask_hosts() {
    Question& server = add("one more server");
    if (const std::string path = servers_path(tree_); !path.empty())
      server.keys = {{path, std::to_string(count_at(tree_, path, 1) + 1)}};
    else
      server.refused = "the cluster does not state how many servers it has";
    Question& nic = add("one more NIC a server");
    const YamlNode* fabric = find_path(tree_, "cluster.fabric");
    if (fabric && fabric->kind == YamlNode::Kind::mapping)
      nic.keys = {{"cluster.fabric.nics", std::to_string(count_at(tree_, "cluster.fabric.nics", 1) + 1)}};
    else
      nic.refused = "the fabric is the catalogue's; write it under cluster.fabric to change its nics";
  }

  void ask_strategy(const char* family, const char* key, const std::string& value) {
    Question& question = add(fmt::format("{}: {}", key, shown(value)));
    question.family = family;
    question.keys = {{fmt::format("strategy.{}", key), value}};
  }

  /// "6.25 MiB" for a number of bytes.
  static std::string shown(const std::string& value) {
    std::string why;
    const std::optional<double> bytes = parse_quantity(value, Dimension::bytes, why);
    return bytes ? format_bytes(*bytes) : value;
  }

  bool has_key(std::string_view name) const {
    return find_key(strategy_entry(scalar_at(tree_, "strategy.kind")).keys, name) != nullptr;
  }

  Question& add(std::string change) {
    questions_.emplace_back().change = std::move(change);
    return questions_.back();
  }

  const YamlNode& tree_;
  const Point& point_;
  const ClusterSpec& cluster_;
  std::vector<Question> questions_;
};

}  // namespace

std::vector<Question> questions_of(const YamlNode& tree, const Point& point, const ClusterSpec& cluster) {
  return Questions(tree, point, cluster).all();
}

Point changed(const YamlNode& tree, const Question& question) {
  YamlNode other = tree;
  for (const auto& [path, value] : question.keys) set_path(other, path, parse_yaml(value, ""));
  Point point = read_point(other);
  if (question.edit) question.edit(point);
  return point;
}

}  // namespace convoy::runs
