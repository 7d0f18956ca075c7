// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/quantity.h"
#include "sim/page/bar_chart.h"
#include "sim/page/html.h"
#include "sim/page/svg.h"
#include "sim/page/text.h"
#include "sim/page/xy_chart.h"
#include "sim/results/report/sections.h"

namespace convoy::inline results {
namespace {

std::vector<std::size_t> runs_where(const ReportContext& context, auto has) {
  std::vector<std::size_t> found;
  for (const std::size_t r : all_runs(context))
    if (has(context.run(r))) found.push_back(r);
  return found;
}

/// The runs that no other run beats in both time and cost, fastest first.
std::vector<std::size_t> pareto_front(const ReportContext& context, std::vector<std::size_t> runs) {
  std::stable_sort(runs.begin(), runs.end(), [&](std::size_t a, std::size_t b) {
    const RunFigures &x = context.run(a), &y = context.run(b);
    return std::pair(*x.epoch_time_s, *x.cost_usd_per_epoch) <
           std::pair(*y.epoch_time_s, *y.cost_usd_per_epoch);
  });
  std::vector<std::size_t> front;
  for (const std::size_t r : runs)
    if (context.run(r).fits &&
        (front.empty() || *context.run(r).cost_usd_per_epoch < *context.run(front.back()).cost_usd_per_epoch))
      front.push_back(r);
  return front;
}

/// For one model.
std::string pareto_chart(const ReportContext& context, const std::string& model,
                         const std::vector<std::size_t>& runs) {
  XySeries others{"other runs", {}, 7, false}, front_points{"Pareto front", {}, 0};
  const std::vector<std::size_t> front = pareto_front(context, runs);
  XyChart chart;
  double fastest_s = 1e300, slowest_s = 0, cheapest = 1e300, dearest = 0;
  const std::vector<std::string> labels = context.labels.labels(runs);
  std::vector<HtmlRow> rows;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunFigures& run = context.run(runs[i]);
    const double time = *run.epoch_time_s, cost = *run.cost_usd_per_epoch;
    fastest_s = std::min(fastest_s, time), slowest_s = std::max(slowest_s, time);
    cheapest = std::min(cheapest, cost), dearest = std::max(dearest, cost);
    if (std::find(front.begin(), front.end(), runs[i]) == front.end())
      others.points.push_back({time, cost, fmt::format("run {}: {}", run.id, labels[i])});
  }
  for (const std::size_t r : front) {
    const RunFigures& run = context.run(r);
    const double time = *run.epoch_time_s, cost = *run.cost_usd_per_epoch;
    const std::string& label =
        labels[static_cast<std::size_t>(std::find(runs.begin(), runs.end(), r) - runs.begin())];
    front_points.points.push_back({time, cost, fmt::format("run {}: {}", run.id, label)});
    chart.notes.push_back({time, cost, run.id});
    rows.push_back(
        {{run.id, label, duration_text(time), number_text(cost),
          run.step_time_s > 0 ? number_text(run.energy_j / run.step_time_s * time / 3.6e6) : "-"}});
  }
  chart.label = fmt::format("{}: cost over time of an epoch", model);
  const Unit unit = time_unit(slowest_s);
  chart.x = {"time of an epoch", unit, wants_log(fastest_s, slowest_s, 8), true};
  chart.y = {"cost of an epoch", {1, "USD"}, wants_log(cheapest, dearest, 8), true};
  chart.series = {std::move(others), std::move(front_points)};
  std::erase_if(chart.series, [](const XySeries& s) { return s.points.empty(); });
  chart.labels = false;
  chart.named = points_are_named(context);
  std::string out;
  if (context.labels.models().size() > 1) out += fmt::format("<h3>{}</h3>\n", escaped(model));
  const std::string table =
      html_table({{"run", true}, {"which"}, {"epoch", true}, {"USD", true}, {"kWh", true}}, rows);
  return out +
         html_figure(
             fmt::format("<div class=\"charts\">{}{}</div>\n", draw(chart), table),
             "Joined: the Pareto front with its runs' numbers, the same as in the table. Grey: other runs.");
}

/// Throughput over time of the runs of one model; in the pauses nobody trains.
std::string elastic_chart(const ReportContext& context, const std::vector<std::size_t>& runs) {
  XyChart chart;
  double end_s = 0;
  std::vector<std::shared_ptr<const RunResult>> whole;
  for (const std::size_t r : runs) {
    whole.push_back(context.whole(r));
    end_s = std::max(end_s, whole.back()->phases.back().start_s);
  }
  end_s = end_s > 0 ? 1.2 * end_s : 1;  // the last phases go on
  const std::vector<std::string> labels = context.labels.labels(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunResult& run = *whole[i];
    XySeries series{fmt::format("{}: {}", run.id, labels[i]), {}, i, true, false};
    for (std::size_t p = 0; p < run.phases.size(); ++p) {
      const PhaseResult& phase = run.phases[p];
      const bool last = p + 1 == run.phases.size();
      const double pause_s = last || p >= run.reconfigurations.size() ? 0 : run.reconfigurations[p].pause_s;
      const double stop_s = last ? end_s : run.phases[p + 1].start_s - pause_s;
      series.points.push_back({phase.start_s, phase.throughput_images_per_s});
      series.points.push_back({stop_s, phase.throughput_images_per_s});
      if (pause_s > 0) {
        series.points.push_back({stop_s, 0});
        series.points.push_back({run.phases[p + 1].start_s, 0});
      }
      chart.notes.push_back({(phase.start_s + stop_s) / 2, phase.throughput_images_per_s,
                             fmt::format("{} devices", phase.devices)});
    }
    chart.series.push_back(std::move(series));
  }
  chart.label = "Throughput over time";
  chart.x = {"time", time_unit(end_s)};
  chart.y = {"images/s"};
  chart.width = 720;
  return draw(chart);
}

}  // namespace

std::string cost_section(const ReportContext& context) {
  std::string out;
  for (const std::string& model : context.labels.models()) {
    const std::vector<std::size_t> runs = runs_where(context, [&](const RunFigures& r) {
      return r.words.model == model && r.epoch_time_s && r.cost_usd_per_epoch;
    });
    if (runs.size() > 1) out += pareto_chart(context, model, runs);
  }
  if (out.empty()) return {};
  return "<h2>Time and cost of an epoch</h2>\n" +
         html_paragraph(
             "On the Pareto front are the runs that no other one beats in both; runs that do not fit in "
             "memory "
             "are not. Energy: all devices and hosts for an epoch.",
             "small") +
         out;
}

std::string elastic_section(const ReportContext& context) {
  constexpr std::size_t most_of_model = 6, most_models = 8, most_rows = 100;
  std::string out;
  std::vector<HtmlRow> rows;
  std::size_t models = 0, changes = 0;
  for (const std::string& model : context.labels.models()) {
    const std::vector<std::size_t> all =
        runs_where(context, [&](const RunFigures& r) { return r.words.model == model && r.has_phases; });
    for (const std::size_t r : all) {
      const std::shared_ptr<const RunResult> whole = context.whole(r);
      for (const ReconfigurationResult& change : whole->reconfigurations) {
        if (change.from == change.to && change.pause_s == 0) continue;  // other steps, on the same devices
        if (++changes > most_rows) continue;
        rows.push_back(
            {{context.run(r).id, fmt::format("{} to {}", change.from, change.to),
              std::to_string(change.at_step), std::to_string(change.first_step), format_time(change.pause_s),
              fmt::format("{} to {}", format_time(change.pause_interval_s[0]),
                          format_time(change.pause_interval_s[1]))}});
      }
    }
    if (all.empty() || ++models > most_models) continue;
    const std::vector<std::size_t> runs = fastest(context, all, most_of_model);
    if (context.labels.models().size() > 1) out += fmt::format("<h3>{}</h3>\n", escaped(model));
    out += html_figure(elastic_chart(context, runs), left_out(runs.size(), all.size()));
  }
  if (out.empty()) return {};
  if (models > most_models)
    out += html_paragraph(fmt::format("The first {} of {} models.", most_models, models), "small");
  if (!rows.empty())
    out += html_table({{"run", true},
                       {"devices"},
                       {"asked for at step", true},
                       {"first step after it", true},
                       {"pause", true},
                       {"80 % interval", true}},
                      rows);
  if (changes > most_rows)
    out += html_paragraph(
        fmt::format("The first {} of {} changes; results.json has all.", most_rows, changes), "small");
  return "<h2>Phases</h2>\n" +
         html_paragraph(
             "Throughput over time. In a pause nobody trains; the last phase goes on beyond the drawing.",
             "small") +
         out;
}

std::string partition_section(const ReportContext& context) {
  constexpr std::size_t most_rows = 100;
  std::vector<HtmlRow> rows;
  const std::vector<std::size_t> runs =
      runs_where(context, [](const RunFigures& r) { return r.has_partition; });
  if (runs.empty()) return {};
  const std::vector<std::string> labels = context.labels.labels(runs);
  for (std::size_t i = 0; i < std::min(most_rows, runs.size()); ++i) {
    const PartitionSummary partition = *context.whole(runs[i])->partition;
    rows.push_back(
        {{context.run(runs[i]).id, labels[i], partition.method, format_bytes(partition.connectivity_bytes),
          format_bytes(partition.cut_bytes), number_text(partition.load_imbalance)}});
  }
  std::string out = "<h2>Partition</h2>\n" + html_table({{"run", true},
                                                         {"which"},
                                                         {"method"},
                                                         {"sent between parts", true},
                                                         {"of tensors cut", true},
                                                         {"largest part / mean", true}},
                                                        rows);
  if (runs.size() > most_rows)
    out += html_paragraph(fmt::format("The first {} of {} runs.", most_rows, runs.size()), "small");
  return out;
}

namespace {

/// "n0" for one, "n0 and 7 alike" for 8.
std::string with_count(const std::string& name, std::int64_t count) {
  return count == 1 ? name : fmt::format("{} and {} alike", name, count - 1);
}

}  // namespace

std::string machine_section(const ReportContext& context) {
  constexpr std::size_t most_runs = 4, most_links = 12, most_devices = 32;
  std::string out;
  const std::vector<std::size_t> all = all_runs(context), runs = fastest(context, all, most_runs);
  const std::vector<std::string> labels = context.labels.labels(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::shared_ptr<const RunResult> whole = context.whole(runs[i]);
    const RunResult& run = *whole;
    std::string part;
    std::vector<std::size_t> used;
    std::int64_t links = 0, links_used = 0, devices = 0;
    for (std::size_t l = 0; l < run.per_link.size(); ++l) {
      links += run.per_link[l].count;
      if (run.per_link[l].bytes == 0) continue;
      used.push_back(l);
      links_used += run.per_link[l].count;
    }
    for (const DeviceResult& device : run.per_device) devices += device.count;
    const std::size_t shown = std::min(most_links, used.size());
    std::partial_sort(used.begin(), used.begin() + static_cast<std::ptrdiff_t>(shown), used.end(),
                      [&](std::size_t a, std::size_t b) {
                        const double x = run.per_link[a].utilization, y = run.per_link[b].utilization;
                        return x > y || (x == y && a < b);
                      });
    if (shown > 0) {
      BarChart chart;
      chart.label = "Utilization of the busiest links";
      chart.x = {"utilization", {0.01, "%"}};
      chart.parts = {{"utilization", "c0"}};
      for (std::size_t l = 0; l < shown; ++l) {
        const LinkResult& link = run.per_link[used[l]];
        chart.rows.push_back(
            {with_count(link.name, link.count),
             {link.utilization},
             fmt::format("{}, {}", percent_text(link.utilization), format_bytes(link.bytes))});
      }
      chart.width = 760;
      std::int64_t drawn = 0;
      for (std::size_t l = 0; l < shown; ++l) drawn += run.per_link[used[l]].count;
      part += html_figure(draw(chart), fmt::format("Bytes over bandwidth and step time, each direction of a "
                                                   "cable; {} of {} links in use, {} in all.",
                                                   drawn, links_used, links));
    }
    const auto [least, most] =
        std::minmax_element(run.per_device.begin(), run.per_device.end(),
                            [](const DeviceResult& a, const DeviceResult& b) { return a.busy_s < b.busy_s; });
    if (devices > 1 && most->busy_s > 0 && most->busy_s - least->busy_s > 0.005 * most->busy_s) {
      BarChart chart;
      chart.label = "Computing time of the devices";
      chart.x = {"computing in a step", time_unit(most->busy_s)};
      chart.parts = {{"computing", "c0"}};
      const std::size_t drawn = std::min(most_devices, run.per_device.size());
      for (std::size_t d = 0; d < drawn; ++d) {
        const DeviceResult& device = run.per_device[d];
        chart.rows.push_back(
            {with_count(device.name, device.count),
             {device.busy_s},
             fmt::format("{}, peak {}", format_time(device.busy_s), format_bytes(device.peak_memory_bytes))});
      }
      chart.width = 760;
      std::string note = fmt::format("From {} ({}) to {} ({}).", format_time(least->busy_s), least->name,
                                     format_time(most->busy_s), most->name);
      if (drawn < run.per_device.size())
        note += fmt::format(" The first {} of {}; results.json has all.", drawn, run.per_device.size());
      part += html_figure(draw(chart), note);
    } else if (devices > 1) {
      part += html_paragraph(fmt::format("The {} devices all compute {} in a step (within 0.5 %).", devices,
                                         format_time(most->busy_s)),
                             "small");
    }
    if (part.empty()) continue;
    if (all.size() > 1)
      out += fmt::format("<h3>Run {}: {}{}</h3>\n", escaped(run.id),
                         context.labels.models().size() > 1 ? escaped(run.model) + ", " : "",
                         escaped(labels[i]));
    out += part;
  }
  if (out.empty()) return {};
  return "<h2>Links and devices</h2>\n" +
         (all.size() > runs.size() ? html_paragraph(left_out(runs.size(), all.size()), "small")
                                   : std::string{}) +
         out;
}

}  // namespace convoy::results
