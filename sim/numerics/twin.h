// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/numerics/classroom.h"
#include "sim/numerics/twin_order.h"
#include "sim/replay/replay.h"

namespace convoy::inline numerics {

/// A plan whose steps follow one another, on real values: every device and server has its own, operations
/// run in the order of the replay, and what one has of another has come by a message.
template <class Real>
class Twin {
 public:
  /// @param replayed the plan's replay
  /// @pre refuses_plan(plan, lesson.graph) is "" (learn.h)
  Twin(const Lesson& lesson, const Plan& plan, const Machine& machine, const ReplayResult& replayed,
       double learning_rate);

  /// So many steps of the run were done before, by other plans.
  void begin_at(std::int64_t step) { first_step_ = step; }
  /// Goes through the programs once, which are of Plan::steps. @return mean loss of the images
  /// @throws MissingValue: the plan needs what is not there
  double step();
  /// Of a plan whose steps overlap: goes on until the next of them has ended. What is sent for later ones is
  /// under way then. @return mean loss of the images that have been through the network since the step before
  /// @throws MissingValue, as step()
  double next_step();
  /// The same to the end of the programs.
  void finish();

  const Classroom<Real>& classroom() const { return classroom_; }
  Classroom<Real>& classroom() { return classroom_; }

 private:
  using Sender = std::pair<CommId, EndpointId>;

  void begin_endless();
  void happen(const TwinEvent& event);
  void forget(const TwinEvent& event, const Task& task);
  void begin(const TwinEvent& event, const Task& task);
  void end(const TwinEvent& event, const Task& task);
  void compute(const TwinEvent& event, const Task& task);
  std::int64_t first_image(EndpointId endpoint, const ImageRange& images) const;
  std::vector<Real> contribution(EndpointId endpoint, const CommMeaning& means);
  void receive(EndpointId endpoint, CommId comm, const CommMeaning& means);
  void take_from(EndpointId sender, Member<Real>& member, const CommMeaning& means,
                 const std::vector<Real>& values);
  void collect(EndpointId endpoint, CommId comm, const CommMeaning& means);
  void mix(EndpointId endpoint, CommId comm, const CommMeaning& means);
  bool has_parts() const { return !plan_.meaning->positions.empty(); }
  void take_parts(EndpointId endpoint, CommId comm, const CommMeaning& means,
                  const std::vector<EndpointId>& senders, bool in_group);
  double images_of_update(EndpointId endpoint) const;

  const Lesson& lesson_;
  const Plan& plan_;
  double learning_rate_;
  Classroom<Real> classroom_;
  std::vector<TwinEvent> order_;
  std::int64_t first_step_ = 0, step_ = 0, batch_;  ///< batch_: of the programs, Plan::steps global batches
  std::uint64_t now_ = 0;  ///< events of the step so far
  std::map<std::pair<EndpointId, TaskId>, std::uint64_t> began_;
  std::map<Sender, std::vector<typename DeviceValues<Real>::Carried>> carried_;  ///< results under way
  std::map<Sender, std::vector<typename Member<Real>::CarriedPart>>
      carried_parts_;                                ///< of devices with parts
  std::map<Sender, std::vector<Real>> contributed_;  ///< gradients and parameters under way
  // Where steps overlap.
  std::size_t next_ = 0;                                             ///< of order_
  std::map<std::pair<EndpointId, TaskId>, std::size_t> ends_step_;   ///< index of the step
  std::vector<std::size_t> left_;                                    ///< by step: ends that are to come
  std::map<std::pair<EndpointId, std::int64_t>, std::size_t> uses_;  ///< tasks to come, by micro-batch
  std::map<CommId, std::size_t> collected_;                          ///< by how many members
  double loss_ = 0, loss_images_ = 0;                                ///< loss: that has been told already
};

}  // namespace convoy::numerics
