// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "sim/studies/claims/claim.h"

namespace convoy::inline studies {

/// Makes the records that `records:` of a file of claims asks for. An entry is one of
///   {experiment: papers/NAME, set: [key=value, …], explain: false}
///       the runs of configs/papers/NAME.yaml; with `explain` also with what would be gained (record.h)
///   {points_of: published/NAME, points: [{key: value, …}, …]}
///       a run a point, whose settings are given
///   {jobs_of: papers/NAME, seeds: [1, 2, …]}
///       the queue of its `jobs:` under every policy and seed
///   {jobs_of: papers/NAME, workloads: [traces/NAME, …], seeds: […]}
///       the same with jobs like those of each file (`jobs.workload`), which records name: workload
///   {largest_batches: papers/NAME, parts: [2, 4, …], host_bandwidth: 12GB/s}
///       the most images that fit on so many devices; and one device that pages over that link
///   {makespans: papers/NAME, models: […], parts: […], methods: […]}
///       of partitioners on training graphs
///   {operation_networks: […], parts: […], …}
///       networks placed with the largest batch that fits (network_records)
///   {trained: papers/NAME, target: 0.9}, {proofs_of: papers/NAME, sweep: {…}}
///       what networks learn, and whether plans compute what one device computes (training_records)
/// @param jobs processes at a time
/// @throws InputError; std::runtime_error where a run failed
RecordTables make_record_tables(const ClaimFile& file, std::size_t jobs);

}  // namespace convoy::studies
