// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "sim/page/html.h"
#include "sim/page/svg.h"
#include "sim/page/text.h"
#include "sim/page/xy_chart.h"
#include "sim/results/coordinates.h"
#include "sim/results/report/sections.h"
#include "sim/results/text.h"

namespace convoy::inline results {
namespace {

constexpr std::size_t most_series = 20, most_models = 12;

/// Keeps the series with the highest throughput at their ends, in their order; returns how many are left out.
std::size_t keep_best(const ReportContext& context, std::vector<RunSeries>& all) {
  if (all.size() <= most_series) return 0;
  const auto end = [&](std::size_t s) { return context.run(all[s].runs.back()).throughput_images_per_s; };
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return end(a) > end(b); });
  order.resize(most_series);
  std::sort(order.begin(), order.end());
  std::vector<RunSeries> kept;
  for (const std::size_t s : order) kept.push_back(std::move(all[s]));
  const std::size_t left_out = all.size() - kept.size();
  all = std::move(kept);
  return left_out;
}

std::string caption(std::size_t left_out) {
  if (left_out == 0) return {};
  return fmt::format("The {} series with the highest throughput at their ends; {} others are left out.",
                     most_series, left_out);
}

struct Extremes {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool spread(double ratio) const { return wants_log(low, high, ratio); }
};

std::vector<Tick> ticks_of(const std::map<double, std::string>& values) {
  std::vector<Tick> ticks;
  for (const auto& [value, text] : values) ticks.push_back({value, text});
  return ticks;
}

/// "1293 -20 +38 % images/s"
std::string speed_text(const RunFigures& run) {
  const std::string doubt = doubt_text(run);
  return fmt::format("{}{}{} images/s", number_text(run.throughput_images_per_s), doubt.empty() ? "" : " ",
                     doubt);
}

std::optional<std::array<double, 2>> range_of(const RunFigures& run) {
  return run.has_interval ? std::optional(run.throughput_interval_images_per_s) : std::nullopt;
}

/// What the bars behind points are, where there are any.
std::string about_bars(const ReportContext& context) {
  const bool drawn =
      points_are_named(context) && std::any_of(context.results.runs.begin(), context.results.runs.end(),
                                               [](const RunFigures& run) { return run.has_interval; });
  return drawn ? "Pale bars: 80 % intervals." : "";
}

/// Throughput and efficiency over the number of devices, of the runs of one model.
std::string device_charts(const ReportContext& context, const std::string& model) {
  std::vector<RunSeries> all = context.labels.over_devices(context.labels.of_model(model));
  std::erase_if(all, [&](const RunSeries& s) {
    return context.run(s.runs.front()).devices == context.run(s.runs.back()).devices;
  });
  if (all.empty()) return {};
  const std::size_t others = keep_best(context, all);

  XyChart throughput, efficiency;
  std::map<double, std::string> counts;
  Extremes devices, speed;
  double per_device = 0;  // of the best run among those with the fewest devices, to which efficiency refers
  for (std::size_t s = 0; s < all.size(); ++s) {
    XySeries rate{all[s].label, {}, s}, share{all[s].label, {}, s};
    for (const std::size_t r : all[s].runs) {
      const RunFigures& run = context.run(r);
      const auto n = static_cast<double>(run.devices);
      counts[n] = std::to_string(run.devices);
      devices.add(n);
      speed.add(run.throughput_images_per_s);
      const double scaling = context.scaling.empty() ? 0 : context.scaling[r];
      if (scaling > 0) per_device = std::max(per_device, run.throughput_images_per_s / n / scaling);
      const std::string what =
          fmt::format("run {}: {}, {} {}: {}, scaling {}", run.id, all[s].label, run.devices,
                      run.devices == 1 ? "device" : "devices", speed_text(run), percent_text(scaling));
      rate.points.push_back({n, run.throughput_images_per_s, what, range_of(run)});
      share.points.push_back({n, 100 * scaling, what});
    }
    throughput.series.push_back(std::move(rate));
    efficiency.series.push_back(std::move(share));
  }
  // Both axes or neither, so that ideal scaling is a straight line.
  const bool log = devices.spread(8);
  const AxisRequest x{"devices", plain, log, true, ticks_of(counts)};
  throughput.label = fmt::format("{}: throughput over devices", model);
  throughput.x = x;
  throughput.y = {"images/s", plain, log, true};
  throughput.labels = false;
  throughput.named = efficiency.named = points_are_named(context);
  throughput.width = 390;
  throughput.ideal = {{devices.low, per_device * devices.low}, {devices.high, per_device * devices.high}};
  throughput.ideal_label = "ideal";
  efficiency.label = fmt::format("{}: scaling efficiency over devices", model);
  efficiency.x = x;
  efficiency.y = {"scaling efficiency", {1, "%"}, false, true};
  efficiency.width = 390;
  std::string out;
  if (context.labels.models().size() > 1) out += fmt::format("<h3>{}</h3>\n", escaped(model));
  const std::string drawn =
      fmt::format("<div class=\"charts\">{}{}</div>\n", draw(throughput), draw(efficiency));
  return out + html_figure(drawn, caption(others));
}

/// Throughput over a swept number, of the runs of one model.
std::string number_chart(const ReportContext& context, std::size_t coordinate, const std::string& model) {
  std::vector<RunSeries> all = context.labels.over(coordinate, context.labels.of_model(model));
  std::erase_if(all, [](const RunSeries& s) { return s.runs.size() < 2; });
  if (all.empty()) return {};
  const std::size_t others = keep_best(context, all);
  XyChart chart;
  std::map<double, std::string> values;
  Extremes along, speed;
  for (std::size_t s = 0; s < all.size(); ++s) {
    XySeries series{all[s].label, {}, s};
    for (const std::size_t r : all[s].runs) {
      const RunFigures& run = context.run(r);
      const double value = *context.labels.value_of(r, coordinate);
      values[value] = context.labels.value_text(r, coordinate);
      along.add(value);
      speed.add(run.throughput_images_per_s);
      series.points.push_back(
          {value, run.throughput_images_per_s,
           fmt::format("run {}: {}, {} {}: {}", run.id, all[s].label, context.labels.name_of(coordinate),
                       values[value], speed_text(run)),
           range_of(run)});
    }
    chart.series.push_back(std::move(series));
  }
  chart.label = fmt::format("{}: throughput over {}", model, context.labels.path_of(coordinate));
  chart.x = {context.labels.path_of(coordinate), plain, along.spread(8), false, ticks_of(values)};
  chart.y = {"images/s", plain, speed.spread(30), true};
  chart.width = 560;
  chart.named = points_are_named(context);
  std::string out;
  if (context.labels.models().size() > 1) out += fmt::format("<h3>{}</h3>\n", escaped(model));
  return out + html_figure(draw(chart), caption(others));
}

std::string of_models(const ReportContext& context, auto chart) {
  std::string out;
  const std::vector<std::string>& models = context.labels.models();
  for (std::size_t m = 0; m < std::min(most_models, models.size()); ++m) out += chart(models[m]);
  if (!out.empty() && models.size() > most_models)
    out += html_paragraph(fmt::format("The first {} of {} models.", most_models, models.size()), "small");
  return out;
}

}  // namespace

std::string scaling_section(const ReportContext& context) {
  const std::string bars = about_bars(context);
  std::string out;
  if (!context.scaling.empty()) {
    const std::string charts =
        of_models(context, [&](const std::string& model) { return device_charts(context, model); });
    if (!charts.empty())
      out +=
          "<h2>Scaling</h2>\n" +
          html_paragraph(
              fmt::format(
                  "Ideal: as many times the throughput of a device as there are devices, from the best run "
                  "with the fewest devices. Efficiency is throughput over ideal.{}{}",
                  bars.empty() ? "" : " ", bars),
              "small") +
          charts;
  }
  for (const std::size_t c : context.labels.varying()) {
    if (counts_devices(context.labels.path_of(c))) continue;
    const std::string charts =
        of_models(context, [&](const std::string& model) { return number_chart(context, c, model); });
    if (!charts.empty())
      out += fmt::format("<h2>Throughput over {}</h2>\n", escaped(context.labels.name_of(c))) +
             (bars.empty() ? "" : html_paragraph(bars, "small")) + charts;
  }
  return out;
}

}  // namespace convoy::results
