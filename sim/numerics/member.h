// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/numerics/device_values.h"
#include "sim/numerics/gradient_code.h"
#include "sim/numerics/optimizer.h"
#include "sim/numerics/part_values.h"

namespace convoy::inline numerics {

/// Elements [begin, end) of a bucket, whose tensors follow one another.
struct BucketRange {
  std::size_t begin = 0, end = 0;
};
/// The part with this number of `parts` that are as equal as possible.
BucketRange part_of(std::size_t elements, std::size_t number, std::size_t parts);

/// A device or a server: its parameters, their gradients, and what it has of buckets on their way.
template <class Real>
class Member {
 public:
  /// @param id distinguishes members  @param parameters with which training begins
  Member(const Lesson& lesson, const Meaning& meaning, std::string name, EndpointId id,
         const ParameterValues<Real>& parameters);

  const std::string& name() const { return name_; }
  /// The member has parts of layers.
  void work_on_parts(const PartLesson& lesson);
  /// It begins with what has been trained before.
  /// @param running statistics, by layer
  void go_on_with(ParameterValues<Real> parameters, std::vector<OptimizerState<Real>> states,
                  const std::vector<RunningStatistics<Real>>& running);

  /// Of a bucket, what of its parameters or their sums this member has alone. @param forgets the rest is not
  /// there until it is gathered
  void share(std::uint32_t bucket, BucketRange range, bool forgets);

  void begin_step(std::int64_t step, std::int64_t position, double loss_scale);
  /// Of a run that goes on: all passes of a micro-batch read the parameters with which its first began, or as they
  /// were after a number of updates; gradients are divided by the images of their update.
  /// @param images by layer and update  @param versions numbers of updates, by micro-batch
  void keep_versions(const std::map<std::uint32_t, std::vector<double>>& images,
                     std::map<std::int64_t, std::size_t> versions);
  /// Nothing of a micro-batch is needed any more.
  void forget(std::int64_t micro_batch);
  /// Runs an operation of a plan. @param first image; @param began and now count events (DeviceValues::run)
  void run(const OpMeaning& means, std::int64_t first, std::uint64_t began, double learning_rate);
  /// A server updates its part of a bucket with what has been added up there, times `scale`.
  void serve(std::uint32_t bucket, double scale, double learning_rate, std::uint64_t began);

  // Messages. Values are those of a whole bucket, or of a range of it.

  DeviceValues<Real>& results() { return values_; }
  PartValues<Real>& parts() { return *parts_; }  ///< @pre work_on_parts
  /// Of devices that have parts of layers: what is sent of a result, and what has come (PartValues).
  struct CarriedPart {
    typename PartValues<Real>::Carried result{};
    ParameterValues<Real> values{};  ///< of a layer's parameters, or their gradients
  };
  CarriedPart send_part(const CommMeaning::Result& result, const CommMeaning& means, std::int64_t first,
                        std::uint64_t now);
  void take_part(const CommMeaning::Result& result, const CommMeaning& means,
                 const std::vector<const CarriedPart*>& sent, bool in_group, std::uint64_t now);
  const std::vector<RunningStatistics<Real>>& running() const {
    return parts_ ? parts_->running() : values_.running();
  }
  double loss() const { return parts_ ? parts_->loss() : values_.loss(); }  ///< sum over images, of the step
  /// The elements of a parameter that the member alone keeps up to date; nothing where it has no bucket.
  std::optional<BucketRange> own_range(std::size_t parameter) const;
  /// Gradients as they are sent: compressed, copied, or as they are. @param takes they are there no longer
  std::vector<Real> sent_gradients(std::uint32_t bucket, bool takes);
  /// The same to servers, or to whom adds them up first, with what the member has added up of its node. New
  /// parameters then replace those of the bucket.
  std::vector<Real> pushed_gradients(std::uint32_t bucket, std::uint64_t now);
  /// The sum over all members has come, to where the gradients were sent from.
  /// @param members whose gradients were summed
  void take_sum(std::uint32_t bucket, std::vector<Real> sum, std::size_t members, std::uint64_t now);
  /// Second factors as they are sent (GradientCode), and their sum.
  const std::vector<Real>& sent_factors(std::uint32_t bucket);
  void take_factors(std::uint32_t bucket, std::vector<Real> sum, std::uint64_t now);
  /// How a member adds up gradients of its node's devices before they go to servers.
  enum class InNode : std::uint8_t {
    none,   ///< it does not
    host,   ///< those that come
    owner,  ///< those that come, and its own
    ring,   ///< its part of all
  };
  /// @param part of a ring
  void join_node(std::uint32_t bucket, InNode how, BucketRange part);
  bool is_in_ring(std::uint32_t bucket) const { return buckets_.at(bucket).in_node == InNode::ring; }
  /// Of a ring the part that the member pushes and gets back; else its range.
  BucketRange part(std::uint32_t bucket) const;
  /// Adds to the sums of the node. @param values of the whole bucket
  void add_of_node(std::uint32_t bucket, const std::vector<Real>& values, std::uint64_t now);
  /// The sums of the node are used by what began then. @throws MissingValue
  void need_sums_of_node(std::uint32_t bucket, std::uint64_t began) const;
  /// Updates the bucket with what has been added up and the member's own gradients.
  void update_for_node(std::uint32_t bucket, double learning_rate, std::uint64_t now);
  /// @throws MissingValue: parts of them have not come
  std::vector<Real> whole_parameters(std::uint32_t bucket) const;
  /// Adds to the sums of the member's own range. @param values of the whole bucket
  void add_to_range(std::uint32_t bucket, const std::vector<Real>& values, std::uint64_t now);
  /// The sum of parameters of other members, or of all of them, has come. @param members in the sum
  /// @param adds_own the member's own count, too
  void take_average(std::uint32_t bucket, std::vector<Real> sum, std::size_t members, bool adds_own,
                    std::uint64_t now);
  std::vector<Real> parameters(std::uint32_t bucket) const;  ///< those that are not there are old
  void take_parameters(std::uint32_t bucket, BucketRange range, const std::vector<Real>& of_bucket);
  /// All ranges have come.
  void complete_parameters(std::uint32_t bucket, std::uint64_t now);

  const ParameterValues<Real>& all_parameters() const { return parameters_; }
  const ParameterValues<Real>& gradients() const { return gradients_; }
  const std::vector<OptimizerState<Real>>& states() const { return states_; }
  std::size_t elements(std::uint32_t bucket) const;
  BucketRange range(std::uint32_t bucket) const { return buckets_.at(bucket).range; }

 private:
  struct OfBucket {
    BucketRange range;
    bool is_whole = true;  ///< all parameters are there
    /// Its parameters go after each use, and are gathered for each: when, and how often they have gone.
    bool forgets = false;
    std::vector<std::uint64_t> gathered_at;
    std::size_t gone = 0;
    std::uint64_t whole_at = 0, came_at = 0;  ///< events
    std::vector<Real> copy, compressed, came, sums;
    std::optional<GradientCode<Real>> code;   ///< of what is compressed
    std::vector<Real> factors, factors_came;  ///< second ones, where gradients go as factors
    std::uint64_t factors_came_at = 0;        ///< event
    std::size_t members = 1;                  ///< whose gradients have been summed
    bool is_summed = false;
    std::size_t updated = 0;  ///< parameters, with these sums
    // Of gradients that are added up in nodes.
    InNode in_node = InNode::none;
    BucketRange part;
    std::vector<Real> node_sums;
    std::uint64_t node_sums_at = 0;  ///< event
    // Of parameters that are averaged.
    bool adds_own = false;
    std::vector<Real> before, slow;  ///< those after the last average, and the slow momentum
  };

  [[noreturn]] void miss(const std::string& what) const;
  const ParameterValues<Real>& version_of(std::int64_t micro_batch);
  std::vector<Real> joined(std::uint32_t bucket, const ParameterValues<Real>& values) const;
  void split(std::uint32_t bucket, const std::vector<Real>& from, BucketRange range,
             ParameterValues<Real>& values) const;
  std::vector<Real> own_gradients(std::uint32_t bucket) const;
  void compress(std::uint32_t bucket);
  void make_factors(std::uint32_t bucket, std::uint64_t began);
  void make_mean(std::uint32_t bucket, std::uint64_t began);
  void move_slowly(std::uint32_t bucket);
  void decompress(std::uint32_t bucket, std::uint64_t began);
  void put_back(std::uint32_t bucket, std::uint64_t began);
  /// Of a parameter's first element in its bucket. @pre it has one
  std::size_t place_of(std::size_t parameter) const;
  void update(std::uint32_t layer, double learning_rate, std::uint64_t began);
  void need_parameters(std::uint32_t layer, std::uint64_t began) const;
  void make_gradient(const OpMeaning& means, std::int64_t first, std::uint64_t began, std::uint32_t layer);
  void take_in_gradient(const OpMeaning& means, std::uint64_t began);
  std::string name_of(std::uint32_t bucket) const;

  const Lesson& lesson_;
  const Meaning& meaning_;
  std::string name_;
  EndpointId id_;
  DeviceValues<Real> values_;
  std::unique_ptr<PartValues<Real>> parts_;       ///< in their place, of devices that have parts of layers
  ParameterValues<Real> parameters_, gradients_;  ///< gradients: empty until one is added
  // Where devices send each other gradients of parameters, of the step, by micro-batch and parameter.
  struct ComeGradient {
    std::vector<Real> values;
    std::uint64_t since = 0;
  };
  std::map<std::pair<std::int64_t, std::size_t>, std::vector<Real>> made_gradients_;
  std::map<std::pair<std::int64_t, std::size_t>, ComeGradient> come_gradients_;  ///< not added up yet
  std::vector<OptimizerState<Real>> states_;
  std::optional<ParameterValues<Real>>
      trained_before_;  ///< parameters with which it began, if not first_parameters
  using Version = std::shared_ptr<ParameterValues<Real>>;
  bool keeps_versions_ = false;
  Version newest_;                            ///< a copy of the parameters, if there was no update since
  std::map<std::int64_t, Version> versions_;  ///< by micro-batch
  std::map<std::int64_t, std::size_t> wanted_versions_;  ///< by micro-batch: after how many updates
  std::map<std::size_t, Version> former_;                ///< by number of updates; where some are wanted
  std::map<std::uint32_t, std::vector<double>> images_of_updates_;  ///< by layer
  std::map<std::uint32_t, std::size_t> updates_;                    ///< done, by layer
  std::map<std::uint32_t, OfBucket> buckets_;
  std::vector<std::optional<std::uint32_t>> bucket_of_;  ///< by parameter: of those that are shared
};

}  // namespace convoy::numerics
