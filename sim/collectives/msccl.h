// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/base/yaml_node.h"

namespace convoy::inline collectives {

/// An algorithm for MSCCL (github.com/microsoft/msccl, `algo` / `gpu` / `tb` / `step`) with `coll="allreduce"`
/// as a schedule (schedule.h), whose values have the places of the XML.
///
/// A thread block sends to one GPU and receives from one, step by step, and a step may wait for a step of
/// another block of its GPU (`depid`, `deps`). Sends and receives of two GPUs on a channel meet in order. From
/// this the earliest round of every step follows, counted in messages: convoy's rounds then keep them in step,
/// where MSCCL's blocks run ahead of each other.
///
/// Steps: s (send), r (receive), rrc (receive, reduce, copy), rcs (receive, copy, send), rrs and rrcs (receive,
/// reduce, send; the second keeps the result), cpy and re (copy and reduce in the GPU) and nop. Buffers: i and
/// o (one with `inplace="1"`, else the result is copied from o at the end) and s (scratch).
/// @throws InputError with the place
YamlNode read_msccl(const std::string& file);

}  // namespace convoy::collectives
