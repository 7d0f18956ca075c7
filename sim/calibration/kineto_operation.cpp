// SPDX-License-Identifier: MIT
#include "sim/calibration/kineto_operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace convoy::inline calibration {
namespace {

using Dims = std::vector<std::int64_t>;

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// True for as many sizes above zero, of a tensor that fits into a device's memory.
bool positive(const Dims& shape, std::size_t dimensions) {
  if (shape.size() != dimensions) return false;
  double elements = 1;
  for (const std::int64_t size : shape) {
    if (size <= 0) return false;
    elements *= static_cast<double>(size);
  }
  return elements <= 1e12;
}

std::optional<Precision> precision_of(const KinetoOperation& op) {
  if (op.type == "float") return op.tf32 ? Precision::tf32 : Precision::fp32;
  if (op.type == "c10::Half" || op.type == "Half") return Precision::fp16;
  if (op.type == "c10::BFloat16" || op.type == "BFloat16") return Precision::bf16;
  return std::nullopt;
}

// The first whole number of "[2, 2]", "(2,2)" or "2".
std::optional<std::int64_t> first_number(const KinetoOperation& op, std::size_t input) {
  if (input >= op.values.size()) return std::nullopt;
  const std::string& text = op.values[input];
  const std::size_t digit = text.find_first_of("0123456789");
  if (digit == std::string::npos) return std::nullopt;
  std::int64_t value = 0;
  std::from_chars(text.data() + digit, text.data() + text.size(), value);
  return value;
}

std::optional<Measurement> convolution(const Dims& input, const Dims& weight, const Dims& output,
                                       std::optional<std::int64_t> stride) {
  if (!positive(input, 4) || !positive(weight, 4)) return std::nullopt;
  const std::int64_t groups = input[1] / weight[1];
  if (groups < 1 || input[1] % weight[1] != 0 || weight[0] % groups != 0) return std::nullopt;
  std::int64_t height = 0, width = 0;
  if (positive(output, 4)) {
    height = output[2];
    width = output[3];
    // Padding adds less than a kernel: the quotient, rounded, is the stride.
    if (!stride) stride = std::max<std::int64_t>(1, (input[2] + height / 2) / height);
  } else if (stride && *stride > 0) {
    height = (input[2] + *stride - 1) / *stride;  // padded so that only the stride makes it smaller
    width = (input[3] + *stride - 1) / *stride;
  }
  if (!stride || *stride < 1 || height < 1 || width < 1) return std::nullopt;
  Measurement m;
  m.batch = static_cast<double>(input[0]);
  m.kernel = fmt::format("convolution {}>{} {}x{}/{} {}x{}", input[1], weight[0], weight[2], weight[3],
                         *stride, height, width);
  if (groups > 1) m.kernel += fmt::format(" groups {}", groups);
  return m;
}

// convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed,
// output_padding, groups, output_mask)
std::optional<Measurement> convolution_backward(const KinetoOperation& op) {
  if (op.shapes.size() < 3) return std::nullopt;
  if (op.values.size() > 7 && op.values[7] == "True") return std::nullopt;  // transposed
  std::optional<Measurement> m = convolution(op.shapes[1], op.shapes[2], op.shapes[0], first_number(op, 4));
  if (!m) return std::nullopt;
  m->step = MeasuredStep::backward;
  if (op.values.size() > 10) {  // "[False, True, False]": input, weight, bias
    const std::string& mask = op.values[10];
    const std::size_t comma = mask.find(',');
    if (mask.substr(0, comma).find("False") != std::string::npos) m->step = MeasuredStep::weight_gradient;
    if (comma != std::string::npos &&
        mask.substr(comma + 1, mask.find(',', comma + 1) - comma - 1).find("False") != std::string::npos)
      m->step = MeasuredStep::data_gradient;
  } else if (constexpr std::int64_t colors = 4; op.shapes[1][1] <= colors) {
    m->step = MeasuredStep::weight_gradient;  // of an image, whose gradient nobody asks for
  }
  return m;
}

Measurement product(std::int64_t rows, std::int64_t inner, std::int64_t columns) {
  Measurement m;
  m.batch = static_cast<double>(rows);
  m.kernel = fmt::format("matmul {}>{}", inner, columns);
  m.step = MeasuredStep::forward;
  return m;
}

/// `name` of ATen's: aten::silu(self), in place (aten::silu_) or backward (aten::silu_backward(grad_output, self)).
std::optional<Measurement> activation(std::string_view name, const Dims& shape) {
  struct Named {
    std::string_view aten, kernel;
  };
  static constexpr std::array<Named, 12> all{{{"relu", "relu"},
                                              {"clamp_min", "relu"},
                                              {"threshold", "relu"},
                                              {"relu6", "relu6"},
                                              {"hardtanh", "relu6"},
                                              {"leaky_relu", "leaky_relu"},
                                              {"hardswish", "hardswish"},
                                              {"hardsigmoid", "hardsigmoid"},
                                              {"silu", "silu"},
                                              {"gelu", "gelu"},
                                              {"sigmoid", "sigmoid"},
                                              {"tanh", "tanh"}}};
  constexpr std::string_view library = "aten::", backward = "_backward";
  if (!name.starts_with(library)) return std::nullopt;
  name.remove_prefix(library.size());
  const bool is_backward = name.ends_with(backward);
  if (is_backward) name.remove_suffix(backward.size());
  if (!is_backward && name.ends_with('_')) name.remove_suffix(1);
  const auto found = std::ranges::find(all, name, &Named::aten);
  if (found == all.end()) return std::nullopt;
  Measurement m;
  m.batch = static_cast<double>(shape[0]);
  m.kernel = fmt::format("{} {}", found->kernel, shape[1] * shape[2] * shape[3]);
  m.step = is_backward ? MeasuredStep::backward : MeasuredStep::forward;
  return m;
}

std::optional<Measurement> shapes_of(const KinetoOperation& op) {
  const std::size_t inputs = op.shapes.size();
  const auto at = [&](std::size_t i) -> const Dims& {
    static const Dims none;
    return i < inputs ? op.shapes[i] : none;
  };
  // cudnn_convolution(self, weight, padding, stride, dilation, groups, ...); miopen_convolution(self, weight,
  // bias, padding, stride, ...); cudnn_convolution_relu(self, weight, bias, stride, ...);
  // _conv_depthwise2d(self, weight, kernel_size, bias, stride, ...)
  if (is_one_of(op.name, {"aten::cudnn_convolution", "aten::miopen_convolution",
                          "aten::cudnn_convolution_relu", "aten::_conv_depthwise2d"})) {
    const bool later = is_one_of(op.name, {"aten::miopen_convolution", "aten::_conv_depthwise2d"});
    const std::size_t stride = later ? 4 : 3;
    auto m = convolution(at(0), at(1), op.output, first_number(op, stride));
    if (m) m->step = MeasuredStep::forward;
    return m;
  }
  // convolution(input, weight, bias, stride, padding, dilation, transposed, ...): whatever computes it on a CPU
  if (op.name == "aten::convolution") {
    if (op.values.size() > 6 && op.values[6] == "True") return std::nullopt;
    auto m = convolution(at(0), at(1), op.output, first_number(op, 3));
    if (m) m->step = MeasuredStep::forward;
    return m;
  }
  // max_pool2d_with_indices(self, kernel_size, stride, ...), ..._backward(grad_output, self, ...)
  const bool pooled_back = op.name == "aten::max_pool2d_with_indices_backward";
  if (pooled_back || op.name == "aten::max_pool2d_with_indices") {
    const Dims &input = at(pooled_back ? 1 : 0), &output = pooled_back ? at(0) : op.output;
    if (!positive(input, 4) || !positive(output, 4)) return std::nullopt;
    Measurement m;
    m.batch = static_cast<double>(input[0]);
    m.kernel = fmt::format("max_pool {} {}x{}>{}x{}", input[1], input[2], input[3], output[2], output[3]);
    m.step = pooled_back ? MeasuredStep::backward : MeasuredStep::forward;
    return m;
  }
  if (op.name == "aten::convolution_backward") return convolution_backward(op);
  if (op.name == "aten::addmm" && positive(at(1), 2) && positive(at(2), 2))  // addmm(bias, input, weights)
    return product(at(1)[0], at(1)[1], at(2)[1]);
  if (op.name == "aten::mm" && positive(at(0), 2) && positive(at(1), 2))
    return product(at(0)[0], at(0)[1], at(1)[1]);
  const bool forward_norm =
      is_one_of(op.name, {"aten::cudnn_batch_norm", "aten::native_batch_norm", "aten::miopen_batch_norm"});
  const bool backward_norm =
      is_one_of(op.name, {"aten::cudnn_batch_norm_backward", "aten::native_batch_norm_backward",
                          "aten::miopen_batch_norm_backward"});
  if ((forward_norm || backward_norm) && positive(at(0), 4)) {
    Measurement m;
    m.batch = static_cast<double>(at(0)[0]);
    m.kernel = fmt::format("batch_norm {} {}x{}", at(0)[1], at(0)[2], at(0)[3]);
    m.step = forward_norm ? MeasuredStep::forward : MeasuredStep::backward;
    return m;
  }
  if (positive(at(0), 4)) return activation(op.name, at(0));
  return std::nullopt;
}

}  // namespace

std::optional<Measurement> measurement_of(const KinetoOperation& operation) {
  const std::optional<Precision> precision = precision_of(operation);
  if (!precision) return std::nullopt;
  std::optional<Measurement> m = shapes_of(operation);
  if (m) m->precision = *precision;
  return m;
}

std::optional<Measurement> sum_of(const KinetoOperation& op) {
  const std::optional<Precision> precision = precision_of(op);
  const bool is_sum = is_one_of(op.name, {"aten::add", "aten::add_"}) && op.shapes.size() >= 2 &&
                      positive(op.shapes[0], 4) && op.shapes[0] == op.shapes[1];
  if (!precision || !is_sum) return std::nullopt;
  const Dims& shape = op.shapes[0];
  Measurement m;
  m.batch = static_cast<double>(shape[0]);
  m.kernel = fmt::format("add {}", shape[1] * shape[2] * shape[3]);
  m.step = MeasuredStep::forward;
  m.precision = *precision;
  return m;
}

void OptimizerStep::add(const KinetoOperation& op) {
  if (op.shapes.empty()) return;
  double values = 1;
  for (const std::int64_t size : op.shapes[0]) values *= static_cast<double>(size);
  if (op.name == "aten::add_" && op.shapes.size() > 1 && op.shapes[0] == op.shapes[1]) added_ += values;
  if (op.name == "aten::mul_") scaled_ += values;
  if (op.name == "aten::addcdiv_") divided_ += values;
}

std::optional<Measurement> OptimizerStep::measurement() const {
  const double parameters = divided_ > 0 ? divided_ : scaled_ > 0 ? scaled_ : added_;
  constexpr double most = 1e12;
  if (!(parameters >= 1 && parameters <= most)) return std::nullopt;
  Measurement m;
  m.batch = 1;
  m.kernel = fmt::format("update {:.0f}", parameters);
  m.step = MeasuredStep::train;
  m.optimizer = divided_ > 0 ? Optimizer::adam : scaled_ > 0 ? Optimizer::momentum : Optimizer::sgd;
  return m;
}

bool runs_on_tf32(std::string_view gpu_kernel) {
  // "sm80_xmma_fprop_implicit_gemm_tf32f32_..."; CUTLASS and cuBLAS name the tensor cores' shape: s1688 is
  // tf32, s16816 and h16816 are fp16.
  return gpu_kernel.find("tf32") != std::string_view::npos ||
         gpu_kernel.find("_s1688") != std::string_view::npos;
}

}  // namespace convoy::calibration
