// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "sim/base/yaml_map.h"
#include "sim/studies/claims/record.h"

namespace convoy::inline studies {

/// Operation networks (docs/partition.md) placed by `placer` with the largest batch that fits and with a
/// quarter of it, and by its rivals with that quarter. An entry
///   {operation_networks: [{of: networks/NAME, set: {network.hidden: 2048, …}}, …], parts: [1, 2, …],
///    most: 1024, batches_alone: [1, …], memory: 30GiB, placer: pardnn, rivals: [heft, …],
///    bandwidth: 130GB/s, latency: 25us, host_bandwidth: 12GB/s}
/// gives a record for each network and number of parts, method "pardnn": "batch", the largest (0 where not
/// one sample fits; in powers of two, on one device up to `most`), its "makespan_us", "fits" and
/// "fullest_share" (the fullest part's peak over its memory), "unified_makespan_us" of one device that pages;
/// "quarter_makespan_us", "quarter_fits"; "best_samples_per_s" of the two. For each rival "makespan_us" and
/// "fits". For one part and each of `batches_alone` "makespan_us", method "fewer samples".
std::vector<Record> network_records(YamlMap& map, std::size_t jobs);

}  // namespace convoy::studies
