// SPDX-License-Identifier: MIT
#include "sim/collectives/follow_chunks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/base/input_error.h"

namespace convoy::inline collectives {
namespace {

constexpr std::size_t most_words = std::size_t{1} << 26;

}  // namespace

ChunkBuffers::ChunkBuffers(const SumSchedule::Size& size, const SumSchedule::Buffer& buffer,
                           const SourcePos& pos)
    : ranks_(size.ranks),
      chunks_(buffer.chunks),
      slots_(std::size_t{buffer.chunks} + buffer.scratch),
      words_((size.ranks + 63) / 64) {
  if (slots_ * ranks_ > most_words / words_)
    throw InputError(pos, fmt::format("{} slots on each of {} ranks are too many to follow: with so many "
                                      "ranks at most {} are",
                                      slots_, ranks_, most_words / words_ / ranks_));
  chunk_.assign(slots_ * ranks_, empty);
  parts_.assign(slots_ * ranks_ * words_, 0);
  written_.assign(slots_ * ranks_, 0);
  for (std::uint32_t r = 0; r < ranks_; ++r)
    for (std::uint32_t c = 0; c < chunks_; ++c) {
      chunk_[index(r, c)] = c;
      parts_[index(r, c) * words_ + r / 64] = std::uint64_t{1} << (r % 64);
    }
}

void ChunkBuffers::fail(const SumSchedule::Step& step, const ChunkMove& move, const std::string& what) const {
  const SumSchedule::Send& send = step.rule.sends[move.rule];
  throw InputError(send.pos, fmt::format("{}, step {}: {}", send.path, step.step, what));
}

std::string ChunkBuffers::ranks_in(const std::uint64_t* parts, bool present) const {
  constexpr std::size_t most_named = 5;
  std::vector<std::uint32_t> found;
  for (std::uint32_t r = 0; r < ranks_; ++r)
    if ((parts[r / 64] >> (r % 64) & 1) == (present ? 1 : 0)) found.push_back(r);
  const std::size_t more = found.size() > most_named ? found.size() - most_named : 0;
  found.resize(found.size() - more);
  return fmt::format("{} {}{}", found.size() + more == 1 ? "rank" : "ranks", fmt::join(found, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

void ChunkBuffers::take(const SumSchedule::Step& step, const ChunkMove& move, std::uint32_t k) {
  const std::size_t at = index(move.from, move.slot + k);
  if (chunk_[at] == empty)
    fail(step, move,
         fmt::format("rank {} sends slot {}, in which there is nothing", move.from, move.slot + k));
  carried_chunk_.push_back(chunk_[at]);
  carried_.insert(carried_.end(), parts_.begin() + static_cast<std::ptrdiff_t>(at * words_),
                  parts_.begin() + static_cast<std::ptrdiff_t>((at + 1) * words_));
}

void ChunkBuffers::put(const SumSchedule::Step& step, const ChunkMove& move, std::uint32_t k,
                       std::size_t carried) {
  const std::uint32_t slot = move.into + k;
  const std::size_t at = index(move.to, slot);
  const std::uint32_t chunk = carried_chunk_[carried];
  const std::uint64_t* parts = carried_.data() + carried * words_;
  if (slot < chunks_ && slot != chunk)
    fail(step, move, fmt::format("rank {} gets chunk {} in the place of chunk {}", move.to, chunk, slot));
  if (written_[at] == 2 || (written_[at] == 1 && !move.adds))
    fail(step, move,
         fmt::format("rank {}: chunk {} is written twice in the same step, and which is last is open",
                     move.to, chunk));
  written_[at] = move.adds ? 1 : 2;
  if (!move.adds) {
    chunk_[at] = chunk;
    std::copy(parts, parts + words_, parts_.begin() + static_cast<std::ptrdiff_t>(at * words_));
    return;
  }
  if (chunk_[at] != chunk)
    fail(step, move,
         chunk_[at] == empty ? fmt::format("rank {} adds chunk {} to slot {}, in which there is nothing",
                                           move.to, chunk, slot)
                             : fmt::format("rank {} adds chunk {} to chunk {}", move.to, chunk, chunk_[at]));
  std::vector<std::uint64_t> both(words_);
  bool twice = false;
  for (std::size_t w = 0; w < words_; ++w) {
    both[w] = parts_[at * words_ + w] & parts[w];
    twice = twice || both[w] != 0;
    parts_[at * words_ + w] |= parts[w];
  }
  if (twice)
    fail(step, move,
         fmt::format("rank {} adds the part of {} to chunk {} a second time", move.to,
                     ranks_in(both.data(), true), chunk));
}

void ChunkBuffers::apply(const SumSchedule::Step& step) {
  carried_chunk_.clear();
  carried_.clear();
  for (const ChunkMove& move : step.moves)
    for (std::uint32_t k = 0; k < move.count; ++k) take(step, move, k);
  std::size_t carried = 0;
  for (const ChunkMove& move : step.moves)
    for (std::uint32_t k = 0; k < move.count; ++k) put(step, move, k, carried++);
  for (const ChunkMove& move : step.moves)
    for (std::uint32_t k = 0; k < move.count; ++k) written_[index(move.to, move.into + k)] = 0;
}

bool ChunkBuffers::is_summed(std::size_t slot) const {
  std::size_t present = 0;
  for (std::size_t w = 0; w < words_; ++w)
    present += static_cast<std::size_t>(std::popcount(parts_[slot * words_ + w]));
  return present == ranks_;
}

bool ChunkBuffers::are_scattered_equally(const std::vector<double>& shares) const {
  std::vector<double> owned(ranks_, 0);
  for (std::uint32_t c = 0; c < chunks_; ++c) {
    int owners = 0;
    for (std::uint32_t r = 0; r < ranks_; ++r)
      if (is_summed(index(r, c))) {
        ++owners;
        owned[r] += shares.empty() ? 1.0 / chunks_ : shares[c];
      }
    if (owners != 1) return false;
  }
  return std::all_of(owned.begin(), owned.end(),
                     [&](double share) { return std::abs(share * ranks_ - 1) < 1e-9; });
}

void ChunkBuffers::check_all_summed(const SourcePos& pos) const {
  for (std::uint32_t r = 0; r < ranks_; ++r)
    for (std::uint32_t c = 0; c < chunks_; ++c)
      if (!is_summed(index(r, c)))
        throw InputError(
            pos, fmt::format("after the last round, rank {} of {} has chunk {} without the part of {}", r,
                             ranks_, c, ranks_in(parts_.data() + index(r, c) * words_, false)));
}

}  // namespace convoy::collectives
