// SPDX-License-Identifier: MIT
#include "sim/search/more_text.h"

#include <fmt/format.h>

namespace convoy::inline search {

std::string more_text(double value, double than) {
  const double share = than > 0 ? value / than - 1 : 0;
  return share >= 1 ? fmt::format("{:.1f} times", share + 1)
                    : fmt::format("{:.{}f} %", 100 * share, share < 0.0995 ? 1 : 0);
}

}  // namespace convoy::search
