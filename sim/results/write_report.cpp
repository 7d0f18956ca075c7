// SPDX-License-Identifier: MIT
#include "sim/results/write_report.h"

#include <ostream>

#include "sim/results/report/sections.h"
#include "sim/results/report/style.h"
#include "sim/results/report/svg.h"

namespace convoy {

void write_report(const Results& results, std::ostream& out) {
  const ReportContext context(results);
  out << "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n<meta "
         "charset=\"utf-8\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>"
      << escaped(results.experiment) << " - convoy</title>\n<style>" << report_style()
      << "</style>\n</head>\n<body><main>\n";
  for (const auto section :
       {headline, scaling_section, cost_section, runs_table, time_section, memory_section, elastic_section,
        pipeline_section, partition_section, schedule_section, machine_section, manifest_section})
    out << section(context);
  out << "</main></body>\n</html>\n";
}

}  // namespace convoy
