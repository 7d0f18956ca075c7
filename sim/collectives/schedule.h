// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/formula.h"
#include "sim/base/keys.h"
#include "sim/base/yaml_node.h"
#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline collectives {

/// What one rank gives another at a place of a round: `count` slots of its buffer from `slot` on, which the
/// receiver adds to its slots from `into` on, or puts into them. `from` and `to` may be the same rank, which
/// then moves it for itself, in no time.
struct ChunkMove {
  std::uint32_t from, to;
  std::uint32_t slot, into, count;
  bool adds;
  std::uint32_t rule;  ///< index into the round's rules, for messages
};

/// An all-reduce as a file says it: rounds in which ranks send each other chunks of the data, listed or by
/// formulas over the ranks (docs/collectives.md). Every rank has a buffer of `chunks` slots, which begin with
/// its own parts and end with the sums, and of scratch slots, which begin empty.
///
/// For every number of ranks that it is used with, its chunks are followed through the rounds (follow_chunks.h):
/// what is made of it is an all-reduce, or an error.
class SumSchedule {
 public:
  /// A number that the file gives, or a formula over the names that are known at its place.
  class Term {
   public:
    Term() = default;
    /// @param names that a formula may use, in the order of `values` later on
    /// @throws InputError at the node
    Term(const YamlNode& node, std::string path, const std::vector<std::string>& names);
    /// @throws InputError at the node: not a whole number in [least, most] (most: std::nullopt: 2^53)
    std::int64_t value(const std::vector<std::int64_t>& values, std::int64_t least, std::int64_t most) const;
    const SourcePos& pos() const { return node_.pos; }

   private:
    YamlNode node_;
    std::string path_;
    std::optional<Formula> formula_;
    std::vector<std::size_t> uses_;  ///< of the formula's names, which values
  };
  struct Send {
    std::vector<Term> loops;  ///< counts of the names that run from 0, the outermost first
    std::optional<Term> when, into;
    Term from, to, chunk, count;
    bool adds;
    std::string path;  ///< "rounds[1].send[0]"
    SourcePos pos;
  };
  struct RoundRule {
    Term repeat;
    std::vector<Send> sends;
    bool is_gather;  ///< of the half behind the reduce-scatter
  };
  /// Conditions on the ranks; 0 where there is none.
  struct Requirement {
    std::int64_t least = 0, most = 0, multiple_of = 0;
    bool power_of_two = false, equal_hosts = false;
  };
  /// A step of a round, all of whose moves take what was there before it.
  struct Step {
    const RoundRule& rule;
    std::int64_t step;
    std::vector<ChunkMove> moves;
  };
  /// How many ranks there are, and on how many hosts; 0 ranks a host: different numbers.
  struct Size {
    std::uint32_t ranks = 0, hosts = 0, ranks_per_host = 0;
    auto operator<=>(const Size&) const = default;
  };
  struct Buffer {
    std::uint32_t chunks = 0, scratch = 0;
    std::vector<double> shares;  ///< of the bytes, of each chunk; empty: equal
  };

  /// Reads YAML, or MSCCL's XML where the name ends in ".xml". @throws InputError
  static std::shared_ptr<const SumSchedule> load(const std::string& file);
  /// @param name the file's, without folders
  SumSchedule(const YamlNode& node, std::string name);

  const std::string& name() const { return name_; }
  const std::string& summary() const { return summary_; }
  /// It is a reduce-scatter and an all-gather, not only rounds.
  bool has_halves() const { return has_halves_; }

  /// "needs a power of two of devices, found 6"; empty where it has rounds for them.
  std::string why_not(const std::vector<EndpointId>& ranks, const Machine& machine) const;
  /// The same of its halves, which must leave each rank an equal share.
  std::string why_no_scatter(const std::vector<EndpointId>& ranks, const Machine& machine) const;

  enum class Part : std::uint8_t { all, scatter, gather };
  /// Ranks are numbered host by host, in the order of their first rank; consecutive steps that send the same
  /// to the same are one round, repeated. @pre why_not() (why_no_scatter()) is empty @throws InputError: it is
  /// no all-reduce
  Pattern pattern(const std::vector<EndpointId>& ranks, const Machine& machine, Part part) const;

  /// @throws InputError: it is no all-reduce of so many ranks
  void check(const Size& size) const;
  /// @throws InputError
  Buffer buffer(const Size& size) const;
  /// Calls `visit` for each step in order. @throws InputError
  void for_each_step(const Size& size, const std::function<void(const Step&)>& visit) const;

  /// The keys of a file, of its rounds and of what they send.
  static std::vector<KeyText> key_texts();

 private:
  struct Rounds {
    std::vector<Round> scatter, gather;  ///< without halves all are in `scatter`
    bool scatters_equally = false;
  };
  std::string why_not(const Size& size) const;
  const Rounds& rounds(const Size& size) const;
  Rounds make_rounds(const Size& size) const;
  std::vector<std::int64_t> names_of(const Size& size) const;
  Send read_send(const YamlNode& node, const std::string& path, std::optional<bool> adds) const;
  void read_rounds(const YamlNode& node, const std::string& path, std::optional<bool> adds, bool is_gather);

  std::string name_, summary_;
  SourcePos pos_;
  Requirement requirement_;
  std::vector<std::string> names_;  ///< that every formula may use
  std::vector<Term> let_;
  std::vector<double> shares_;
  Term chunks_;
  std::optional<Term> scratch_;
  std::vector<RoundRule> rules_;
  bool has_halves_ = false;
  mutable std::map<Size, Rounds> made_;
};

/// How many ranks there are on how many hosts.
SumSchedule::Size schedule_size(const std::vector<EndpointId>& ranks, const Machine& machine);

}  // namespace convoy::collectives
