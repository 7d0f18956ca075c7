// SPDX-License-Identifier: MIT
#include "sim/calibration/kineto_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "sim/base/input_file.h"
#include "sim/base/median.h"
#include "sim/calibration/kineto_operation.h"

namespace convoy::inline calibration {
namespace {

using Json = nlohmann::json;

struct GpuKernel {
  std::string name;
  double start_us = 0, duration_us = 0;
  std::optional<std::int64_t> operation, correlation;
  std::pair<std::int64_t, std::string> stream;  // process (the GPU) and thread (the stream)
};

SourcePos position(const std::string& file, std::size_t byte) {
  std::ifstream stream = open_input(file);
  SourcePos pos{file, 1, 1};
  char c = 0;
  for (std::size_t i = 1; i < byte && stream.get(c); ++i) {
    if (c == '\n') {
      ++pos.line;
      pos.column = 1;
    } else {
      ++pos.column;
    }
  }
  return pos;
}

// A whole number; traces have them as numbers and as text.
std::optional<std::int64_t> whole(const Json& object, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto found = object.find(key);
    if (found == object.end()) continue;
    if (found->is_number_integer()) return found->get<std::int64_t>();
  }
  return std::nullopt;
}

class KinetoReader {
 public:
  explicit KinetoReader(const std::string& file) : file_(file) {}

  void event(const Json& e) {
    ++number_;
    const auto category = e.find("cat");
    const auto name = e.find("name");
    if (category == e.end() || !category->is_string() || name == e.end() || !name->is_string()) return;
    const std::string& cat = category->get_ref<const std::string&>();
    const auto args = e.find("args");
    static const Json nothing = Json::object();
    const Json& details = args != e.end() && args->is_object() ? *args : nothing;
    if (cat == "cpu_op" || cat == "Operator") {
      if (const auto id = whole(details, {"External id", "external id"})) operation(*id, *name, details);
    } else if (cat == "kernel" || cat == "Kernel") {
      kernel(e, *name, details);
    } else if (cat == "cuda_runtime" || cat == "Runtime" || cat == "hip_runtime" || cat == "cuda_driver") {
      const auto correlation = whole(details, {"correlation"});
      const auto id = whole(details, {"External id", "external id"});
      if (correlation && id) launched_by_[*correlation] = *id;
    }
  }

  KinetoTrace finish(const std::string& device) {
    if (kernels_.empty())
      throw InputError({file_, 0, 0},
                       "holds no GPU kernel: profile with ProfilerActivity.CUDA, and export_chrome_trace");
    if (operations_.empty())
      throw InputError({file_, 0, 0}, "holds no operation with its External id (category cpu_op)");
    if (!shapes_) throw InputError({file_, 0, 0}, "has no \"Input Dims\": profile with record_shapes=True");
    find_strides();
    KinetoTrace trace;
    trace.launch_s = median_pause_s();
    std::map<std::int64_t, double> microseconds;
    for (GpuKernel& k : kernels_) {
      trace.kernel_s += k.duration_us * 1e-6;
      if (!k.operation && k.correlation) {
        const auto launch = launched_by_.find(*k.correlation);
        if (launch != launched_by_.end()) k.operation = launch->second;
      }
      if (!k.operation) continue;
      microseconds[*k.operation] += k.duration_us;
      const auto found = operations_.find(*k.operation);
      if (found != operations_.end() && runs_on_tf32(k.name)) found->second.tf32 = true;
    }
    using Key = std::tuple<std::string, double, Precision, MeasuredStep>;
    std::map<Key, std::vector<double>> times;
    std::map<std::string, double> others;
    for (const auto& [id, us] : microseconds) {
      const auto found = operations_.find(id);
      if (found == operations_.end()) continue;
      if (const auto m = measurement_of(found->second)) {
        times[{m->kernel, m->batch, m->precision, m->step}].push_back(us);
        trace.matched_s += us * 1e-6;
      } else {
        others[found->second.name] += us * 1e-6;
      }
    }
    if (times.empty())
      throw InputError({file_, 0, 0},
                       "no GPU kernel belongs to a convolution, linear layer, batch normalization "
                       "or ReLU whose shapes are known");
    for (auto& [key, list] : times) {
      Measurement m;
      m.device = device;
      std::tie(m.kernel, m.batch, m.precision, m.step) = key;
      m.images_per_s = m.batch / (median(list) * 1e-6);
      m.without_launch = true;
      m.source = file_;
      m.note = fmt::format("median of {}", list.size());
      m.pos = {file_, 0, 0};
      trace.measurements.push_back(std::move(m));
    }
    trace.others.assign(others.begin(), others.end());
    std::stable_sort(trace.others.begin(), trace.others.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    return trace;
  }

 private:
  [[noreturn]] void fail(std::string_view name, const std::string& what) const {
    throw InputError({file_, 0, 0}, fmt::format("event {} ({}): {}", number_, name, what));
  }

  void operation(std::int64_t id, const std::string& name, const Json& args) {
    KinetoOperation op;
    op.name = name;
    if (const auto dims = args.find("Input Dims"); dims != args.end()) {
      if (!dims->is_array()) fail(name, "\"Input Dims\" is no list");
      shapes_ = true;
      for (const Json& shape : *dims) {
        op.shapes.emplace_back();
        if (!shape.is_array()) continue;
        for (const Json& size : shape) {
          // A list of tensors has a list of shapes here; none of the operations below has one.
          if (size.is_array()) continue;
          if (!size.is_number_integer()) fail(name, "\"Input Dims\" holds what is no whole number");
          op.shapes.back().push_back(size.get<std::int64_t>());
        }
      }
    }
    if (const auto types = args.find("Input type"); types != args.end() && types->is_array())
      for (const Json& type : *types)
        if (op.type.empty() && type.is_string()) op.type = type.get<std::string>();
    if (const auto values = args.find("Concrete Inputs"); values != args.end() && values->is_array())
      for (const Json& value : *values)
        op.values.push_back(value.is_string() ? value.get<std::string>() : std::string());
    operations_[id] = std::move(op);
  }

  void kernel(const Json& e, const std::string& name, const Json& args) {
    GpuKernel k;
    k.name = name;
    const auto number = [&](const char* key) {
      const auto found = e.find(key);
      if (found == e.end() || !found->is_number()) fail(name, fmt::format("\"{}\" is no number", key));
      const double value = found->get<double>();
      if (!(value >= 0)) fail(name, fmt::format("\"{}\" is below zero", key));
      return value;
    };
    k.start_us = number("ts");
    k.duration_us = number("dur");
    k.operation = whole(args, {"External id", "external id"});
    k.correlation = whole(args, {"correlation"});
    k.stream = {whole(e, {"pid"}).value_or(0), e.contains("tid") ? e["tid"].dump() : std::string()};
    kernels_.push_back(std::move(k));
  }

  // The stride of a convolution whose values were not recorded, from the gradient of the same shapes.
  void find_strides() {
    std::map<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>, std::vector<std::int64_t>>
        outputs;
    for (const auto& [id, op] : operations_)
      if (op.name == "aten::convolution_backward" && op.shapes.size() >= 3)
        outputs[{op.shapes[1], op.shapes[2]}] = op.shapes[0];
    for (auto& [id, op] : operations_) {
      if (op.shapes.size() < 2) continue;
      const auto found = outputs.find({op.shapes[0], op.shapes[1]});
      if (found != outputs.end()) op.output = found->second;
    }
  }

  double median_pause_s() {
    std::map<std::pair<std::int64_t, std::string>, std::vector<const GpuKernel*>> streams;
    for (const GpuKernel& k : kernels_) streams[k.stream].push_back(&k);
    std::vector<double> pauses;
    for (auto& [stream, list] : streams) {
      std::stable_sort(list.begin(), list.end(),
                       [](const GpuKernel* a, const GpuKernel* b) { return a->start_us < b->start_us; });
      for (std::size_t i = 1; i < list.size(); ++i)
        pauses.push_back(std::max(0.0, list[i]->start_us - list[i - 1]->start_us - list[i - 1]->duration_us));
    }
    return median(std::move(pauses)) * 1e-6;
  }

  std::string file_;
  std::size_t number_ = 0;
  bool shapes_ = false;
  std::map<std::int64_t, KinetoOperation> operations_;  // by External id
  std::map<std::int64_t, std::int64_t> launched_by_;    // External id of an operation, by correlation
  std::vector<GpuKernel> kernels_;
};

}  // namespace

KinetoTrace read_kineto_trace(const std::string& file, const std::string& device) {
  std::ifstream stream = open_input(file);
  if (!stream) throw InputError({file, 0, 0}, "cannot be read");
  if (stream.peek() == 0x1f) throw InputError({file, 0, 0}, "is compressed: unpack it with gunzip first");
  KinetoReader reader(file);
  // Events are handed over and dropped one by one: traces of a few steps have hundreds of megabytes.
  const auto each = [&](int depth, Json::parse_event_t event, Json& parsed) {
    const bool is_event =
        event == Json::parse_event_t::object_end && depth >= 1 && depth <= 2 && parsed.contains("ph");
    if (!is_event) return true;
    reader.event(parsed);
    return false;
  };
  try {
    const Json rest = Json::parse(stream, each);
    if (!rest.is_array() && !(rest.is_object() && rest.contains("traceEvents")))
      throw InputError({file, 0, 0}, "is no Chrome trace: it has no list \"traceEvents\"");
  } catch (const Json::parse_error& error) {
    const SourcePos at = position(file, error.byte);
    stream.clear();
    stream.seekg(0, std::ios::end);
    const bool ended = error.byte >= static_cast<std::size_t>(stream.tellg());
    throw InputError(at, ended ? "the file ends too early: it is no whole JSON document" : "not JSON");
  } catch (const Json::out_of_range&) {  // of the parser alone: 1e400
    const std::streamoff at = stream.tellg();
    throw InputError(position(file, static_cast<std::size_t>(std::max<std::streamoff>(at, 0))),
                     "a number is too large");
  }
  return reader.finish(device);
}

}  // namespace convoy::calibration
