// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace convoy::inline page {

// HTML that is also well-formed XML. All text is escaped here.

struct HtmlColumn {
  std::string title;
  bool number = false;  ///< to the right
};

struct HtmlRow {
  std::vector<std::string> cells;
  std::string style = {};  ///< class of the style sheet
};

/// A table that a keyboard can scroll where the window is narrower.
std::string html_table(const std::vector<HtmlColumn>& columns, const std::vector<HtmlRow>& rows);
/// `<table>` alone.
std::string html_plain_table(const std::vector<HtmlColumn>& columns, const std::vector<HtmlRow>& rows);

/// `<p>`, with a class of the style sheet if one is given.
std::string html_paragraph(std::string_view text, std::string_view style = {});

/// A drawing with its caption below it; the caption may be empty.
std::string html_figure(std::string_view svg, std::string_view caption);

/// A large number with its name above it and words below it.
std::string html_card(std::string_view name, std::string_view big, std::string_view unit,
                      std::string_view below);

/// "a, b and 3 more".
std::string some_of(const std::vector<std::string>& words, std::size_t most);

}  // namespace convoy::page
