// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace convoy::inline strategies {

/// `kind: data_parallel, sync: parameter_server`: replicas push gradients to servers, which add them up,
/// update the parameters and send them back once all replicas have pushed.
///
/// `placement: dedicated`: `servers` extra hosts beside the cluster's nodes; `colocated`: server k lives in
/// the memory of node k. With `overlap` a message leaves when backward has completed its gradients, and comes
/// back as soon as its server has it from all; without, everything is pushed after backward. The step ends
/// when all parameters are back. `local_aggregation`: devices of a node push to their host, which adds up and
/// talks to the servers for them. Closed form without overlap, N workers, S even shards of W bytes in all,
/// NIC bandwidth B: compute + 2 N W / (S B) + 2 alpha.
///
/// `mode`: with `sync` a server answers when all have pushed (all but `backup_workers`: later gradients are
/// dropped; Chen et al., "Revisiting Distributed Synchronous SGD", 2016); with `async` it answers each at
/// once; with `ssp` when the worker is at most `staleness` steps ahead of the slowest (Ho et al., "More
/// Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", NIPS 2013). The latter are
/// measured in the steady state (plan.h, Service).
std::unique_ptr<Strategy> read_parameter_server(YamlMap& map);
/// What it reads, for `convoy show strategies`.
std::vector<KeyText> parameter_server_key_texts();

}  // namespace convoy::strategies
