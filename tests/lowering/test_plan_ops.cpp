// SPDX-License-Identifier: MIT
// Parts of kernels, against counts of what they compute, read and write.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "sim/lowering/plan_ops.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

/// A kernel that reads an input, writes an output and reads parameters.
struct Kernel {
  double input_bytes, output_bytes;
  Work work;
};

Kernel random_kernel(std::mt19937& random) {
  const auto number = [&] { return static_cast<double>(1 + random() % 1000); };
  Kernel kernel{number(), number(), {}};
  kernel.work.flops_per_image = number();
  kernel.work.flops_fixed = number();
  kernel.work.bytes_per_image = kernel.input_bytes + kernel.output_bytes;
  kernel.work.bytes_fixed = number();
  kernel.work.seconds_per_image = number();
  kernel.work.out_channels = 12 * static_cast<std::int64_t>(number());
  return kernel;
}

/// Shares of a whole, some of nothing.
std::vector<double> random_shares(std::mt19937& random) {
  std::vector<double> shares(2 + random() % 5);
  for (double& share : shares) share = static_cast<double>(random() % 5);
  shares.front() += 1;
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace

TEST_CASE("parts of a kernel write its outputs once and read of its input what each says [law]") {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const Kernel kernel = random_kernel(random);
    const Work& whole = kernel.work;
    double flops = 0, fixed_flops = 0, fixed_bytes = 0, seconds = 0, bytes = 0, expected_bytes = 0;
    for (const double outputs : random_shares(random)) {
      const double inputs = random() % 3 == 0 ? 1 : random() % 2 ? outputs : 0.5;
      const Work part = part_of(whole, kernel.input_bytes, outputs, inputs);
      if (outputs == 0) CHECK(part.bytes_per_image + part.flops_per_image + part.bytes_fixed == 0);
      flops += part.flops_per_image, fixed_flops += part.flops_fixed;
      fixed_bytes += part.bytes_fixed, seconds += part.seconds_per_image, bytes += part.bytes_per_image;
      expected_bytes += outputs > 0 ? kernel.input_bytes * inputs + kernel.output_bytes * outputs : 0;
      CHECK(part.out_channels == std::llround(static_cast<double>(whole.out_channels) * outputs));
    }
    CHECK(flops == approx(whole.flops_per_image));
    CHECK(fixed_flops == approx(whole.flops_fixed));
    CHECK(fixed_bytes == approx(whole.bytes_fixed));
    CHECK(seconds == approx(whole.seconds_per_image));
    CHECK(bytes == approx(expected_bytes));
  }
}

TEST_CASE("a kernel that moves less than its layer's input reads no more than it moves") {
  Work work;
  work.bytes_per_image = 100;
  CHECK(part_of(work, 400, 0.25, 0.5).bytes_per_image == 50);
  CHECK(part_of(work, 0, 0.25, 0.5).bytes_per_image == 25);
  CHECK(part_of(work, 400, 1, 1) == work);
}
