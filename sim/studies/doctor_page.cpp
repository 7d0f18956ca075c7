// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "sim/base/quantity.h"
#include "sim/page/html.h"
#include "sim/page/page.h"
#include "sim/page/svg.h"
#include "sim/page/text.h"
#include "sim/studies/doctor.h"

namespace convoy::inline studies {
namespace {

std::string section_of(const DoctorRun& run) {
  std::string title = run.id == "choice" ? "The plan's choice" : "Run " + run.id;
  for (const auto& [path, value] : run.point) title += fmt::format(", {}: {}", path, to_flow(value));
  std::string out = fmt::format("<h2>{}</h2>\n", escaped(title));
  const std::string step = format_time(run.step_time_s);
  if (!run.interval)
    return out + html_paragraph(fmt::format("A step takes {}: every number is exact.", step));
  out += html_paragraph(
      fmt::format("A step takes {}; {} to {} at {}.", step, format_time(run.interval->step_time_s[0]),
                  format_time(run.interval->step_time_s[1]), percent_text(run.interval->level)));
  if (run.drawn)
    out += html_paragraph(
        fmt::format("{} draws of all numbers at once (seed {}): 80 % of the steps take {} to {}; {} of them "
                    "are inside the interval.",
                    run.drawn->draws, run.drawn->seed, format_time(run.drawn->step_time_s[0]),
                    format_time(run.drawn->step_time_s[1]), percent_text(run.drawn->inside)));
  std::vector<HtmlRow> rows;
  for (const DoctorInput& input : run.inputs)
    rows.push_back(
        {{input.key, input.value, input.grade, percent_text(input.variance_share),
          fmt::format("{} to {}", format_time(std::min(input.step_time_s[0], input.step_time_s[1])),
                      format_time(std::max(input.step_time_s[0], input.step_time_s[1]))),
          input.narrows_to < 1 ? percent_text(input.narrows_to) : "-", input.measure}});
  return out + html_table({{"number"},
                           {"value"},
                           {"known as"},
                           {"share of the variance", true},
                           {"steps with less and more of it", true},
                           {"width of the interval once measured", true},
                           {"how to measure it"}},
                          rows);
}

}  // namespace

void write_page(const Diagnosis& diagnosis, std::ostream& out) {
  std::string body = fmt::format("<h1>{}: what to measure next</h1>\n", escaped(diagnosis.experiment));
  if (diagnosis.runs.empty()) body += html_paragraph("Nothing meets the plan's constraints.");
  for (const DoctorRun& run : diagnosis.runs) body += section_of(run);
  if (diagnosis.flip) {
    body += "<h2>Whether the choice changes</h2>\n" +
            html_paragraph(fmt::format("Chance that other servers are the best: {}.",
                                       percent_text(diagnosis.flip->chance)));
    std::vector<HtmlRow> rows;
    for (const FlipRival& rival : diagnosis.flip->rivals)
      rows.push_back({{rival.servers, percent_text(rival.chance)}});
    if (!rows.empty()) body += html_table({{"servers"}, {"chance", true}}, rows);
  }
  out << html_page(diagnosis.experiment, body);
}

}  // namespace convoy::studies
