// SPDX-License-Identifier: MIT
#include "topologies/measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "models/model.h"
#include "sim/base/csv.h"
#include "sim/base/names.h"

namespace convoy {
namespace {

constexpr std::array<std::string_view, 6> step_names{"train",    "forward_backward", "forward",
                                                     "backward", "data_gradient",    "weight_gradient"};
constexpr std::array<Precision, 4> precisions{Precision::fp32, Precision::tf32, Precision::fp16,
                                              Precision::bf16};
template <class Names>
std::size_t choice(const CsvTable& table, const CsvRow& row, std::string_view column, const Names& allowed,
                   std::string_view fallback) {
  const CsvCell* cell = table.find(row, column);
  const std::string_view word = cell ? std::string_view(cell->text) : fallback;
  const auto found = std::find(allowed.begin(), allowed.end(), word);
  if (found == allowed.end()) {
    const std::vector<std::string> words(allowed.begin(), allowed.end());
    throw InputError(
        cell ? cell->pos : row.front().pos,
        fmt::format("{}: '{}' is not one of {}{}", column, word, list_of(words), suggestion(word, words)));
  }
  return static_cast<std::size_t>(found - allowed.begin());
}

Measurement read_row(const CsvTable& columns, const CsvRow& row) {
  std::array<std::string_view, 4> precision_names;
  for (std::size_t i = 0; i < precisions.size(); ++i) precision_names[i] = to_string(precisions[i]);
  Measurement m;
  m.pos = row.front().pos;
  m.device = columns.text(row, "device");
  if (m.device.empty()) throw InputError(m.pos, "device: expected a name, found nothing");
  m.model = columns.text(row, "model");
  m.layer = columns.text(row, "layer");
  m.kernel = columns.text(row, "kernel");
  if (m.model.empty() == m.kernel.empty())
    throw InputError(m.pos, "give either a model or a kernel, and not both");
  m.batch = columns.number(row, "batch", true);
  m.precision = precisions[choice(columns, row, "precision", precision_names, "fp32")];
  m.step = static_cast<MeasuredStep>(choice(columns, row, "step", step_names, ""));
  m.framework = columns.text(row, "framework");
  m.images_per_s = columns.number(row, "images_per_s", true);
  m.fit = choice(columns, row, "role", std::array<std::string_view, 2>{"fit", "test"}, "fit") == 0;
  m.source = columns.text(row, "source");
  m.note = columns.text(row, "note");
  return m;
}

bool covers(MeasuredStep step, Phase phase) {
  switch (step) {
    case MeasuredStep::train:
      return true;
    case MeasuredStep::forward_backward:
      return phase != Phase::update;
    case MeasuredStep::forward:
      return phase == Phase::forward;
    case MeasuredStep::backward:
      return phase == Phase::data_gradient || phase == Phase::weight_gradient;
    case MeasuredStep::data_gradient:
      return phase == Phase::data_gradient;
    case MeasuredStep::weight_gradient:
      return phase == Phase::weight_gradient;
  }
  return false;
}

TrainingGraph measured_graph(const Measurement& m) {
  YamlNode node;
  node.pos = m.pos;
  YamlNode name;
  name.kind = YamlNode::Kind::scalar;
  name.scalar = m.model;
  name.pos = m.pos;
  if (m.model.ends_with(".yaml") || m.model.ends_with(".onnx")) {
    node.kind = YamlNode::Kind::mapping;
    node.entries.emplace_back(m.model.ends_with(".yaml") ? "file" : "onnx", name);
  } else {
    node = name;
  }
  return build_training_graph(read_model(node), {m.precision, Optimizer::momentum});
}

// A kernel alone as the model that has only it would do it, so that shapes, FLOPs and bytes have one home.
std::vector<Work> kernel_work(const Measurement& m) {
  constexpr const char* help =
      "expected 'convolution IN>OUT KHxKW/STRIDE HxW' (of the output) or 'matmul IN>OUT'";
  long long in = 0, out = 0, kh = 0, kw = 0, stride = 0, h = 0, w = 0;
  int end = 0;
  Work work;
  const auto read_all = [&] { return static_cast<std::size_t>(end) == m.kernel.size() && in > 0 && out > 0; };
  const double bytes = element_bytes(m.precision);
  if (std::sscanf(m.kernel.c_str(), "convolution %lld>%lld %lldx%lld/%lld %lldx%lld%n", &in, &out, &kh, &kw,
                  &stride, &h, &w, &end) == 7 &&
      read_all() && kh > 0 && kw > 0 && stride > 0 && h > 0 && w > 0) {
    work.kind = KernelKind::convolution;
    work.kernel_h = kh;
    work.kernel_w = kw;
    work.stride = stride;
    work.groups = 1;
    work.out_h = h;
    work.out_w = w;
  } else if (std::sscanf(m.kernel.c_str(), "matmul %lld>%lld%n", &in, &out, &end) == 2 && read_all()) {
    work.kind = KernelKind::matmul;
    work.groups = 1;
    work.out_h = work.out_w = kh = kw = stride = h = w = 1;
  } else {
    throw InputError(m.pos, fmt::format("kernel: {}, found '{}'", help, m.kernel));
  }
  work.in_channels = in;
  work.out_channels = out;
  const double pixels = static_cast<double>(h) * static_cast<double>(w);
  const double area = static_cast<double>(kh) * static_cast<double>(kw);
  const double inputs = static_cast<double>(in), outputs = static_cast<double>(out);
  work.flops_per_image = 2 * pixels * outputs * inputs * area;
  const double step = static_cast<double>(stride);
  work.bytes_per_image = bytes * pixels * (outputs + inputs * step * step);
  work.bytes_fixed = bytes * outputs * inputs * area;
  std::vector<Work> works;
  for (const Phase phase : {Phase::forward, Phase::data_gradient, Phase::weight_gradient}) {
    work.phase = phase;
    if (covers(m.step, phase)) works.push_back(work);
  }
  return works;
}

}  // namespace

std::vector<Measurement> read_measurements(const std::string& csv_file) {
  const CsvTable table(csv_file,
                       {"device", "model", "layer", "kernel", "batch", "precision", "step", "framework",
                        "images_per_s", "role", "source", "note"},
                       {"device", "batch", "step", "images_per_s"});
  if (table.rows().empty()) throw InputError({csv_file, 0, 0}, "holds no measurement");
  if (!table.has("model") && !table.has("kernel"))
    throw InputError(table.header(), "a column 'model' or 'kernel' is missing");
  std::vector<Measurement> measurements;
  for (const CsvRow& row : table.rows()) measurements.push_back(read_row(table, row));
  return measurements;
}

std::vector<Work> measured_work(const Measurement& m) {
  if (!m.kernel.empty()) return kernel_work(m);
  const TrainingGraph graph = measured_graph(m);
  std::vector<std::string> names;
  for (const Layer& layer : graph.model.layers) names.push_back(layer.name);
  if (!m.layer.empty() && std::find(names.begin(), names.end(), m.layer) == names.end())
    throw InputError(
        m.pos, fmt::format("layer: {} has no layer '{}'{}", m.model, m.layer, suggestion(m.layer, names)));
  std::vector<Work> works;
  for (const Operation& operation : graph.operations)
    if (covers(m.step, operation.phase) && (m.layer.empty() || names[operation.layer] == m.layer))
      works.push_back(operation.work);
  return works;
}

}  // namespace convoy
