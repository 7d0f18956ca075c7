// SPDX-License-Identifier: MIT
#include "sim/page/page.h"

#include <fmt/format.h>

#include "sim/base/digest.h"
#include "sim/page/interactive.h"
#include "sim/page/style.h"
#include "sim/page/svg.h"

namespace convoy::inline page {

namespace {

/// The page is XML too, for which the script's '<' and '&' are within a CDATA section.
std::string script() { return fmt::format("/*<![CDATA[*/\n{}/*]]>*/", interactive_script()); }

}  // namespace

std::string html_page_begin(std::string_view title) {
  return fmt::format(
      "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n<meta "
      "charset=\"utf-8\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'sha256-{}'\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{} - "
      "convoy</title>\n"
      "<style>{}</style>\n</head>\n<body><main>\n",
      sha256_base64(script()), escaped(title), report_style());
}

std::string html_page_end() {
  return fmt::format("</main>\n<script>{}</script>\n</body>\n</html>\n", script());
}

std::string html_page(std::string_view title, std::string_view body) {
  return html_page_begin(title).append(body) + html_page_end();
}

}  // namespace convoy::page
