// SPDX-License-Identifier: MIT
#include "sim/costs/issue_queue.h"

#include <algorithm>

namespace convoy::inline costs {

void IssuedStretch::add(double issue_s, double device_s) {
  issued_s_ += issue_s;
  if (device_s <= 0) return;
  if (issued_s_ > 0) issued_.push_back({issued_s_, device_s_});
  device_s_ += device_s;
}

double IssuedStretch::end_s(double start_s, double slowness) const {
  double end_s = start_s + device_s_ * slowness;
  for (const Operation& operation : issued_)
    end_s = std::max(end_s, operation.issued_s + (device_s_ - operation.before_s) * slowness);
  return end_s;
}

}  // namespace convoy::costs
