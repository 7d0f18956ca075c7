// SPDX-License-Identifier: MIT
#include "sim/studies/regions/write_study.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <ostream>

#include "sim/page/text.h"
#include "sim/studies/regions/border.h"

namespace convoy::inline studies {
namespace {

std::string claim_text(const StudyResult& study, std::size_t c) {
  const StudyClaim& claim = study.spec.claims[c];
  const ClaimRegion& region = study.regions[c];
  std::string text =
      fmt::format("\n{}\n  {}\n  its value is {} to {}, {} in the median; accepted is {}", claim.claim,
                  sentence_of(study, c), number_text(region.least), number_text(region.greatest),
                  number_text(region.median), accepted_text(claim));
  text += claim.published ? fmt::format("; stated is {}\n", number_text(*claim.published)) : "\n";
  if (const std::string decides = deciding_text(study, c); !decides.empty())
    text += fmt::format("  decided by {} of the variance, each alone\n", decides);
  for (const StudyBorder& border : region.borders)
    text += fmt::format("  border: {}\n", text_of(study.spec, border));
  return text;
}

}  // namespace

std::string accepted_text(const StudyClaim& claim) {
  if (claim.low && claim.high)
    return fmt::format("{} to {}", number_text(*claim.low), number_text(*claim.high));
  return claim.low ? fmt::format("at least {}", number_text(*claim.low))
                   : fmt::format("at most {}", number_text(*claim.high));
}

std::string share_text(const StudyShare& share) {
  const std::string text = percent_text(share.share());
  return share.standard_error ? fmt::format("{} \u00b1 {}", text, percent_text(*share.standard_error)) : text;
}

std::string deciding_text(const StudyResult& study, std::size_t claim) {
  const std::vector<double>& indices = study.regions[claim].first_order;
  std::vector<std::size_t> order(indices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return indices[a] > indices[b]; });
  std::vector<std::string> texts;
  constexpr double least_told = 0.005;
  for (const std::size_t d : order) {
    if (indices[d] < least_told) break;
    texts.push_back(fmt::format("{} {}", study.spec.inputs[d].name, percent_text(indices[d])));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string sentence_of(const StudyResult& study, std::size_t claim) {
  const ClaimRegion& region = study.regions[claim];
  if (region.share.count == 0 || region.share.count == region.share.of)
    return fmt::format("holds {}: at {} of {} points", region.sentence.text, region.share.count,
                       region.share.of);
  const std::string& where = region.sentence.text;
  return fmt::format("holds in {} of the space{} {} (these words are right at {} of the points)",
                     share_text(region.share), where.starts_with("except") ? "," : ":", where,
                     percent_text(region.sentence.right));
}

std::string together_sentence(const StudyResult& study) {
  const StudyTogether& together = study.together;
  const std::string where = text_of(study.spec, together.set ? *together.set : together.nearest);
  std::vector<std::string> values;
  for (const double value : study.together_values) values.push_back(number_text(value));
  const std::string there = fmt::format("{}; the values are {} there", where, fmt::join(values, ", "));
  if (together.set && !together.searched)
    return fmt::format("all claims hold at once in {} of the space, nearest to its middle with {}",
                       share_text(together.share), there);
  if (together.set)
    return fmt::format(
        "all claims hold at once at none of {} points of the sample, but at one that was looked for: "
        "with {}",
        together.share.of, there);
  return fmt::format(
      "all claims hold at once at none of {} points, nor at any that was looked for beside them; the "
      "nearest miss is with {}",
      together.share.of, there);
}

std::string table(const StudyResult& study) {
  std::vector<std::string> names;
  for (const StudyInput& input : study.spec.inputs) names.push_back(input.name);
  std::string text = fmt::format("{}: {} points of {}, {} experiments simulated\n", study.experiment,
                                 study.outcomes.size(), fmt::join(names, ", "), study.simulated);
  constexpr std::size_t told = 3;
  for (std::size_t i = 0; i < std::min(told, study.impossible.size()); ++i)
    text +=
        fmt::format("not possible at {} points: {}\n", study.impossible[i].second, study.impossible[i].first);
  if (study.impossible.size() > told)
    text += fmt::format("not possible for {} other reasons, which study.json has\n",
                        study.impossible.size() - told);
  for (std::size_t c = 0; c < study.regions.size(); ++c) text += claim_text(study, c);
  if (study.regions.size() > 1) text += fmt::format("\n{}\n", together_sentence(study));
  return text;
}

}  // namespace convoy::studies
