// SPDX-License-Identifier: MIT
#include "sim/results/write_json.h"

#include "sim/results/field_schema.h"
#include "sim/results/field_writer.h"
#include "sim/results/result_fields.h"

namespace convoy::inline results {

namespace {

/// The runs of results as a list that is gone through once; each is whole while it is looked at.
class WholeRuns {
 public:
  using Also = std::function<void(const RunResult& run, std::size_t index)>;
  using value_type = RunResult;

  WholeRuns(const SweepResults& results, const Also& also) : results_(results), also_(also) {}
  std::size_t size() const { return results_.runs.size(); }

  class Iterator {
   public:
    Iterator(const WholeRuns& all, std::size_t index) : all_(all), index_(index) {}
    const RunResult& operator*() {
      run_ = all_.results_.whole(index_);
      if (all_.also_) all_.also_(*run_, index_);
      return *run_;
    }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return index_ != other.index_; }

   private:
    const WholeRuns& all_;
    std::size_t index_;
    std::shared_ptr<const RunResult> run_;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

 private:
  const SweepResults& results_;
  const Also& also_;
};

/// What results_fields goes through.
struct Document {
  const std::string& experiment;
  const std::optional<std::int64_t>& points;
  const std::vector<FailedPoint>& failed;
  WholeRuns runs;
  const std::vector<ScheduleResult>& schedules;
  const Manifest& manifest;
};

}  // namespace

void write_json(const SweepResults& results, std::ostream& out,
                const std::function<void(const RunResult& run, std::size_t index)>& also) {
  const Document document{results.experiment,       results.points,    results.failed,
                          WholeRuns(results, also), results.schedules, results.manifest};
  JsonWriter json(out);
  FieldWriter archive(json);
  json.begin_object();
  results_fields(archive, document);
  json.end_object();
  json.raw("\n");
}

std::string results_schema_text() { return schema_text<Results>(results_fields); }

}  // namespace convoy::results
