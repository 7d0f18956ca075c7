// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/studies/refit.h"
#include "sim/studies/reproduce.h"

namespace convoy::inline studies {

/// A measured training step of a user's own beside its prediction.
struct ValidatedRow {
  std::vector<std::pair<std::string, std::string>> cells;  ///< column and text, those that are not empty
  double measured = 0, predicted = 0;                      ///< images/s of all devices
  std::optional<std::array<double, 2>> interval{};         ///< of the prediction, at 80 %

  double error() const { return predicted / measured - 1; }
};

/// What one term of the cost model, made slower or faster by one factor for all rows, would mend.
struct ValidatedTerm {
  std::string term;              ///< "kernels", "host", "network", "loader"
  double factor = 1;             ///< of the term's speed, of those tried the one with the least mean error
  double before = 0, after = 0;  ///< mean of |error| with the term as it is, and with the factor
};

struct Validation {
  std::vector<ValidatedRow> rows;
  ErrorSummary summary;              ///< of all rows
  std::optional<double> coverage;    ///< share of rows inside their interval; nothing where none has one
  std::vector<ValidatedTerm> terms;  ///< that any row depends on; the one that mends most first
  std::vector<ValidatedRefit> refits;  ///< of devices with rows of their own, of two networks or more
};

/// Predicts every row of a CSV file of measured training steps, and looks for the term that is off.
///
/// Columns: `model` and `images_per_s` (all devices together); `server` of the catalogue or `device`, with
/// `nodes` and `devices_per_node` (default 1; of a server all its devices); `batch_per_device`; and where
/// known `framework`, `execution`, `precision`, `layout`, `optimizer`, `strategy` (one line of YAML; default
/// all-reduce). A column whose name is a dotted path, such as `training.input` or
/// `cluster.fabric`, is that key of an experiment. `source` and `note` are carried along. An empty cell
/// is a key left out.
/// @throws InputError at the cell that is wrong
Validation validate_rows(const std::string& file, std::size_t jobs,
                         const std::function<void(std::size_t done, std::size_t all)>& progress);

/// Writes convoy.validate/1 (docs/compare.md).
void write_validation(const Validation& validation, std::ostream& out);
/// JSON Schema of it.
std::string validation_schema_text();
/// The same for people.
std::string validation_text(const Validation& validation);
/// The same as a page (html_page).
void write_page(const Validation& validation, std::ostream& out);

/// Writes validation.json, validation.html and, of each refit that helps, convoy/catalog/devices/NAME.yaml into a
/// folder, which is made. @returns the files @throws InputError: one cannot be written
std::vector<std::string> write_validation_files(const Validation& validation, const std::string& folder);

/// The columns that are no dotted paths.
const std::vector<std::string>& validation_columns();

}  // namespace convoy::studies
