// SPDX-License-Identifier: MIT
#include "sim/cli/show_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <vector>

#include "models/summary.h"
#include "models/training_graph.h"
#include "sim/base/names.h"
#include "sim/base/quantity.h"
#include "sim/cli/tell.h"
#include "sim/costs/cost_model.h"
#include "sim/results/json_writer.h"
#include "topologies/catalog.h"

namespace convoy::inline cli {
namespace {

using Style = JsonWriter::Style;

Model load_model(const std::string& name) {
  YamlNode scalar;
  scalar.kind = YamlNode::Kind::scalar;
  scalar.scalar = name;
  scalar.pos = scalar.key_pos = {"show models", 1, 1};
  const bool onnx = name.ends_with(".onnx");
  if (!onnx && !name.ends_with(".yaml") && !name.ends_with(".yml")) return read_model(scalar);
  YamlNode mapping;
  mapping.kind = YamlNode::Kind::mapping;
  mapping.pos = mapping.key_pos = scalar.pos;
  mapping.entries.emplace_back(onnx ? "onnx" : "file", std::move(scalar));
  return read_model(mapping);
}

/// A training step on one device, layer by layer.
struct StepTimes {
  std::string device, precision;
  std::int64_t batch = 0;
  double step_s = 0;
  std::vector<double> layer_s;  ///< forward, backward and update

  double share(std::size_t layer) const { return step_s > 0 ? layer_s[layer] / step_s : 0; }
};

struct ShownModel {
  Model model;
  ModelSummary summary;
  std::vector<double> saved_bytes;  ///< of each layer's own storages, an image, fp32
  double image_saved_bytes = 0;
  std::vector<StepTimes> times;  ///< none or one
};

StepTimes step_times(const Model& model, const ShowArguments& arguments) {
  const SourcePos pos{"show models", 1, 1};
  const std::vector<std::string> precisions = texts_of_names(precision_names);
  const auto precision = std::find(precisions.begin(), precisions.end(), arguments.precision);
  if (precision == precisions.end())
    throw InputError(pos, fmt::format("--precision: unknown precision '{}'{}; known: {}", arguments.precision,
                                      suggestion(arguments.precision, precisions), list_of(precisions)));
  const DeviceType device = load_device(arguments.device, pos);
  TrainingOptions options;
  options.precision = static_cast<Precision>(precision - precisions.begin());
  const std::vector<std::string> optimizers = texts_of_names(optimizer_names);
  const auto optimizer = std::find(optimizers.begin(), optimizers.end(), arguments.optimizer);
  if (optimizer == optimizers.end())
    throw InputError(pos, fmt::format("--optimizer: unknown optimizer '{}'{}; known: {}", arguments.optimizer,
                                      suggestion(arguments.optimizer, optimizers), list_of(optimizers)));
  options.optimizer = static_cast<Optimizer>(optimizer - optimizers.begin());
  if (device.peak_flops.count(options.precision) == 0)
    throw InputError(pos, fmt::format("--precision: {} has no {}", device.name, *precision));
  StepTimes times{device.name, *precision, arguments.batch, 0, std::vector<double>(model.layers.size())};
  const TrainingGraph graph = build_training_graph(model, options);
  const CostModel cost{Software(graph.options)};
  for (const Operation& op : graph.operations) {
    const double time_s = cost.time_s(op.work, static_cast<double>(arguments.batch), device);
    times.layer_s[op.layer] += time_s;
    times.step_s += time_s;
  }
  return times;
}

ShownModel load(const ShowArguments& arguments) {
  ShownModel shown{load_model(arguments.name), {}, {}, 0, {}};
  for (const std::string& warning : shown.model.warnings) tell("convoy: warning: {}\n", warning);
  shown.summary = summarize(shown.model);
  shown.saved_bytes.resize(shown.model.layers.size());
  const TrainingGraph graph = build_training_graph(shown.model, {});
  for (const Buffer& buffer : graph.buffers) {
    if (!buffer.saved) continue;
    if (buffer.role == BufferRole::image)
      shown.image_saved_bytes += buffer.bytes_per_image;
    else
      shown.saved_bytes[graph.operations[buffer.born].layer] += buffer.bytes_per_image;
  }
  if (!arguments.device.empty()) shown.times.push_back(step_times(shown.model, arguments));
  return shown;
}

void write_shape(JsonWriter& json, const Shape& shape) {
  json.begin_array(Style::compact);
  for (const std::int64_t size : shape) json.value(size);
  json.end_array();
}

void write_json(std::ostream& out, const ShownModel& shown) {
  const ModelSummary& model = shown.summary;
  JsonWriter json(out);
  json.begin_object();
  json.field("name", model.name);
  json.key("input_shape");
  write_shape(json, shown.model.input);
  json.field("parameters", model.parameters);
  json.field("parameter_tensors", static_cast<std::int64_t>(model.parameter_tensors));
  json.field("forward_macs", model.forward_macs);
  json.field("forward_flops", model.forward_flops);
  json.field("saved_activation_bytes", model.saved_activation_bytes);
  json.field("image_saved_bytes", shown.image_saved_bytes);
  for (const StepTimes& times : shown.times) {
    json.field("device", times.device);
    json.field("batch", times.batch);
    json.field("precision", times.precision);
    json.field("step_time_s", times.step_s);
  }
  json.key("layers");
  json.begin_array();
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const LayerSummary& layer = model.layers[i];
    json.begin_object(Style::compact);
    json.field("name", layer.name);
    json.field("kind", layer.kind);
    json.key("output_shape");
    write_shape(json, layer.output_shape);
    json.field("parameters", layer.parameters);
    json.field("forward_macs", layer.forward_macs);
    json.field("saved_bytes", shown.saved_bytes[i]);
    for (const StepTimes& times : shown.times) {
      json.field("time_s", times.layer_s[i]);
      json.field("time_share", times.share(i));
    }
    json.end_object();
  }
  json.end_array();
  json.end_object();
  json.raw("\n");
}

void write_text(std::ostream& out, const ShownModel& shown) {
  const ModelSummary& model = shown.summary;
  out << fmt::format(
      "{}: {:.2f} M parameters in {} tensors, {:.3f} G multiply-adds an image, {} saved for backward an "
      "image\n",
      model.name, static_cast<double>(model.parameters) / 1e6, model.parameter_tensors,
      static_cast<double>(model.forward_macs) / 1e9, format_bytes(model.saved_activation_bytes));
  for (const StepTimes& times : shown.times)
    out << fmt::format("one training step on {}, {}, batch {}: {}\n", times.device, times.precision,
                       times.batch, format_time(times.step_s));
  std::size_t width = 5;
  for (const LayerSummary& layer : model.layers) width = std::max(width, layer.name.size());
  out << fmt::format("\n{:<{}}  {:<19}  {:<16}  {:>11}  {:>13}  {:>10}", "layer", width, "kind", "output",
                     "parameters", "multiply-adds", "saved");
  if (!shown.times.empty()) out << fmt::format("  {:>9}  {:>6}", "time", "share");
  out << '\n'
      << fmt::format("{:<{}}  {:<19}  {:<16}  {:>11}  {:>13}  {:>10}\n", "input", width, "image",
                     to_string(shown.model.input), "", "", format_bytes(shown.image_saved_bytes));
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const LayerSummary& layer = model.layers[i];
    const auto number = [](std::int64_t count) { return count ? fmt::format("{}", count) : std::string(); };
    out << fmt::format("{:<{}}  {:<19}  {:<16}  {:>11}  {:>13}  {:>10}", layer.name, width, layer.kind,
                       to_string(layer.output_shape), number(layer.parameters), number(layer.forward_macs),
                       shown.saved_bytes[i] > 0 ? format_bytes(shown.saved_bytes[i]) : "");
    for (const StepTimes& times : shown.times)
      out << fmt::format("  {:>9}  {:>4.1f} %", format_time(times.layer_s[i]), 100 * times.share(i));
    out << '\n';
  }
}

/// A name as a quoted string of Graphviz.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

void write_dot(std::ostream& out, const ShownModel& shown) {
  out << fmt::format("digraph {} {{\n  node [shape=box, fontname=\"sans-serif\"];\n",
                     quoted(shown.summary.name));
  out << fmt::format("  input [label=\"image\\n{}\"];\n", to_string(shown.model.input));
  for (std::size_t i = 0; i < shown.model.layers.size(); ++i) {
    const LayerSummary& layer = shown.summary.layers[i];
    const std::string name = quoted(layer.name);
    out << fmt::format("  l{} [label={}\\n{} {}\"];\n", i, std::string_view(name).substr(0, name.size() - 1),
                       layer.kind, to_string(layer.output_shape));
    for (const LayerIndex input : shown.model.layers[i].inputs)
      out << fmt::format("  {} -> l{};\n", input == image_input ? "input" : fmt::format("l{}", input), i);
  }
  out << "}\n";
}

}  // namespace

void show_model(std::ostream& out, const ShowArguments& arguments) {
  const ShownModel shown = load(arguments);
  if (arguments.dot) return write_dot(out, shown);
  arguments.json ? write_json(out, shown) : write_text(out, shown);
}

std::string model_line(const std::string& name) {
  if (name.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") != std::string::npos)
    return "a family: put numbers for the capitals";
  const ModelSummary model = summarize(load_model(name));
  return fmt::format("{:7.2f} M parameters  {:7.3f} G multiply-adds an image",
                     static_cast<double>(model.parameters) / 1e6,
                     static_cast<double>(model.forward_macs) / 1e9);
}

}  // namespace convoy::cli
