// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace convoy::inline page {

/// The report's style sheet: light and dark, screen and paper. The eight colours of series are those of Okabe
/// and Ito, "Color universal design" (2008), with black and yellow changed for contrast with the page.
std::string_view report_style();

}  // namespace convoy::page
