// SPDX-License-Identifier: MIT
#include "sim/studies/thesis.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/base/data_path.h"
#include "sim/studies/claims/configs.h"
#include "sim/studies/claims/record_tables.h"

namespace convoy::inline studies {

namespace {
const std::string thesis_folder = "results/published/theses";

JudgedSentence judge_sentence(const AbstractSentence& sentence, const std::vector<JudgedClaim>& claims) {
  JudgedSentence judged{sentence};
  for (const JudgedClaim& claim : claims) {
    if (std::find(sentence.judged_by.begin(), sentence.judged_by.end(), claim.title) ==
        sentence.judged_by.end())
      continue;
    if (claim.verdict() == Verdict::none)
      ++judged.without_verdict;
    else
      ++(claim.verdict() == Verdict::passed ? judged.passed : judged.failed);
  }
  return judged;
}

}  // namespace

bool ThesisReproduction::passed() const {
  return std::none_of(claims.begin(), claims.end(), [](const JudgedClaim& claim) {
    return !claim.miscounted.empty() || (claim.verdict() == Verdict::failed && claim.shortfall.empty());
  });
}

std::string ThesisReproduction::source_of(const JudgedClaim& claim) const {
  for (const auto& [key, text] : sources)
    if (key == claim.source) return text;
  return {};
}

std::vector<std::string> thesis_names() { return data_names(thesis_folder); }

ThesisStudy run_thesis(const std::string& name, std::size_t jobs) {
  ThesisStudy study{read_claims(data_path(thesis_folder) + "/" + name + ".yaml"), {}};
  study.records = make_record_tables(study.file, jobs);
  return study;
}

std::vector<std::string> theses_with_where() {
  std::vector<std::string> names;
  for (const std::string& name : thesis_names())
    if (std::filesystem::exists(fmt::format("{}/papers/{}-where.yaml", data_path("configs"), name)))
      names.push_back(name);
  return names;
}

StudyResult run_where(const std::string& name, std::size_t jobs) {
  const Experiment experiment = load_config(fmt::format("papers/{}-where", name), {});
  Store store;
  StudyOptions options;
  options.sweep.jobs = jobs;
  return run_study(experiment, read_study(experiment), store, options);
}

ThesisReproduction judge(const ThesisStudy& study) {
  const ClaimFile& file = study.file;
  ThesisReproduction result{file.name, file.title, file.note, file.sources, {}, {}};
  for (const ClaimSpec& spec : file.claims)
    for (JudgedClaim& claim : spec.judge(study.records)) result.claims.push_back(std::move(claim));
  for (const AbstractSentence& sentence : file.sentences)
    result.abstract.push_back(judge_sentence(sentence, result.claims));
  return result;
}

}  // namespace convoy::studies
