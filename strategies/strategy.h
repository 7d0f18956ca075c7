// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/training_graph.h"
#include "sim/base/keys.h"
#include "sim/costs/cost_model.h"
#include "sim/plan/phases.h"
#include "sim/plan/plan.h"
#include "strategies/batch_spec.h"
#include "topologies/machine.h"

namespace convoy::inline lowering {
struct GradientSync;
class WholeNetwork;
}  // namespace convoy::lowering

namespace convoy::inline strategies {

class CostTable;

/// What a strategy may look at.
struct StrategyInput {
  const TrainingGraph& graph;  ///< what is to be computed
  const Machine& machine;      ///< on what
  const CostModel& cost;       ///< how long it takes
  BatchSpec batch;             ///< images of a step
  bool meaning = false;  ///< the plan says what its tasks mean (Plan::meaning), as far as the strategy can
  /// Of `graph`, kept by who plans it again and again; nullptr: made anew where it is needed.
  const WholeNetwork* network = nullptr;
};

/// What no step of a strategy stays below, known before anything of it is planned.
struct StepFloor {
  double step_s = 0;        ///< of every step, on average
  std::int64_t images = 0;  ///< of a step, over all devices
  std::string text;         ///< for people: "at least 12 ms a step for computing"
};

/// Decides a plan; simulates nothing. One object is made from one `strategy:` mapping and is immutable after
/// that.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// One line for tables: "ring all-reduce", "1 parameter server, dedicated".
  virtual std::string label() const = 0;
  /// `transport:` of its mapping; unset: default_library.
  std::optional<std::string> library;
  SourcePos written_pos;  ///< of its mapping
  /// Whether its devices talk to servers, each message a call, rather than among themselves.
  virtual bool uses_servers() const { return false; }
  /// Hosts without devices that the cluster of `nodes` nodes needs beside its nodes (dedicated parameter
  /// servers).
  virtual std::uint32_t dedicated_hosts(std::uint32_t nodes) const {
    (void)nodes;
    return 0;
  }
  /// How it sums the gradients of replicas by collectives; nullptr where it does not.
  virtual const GradientSync* sums() const { return nullptr; }
  /// Why it may need other epochs than sums of whole gradients in every step do, and nobody knows how many:
  /// for plans' doubts; "" where it trains alike.
  virtual std::string trains_otherwise() const { return {}; }
  /// What its step stays not below on the table's devices, from the table alone; nothing where nothing is
  /// known, or where it cannot run. Tests hold it against the bounds of plans and against simulations.
  virtual std::optional<StepFloor> floor(const BatchSpec& batch, CostTable& table) const {
    (void)batch, (void)table;
    return std::nullopt;
  }
  /// Why `training.recompute` cannot go with the strategy; "" where its devices run the training graph's
  /// operations in order, recomputed ones included.
  virtual std::string_view refuses_recomputation() const {
    return "its devices do not run the whole training graph";
  }
  /// Why a network in which several layers use the same parameters cannot go with the strategy; "" where all of them
  /// are on one device, or where it refuses by itself what it cannot do.
  virtual std::string_view refuses_shared_parameters() const { return {}; }
  /// The plan of a step, with what devices wait for each other by chance (sim/lowering/jitter.h).
  /// @throws InputError where the strategy cannot run on this machine or batch.
  ReportedPlan plan(const StrategyInput& input) const;
  /// The phases of a run: one, which is steps of plan() on all devices, unless devices come and go; plan() is
  /// then that of the last. @throws InputError as plan()
  virtual std::vector<RunPhase> phases(const StrategyInput& input) const;
  /// plan() of devices that take equally long for every step, so that nobody waits by chance. @throws
  /// InputError as plan()
  virtual ReportedPlan steady_plan(const StrategyInput& input) const = 0;
};

/// What moves a strategy's bytes unless it says `transport:`: TensorFlow talks to parameter servers by gRPC,
/// MXNet's ps-lite and BytePS by ZeroMQ; devices among themselves by the library of their kind.
std::string default_library(const Strategy& strategy, Framework framework, const DeviceKind& kind);

/// Reads a `strategy:` mapping with the registry's reader of its `kind`. @throws InputError
std::unique_ptr<Strategy> read_strategy(const YamlNode& node);

/// A row of the registry: `convoy show strategies`, error messages and documentation read it.
struct StrategyEntry {
  std::string_view kind;      ///< what `strategy.kind` calls it
  std::string_view summary;   ///< one line, without a full stop
  std::vector<KeyText> keys;  ///< of the tables that `read` goes by
  /// Reads its keys from the mapping, all but `kind`. @throws InputError
  std::unique_ptr<Strategy> (*read)(YamlMap& map);
  /// What `kind: auto` tries of it unless told otherwise: a YAML list of mappings without `kind`, whose lists
  /// of values span products. $nodes and $devices stand for the cluster's, $rows and $columns for the
  /// most even grid of its devices (a grid of one row is left out). Only what trains alike: no stale
  /// or dropped gradients, no lossy compression.
  std::string_view candidates = "";
  /// The key whose value decides which of its keys there are, if one does, and its variants (KeySection).
  std::string decided_by = {};
  std::vector<KeySection> variants = {};  ///< by value of `decided_by`
};
/// All kinds of strategies, those of add_strategy() last.
const std::vector<StrategyEntry>& strategy_registry();
/// The row of a kind.
/// @throws std::out_of_range where there is no such kind
const StrategyEntry& strategy_entry(std::string_view kind);

}  // namespace convoy::strategies
