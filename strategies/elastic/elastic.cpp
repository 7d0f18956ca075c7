// SPDX-License-Identifier: MIT
#include "strategies/elastic/elastic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "sim/base/key_parts.h"
#include "sim/plan/images_met.h"
#include "sim/plan/process_memory.h"
#include "strategies/data_parallel/all_reduce.h"
#include "strategies/elastic/elastic_shares.h"
#include "strategies/elastic/reconfigure.h"
#include "strategies/hybrid/hybrid.h"
#include "strategies/pipeline/pipeline.h"
#include "strategies/replicas.h"
#include "topologies/first_devices.h"

namespace convoy::inline strategies {
namespace {

struct ScheduleEntry {
  std::int64_t at_step = 0;
  std::uint32_t devices = 0;
  SourcePos devices_pos;
};

struct ElasticOptions {
  std::unique_ptr<Strategy> inner;
  bool deals = false;  ///< inner is data-parallel: the batch is dealt out to the devices here
  std::vector<ScheduleEntry> schedule;
  bool restarts = false;
  bool uniform = true;
  std::optional<std::int64_t> micro_batch;
  RestartTimes times;
};

std::vector<std::int64_t> images_dealt(const DealtBatch& dealt) {
  std::vector<std::int64_t> images;
  for (const std::vector<std::int64_t>& parts : dealt)
    images.push_back(std::accumulate(parts.begin(), parts.end(), std::int64_t{0}));
  return images;
}

/// images_met, whole.
std::vector<std::int64_t> whole_images_met(const Plan& plan, std::uint32_t devices) {
  std::vector<std::int64_t> images;
  for (const double met : images_met(plan, devices)) images.push_back(std::llround(met));
  return images;
}

class Elastic : public Strategy {
 public:
  explicit Elastic(ElasticOptions options) : options_(std::move(options)) {}

  std::string label() const override {
    constexpr std::size_t listed = 6;
    std::string devices;
    for (std::size_t i = 0; i < std::min(listed, options_.schedule.size()); ++i)
      devices += fmt::format("{}{}", i ? "-" : "", options_.schedule[i].devices);
    if (options_.schedule.size() > listed) devices += "-...";
    return fmt::format("elastic {}, {}, {}", devices, options_.restarts ? "restart" : "overlapped",
                       !options_.deals    ? options_.inner->label()
                       : options_.uniform ? "uniform"
                                          : "coarse");
  }

  std::string_view refuses_recomputation() const override { return options_.inner->refuses_recomputation(); }

  const GradientSync* sums() const override { return options_.inner->sums(); }

  ReportedPlan steady_plan(const StrategyInput& input) const override {
    return plan_on(options_.schedule.back().devices, input, checked_micro_batch(input),
                   &Strategy::steady_plan);
  }

  std::vector<RunPhase> phases(const StrategyInput& input) const override {
    const std::int64_t micro_batch = checked_micro_batch(input);
    const ParameterElements elements(input.graph);
    StrategyInput meant = input;
    meant.meaning = input.meaning || moves_parts();
    std::vector<RunPhase> phases;
    for (const ScheduleEntry& entry : options_.schedule) {
      RunPhase& phase = phases.emplace_back();
      phase.at_step = entry.at_step;
      phase.devices = entry.devices;
      ReportedPlan planned = plan_on(entry.devices, meant, micro_batch, &Strategy::plan);
      phase.plan = std::move(planned.plan);
      phase.report = std::move(planned.report);
      if (phases.size() > 1) phase.change = change(input, phases[phases.size() - 2], phase, elements);
    }
    if (!input.meaning)
      for (RunPhase& phase : phases) phase.plan.meaning.reset();  // whose indices no replay reads
    return phases;
  }

 private:
  /// Makes sure that all phases can be planned. Returns micro_batch_of, or 0 where no batch is dealt out
  /// here.
  /// @throws InputError
  std::int64_t checked_micro_batch(const StrategyInput& input) const {
    for (const ScheduleEntry& entry : options_.schedule) check(entry, input);
    if (!options_.deals) return 0;
    const std::int64_t micro_batch = micro_batch_of(input);
    check_dealt_size(input, micro_batch);
    return micro_batch;
  }

  /// What the inner strategy plans for the first devices.
  /// @param how Strategy::plan or Strategy::steady_plan
  ReportedPlan plan_on(std::uint32_t devices, const StrategyInput& input, std::int64_t micro_batch,
                       ReportedPlan (Strategy::*how)(const StrategyInput&) const) const {
    BatchSpec batch = input.batch;
    if (options_.deals)
      batch.dealt =
          (options_.uniform ? deal_uniform : deal_coarse)(*input.batch.global, devices, micro_batch);
    const Machine machine = first_devices(input.machine, devices);
    ReportedPlan planned = (*options_.inner.*how)({input.graph, machine, input.cost, batch, input.meaning});
    planned.report.images_by_device =
        batch.dealt ? images_dealt(*batch.dealt) : whole_images_met(planned.plan, devices);
    return planned;
  }

  static void check(const ScheduleEntry& entry, const StrategyInput& input) {
    if (!input.batch.global)
      throw InputError(input.batch.pos,
                       "training: elastic needs global_batch, which stays as it is when devices come and go; "
                       "found batch_per_device");
    if (entry.devices > input.machine.devices.size())
      throw InputError(entry.devices_pos,
                       fmt::format("strategy.schedule: {} devices from step {} on, but the cluster "
                                   "has {}",
                                   entry.devices, entry.at_step, input.machine.devices.size()));
    if (*input.batch.global < entry.devices)
      throw InputError(input.batch.pos,
                       fmt::format("training: a global batch of {} leaves some of {} devices without an "
                                   "image; at least {} is needed",
                                   *input.batch.global, entry.devices, entry.devices));
  }

  /// All phases are planned, each with every operation of every micro-batch of a device of each kind of
  /// share; what that takes is told before the batch is dealt. @throws InputError
  void check_dealt_size(const StrategyInput& input, std::int64_t at_once) const {
    const auto ceiling = [](std::int64_t whole, std::int64_t part) { return (whole + part - 1) / part; };
    const std::int64_t global = *input.batch.global;
    std::int64_t micro_batches = 0;
    for (const ScheduleEntry& entry : options_.schedule)
      micro_batches += options_.uniform ? ceiling(ceiling(global, entry.devices), at_once)
                                        : ceiling(ceiling(global, at_once), entry.devices);
    const auto operations = static_cast<std::int64_t>(input.graph.operations.size());
    if (micro_batches <= most_planned_operations / operations) return;
    throw InputError(
        input.batch.pos,
        fmt::format(
            "training: a global batch of {} in micro-batches of at most {} images makes {} of them on a "
            "device, all phases together, of {} operations each; at most {} operations are planned: "
            "use a smaller batch, more devices or fewer phases{}",
            global, at_once, micro_batches, operations, most_planned_operations,
            options_.micro_batch ? ", or a larger strategy.micro_batch" : ""));
  }

  /// uniform: a bound, what memory allows unless given. coarse: the one for which the job was set up on its
  /// first devices, so that it stays what it is later.
  std::int64_t micro_batch_of(const StrategyInput& input) const {
    if (options_.micro_batch) return *options_.micro_batch;
    const std::int64_t global = *input.batch.global, first = options_.schedule.front().devices;
    std::int64_t most = options_.uniform ? global : (global + first - 1) / first;
    for (const DeviceType& type : input.machine.device_types)
      most = std::min(most, std::max<std::int64_t>(1, largest_micro_batch(input.graph, type)));
    // The framework's process takes more than its tensors do.
    if (fits(input, most)) return most;
    std::int64_t too_many = most, least = 1;  // which is taken where not even one image fits
    while (too_many - least > 1) {
      const std::int64_t middle = least + (too_many - least) / 2;
      (fits(input, middle) ? least : too_many) = middle;
    }
    return least;
  }

  /// Whether a process that accumulates gradients over micro-batches of so many images, and exchanges them,
  /// fits on devices of every type.
  bool fits(const StrategyInput& input, std::int64_t micro_batch) const {
    const auto devices = static_cast<std::uint32_t>(std::min<std::size_t>(2, input.machine.devices.size()));
    BatchSpec batch = input.batch;
    batch.dealt = DealtBatch(devices, {micro_batch, micro_batch});
    const Machine machine = first_devices(input.machine, devices);
    const Plan plan = options_.inner->plan({input.graph, machine, input.cost, batch}).plan;
    return std::all_of(plan.roles.begin(), plan.roles.end(), [&](const Role& role) {
      return std::all_of(
          input.machine.device_types.begin(), input.machine.device_types.end(),
          [&](const DeviceType& type) { return process_memory(role, type, input.graph.options).fits(); });
    });
  }

  /// Whether messages bring devices other parts of the network: plans then have to say which they have.
  bool moves_parts() const { return !options_.deals && !options_.restarts && options_.schedule.size() > 1; }

  Reconfiguration change(const StrategyInput& input, const RunPhase& before, const RunPhase& after,
                         const ParameterElements& elements) const {
    const std::uint32_t from = before.devices, to = after.devices;
    if (from == to) return {};
    if (options_.restarts) return restart(options_.times, input.graph, to);
    const Machine machine = first_devices(input.machine, std::max(from, to));
    Reconfiguration change;
    if (options_.deals) {
      change = overlapped(options_.times, state_bytes(input.graph), machine, from, to);
      if (input.meaning && to > from)
        change.moves = moves_of_everything(change.traffic.patterns.front(), elements);
      return change;
    }
    std::vector<StateMove> moves =
        moves_between(held_states(before.plan, input.graph, elements),
                      held_states(after.plan, input.graph, elements), elements, machine);
    change =
        redistributed(options_.times, traffic_of(moves, elements, std::max(from, to)), machine, from, to);
    if (input.meaning) change.moves = std::move(moves);
    return change;
  }

  ElasticOptions options_;
};

/// `inner`: data parallelism, whose batch is dealt out here, or a strategy that shares it out itself.
void read_inner(YamlMap& outer, ElasticOptions& options) {
  YamlMap map = outer.map("inner");
  const std::size_t kind = map.choice("kind", {"data_parallel", "pipeline", "hybrid"});
  options.deals = kind == 0;
  if (!options.deals) {
    options.inner = (kind == 1 ? read_pipeline : read_hybrid)(map);
    map.finish();
    return;
  }
  map.choice("sync", {"all_reduce"});
  for (const char* key : {"micro_batches", "shares"})
    if (map.has(key))
      map.fail(key, "elastic shares the batch out itself; see strategy.balance and strategy.micro_batch");
  if (map.has("zero")) map.fail("zero", "elastic moves whole states when devices come and go; leave it out");
  if (map.has("sync_every"))
    map.fail("sync_every",
             "elastic training is the same on any number of devices, and local steps are not; leave it out");
  options.inner = read_all_reduce(map);
  map.finish();
}

Keys<ScheduleEntry> schedule_keys() {
  constexpr std::int64_t most_devices = 1'000'000;
  using Entry = ScheduleEntry;
  return {optional_integer_key<Entry>("at_step", "", 0, YamlMap::max_integer,
                                      "0 in the first entry, ascending", &Entry::at_step)
              .required(),
          optional_integer_key<Entry>("devices", "", 1, most_devices, "from that step on", &Entry::devices)
              .required()
              .at(&Entry::devices_pos)};
}

/// The list `schedule`, which begins at step 0 and ascends.
Key<ElasticOptions> schedule_key() {
  Key<ElasticOptions> key = mappings_key<ElasticOptions>(
      "schedule", "[{at_step: 0, devices: 4}]", "devices from which step on, the first at step 0; required",
      schedule_keys(), &ElasticOptions::schedule);
  key.text.values = key.text.form.values;
  key.text.otherwise.clear();
  key.text.required = true;
  key.read = [inner = std::move(key.read)](YamlMap& map, ElasticOptions& options) {
    map.node("schedule");
    inner(map, options);
    const std::vector<ScheduleEntry>& schedule = options.schedule;
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const std::int64_t step = schedule[i].at_step;
      if (i == 0 && step != 0)
        map.maps("schedule")[i].fail("at_step",
                                     fmt::format("the first entry must be for step 0, found {}", step));
      if (i > 0 && step <= schedule[i - 1].at_step)
        map.maps("schedule")[i].fail("at_step", fmt::format("steps must ascend; {} does not come after {}",
                                                            step, schedule[i - 1].at_step));
    }
  };
  return key;
}

bool deals(const ElasticOptions& options) { return options.deals; }

const Keys<ElasticOptions>& elastic_keys() {
  using Options = ElasticOptions;
  static const Keys<Options> keys{
      custom_key<Options>("inner", "",
                          forms::section("strategy", "{kind: data_parallel | pipeline | hybrid, ...}"),
                          "what runs on the devices there are. Data parallelism is dealt its batch here, the "
                          "others share it out themselves",
                          &read_inner)
          .told_required(),
      schedule_key(),
      choice_key<Options>(
          "reconfigure", {"overlapped", "restart"},
          "newcomers start while the others train on, or all stop and go on from a checkpoint",
          &Options::restarts),
      choice_key<Options>(
          "balance", {"coarse", "uniform"},
          "images a device: equal give or take one, or whole micro-batches dealt out (coarse)",
          &Options::uniform)
          .only("inner data_parallel", &deals),
      optional_integer_key<Options>("micro_batch", "what memory allows", 1, 1'000'000'000,
                                    "images at once; coarse: at most an equal share of the first devices, "
                                    "unless given",
                                    &Options::micro_batch)
          .only("inner data_parallel", &deals),
      mapping_key<Options>("times", "", "lengths of a restart's parts (docs/strategies.md)",
                           restart_time_keys(), &Options::times)};
  return keys;
}

std::unique_ptr<Strategy> read_elastic(YamlMap& map) {
  ElasticOptions options;
  read_keys(elastic_keys(), map, options);
  return std::make_unique<Elastic>(std::move(options));
}

}  // namespace

StrategyEntry elastic_entry() {
  return {"elastic",
          "another strategy on devices whose number changes during the run, with a fixed global batch",
          texts_of(elastic_keys()), &read_elastic};
}

}  // namespace convoy::strategies
