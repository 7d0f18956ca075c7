// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "sim/base/quantity.h"
#include "sim/page/bar_chart.h"
#include "sim/page/html.h"
#include "sim/page/text.h"
#include "sim/results/report/sections.h"
#include "sim/results/schedule_summary.h"

namespace convoy::inline results {
namespace {

constexpr std::size_t most_bars = 40;

/// Calls `row` with each of `runs`, after a heading where a model begins if there are several.
void by_model(const ReportContext& context, const std::vector<std::size_t>& runs, BarChart& chart,
              auto rows_of) {
  for (const std::string& model : context.labels.models()) {
    std::vector<std::size_t> of_model;
    for (const std::size_t r : runs)
      if (context.run(r).words.model == model) of_model.push_back(r);
    if (of_model.empty()) continue;
    if (context.labels.models().size() > 1) chart.rows.push_back({model, {}, {}, 0, true});
    rows_of(of_model);
  }
}

/// "run 12  ring all-reduce, 8 devices"
std::string labelled(const RunFigures& run, const std::string& label) {
  return fmt::format("{}: {}", run.id, label);
}

std::string limits_table(const ReportContext& context, const std::vector<std::size_t>& runs) {
  std::vector<HtmlRow> rows;
  const std::vector<std::string> labels = context.labels.labels(runs);
  for (std::size_t i = 0; i < runs.size(); ++i)
    rows.push_back({{context.run(runs[i]).id, labels[i], context.run(runs[i]).bottleneck_sentence}});
  return html_table({{"run", true}, {"which"}, {"what limits the step"}}, rows);
}

using MemoryParts = std::array<double, memory_class_count + 1>;  ///< the last: not known by class

/// For the fullest device of the run.
MemoryParts memory_parts(const RunFigures& run) {
  MemoryParts parts{};
  if (run.fullest_memory)
    std::ranges::copy(*run.fullest_memory, parts.begin());
  else  // of a phase that is not the last
    parts.back() = run.peak_memory_bytes;
  return parts;
}

/// Runs with the same memory are one bar.
struct SameMemory {
  MemoryParts parts;
  double capacity_bytes;
  std::vector<std::size_t> runs;
};

std::vector<SameMemory> same_memory(const ReportContext& context, const std::vector<std::size_t>& runs) {
  std::vector<SameMemory> all;
  for (const std::size_t r : runs) {
    const MemoryParts parts = memory_parts(context.run(r));
    const double capacity = context.run(r).device_memory_bytes;
    const auto same = std::find_if(all.begin(), all.end(), [&](const SameMemory& m) {
      return m.parts == parts && m.capacity_bytes == capacity &&
             context.run(m.runs.front()).words.strategy == context.run(r).words.strategy;
    });
    if (same == all.end())
      all.push_back({parts, capacity, {r}});
    else
      same->runs.push_back(r);
  }
  return all;
}

}  // namespace

std::string time_section(const ReportContext& context) {
  const std::vector<std::size_t> all = all_runs(context), runs = fastest(context, all, most_bars);
  if (runs.empty()) return {};
  double shortest = context.run(runs.front()).step_time_s, longest = 0;
  for (const std::size_t r : runs) {
    shortest = std::min(shortest, context.run(r).step_time_s);
    longest = std::max(longest, context.run(r).step_time_s);
  }
  // With bars of very different lengths, only the longest would be visible.
  const bool shares = longest > 25 * shortest;
  BarChart chart;
  chart.label = "What a step is made of";
  chart.x =
      shares ? AxisRequest{"share of the step", {0.01, "%"}} : AxisRequest{"step time", time_unit(longest)};
  chart.parts = {{"computing", "c0"},
                 {"waiting for the host to issue", "c4"},
                 {"exposed communication", "c1"},
                 {"idle", "idle"}};
  by_model(context, runs, chart, [&](const std::vector<std::size_t>& of_model) {
    const std::vector<std::string> labels = context.labels.labels(of_model);
    for (std::size_t i = 0; i < of_model.size(); ++i) {
      const RunFigures& run = context.run(of_model[i]);
      const double whole = shares && run.step_time_s > 0 ? run.step_time_s : 1;
      chart.rows.push_back({labelled(run, labels[i]),
                            {(run.compute_s - run.issue_wait_s) / whole, run.issue_wait_s / whole,
                             run.exposed_comm_s / whole, run.idle_s / whole},
                            format_time(run.step_time_s)});
    }
  });
  const std::string omitted = left_out(runs.size(), all.size());
  return "<h2>What a step is made of</h2>\n" +
         html_paragraph(
             "Of the critical device, the one that finishes last: computing; waiting amid operations for its "
             "host to issue the next one; not computing while a message to or from it is under way (exposed "
             "communication); neither (idle).",
             "small") +
         html_figure(draw(chart), omitted) + limits_table(context, runs);
}

std::string memory_section(const ReportContext& context) {
  const std::vector<std::size_t> all = all_runs(context), runs = fastest(context, all, 4 * most_bars);
  if (runs.empty()) return {};
  BarChart chart;
  chart.label = "Peak memory of the fullest device by class";
  for (std::size_t c = 0; c < memory_class_count; ++c)
    chart.parts.push_back({std::string(memory_class_names[c]), memory_styles[c]});
  double most = 0;
  std::size_t bars = 0, shown = 0;
  bool unknown = false;
  by_model(context, runs, chart, [&](const std::vector<std::size_t>& of_model) {
    for (const SameMemory& same : same_memory(context, of_model)) {
      if (++bars > most_bars) continue;
      shown += same.runs.size();
      const RunFigures& run = context.run(same.runs.front());
      most = std::max({most, run.peak_memory_bytes, same.capacity_bytes});
      unknown = unknown || same.parts.back() > 0;
      const std::string text = fmt::format("{} of {}{}", format_bytes(run.peak_memory_bytes),
                                           format_bytes(same.capacity_bytes), run.fits ? "" : " (!)");
      const std::string which = run_ids(context, same.runs);
      chart.rows.push_back(
          {fmt::format("{} ({})", shortened(run.words.strategy, 44 - std::min<std::size_t>(20, which.size())),
                       which),
           {same.parts.begin(), same.parts.end()},
           text,
           same.capacity_bytes});
    }
  });
  if (unknown) chart.parts.push_back({"not known by class", "idle"});
  for (BarRow& row : chart.rows)
    if (!row.heading) row.parts.resize(chart.parts.size());
  chart.x = {"peak memory", byte_unit(most)};
  chart.mark_name = "memory of the device";
  std::string note;
  if (shown < all.size())
    note = fmt::format(
        "{} of {} runs; results.csv has the peak of each, results.json the classes of each device. ", shown,
        all.size());
  if (unknown)
    note +=
        "Where the fullest phase of an elastic run is not its last, the classes are not known: devices are "
        "listed as "
        "in the last phase.";
  return "<h2>Memory</h2>\n" +
         html_paragraph(
             "The fullest device at its peak, by class. Runs of a strategy with the same memory are one bar.",
             "small") +
         html_figure(draw(chart), note);
}

std::string pipeline_section(const ReportContext& context) {
  std::vector<std::size_t> all;
  for (std::size_t r = 0; r < context.results.runs.size(); ++r)
    if (context.run(r).has_stages) all.push_back(r);
  if (all.empty()) return {};
  constexpr std::size_t most_runs = 6, most_stages = 32;
  const std::vector<std::size_t> runs = fastest(context, all, most_runs);
  const std::vector<std::string> labels = context.labels.labels(runs);
  BarChart chart;
  chart.label = "Load of pipeline stages";
  chart.parts = {{"computing", "c0"}, {"not computing", "idle"}};
  double longest = 0;
  std::string note = left_out(runs.size(), all.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunFigures& run = context.run(runs[i]);
    const std::vector<StageResult> stages = context.whole(runs[i])->stages;
    longest = std::max(longest, run.step_time_s);
    chart.rows.push_back(
        {fmt::format(
             "{}{}",
             labelled(run, context.labels.models().size() > 1 && labels[i] == run.words.strategy
                               ? run.words.model + ", " + labels[i]
                               : labels[i]),
             run.bubble_fraction ? fmt::format(": bubble {}", percent_text(*run.bubble_fraction)) : ""),
         {},
         {},
         0,
         true});
    for (std::size_t s = 0; s < std::min(most_stages, stages.size()); ++s) {
      const StageResult& stage = stages[s];
      const std::string layers = stage.layers.empty() ? std::string("no layers")
                                 : stage.layers.size() == 1
                                     ? stage.layers.front()
                                     : fmt::format("{} ... {}", stage.layers.front(), stage.layers.back());
      chart.rows.push_back(
          {fmt::format("stage {}: {}", s, layers),
           {stage.compute_s, std::max(0.0, run.step_time_s - stage.compute_s)},
           fmt::format("{}, {}, {}", format_time(stage.compute_s), format_bytes(stage.peak_memory_bytes),
                       stage.replicas.size() > 1 ? fmt::format("{} replicas", stage.replicas.size())
                                                 : stage.device)});
    }
    if (stages.size() > most_stages)
      note += fmt::format(" Run {} has {} stages more.", run.id, stages.size() - most_stages);
  }
  chart.x = {"time in a step", time_unit(longest)};
  return "<h2>Pipeline stages</h2>\n" +
         html_paragraph(
             "Computing time of a stage's busiest replica in a step, its peak memory, and its device.",
             "small") +
         html_figure(draw(chart), note);
}

std::string schedule_section(const ReportContext& context) {
  const std::vector<ScheduleSummary> schedules = summaries(context.results.schedules);
  if (schedules.empty()) return {};
  BarChart chart;
  chart.label = "Mean completion time of jobs by policy";
  chart.parts = {{"mean completion time", "c0"}};
  double longest = 0;
  std::vector<HtmlRow> rows;
  for (std::size_t i = 0; i < schedules.size(); ++i) {
    const ScheduleSummary& s = schedules[i];
    if (i == 0 || s.mean_interval_s != schedules[i - 1].mean_interval_s)
      chart.rows.push_back({s.load_text(), {}, {}, 0, true});
    chart.rows.push_back({s.policy, {s.mean_completion_s}, s.completion_text()});
    longest = std::max(longest, s.mean_completion_s);
    const auto share = [](const std::optional<double>& value) {
      return value ? percent_text(*value) : std::string();
    };
    rows.push_back({{s.load_text(), s.policy, s.completion_text(), format_time(s.makespan_s),
                     percent_text(s.busy_share), fmt::format("{:.0f}", s.changes), share(s.deadlines_met),
                     share(s.scattered_share), share(s.sharing_loss)}});
  }
  chart.x = {"mean completion time", time_unit(longest)};
  chart.width = 860;
  return "<h2>Queues of jobs</h2>\n" + html_figure(draw(chart), {}) +
         html_table({{"load"},
                     {"policy"},
                     {"mean completion", true},
                     {"all done", true},
                     {"GPUs held", true},
                     {"changes", true},
                     {"deadlines met", true},
                     {"GPUs scattered", true},
                     {"lost to sharing", true}},
                    rows);
}

}  // namespace convoy::results
