// SPDX-License-Identifier: MIT
#include "sim/calibration/kineto_events.h"

#include <fmt/format.h>

#include <istream>
#include <nlohmann/json.hpp>

#include "sim/base/unpacked_input.h"

namespace convoy::inline calibration {
namespace {

using Json = nlohmann::json;

SourcePos position(const std::string& file, std::size_t byte) {
  UnpackedInput input(file);
  SourcePos pos{file, 1, 1};
  for (std::size_t i = 1; i < byte; ++i) {
    const int c = input.sbumpc();
    if (c == std::char_traits<char>::eof()) break;
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

class EventReader {
 public:
  explicit EventReader(const std::string& file) : file_(file) {}

  void event(const Json& e) {
    ++number_;
    const auto category = e.find("cat");
    const auto name = e.find("name");
    if (name == e.end() || !name->is_string()) return;
    if (category == e.end() && is_operation(name->get_ref<const std::string&>())) without_category_ = true;
    if (category == e.end() || !category->is_string()) return;
    const std::string& cat = category->get_ref<const std::string&>();
    const auto args = e.find("args");
    static const Json nothing = Json::object();
    const Json& details = args != e.end() && args->is_object() ? *args : nothing;
    if (cat != "gpu_user_annotation") mark(e, *name);  // where the same marks stand again
    if (cat == "cpu_op" || cat == "Operator" ||
        (cat == "user_annotation" && is_optimizer_step(name->get_ref<const std::string&>()))) {
      operation(e, *name, details);
    } else if (cat == "kernel" || cat == "Kernel") {
      kernel(e, *name, details);
    } else if (cat == "cuda_runtime" || cat == "Runtime" || cat == "hip_runtime" || cat == "cuda_driver") {
      const auto correlation = whole(details, {"correlation"});
      const auto id = whole(details, {"External id", "external id"});
      if (correlation && id) launched_by_[*correlation] = *id;
    }
  }

  KinetoEvents finish() {
    if (events_.kernels.empty() && without_category_ && events_.operations.empty())
      throw InputError(
          {file_, 0, 0},
          "has operations without category and shapes, as a PyTorch without Kineto exports them: write "
          "it with convoy.save_trace(profiler, file) in Python");
    if (events_.operations.empty()) throw InputError({file_, 0, 0}, "holds no operation (category cpu_op)");
    if (!events_.kernels.empty() && events_.by_id.empty())
      throw InputError({file_, 0, 0}, "holds no operation with its External id (category cpu_op)");
    if (!shapes_) throw InputError({file_, 0, 0}, "has no \"Input Dims\": profile with record_shapes=True");
    for (const auto& [number, correlation] : correlations_)
      if (const auto launch = launched_by_.find(correlation); launch != launched_by_.end())
        events_.kernels[number].operation = launch->second;
    find_strides();
    return std::move(events_);
  }

 private:
  /// Counts marks of steps, and keeps the loader's times.
  void mark(const Json& e, const std::string& name) {
    if (is_optimizer_step(name)) ++events_.optimizer_steps;
    if (name.starts_with("ProfilerStep#")) ++events_.profiler_steps;
    if (!name.starts_with("enumerate(DataLoader)#")) return;
    const double start_us = number(e, name, "ts");
    events_.loader.emplace_back(start_us, start_us + number(e, name, "dur"));
  }

  [[noreturn]] void fail(std::string_view name, const std::string& what) const {
    throw InputError({file_, 0, 0}, fmt::format("event {} ({}): {}", number_, name, what));
  }

  /// A number of an event that is not below zero.
  double number(const Json& e, const std::string& name, const char* key) const {
    const auto found = e.find(key);
    if (found == e.end() || !found->is_number()) fail(name, fmt::format("\"{}\" is no number", key));
    const double value = found->get<double>();
    if (!(value >= 0)) fail(name, fmt::format("\"{}\" is below zero", key));
    return value;
  }

  void operation(const Json& e, const std::string& name, const Json& args) {
    TimedOperation timed;
    timed.start_us = number(e, name, "ts");
    timed.duration_us = number(e, name, "dur");
    timed.thread = {e.contains("pid") ? e["pid"].dump() : std::string(),
                    e.contains("tid") ? e["tid"].dump() : std::string()};
    KinetoOperation& op = timed.what;
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
    if (const auto id = whole(args, {"External id", "external id"}))
      events_.by_id[*id] = events_.operations.size();
    events_.operations.push_back(std::move(timed));
  }

  void kernel(const Json& e, const std::string& name, const Json& args) {
    GpuKernel k;
    k.name = name;
    k.start_us = number(e, name, "ts");
    k.duration_us = number(e, name, "dur");
    k.operation = whole(args, {"External id", "external id"});
    if (const auto correlation = whole(args, {"correlation"}); correlation && !k.operation)
      correlations_.emplace_back(events_.kernels.size(), *correlation);
    k.stream = {whole(e, {"pid"}).value_or(0), e.contains("tid") ? e["tid"].dump() : std::string()};
    events_.kernels.push_back(std::move(k));
  }

  // The output of a convolution or pooling whose values were not recorded, from the gradient of the same shapes.
  void find_strides() {
    using Sizes = std::vector<std::int64_t>;
    std::map<std::pair<Sizes, Sizes>, Sizes> outputs;  // by input and weight, none of pooling
    const auto input_at = [](const KinetoOperation& op, std::size_t first) {
      return std::pair(op.shapes[first],
                       op.name.starts_with("aten::max_pool") ? Sizes() : op.shapes[first + 1]);
    };
    for (const TimedOperation& op : events_.operations)
      if ((op.what.name == "aten::convolution_backward" ||
           op.what.name == "aten::max_pool2d_with_indices_backward") &&
          op.what.shapes.size() >= 3)
        outputs[input_at(op.what, 1)] = op.what.shapes[0];
    for (TimedOperation& op : events_.operations) {
      if (op.what.shapes.size() < 2) continue;
      const auto found = outputs.find(input_at(op.what, 0));
      if (found != outputs.end()) op.what.output = found->second;
    }
  }

  std::string file_;
  std::size_t number_ = 0;
  bool shapes_ = false;
  bool without_category_ = false;
  KinetoEvents events_;
  std::map<std::int64_t, std::int64_t> launched_by_;  // External id of an operation, by correlation
  std::vector<std::pair<std::size_t, std::int64_t>>
      correlations_;  // of kernels without the id of an operation
};

}  // namespace

bool is_optimizer_step(std::string_view name) { return name.starts_with("Optimizer.step#"); }

bool is_operation(std::string_view name) { return name.starts_with("aten::") || is_optimizer_step(name); }

KinetoEvents read_kineto_events(const std::string& file) {
  UnpackedInput input(file);
  std::istream stream(&input);
  EventReader reader(file);
  // Events are handed over and dropped one by one: traces of a few steps have hundreds of megabytes.
  const auto each = [&](int depth, Json::parse_event_t event, Json& parsed) {
    constexpr int deepest = 100;  // the parser keeps what is open: a file of brackets would fill the memory
    if (depth >= deepest)
      throw InputError(position(file, input.consumed()),
                       fmt::format("lists and objects are nested more than {} deep", deepest));
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
    const bool ended = input.sgetc() == std::char_traits<char>::eof();
    if (input.packed()) input.drain();  // damaged data rarely are JSON: the damage is told
    throw InputError(position(file, error.byte),
                     ended ? "the file ends too early: it is no whole JSON document" : "not JSON");
  } catch (const Json::out_of_range&) {  // of the parser alone: 1e400
    throw InputError(position(file, input.consumed()), "a number is too large");
  }
  return reader.finish();
}

}  // namespace convoy::calibration
