// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "sim/page/html.h"
#include "sim/page/svg.h"
#include "sim/page/xy_chart.h"
#include "sim/results/report/sections.h"

namespace convoy::inline results {
namespace {

constexpr std::size_t most_monitored_hosts = 3, most_drawn_samples = 1000;

/// The hosts that exchange most with others, in their order; for example a parameter server among its workers.
std::vector<const MonitoredHost*> busiest(const RunMonitor& monitor) {
  std::vector<std::pair<double, const MonitoredHost*>> hosts;
  for (const MonitoredHost& host : monitor.hosts) {
    double exchanged = 0;
    for (const MonitorSample& sample : host.samples) exchanged += sample.sent_Bps + sample.received_Bps;
    hosts.emplace_back(exchanged, &host);
  }
  std::stable_sort(hosts.begin(), hosts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (hosts.size() > most_monitored_hosts) hosts.resize(most_monitored_hosts);
  std::vector<const MonitoredHost*> result;
  for (const auto& [exchanged, host] : hosts) result.push_back(host);
  return result;
}

/// A figure of a host; nothing where it has none.
struct MonitorLine {
  const char* what;
  std::function<std::optional<double>(const MonitoredHost&, const MonitorSample&)> value;
};

/// Each sample as a level over its interval.
std::string monitor_chart(const std::vector<const MonitoredHost*>& hosts, const char* title, Unit unit,
                          const std::vector<MonitorLine>& lines) {
  XyChart chart;
  double end_s = 0, most = 0;
  for (const MonitoredHost* host : hosts)
    for (const MonitorLine& line : lines) {
      XySeries series{fmt::format("{} {}", host->name, line.what), {}, chart.series.size(), true, false};
      const std::size_t drawn = std::min(host->samples.size(), most_drawn_samples);
      for (std::size_t i = 0; i < drawn; ++i) {
        const MonitorSample& sample = host->samples[i];
        if (const std::optional<double> value = line.value(*host, sample)) {
          series.points.push_back({sample.from_s, *value});
          series.points.push_back({sample.to_s, *value});
          most = std::max(most, *value);
        }
        end_s = std::max(end_s, sample.to_s);
      }
      if (!series.points.empty()) chart.series.push_back(std::move(series));
    }
  if (chart.series.empty()) return {};
  chart.label = fmt::format("{} as reported", title);
  chart.x = {"time", time_unit(end_s)};
  chart.y = {title, unit.size > 0 ? unit : byte_unit(most)};
  chart.width = 720;
  chart.height = 240;
  return html_figure(draw(chart), "");
}

}  // namespace

std::string monitor_section(const ReportContext& context, const std::vector<RunMonitor>& monitors) {
  constexpr std::size_t most_runs = 3;
  using Sample = const MonitorSample&;
  const auto of_gpus = [](double GpuSample::*member) {
    return [member](const MonitoredHost&, Sample sample) -> std::optional<double> {
      if (!sample.gpus) return std::nullopt;
      return (*sample.gpus).*member;
    };
  };
  const auto of_host = [](double MonitorSample::*member) {
    return [member](const MonitoredHost&, Sample sample) -> std::optional<double> { return sample.*member; };
  };
  const auto cpu_share = [](const MonitoredHost& host, Sample sample) -> std::optional<double> {
    if (host.vcpus == 0) return std::nullopt;
    return sample.busy_vcpus / host.vcpus;
  };
  std::string out;
  for (std::size_t m = 0; m < std::min(monitors.size(), most_runs); ++m) {
    if (context.results.runs.size() > 1)
      out += fmt::format("<h3>Run {}: {}</h3>\n", escaped(context.run(monitors[m].run).id),
                         escaped(context.labels.label(monitors[m].run, all_runs(context))));
    const std::vector<const MonitoredHost*> hosts = busiest(monitors[m]);
    out += monitor_chart(
        hosts, "bandwidth", {1e9 / 8, "Gbit/s"},
        {{"sent", of_host(&MonitorSample::sent_Bps)}, {"received", of_host(&MonitorSample::received_Bps)}});
    out += monitor_chart(hosts, "busy", {0.01, "%"},
                         {{"GPUs", of_gpus(&GpuSample::busy_share)}, {"vCPUs", cpu_share}});
    out += monitor_chart(hosts, "memory", {0, ""},
                         {{"GPUs, processes", of_gpus(&GpuSample::memory_bytes)},
                          {"GPUs, tensors", of_gpus(&GpuSample::tensor_bytes)}});
  }
  if (out.empty()) return {};
  return "<h2>As a provider's monitoring reports it</h2>\n" +
         html_paragraph(
             fmt::format(
                 "Of each run up to {} hosts, those that exchange most, and up to {} intervals, the first "
                 "ones; monitor.csv has all. Figures are means over intervals, from the run's first "
                 "step on.",
                 most_monitored_hosts, most_drawn_samples),
             "small") +
         out;
}

}  // namespace convoy::results
