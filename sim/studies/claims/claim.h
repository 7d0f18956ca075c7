// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/expression.h"
#include "sim/base/yaml_map.h"
#include "sim/studies/claims/record.h"

namespace convoy::inline studies {

/// What a figure was used for before it is compared.
enum class ClaimRole : std::uint8_t {
  fit,         ///< parameters were fitted to it among others
  calibrated,  ///< a parameter was set by it: says nothing about the error
  test,        ///< nothing was set by it
};
/// Where a claim is stated: in a thesis's abstract, in a published table, or by us, as a law of the method.
enum class StatedIn : std::uint8_t { abstract, table, ours };
enum class Verdict : std::uint8_t { passed, failed, none };
/// What keeps a line from passing, as far as is known.
enum class FailureCause : std::uint8_t {
  thesis,     ///< what is stated can be read in several ways (which rivals, measured how)
  input,      ///< an input that is not stated decides (batch, tolerance, network)
  mechanism,  ///< something that the authors' machine or program did is not simulated
};
std::string_view to_string(ClaimRole role);
std::string_view to_string(FailureCause cause);
std::string_view to_string(StatedIn stated_in);
std::string_view to_string(Verdict verdict);

/// One line of a thesis's comparison, judged.
struct JudgedClaim {
  std::string title;  ///< as in the file of claims: the same for all of its lines
  std::string claim, setup, unit;
  std::string source;  ///< key of ClaimFile::sources
  ClaimRole role = ClaimRole::test;
  StatedIn stated_in = StatedIn::ours;
  double ours = 0;
  std::optional<double> published;
  std::optional<double> low, high;  ///< accepted values of ours; if neither is set, there is no verdict
  std::string because;              ///< why so much is accepted; "" where a bound of 0 or 1 says it itself
  /// What was searched where the line is the greatest, the least or the mean of several cells: "greatest of 6,
  /// 1.9 to 6.08"; "" for one cell.
  std::string searched;
  std::string shortfall;                     ///< why it is known to fail; "" if it should pass
  FailureCause cause = FailureCause::input;  ///< of the shortfall
  /// Set if the number of failing lines differs from the one that the claim states. No line is excused then.
  std::string miscounted;
  /// For a line that passed, the smallest wrong input under which it fails: "many.step_time_s x 4"; "" if
  /// none does.
  std::string fails_under;
  Verdict verdict() const;
};

/// Records by the name that a file of claims gives them.
using RecordTables = std::map<std::string, std::vector<Record>, std::less<>>;

/// An entry of `claims:`: an expression over records for each cell of a table, and what is accepted of it.
/// What is accepted is stated with its reason (`accept: {within: 15 %, because: …}`), unless all bounds are 0
/// or 1. With `shortfall: {lines: 2, cause: input, reason: …}`, this many of its lines are known to fail, no
/// more and no fewer.
/// `fails_if` states a wrong input, or several in a list: other records in place of some (`select`), or
/// figures that are scaled (`scale: {name: 2}`). Factors are raised to the powers 1, 2, 3, … 16 until a line
/// fails, so that each line says how wrong its input has to be; of several wrong inputs, the first one that
/// fails counts.
class ClaimSpec {
 public:
  /// @param file_sources keys that `source` may name. @throws InputError
  ClaimSpec(const YamlNode& node, const std::vector<std::pair<std::string, std::string>>& file_sources);
  /// One line per cell. @throws InputError if a selection is not exactly one record, or a name is not in the
  /// records.
  std::vector<JudgedClaim> judge(const RecordTables& tables) const;
  const std::string& title() const { return claim_; }
  StatedIn stated_in() const { return stated_in_; }

 private:
  struct WrongInput {
    std::map<std::string, double> scale;  ///< "alias.name" -> factor
    YamlNode instead;                     ///< alias -> keys of its selection
    int power = 1;                        ///< of the factors
    std::string text() const;
  };
  static WrongInput read_wrong_input(YamlMap& map);
  /// @param wrong nullptr: as it is
  double value(const RecordTables& tables, const Scope& cell, const WrongInput* wrong) const;
  void read_accept(YamlMap& map);
  std::string searched(const std::vector<double>& each) const;
  JudgedClaim judge_cell(const RecordTables& tables, const Scope& cell, const WrongInput* wrong) const;
  std::string smallest_failure(const RecordTables& tables, const Scope& cell) const;
  std::string told(const std::string& text, const Scope& cell) const;

  SourcePos pos_;
  std::string claim_, setup_, unit_, source_, expression_, take_, because_, shortfall_;
  FailureCause cause_ = FailureCause::input;
  std::int64_t known_failures_ = 0;
  SourcePos expression_pos_;
  ClaimRole role_ = ClaimRole::test;
  StatedIn stated_in_ = StatedIn::ours;
  std::vector<Scope> cells_, over_;         ///< over: of a cell, of which `take_` is taken
  YamlNode select_;                         ///< alias -> {from, key: value}
  std::optional<YamlNode> published_;       ///< an expression, or {by: axis, value: expression}
  std::map<std::string, YamlNode> accept_;  ///< at_most, at_least, within
  std::vector<WrongInput> wrong_inputs_;    ///< fails_if
};

/// What a sentence of a thesis's abstract says, in our words, and the claims that judge it.
struct AbstractSentence {
  std::string says;
  std::vector<std::string> judged_by;  ///< titles of claims
  std::string not_judged;              ///< why no claim does; "" if some do
  std::string not_said;                ///< what the verdict does not say; may be ""
};

/// results/published/theses/NAME.yaml.
struct ClaimFile {
  std::string name, title, note;
  std::vector<std::pair<std::string, std::string>> sources;  ///< key -> text
  std::vector<std::pair<std::string, YamlNode>> records;     ///< table -> how to make its records
  std::vector<ClaimSpec> claims;
  std::vector<AbstractSentence> sentences;
};
/// @throws InputError, also if a sentence names a claim that does not exist, or a claim stated in the
/// abstract belongs to no sentence
ClaimFile read_claims(const std::string& file);

/// Arithmetic with + - * / ^, parentheses and the functions of muParser (min, max, exp, ln, sqrt, ...).
/// @param value_of returns the value of a name; may throw. @throws InputError at `pos`
double evaluate_expression(const std::string& expression, const SourcePos& pos,
                           const std::function<double(const std::string&)>& value_of);

}  // namespace convoy::studies
