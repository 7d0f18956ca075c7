// SPDX-License-Identifier: MIT
#include "strategies/batch_spec.h"

#include <fmt/format.h>

#include <numeric>

namespace convoy::inline strategies {

std::int64_t BatchSpec::divided(std::int64_t devices, std::int64_t parts, const std::string& into,
                                const std::string& or_else) const {
  const std::int64_t images = over(devices);
  if (images % parts == 0) return images / parts;
  const std::int64_t given = global ? *global : *per_device;
  const std::int64_t step = global ? parts : parts / std::gcd(parts, devices);  // batches that divide
  const std::int64_t below = given / step * step;
  const std::string key = global ? "global_batch" : "batch_per_device";
  const std::string all =
      global || devices == 1 ? "" : fmt::format(" on each of {} devices, {} images in all,", devices, images);
  throw InputError(
      pos, fmt::format("training.{}: {}{} cannot be divided into {}; {}{} can{}", key, given, all, into,
                       below > 0 ? fmt::format("{} or ", below) : "", below + step, or_else));
}

}  // namespace convoy::strategies
