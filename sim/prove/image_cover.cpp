// SPDX-License-Identifier: MIT
#include "sim/prove/image_cover.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/prove/happens_before.h"

namespace convoy::inline prove {

double end_of_images(std::vector<std::pair<double, double>>& parts, double begin, double tolerance,
                     const std::string& of) {
  std::sort(parts.begin(), parts.end());
  double end = begin;
  for (const auto& [first, count] : parts) {
    if (first > end + tolerance)
      throw Refuted(
          fmt::format("no device adds the gradient of {} of images {} to {} to the update that is due", of,
                      end, first - 1));
    if (first < end - tolerance)
      throw Refuted(fmt::format("the gradient of {} of image {} is added up twice", of, first));
    end = first + count;
  }
  return end;
}

}  // namespace convoy::prove
