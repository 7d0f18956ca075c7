// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace convoy::inline results {

/// The report's style sheet: light and dark, screen and paper. The eight series colours are those of Okabe
/// and Ito, "Color universal design" (2008), black and yellow changed for contrast with the page.
std::string_view report_style();

}  // namespace convoy::results
