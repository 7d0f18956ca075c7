// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/collectives/schedule.h"

namespace convoy::inline collectives {

/// What every slot of every rank's buffer holds while a schedule is gone through: of which chunk, and whose
/// parts of it. Nothing is added to a sum a second time, chunks are not mixed up, and nothing that is not
/// there is sent.
class ChunkBuffers {
 public:
  /// @throws InputError (at pos): the sets of parts would take more than 512 MiB
  ChunkBuffers(const SumSchedule::Size& size, const SumSchedule::Buffer& buffer, const SourcePos& pos);

  /// All moves of a step at once. @throws InputError at the rule of a move, with step, rank and chunk
  void apply(const SumSchedule::Step& step);

  /// Whether each rank alone has the sums of chunks that make up an equal share of the bytes.
  bool are_scattered_equally(const std::vector<double>& shares) const;
  /// @throws InputError (at pos) that names the first rank and chunk whose sum is not there
  void check_all_summed(const SourcePos& pos) const;

 private:
  static constexpr std::uint32_t empty = 0xffffffff;
  std::size_t index(std::uint32_t rank, std::uint32_t slot) const {
    return std::size_t{rank} * slots_ + slot;
  }
  bool is_summed(std::size_t slot) const;
  void take(const SumSchedule::Step& step, const ChunkMove& move, std::uint32_t k);
  void put(const SumSchedule::Step& step, const ChunkMove& move, std::uint32_t k, std::size_t carried);
  [[noreturn]] void fail(const SumSchedule::Step& step, const ChunkMove& move, const std::string& what) const;
  std::string ranks_in(const std::uint64_t* parts, bool present) const;

  std::uint32_t ranks_, chunks_;
  std::size_t slots_, words_;
  std::vector<std::uint32_t> chunk_;   ///< by slot; empty
  std::vector<std::uint64_t> parts_;   ///< by slot, a bit a rank
  std::vector<std::uint8_t> written_;  ///< by slot, in the step under way: 1 added to, 2 put into
  std::vector<std::uint32_t> carried_chunk_;
  std::vector<std::uint64_t> carried_;  ///< what the moves of the step took, in order
};

}  // namespace convoy::collectives
