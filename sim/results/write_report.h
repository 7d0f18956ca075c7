// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>

#include "sim/results/result.h"

namespace convoy {

/// Writes report.html: the results drawn, as one page that needs no network and no script, from these values
/// only; the same values give the same bytes. Of large results a part is drawn, and the page says so.
void write_report(const Results& results, std::ostream& out);

}  // namespace convoy
