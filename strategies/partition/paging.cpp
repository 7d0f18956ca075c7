// SPDX-License-Identifier: MIT
#include "strategies/partition/paging.h"

#include <algorithm>
#include <list>
#include <vector>

namespace convoy::inline partition {
namespace {

/// The device's memory: blocks, the one longest without use first.
class Paged {
 public:
  Paged(std::size_t blocks, double memory_bytes) : memory_bytes_(memory_bytes), blocks_(blocks) {}

  void set_bytes(std::size_t block, double bytes) { blocks_[block].bytes = bytes; }

  /// For one operation: what it needs is there afterwards, as far as there is room.
  void touch(const std::vector<std::size_t>& needed) {
    in_bytes_ = out_bytes_ = 0;
    for (const std::size_t b : needed) {
      Block& block = blocks_[b];
      if (block.bytes == 0) continue;
      if (block.here) {
        used_.splice(used_.end(), used_, block.at);
        continue;
      }
      if (block.written) in_bytes_ += block.bytes;
      block.written = true;
      make_room(block.bytes);
      block.here = true;
      block.at = used_.insert(used_.end(), b);
      held_bytes_ += block.bytes;
    }
  }
  /// Nobody needs it any more.
  void free(std::size_t b) {
    leave(b);
    blocks_[b].written = false;
  }
  double in_bytes() const { return in_bytes_; }
  double out_bytes() const { return out_bytes_; }

 private:
  struct Block {
    double bytes = 0;
    bool here = false, written = false;
    std::list<std::size_t>::iterator at = {};
  };
  void leave(std::size_t b) {
    if (!blocks_[b].here) return;
    blocks_[b].here = false;
    used_.erase(blocks_[b].at);
    held_bytes_ -= blocks_[b].bytes;
  }
  void make_room(double bytes) {
    while (!used_.empty() && held_bytes_ + bytes > memory_bytes_) {
      out_bytes_ += blocks_[used_.front()].bytes;
      leave(used_.front());
    }
  }
  double memory_bytes_, held_bytes_ = 0, in_bytes_ = 0, out_bytes_ = 0;
  std::vector<Block> blocks_;
  std::list<std::size_t> used_;  ///< on the device
};

/// One execution of the graph.
PagedRun run_once(const Dag& dag, Paged& memory, double host_bandwidth_Bpus) {
  const std::size_t count = dag.size();
  std::vector<std::size_t> readers(count), needed;
  for (NodeId v = 0; v < count; ++v) readers[v] = dag.children(v).size();
  PagedRun run;
  for (const NodeId v : dag.order()) {
    needed.clear();
    for (const NodeId u : dag.parents(v)) {
      needed.push_back(u);
      needed.push_back(count + u);
    }
    needed.push_back(v);
    needed.push_back(count + v);
    memory.touch(needed);
    run.in_bytes += memory.in_bytes();
    run.out_bytes += memory.out_bytes();
    run.makespan_us += dag.time_us(v) + std::max(memory.in_bytes(), memory.out_bytes()) / host_bandwidth_Bpus;
    for (const NodeId u : dag.parents(v))
      if (--readers[u] == 0) memory.free(u);
    if (readers[v] == 0) memory.free(v);
  }
  return run;
}

}  // namespace

PagedRun run_paged(const Dag& dag, double memory_bytes, double host_bandwidth_Bpus) {
  // Blocks: a node's output, and behind all of them its memory_bytes. A variable's output is part of those.
  const std::size_t count = dag.size();
  Paged memory(2 * count, memory_bytes);
  for (NodeId v = 0; v < count; ++v) {
    memory.set_bytes(v, dag.memory_bytes(v) > 0 ? 0 : dag.output_bytes(v));
    memory.set_bytes(count + v, dag.memory_bytes(v));
  }
  run_once(dag, memory,
           host_bandwidth_Bpus);  // the step before leaves the device's memory as this one finds it
  return run_once(dag, memory, host_bandwidth_Bpus);
}

}  // namespace convoy::partition
