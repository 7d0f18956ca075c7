// SPDX-License-Identifier: MIT
#include "sim/studies/theses/thesis.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "sim/base/data_path.h"
#include "sim/run/experiment.h"
#include "sim/run/sweep.h"
#include "sim/studies/theses/afs.h"
#include "sim/studies/theses/eserol2019.h"
#include "sim/studies/theses/kaist2019.h"
#include "sim/studies/theses/krizhevsky2014.h"
#include "sim/studies/theses/marques2016.h"
#include "sim/studies/theses/qararyah2020.h"
#include "sim/studies/theses/shi2019.h"

namespace convoy {

std::string_view to_string(Claim::Kind kind) {
  switch (kind) {
    case Claim::Kind::published:
      return "published";
    case Claim::Kind::calibrated:
      return "calibrated";
    case Claim::Kind::expected:
      return "expected";
    case Claim::Kind::shown:
      break;
  }
  return "shown";
}

bool ThesisReproduction::passed() const {
  return std::all_of(claims.begin(), claims.end(), [](const Claim& claim) { return claim.passed(); });
}

const std::string& ThesisReproduction::source_of(const Claim& claim) const {
  static const std::string none;
  const auto it = std::find_if(sources.begin(), sources.end(),
                               [&](const ClaimSource& source) { return source.key == claim.source; });
  if (it == sources.end() && !claim.source.empty())
    throw std::logic_error("no source '" + claim.source + "' in " + name);
  return it == sources.end() ? none : it->text;
}

ThesisReproduction make_thesis(std::string name, std::string title, std::string note,
                               std::string of_abstract) {
  return {std::move(name),
          std::move(title),
          std::move(note),
          {{abstract, std::move(of_abstract)},
           {calculation, "not published: what follows from the method, by our own calculation"}},
          {}};
}

const std::vector<ThesisEntry>& thesis_entries() {
  static const std::vector<ThesisEntry> table{{"afs", &reproduce_afs},
                                              {"eserol2019", &reproduce_eserol2019},
                                              {"kaist2019", &reproduce_kaist2019},
                                              {"krizhevsky2014", &reproduce_krizhevsky2014},
                                              {"marques2016", &reproduce_marques2016},
                                              {"qararyah2020", &reproduce_qararyah2020},
                                              {"shi2019", &reproduce_shi2019}};
  return table;
}

std::vector<RunResult> run_paper(const std::string& name, std::size_t jobs) {
  const Experiment experiment = Experiment::load(data_path("configs/papers") + "/" + name + ".yaml", {});
  return simulate_sweep(experiment, jobs).runs;
}

Claim published_within(std::string what, std::string setup, std::string unit, double published, double ours,
                       double tolerance, bool relative, std::string source) {
  const double width = relative ? tolerance * std::abs(published) : tolerance;
  return {Claim::Kind::published, std::move(what),   std::move(setup), std::move(unit), ours, published,
          published - width,      published + width, std::move(source)};
}

Claim expected_at_most(std::string what, std::string setup, std::string unit, double ours, double high,
                       std::string source) {
  return {Claim::Kind::expected,
          std::move(what),
          std::move(setup),
          std::move(unit),
          ours,
          std::nullopt,
          -std::numeric_limits<double>::max(),
          high,
          std::move(source)};
}

Claim shown(std::string what, std::string setup, std::string unit, double ours) {
  return {
      Claim::Kind::shown, std::move(what), std::move(setup), std::move(unit), ours, std::nullopt, 0, 0, ""};
}

}  // namespace convoy
