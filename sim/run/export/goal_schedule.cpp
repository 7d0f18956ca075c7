// SPDX-License-Identifier: MIT
#include "sim/run/export/goal_schedule.h"

#include <fmt/format.h>

#include <iterator>
#include <ostream>
#include <string>
#include <vector>

#include "sim/run/export/rank_programs.h"

namespace convoy::inline runs {
namespace {

class GoalWriter {
 public:
  GoalWriter(const Plan& plan, const Machine& machine, const CostModel& cost, std::ostream& out)
      : plan_(plan),
        machine_(machine),
        ranks_(plan, machine, cost, RankPrograms::Collectives::none),
        out_(out) {}

  void write() {
    out_ << fmt::format("num_ranks {}\n", ranks_.ranks().size());
    for (const RankProgram& program : ranks_.programs()) write(program);
  }

 private:
  /// Lines that all members have, and a message whose peer and size are the member's after them.
  struct Piece {
    std::string lines;
    const RankStep* then = nullptr;
    std::size_t label = 0;
  };

  void write(const RankProgram& program) {
    std::vector<Piece> pieces(1);
    WholeTimes nanos(1e9);
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      const RankStep& step = program.steps[i];
      auto line = std::back_inserter(pieces.back().lines);
      if (step.kind != RankStep::Kind::send && step.kind != RankStep::Kind::receive) {
        fmt::format_to(line, "{}{}: calc {} cpu {}\n", letter(step), i, nanos.next(step.queue, step.seconds),
                       step.queue);
      } else {
        if (step.delay_s > 0) {
          const std::uint64_t delay = WholeTimes(1e9).next(0, step.delay_s);
          fmt::format_to(line, "w{}: calc {} cpu {}\n", i, delay, step.queue);
          wait_for(program, step, fmt::format("w{}", i), line);
        }
        pieces.back().then = &step;
        pieces.back().label = i;
        line = std::back_inserter(pieces.emplace_back().lines);
      }
      if (step.delay_s > 0)
        fmt::format_to(line, "l{} requires w{}\n", i, i);
      else
        wait_for(program, step, fmt::format("{}{}", letter(step), i), line);
    }
    for (const EndpointId member : program.members) write(pieces, member);
  }

  /// By which labels begin: j of joins, l of others; w is what passes before a message.
  static char letter(const RankStep& step) { return step.kind == RankStep::Kind::join ? 'j' : 'l'; }

  template <class Line>
  static void wait_for(const RankProgram& program, const RankStep& step, const std::string& label,
                       Line& line) {
    for (const std::uint32_t before : step.after)
      fmt::format_to(line, "{} requires {}{}\n", label, letter(program.steps[before]), before);
  }

  void write(const std::vector<Piece>& pieces, EndpointId member) {
    text_.clear();
    auto line = std::back_inserter(text_);
    fmt::format_to(line, "\n// {}\nrank {} {{\n", machine_.endpoint_name(member), ranks_.rank_of(member));
    for (const Piece& piece : pieces) {
      text_ += piece.lines;
      if (!piece.then) continue;
      const RankStep& step = *piece.then;
      const RankMessage& own = ranks_.messages(plan_.communications[step.comm].pattern, member)[step.message];
      fmt::format_to(line, "l{}: {} {}b {} {} tag {} cpu {}\n", piece.label, own.sends ? "send" : "recv",
                     ranks_.message_bytes(step, member), own.sends ? "to" : "from", ranks_.rank_of(own.peer),
                     step.comm, step.queue);
    }
    text_ += "}\n";
    out_ << text_;
  }

  const Plan& plan_;
  const Machine& machine_;
  RankPrograms ranks_;
  std::ostream& out_;
  std::string text_;  ///< of a rank
};

}  // namespace

void write_goal_schedule(const Plan& plan, const Machine& machine, const CostModel& cost, std::ostream& out) {
  GoalWriter(plan, machine, cost, out).write();
}

}  // namespace convoy::runs
