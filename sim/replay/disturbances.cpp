// SPDX-License-Identifier: MIT
#include "sim/replay/disturbances.h"

namespace convoy {

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

}  // namespace convoy
