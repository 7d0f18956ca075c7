// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "strategies/pardnn/networks/networks.h"

namespace convoy::inline strategies {
namespace {

using Value = OperationTape::Value;

/// Feature maps of a sample.
struct Maps {
  Value value = 0;
  double channels = 0, side = 0;
};

class WideResidual {
 public:
  explicit WideResidual(const ResidualNetwork& shape) : shape_(shape) {}

  OperationNetwork build(Optimizer optimizer, bool clip) {
    const double side = shape_.image;
    Maps maps{tape_.samples("images", 3 * side * side), 3, side};
    maps = relu("stem", normalized("stem", convolved("stem", maps, 64, 7, 2)));
    maps.side /= 2;
    maps.value = tape_.max_pool("stem.pool", maps.value, maps.channels * maps.side * maps.side);
    for (std::size_t stage = 0; stage < shape_.blocks.size(); ++stage)
      for (int block = 0; block < shape_.blocks[stage]; ++block)
        maps = bottleneck(fmt::format("stage{}.{}", stage + 1, block), maps, 64.0 * (1 << stage),
                          stage > 0 && block == 0 ? 2 : 1);
    const Value mean = tape_.average_pool("pool", maps.value, maps.channels);
    const Value product =
        tape_.product("logits.matmul", mean, tape_.variable("logits.kernel", maps.channels * shape_.classes),
                      {1, maps.channels, shape_.classes});
    tape_.loss("loss", tape_.add_bias("logits", product, tape_.variable("logits.bias", shape_.classes)));
    return std::move(tape_).differentiate(optimizer, clip);
  }

 private:
  Maps convolved(const std::string& name, const Maps& maps, double channels, int kernel, int stride) {
    const double side = maps.side / stride;
    const Value weights = tape_.variable(name + ".kernel", maps.channels * channels * kernel * kernel);
    return {tape_.convolution(name + ".convolution", maps.value, weights,
                              {side, side, maps.channels, channels, kernel, kernel, stride}),
            channels, side};
  }

  /// Over the batch; a scale and a shift a channel.
  Maps normalized(const std::string& name, const Maps& maps) {
    const Value scale = tape_.variable(name + ".scale", 2 * maps.channels);
    return {tape_.normalize(name + ".norm", maps.value, scale), maps.channels, maps.side};
  }

  Maps relu(const std::string& name, const Maps& maps) {
    return {tape_.function(name + ".relu", maps.value), maps.channels, maps.side};
  }

  /// 1x1, 3x3 and 1x1 convolutions beside what is added to their result; the first two have `widen` times the
  /// channels, the 3x3 one has the stride.
  Maps bottleneck(const std::string& name, const Maps& in, double width, int stride) {
    constexpr double expansion = 4;
    const double inner = width * shape_.widen, out = width * expansion;
    Maps maps =
        relu(name + ".reduce", normalized(name + ".reduce", convolved(name + ".reduce", in, inner, 1, 1)));
    maps = relu(name + ".spatial",
                normalized(name + ".spatial", convolved(name + ".spatial", maps, inner, 3, stride)));
    maps = normalized(name + ".expand", convolved(name + ".expand", maps, out, 1, 1));
    const bool same = in.channels == out && stride == 1;
    const Maps beside =
        same ? in : normalized(name + ".beside", convolved(name + ".beside", in, out, 1, stride));
    maps.value = tape_.add(name + ".sum", {maps.value, beside.value});
    return relu(name, maps);
  }

  ResidualNetwork shape_;
  OperationTape tape_;
};

}  // namespace

OperationNetwork residual_network(const ResidualNetwork& shape, Optimizer optimizer, bool clip) {
  return WideResidual(shape).build(optimizer, clip);
}

}  // namespace convoy::strategies
