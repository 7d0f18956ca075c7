// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/shared_list.h"
#include "sim/planning/plan_spec.h"
#include "topologies/catalog.h"

namespace convoy::inline planning {

/// Kinds of servers and how many of each.
using Order = std::vector<std::pair<std::string, std::int64_t>>;

/// "8 aws-p3.16xlarge", "4 aws-p3.2xlarge + 4 aws-p3.8xlarge".
std::string text_of(const Order& order);
/// Its kinds only: "aws-p3.2xlarge + aws-p3.8xlarge".
std::string kinds_of(const Order& order);

/// What one training step runs on and how: everything that its simulation depends on.
struct Setup {
  SharedList<Order::value_type> order;  ///< setups share it
  Precision precision = Precision::fp32;
  std::int64_t batch_per_device = 0, devices = 0, global_batch = 0;
  std::shared_ptr<const YamlNode> strategy;  ///< setups share it
};

/// A setup rented somewhere. Those of one setup differ in price and, with spot, in time.
struct Candidate {
  std::size_t setup = 0;
  Market market = Market::on_demand;
  std::string region;         ///< "": the user's own price, that is of no region; or no price at all
  SharedList<Price> prices;   ///< of a server of each kind of the order; empty where not known
  OnInterruption reaction = OnInterruption::wait;
};

/// Everything that a plan looks at, in an order that does not depend on that of the plan's lists: servers by
/// name, mixtures after them, nodes, precisions, batches, strategies (the shorter label first), markets,
/// regions, reactions to interruptions; the last changes fastest.
struct CandidateSpace {
  std::vector<Setup> setups;
  std::vector<Candidate> candidates;
};

/// The catalogue's servers that a plan names, each read once.
using ServerTable = std::map<std::string, ServerSpec>;

/// Batches to try on a server: those of the plan, or what fits.
using BatchesThatFit =
    std::function<std::vector<std::int64_t>(const std::string& server, Precision precision)>;

/// Whether a server has a price in one of the plan's markets and regions.
bool has_price(const PlanSpec& spec, const ServerSpec& server);

/// @throws InputError: nothing to choose from, or more than PlanSpec::max_candidates
CandidateSpace enumerate(const PlanSpec& spec, const ServerTable& servers, const BatchesThatFit& batches);

/// `cluster:` of an order, as an experiment would write it.
YamlNode cluster_node(const PlanSpec& spec, const Order& order);

/// The point of an experiment that simulates a setup. @throws InputError
Point point_of(const PlanSpec& spec, const Setup& setup);

}  // namespace convoy::planning
