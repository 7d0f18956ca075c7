// SPDX-License-Identifier: MIT
// How many kernels an optimizer's step is, and what they move, counted by hand from the frameworks' sources.
#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "models/optimizer_update.h"
#include "models/training_graph.h"
#include "tests/models/model_text.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

constexpr std::int64_t chunk_values = 65'536;

UpdateKernels kernels_of(Framework framework, UpdateMode mode, const std::vector<std::int64_t>& tensors,
                         Optimizer optimizer = Optimizer::momentum) {
  return update_kernels(framework, mode, optimizer, tensors);
}

/// Kernels of multi_tensor_apply, chunk by chunk as PyTorch's loop goes: a kernel is launched when its blocks
/// are full, when its tensors are and the last one's last chunk is in, and at the very end.
int launches_chunk_by_chunk(const std::vector<std::int64_t>& tensors, int most_tensors) {
  int launches = 0, blocks = 0, in_kernel = 0;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const std::int64_t chunks = (tensors[t] + chunk_values - 1) / chunk_values;
    ++in_kernel;
    for (std::int64_t c = 0; c < chunks; ++c) {
      ++blocks;
      const bool last_of_tensor = c + 1 == chunks;
      const bool full = (in_kernel == most_tensors && last_of_tensor) || blocks == 320;
      if (!full && !(last_of_tensor && t + 1 == tensors.size())) continue;
      ++launches;
      blocks = 0;
      in_kernel = last_of_tensor ? 0 : 1;
    }
  }
  return launches;
}

}  // namespace

TEST_CASE("updates: kernels and passes of each framework's own way with momentum") {
  const std::vector<std::int64_t> tensors(10, 1000);
  const auto own = [&](Framework f) { return kernels_of(f, update_modes(f).front(), tensors); };
  // m *= c, m += g, p += m: over all ten at once, 2 + 3 + 3 values a parameter.
  CHECK(own(Framework::pytorch).launches == 3);
  CHECK(own(Framework::pytorch).passes == 8);
  // The same for each tensor, and gradients are filled with zeros (1) and added to (3).
  CHECK(own(Framework::pytorch1).launches == 50);
  CHECK(own(Framework::pytorch1).passes == 12);
  // Two expressions a variable, of two inputs and a result each.
  CHECK(own(Framework::tensorflow1).launches == 20);
  CHECK(own(Framework::tensorflow).passes == 6);
  // Four tensors a kernel, and one.
  CHECK(own(Framework::mxnet).launches == 3);
  CHECK(own(Framework::mxnet1).launches == 10);
  CHECK(own(Framework::mxnet1).passes == 5);
  CHECK(own(Framework::paddle).launches == 10);
  // Step, sum, zeros: 4 + 3 + 1.
  CHECK(own(Framework::caffe).launches == 30);
  CHECK(own(Framework::caffe).passes == 8);
  CHECK(own(Framework::caffe2).passes == 6);
  // All parameters are one tensor.
  CHECK(own(Framework::torch7).launches == 4);
  CHECK(own(Framework::torch7).passes == 9);
}

TEST_CASE("updates: no way moves less than one that touches each value once, fused moves just that") {
  const std::vector<std::int64_t> tensors{3, 200'000, 64};
  for (std::size_t f = 0; f < framework_count; ++f)
    for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::momentum, Optimizer::adam}) {
      const auto framework = static_cast<Framework>(f);
      CAPTURE(to_string(framework));
      for (const UpdateMode mode : update_modes(framework)) {
        const UpdateKernels kernels = kernels_of(framework, mode, tensors, optimizer);
        CHECK(kernels.passes >= fused_passes(optimizer));
        CHECK(kernels.launches >= 1);
        CHECK(update_issue_share(framework, mode, optimizer) <= 1);
      }
      CHECK(update_issue_share(framework, update_modes(framework).front(), optimizer) == 1);
    }
  CHECK(kernels_of(Framework::tensorflow1, UpdateMode::per_tensor, tensors, Optimizer::adam).launches == 9);
  CHECK(kernels_of(Framework::tensorflow1, UpdateMode::per_tensor, tensors, Optimizer::adam).passes == 10);
  CHECK(kernels_of(Framework::pytorch, UpdateMode::fused, tensors).passes == 5);
  CHECK(kernels_of(Framework::pytorch, UpdateMode::fused, tensors, Optimizer::adam).passes == 7);
  // One visit to a tensor for the list and two for its gradient, for five kernels.
  CHECK(update_issue_share(Framework::pytorch1, UpdateMode::foreach, Optimizer::momentum) == approx(0.6));
}

TEST_CASE("updates: kernels over many tensors hold as many blocks and tensors as PyTorch's") {
  CHECK(kernels_of(Framework::pytorch, UpdateMode::foreach, std::vector<std::int64_t>(100, 10)).launches ==
        1 + 2 + 2);  // up to 110 tensors of one operand, 64 of two
  CHECK(kernels_of(Framework::pytorch, UpdateMode::fused, std::vector<std::int64_t>(100, 10)).launches == 3);
  CHECK(kernels_of(Framework::pytorch, UpdateMode::fused, {320 * chunk_values}).launches == 1);
  CHECK(kernels_of(Framework::pytorch, UpdateMode::fused, {320 * chunk_values + 1}).launches == 2);
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<std::int64_t> tensors(1 + random() % 300);
    for (std::int64_t& size : tensors)
      size = random() % 4 == 0 ? 1 + random() % (60 * chunk_values) : 1 + random() % 4096;
    CAPTURE(trial);
    CHECK(kernels_of(Framework::pytorch, UpdateMode::fused, tensors).launches ==
          launches_chunk_by_chunk(tensors, 48));
  }
}

TEST_CASE("updates: a graph's updates share the kernels by tensors, and move the passes of all") {
  const Model model = toy("[3, 8, 8]", R"(
  - {name: conv, kind: conv2d, out_channels: 8, kernel: 3, bias: false}
  - {name: bn, kind: batch_norm}
  - {name: flat, kind: flatten}
  - {name: fc, kind: linear, out_features: 10}
)");
  const std::vector<std::int64_t> tensors{216, 8, 8, 2880, 10};
  for (const Framework framework : {Framework::pytorch, Framework::pytorch1, Framework::tensorflow1}) {
    TrainingOptions options;
    options.framework = framework;
    options.optimizer = Optimizer::momentum;
    const TrainingGraph graph = build_training_graph(model, options);
    const UpdateKernels kernels = kernels_of(framework, options.update_mode(), tensors);
    double launches = 0, bytes = 0;
    for (const Operation& op : graph.operations) {
      if (op.phase != Phase::update) {
        // TensorFlow's BiasAdd and BiasAddGrad of the layer with a bias are operations of their own.
        const bool of_bias = op.name == "fc.forward" || op.name == "fc.weight_gradient";
        CHECK(op.work.launches == (framework == Framework::tensorflow1 && of_bias ? 2 : 1));
        CHECK(op.work.traffic == 1);
        continue;
      }
      launches += op.work.launches;
      bytes += op.work.bytes_fixed * op.work.traffic;
      if (op.name == "bn.update") CHECK(op.work.launches == approx(kernels.launches / 2 * 2 / 5));
    }
    CHECK(launches == approx(kernels.launches / 2));  // an overhead stands for two kernels
    CHECK(bytes == approx(kernels.passes * 4 * 3122));
  }
}
