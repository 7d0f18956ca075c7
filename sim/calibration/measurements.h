// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/training_graph.h"
#include "sim/base/input_error.h"
#include "sim/costs/cost_model.h"

namespace convoy::inline calibration {

/// What part of a training step a measured time covers.
enum class MeasuredStep : std::uint8_t {
  train,             ///< forward, backward and update
  forward_backward,  ///< no update
  forward,
  backward,  ///< data and weight gradients
  data_gradient,
  weight_gradient,
};
inline constexpr std::array<std::string_view, 6> measured_step_names{
    "train", "forward_backward", "forward", "backward", "data_gradient", "weight_gradient"};
constexpr std::string_view to_string(MeasuredStep step) {
  return measured_step_names[static_cast<std::size_t>(step)];
}

/// What a row is for.
enum class RowRole : std::uint8_t {
  fit,      ///< parameters are fitted to it
  test,     ///< predicted, not fitted: the model is tested on it
  outside,  ///< predicted and shown, in no gate: the model is known not to hold there, for a reason that is said
};
inline constexpr std::array<std::string_view, 3> row_role_names{"fit", "test", "outside"};
constexpr std::string_view to_string(RowRole role) { return row_role_names[static_cast<std::size_t>(role)]; }

/// One measured speed of one device: a row of results/published/*.csv or of a user's profile
/// (docs/cost_model.md).
struct Measurement {
  std::string device;
  std::string model;  ///< zoo name, or a model file beside the CSV file ("models/alexnet_caffe.yaml"), "@224"
                      ///< after it for images of 224 x 224, "@32/10" for 32 x 32 and 10 classes; "" for a
                      ///< kernel
  std::string layer;  ///< a layer of the model; "" for the whole network
  /// "convolution 64>128 3x3/1 56x56", "matmul 4096>1000", "batch_norm 64 56x56", "relu 200704", "add 200704",
  /// "max_pool 64 112x112>56x56" or "update 11689512" (an optimizer's step, of `optimizer`); "" for a model
  std::string kernel;
  double batch = 0;
  Precision precision = Precision::fp32;
  MeasuredStep step = MeasuredStep::train;
  Framework software = Framework::pytorch;
  ExecutionMode execution = ExecutionMode::eager;
  Layout layout = Layout::nchw;
  std::string framework;  ///< name and version as the source has them
  double images_per_s = 0;
  double operations_after = 0;   ///< BesideStep::operations_after
  bool fed_from_arrays = false;  ///< a batch is copied from an array in the host's memory in every step
  Optimizer optimizer = Optimizer::momentum;
  double weights_in_turn = 1;   ///< of a repeated kernel: how many weights it reads one after the other
  bool without_launch = false;  ///< the time is that of the GPU's kernels alone
  RowRole role = RowRole::fit;
  std::string source, note;
  SourcePos pos;  ///< of the row

  double seconds() const { return batch / images_per_s; }
  /// "petuum/adaptdl" of the source "github:petuum/adaptdl@6...:file".
  std::string repository() const;
  bool fitted() const { return role == RowRole::fit; }
  bool whole_network() const { return layer.empty() && kernel.empty(); }
};

/// Reads a profile: comma-separated with a header line; columns device, batch, step, images_per_s or time_ms,
/// and model or kernel are required, the others may be missing (precision: fp32, role: fit). Cells may be
/// quoted ("a, ""b"""). Columns software, execution and layout have the values of `training:`; left out, they
/// are pytorch and what it does; kernels and layers are launched one by one then (eager), whatever the
/// software.
/// @throws InputError with line and column for whatever is wrong.
std::vector<Measurement> read_measurements(const std::string& csv_file);

/// Benchmarks of kernels lay tensors out as the kernels want them: no transposes for tensor cores, and
/// Winograd's algorithm on the others.
constexpr Layout layout_of_kernels(Precision precision) {
  return precision == Precision::fp32 ? Layout::nchw : Layout::nhwc;
}

/// Family of a network: "resnet" of "resnet50" and of "models/resnet50_tf.yaml"; wide ResNets are ResNets.
std::string network_family(const std::string& model);

/// How the network of a row was trained; of a kernel alone, by whom it was run.
TrainingOptions measured_options(const Measurement& measurement);

/// The operations whose times add up to the measured time.
/// @throws InputError at the row for an unknown model, layer or kernel.
std::vector<Work> measured_work(const Measurement& measurement);

/// The bytes of a repeated kernel (ExecutionMode::graph of a kernel) that come out of the device's last-level
/// cache, because no more than fits there is moved before they are read again, count less: those of its input
/// and output if they fit with one weight, those of its weights if all do.
void find_in_cache(const Measurement& measurement, const DeviceType& device, std::vector<Work>& works);

/// What a training program adds to a step while the device has nothing to do.
struct BesideStep {
  /// That the host issues one by one when it has waited for the end of the step: statistics of its own.
  double operations_after = 0;
  double fed_bytes = 0;  ///< of a batch that the host copies from an array in its memory before the step
};
BesideStep beside_step(const Measurement& measurement);
double beside_step_s(const BesideStep& beside, const Software& software, const DeviceType& device);

}  // namespace convoy::calibration
