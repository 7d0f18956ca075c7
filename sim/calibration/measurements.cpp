// SPDX-License-Identifier: MIT
#include "sim/calibration/measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "models/layer_costs.h"
#include "models/model.h"
#include "models/token_order.h"
#include "sim/base/csv.h"
#include "sim/base/names.h"

namespace convoy::inline calibration {
namespace {

constexpr std::array<Precision, 4> measured_precisions{Precision::fp32, Precision::tf32, Precision::fp16,
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
  for (std::size_t i = 0; i < measured_precisions.size(); ++i)
    precision_names[i] = to_string(measured_precisions[i]);
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
  m.precision = measured_precisions[choice(columns, row, "precision", precision_names, "fp32")];
  m.step = static_cast<MeasuredStep>(choice(columns, row, "step", measured_step_names, ""));
  m.software = static_cast<Framework>(choice(columns, row, "software", framework_names, "pytorch"));
  // A kernel or layer is in a CUDA graph only where its row says so, whatever the framework does.
  m.execution = static_cast<ExecutionMode>(
      choice(columns, row, "execution", execution_names,
             to_string(m.whole_network() ? default_execution(m.software) : ExecutionMode::eager)));
  m.layout = static_cast<Layout>(
      choice(columns, row, "layout", layout_names, to_string(default_layout(m.software, m.precision))));
  m.framework = columns.text(row, "framework");
  const bool has_speed = columns.find(row, "images_per_s");
  if (has_speed && columns.find(row, "time_ms"))
    throw InputError(m.pos, "give either images_per_s or time_ms, and not both");
  m.images_per_s = has_speed || !columns.has("time_ms")
                       ? columns.number(row, "images_per_s", true)
                       : 1e3 * m.batch / columns.number(row, "time_ms", true);
  if (columns.find(row, "operations_after"))
    m.operations_after = columns.number(row, "operations_after", false);
  m.fed_from_arrays =
      choice(columns, row, "input", std::array<std::string_view, 2>{"synthetic", "arrays"}, "synthetic") == 1;
  if (columns.find(row, "weights_in_turn")) m.weights_in_turn = columns.number(row, "weights_in_turn", true);
  m.optimizer = static_cast<Optimizer>(choice(columns, row, "optimizer", optimizer_names, "momentum"));
  m.role = static_cast<RowRole>(choice(columns, row, "role", row_role_names, "fit"));
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

YamlNode scalar_node(const std::string& text, const SourcePos& pos) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.scalar = text;
  node.pos = pos;
  return node;
}

/// The network of a row, read once for all rows of its table: these are hundreds of few networks.
const Model& measured_model(const Measurement& m) {
  static std::map<std::pair<std::string, std::string>, Model> models;
  const std::pair key{m.pos.file, m.model};  // files are named from the table's folder
  const auto found = models.find(key);
  if (found != models.end()) return found->second;
  const std::size_t at = m.model.find('@');
  const std::string name = m.model.substr(0, at);
  YamlNode node;
  node.pos = m.pos;
  node.kind = YamlNode::Kind::mapping;
  node.entries.emplace_back(name.ends_with(".yaml")   ? "file"
                            : name.ends_with(".onnx") ? "onnx"
                                                      : "name",
                            scalar_node(name, m.pos));
  if (at != std::string::npos) {
    YamlNode input;
    input.pos = m.pos;
    input.kind = YamlNode::Kind::sequence;
    const std::string shape = m.model.substr(at + 1), side = shape.substr(0, shape.find('/'));
    if (side.size() < shape.size())
      node.entries.emplace_back("classes", scalar_node(shape.substr(side.size() + 1), m.pos));
    for (const std::string& size : {std::string("3"), side, side})
      input.items.push_back(scalar_node(size, m.pos));
    node.entries.emplace_back("input", input);
  }
  return models.emplace(key, read_model(node)).first->second;
}

TrainingGraph measured_graph(const Measurement& m) {
  return build_training_graph(measured_model(m), measured_options(m));
}

// A number of a kernel's text; 0 where there is none.
std::int64_t read_count(std::string_view& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0 || value > 1'000'000'000'000) return 0;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// The numbers of `text` where it has the form of `pattern`, in which # stands for a number above zero.
std::optional<std::vector<std::int64_t>> match(std::string_view text, std::string_view pattern) {
  std::vector<std::int64_t> numbers;
  for (const char c : pattern) {
    if (c == '#') {
      numbers.push_back(read_count(text));
      if (numbers.back() == 0) return std::nullopt;
    } else {
      if (text.empty() || text.front() != c) return std::nullopt;
      text.remove_prefix(1);
    }
  }
  if (!text.empty()) return std::nullopt;
  // Beyond this no kernel is, and whole numbers overflow.
  double product = 1;
  for (const std::int64_t number : numbers) product *= static_cast<double>(number);
  if (product > 1e17) return std::nullopt;
  return numbers;
}

// A layer that reads an image of shape `input`.
Model model_of(LayerKind kind, Shape input, Shape output) {
  Model model;
  model.input = std::move(input);
  Layer layer;
  layer.kind = std::move(kind);
  layer.inputs = {image_input};
  layer.output = std::move(output);
  model.layers.push_back(std::move(layer));
  return model;
}

Model convolution_model(std::int64_t in, std::int64_t out, Size2 kernel, std::int64_t stride, Size2 size,
                        std::int64_t groups) {
  Conv2d conv;
  conv.out_channels = out;
  conv.kernel = kernel;
  conv.stride = {stride, stride};
  conv.groups = groups;
  Model model = model_of(conv, {in, size.h * stride, size.w * stride}, {out, size.h, size.w});
  Layer& layer = model.layers.front();
  const std::int64_t weights = in / groups * out * kernel.h * kernel.w;
  layer.parameters = {{ParameterRole::weight, weights}};
  layer.macs = weights * size.h * size.w;
  return model;
}

// A kernel alone is a model of one layer, so that shapes, FLOPs and bytes have one home.
std::optional<Model> kernel_model(const std::string& text) {
  if (const auto n = match(text, "convolution #># #x#/# #x#"))
    return convolution_model((*n)[0], (*n)[1], {(*n)[2], (*n)[3]}, (*n)[4], {(*n)[5], (*n)[6]}, 1);
  if (const auto n = match(text, "convolution #># #x#/# #x# groups #")) {
    const std::int64_t groups = (*n)[7];
    if ((*n)[0] % groups != 0 || (*n)[1] % groups != 0) return std::nullopt;
    return convolution_model((*n)[0], (*n)[1], {(*n)[2], (*n)[3]}, (*n)[4], {(*n)[5], (*n)[6]}, groups);
  }
  if (const auto n = match(text, "matmul #>#")) {
    Linear linear;
    linear.out_features = (*n)[1];
    Model model = model_of(linear, {(*n)[0]}, {(*n)[1]});
    model.layers.front().parameters = {{ParameterRole::weight, (*n)[0] * (*n)[1]}};
    model.layers.front().macs = (*n)[0] * (*n)[1];
    return model;
  }
  if (const auto n = match(text, "batch_norm # #x#")) {
    const Shape shape{(*n)[0], (*n)[1], (*n)[2]};
    Model model = model_of(Normalization{}, shape, shape);
    model.layers.front().parameters = {{ParameterRole::weight, (*n)[0]}, {ParameterRole::bias, (*n)[0]}};
    return model;
  }
  for (std::size_t f = 0; f < static_cast<std::size_t>(Activation::Function::softmax); ++f) {
    const Activation activation{static_cast<Activation::Function>(f)};
    if (const auto n = match(text, std::string(kind_name(activation)) + " #"))
      return model_of(activation, {(*n)[0]}, {(*n)[0]});
  }
  if (const auto n = match(text, "add #")) {
    Model model = model_of(Add{}, {(*n)[0]}, {(*n)[0]});
    model.layers.front().inputs.push_back(image_input);
    return model;
  }
  if (const auto n = match(text, "max_pool # #x#>#x#")) {
    const Shape input{(*n)[0], (*n)[1], (*n)[2]}, output{(*n)[0], (*n)[3], (*n)[4]};
    // Windows side by side: what they overlap decides nothing, since memory bounds these kernels.
    const Size2 window{std::max<std::int64_t>(1, input[1] / output[1]),
                       std::max<std::int64_t>(1, input[2] / output[2])};
    return model_of(Pool{Pool::Mode::max, window, window}, input, output);
  }
  return std::nullopt;
}

/// Of one kernel in a CUDA graph, over those of an operation in a network (one to three kernels, 5 us): 1.1 to
/// 1.3 us pass between two kernels (results/published/host_issue.csv), the rest is until the first has begun
/// to compute.
constexpr float launches_of_a_captured_kernel = 0.4F;

std::vector<Work> kernel_work(const Measurement& m) {
  if (const auto n = match(m.kernel, "update #")) {
    Layer layer;
    layer.kind = Linear{};
    layer.parameters = {{ParameterRole::weight, n->front()}};
    return {update_work(layer, m.precision, m.optimizer)};
  }
  const std::optional<Model> model = kernel_model(m.kernel);
  if (!model)
    throw InputError(
        m.pos,
        fmt::format(
            "kernel: expected 'convolution IN>OUT KHxKW/STRIDE HxW' (of the output; 'groups G' "
            "may follow), 'matmul IN>OUT', 'batch_norm CHANNELS HxW', 'relu VALUES' (or relu6, leaky_relu, "
            "hardswish, hardsigmoid, silu, gelu, sigmoid, tanh), 'add VALUES', "
            "'max_pool CHANNELS HxW>HxW' or 'update PARAMETERS', found '{}'",
            m.kernel));
  const LayerCosts costs = layer_costs(*model, 0);
  std::vector<Work> works;
  const auto add = [&](const std::optional<KernelCost>& cost, Phase phase) {
    if (!cost || !covers(m.step, phase)) return;
    works.push_back(layer_work(*model, 0, costs.kernel, *cost, phase, m.precision));
    works.back().fusion = Fusion::none;  // timed alone
    if (m.execution == ExecutionMode::graph) works.back().launches = launches_of_a_captured_kernel;
  };
  add(costs.forward, Phase::forward);
  add(costs.data_gradient, Phase::data_gradient);
  add(costs.weight_gradient, Phase::weight_gradient);
  return works;
}

}  // namespace

std::vector<Measurement> read_measurements(const std::string& csv_file) {
  const CsvTable table(
      csv_file,
      {"device", "model", "layer", "kernel", "batch", "precision", "step", "framework", "software",
       "execution", "layout", "images_per_s", "time_ms", "role", "source", "note", "operations_after",
       "input", "optimizer", "weights_in_turn"},
      {"device", "batch", "step"});
  if (table.rows().empty()) throw InputError({csv_file, 0, 0}, "holds no measurement");
  if (!table.has("images_per_s") && !table.has("time_ms"))
    throw InputError(table.header(), "a column 'images_per_s' or 'time_ms' is missing");
  if (!table.has("model") && !table.has("kernel"))
    throw InputError(table.header(), "a column 'model' or 'kernel' is missing");
  std::vector<Measurement> measurements;
  for (const CsvRow& row : table.rows()) measurements.push_back(read_row(table, row));
  return measurements;
}

std::string Measurement::repository() const {
  const std::size_t colon = source.find(':'), begin = colon == std::string::npos ? 0 : colon + 1;
  return source.substr(begin, source.find_first_of("@:", begin) - begin);
}

std::string network_family(const std::string& model) {
  const std::string file = model.substr(0, model.find('@'));  // "@32/10" has a slash of its own
  const std::string name = file.substr(file.rfind('/') + 1);
  if (name.starts_with("se_")) return "se_" + network_family(name.substr(3));
  if (name.starts_with("wide_")) return "resnet";
  return name.substr(0, name.find_first_of("0123456789_."));
}

TrainingOptions measured_options(const Measurement& m) {
  TrainingOptions options;
  options.framework = m.software;
  options.execution = m.execution;
  options.precision = m.precision;
  options.layout = m.layout;
  options.optimizer = m.optimizer;
  options.on_tokens = !m.model.empty() && computes_on_tokens(measured_model(m));
  return options;
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
    if (covers(m.step, operation.phase) && (m.layer.empty() || names[operation.layer] == m.layer)) {
      works.push_back(operation.work);
      if (!m.layer.empty()) works.back().fusion = Fusion::none;  // timed alone
    }
  return works;
}

void find_in_cache(const Measurement& m, const DeviceType& device, std::vector<Work>& works) {
  if (m.kernel.empty() || m.execution != ExecutionMode::graph) return;
  // Both are judgements, not fits: a cache that is not fully associative loses lines before it is full, and
  // reads of A100's and H100's last-level caches were published at 2.6 to 3.5 times their memory's bandwidth.
  constexpr double usable = 0.8;    // of the cache's bytes
  constexpr double slowness = 0.3;  // of the memory's time for the same bytes
  for (Work& work : works) {
    const double once = work.bytes_per_image * m.batch, weights = work.bytes_fixed;
    const double room = usable * device.l2_bytes;
    if (once + weights <= room) work.bytes_per_image *= slowness;
    if (once + m.weights_in_turn * weights <= room) work.bytes_fixed *= slowness;
  }
}

BesideStep beside_step(const Measurement& m) {
  if (!m.fed_from_arrays || !m.whole_network()) return {m.operations_after, 0};
  constexpr double value_bytes = 4;
  return {m.operations_after,
          m.batch * value_bytes * static_cast<double>(elements(measured_model(m).input))};
}

double beside_step_s(const BesideStep& beside, const Software& software, const DeviceType& device) {
  const double operation_s =
      std::max(software.costs.issue_update_s * device.issue_factor, device.launch_overhead_s);
  return beside.operations_after * operation_s + beside.fed_bytes / software.costs.feed_Bps;
}

}  // namespace convoy::calibration
