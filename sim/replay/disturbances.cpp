// SPDX-License-Identifier: MIT
#include "sim/replay/disturbances.h"

#include <algorithm>

namespace convoy::inline replays {

double end_of_computation_s(double start_s, double duration_s, const std::vector<Disturbances::Stop>& stops) {
  double now_s = start_s, left_s = duration_s;
  for (const Disturbances::Stop& stop : stops) {
    if (stop.until_s <= now_s) continue;
    if (stop.at_s > now_s + left_s || (stop.at_s == now_s + left_s && left_s > 0)) break;
    if (stop.at_s > now_s) left_s -= stop.at_s - now_s;
    now_s = stop.until_s;
  }
  return now_s + left_s;
}

double stopped_before_s(double now_s, const std::vector<Disturbances::Stop>& stops) {
  double stopped_s = 0, until_s = 0;  // stops may overlap
  for (const Disturbances::Stop& stop : stops) {
    const double from_s = std::max(stop.at_s, until_s);
    until_s = std::max(until_s, std::min(stop.until_s, now_s));
    stopped_s += std::max(0.0, until_s - from_s);
  }
  return stopped_s;
}

}  // namespace convoy::replays
