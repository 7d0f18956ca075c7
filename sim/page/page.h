// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

namespace convoy::inline page {

/// A page from `<!DOCTYPE html>` to `</html>` that loads nothing: its style sheet and one script are inside, and its content security
/// policy allows no others. Without the script it reads the same; with it, tables can be sorted and filtered (interactive.js).
/// @param title of the window; escaped here
/// @param body  HTML
std::string html_page(std::string_view title, std::string_view body);

/// What stands before the body of such a page, and behind it, where the body is written piece by piece.
std::string html_page_begin(std::string_view title);
std::string html_page_end();

}  // namespace convoy::page
