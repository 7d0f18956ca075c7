// SPDX-License-Identifier: MIT
#include "sim/planning/skypilot_task.h"

#include <fmt/format.h>

#include <cctype>

#include "sim/page/text.h"
#include "sim/planning/write_plan.h"
#include "topologies/skypilot.h"

namespace convoy::inline planning {
namespace {

/// A name that SkyPilot takes for clusters and jobs: letters, digits and dashes, a letter first.
std::string task_name(const std::string& experiment) {
  std::string name;
  for (const char c : experiment)
    name += std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::tolower(c)) : '-';
  if (name.empty() || !std::isalpha(static_cast<unsigned char>(name.front()))) name.insert(0, "plan-");
  while (name.ends_with('-')) name.pop_back();
  return name;
}

constexpr const char* program = R"task(
# Before the program starts, on every machine.
setup: |
  pip install torch torchvision

# train.py is your program: it takes what was planned from the environment.
run: |
  torchrun \
    --nnodes="$SKYPILOT_NUM_NODES" \
    --nproc_per_node="$SKYPILOT_NUM_GPUS_PER_NODE" \
    --node_rank="$SKYPILOT_NODE_RANK" \
    --master_addr="$(echo "$SKYPILOT_NODE_IPS" | head -n 1)" \
    --master_port=29500 \
    train.py
)task";

}  // namespace

std::string skypilot_task(const PlanAnswer& answer, const std::string& plan_file) {
  const auto refuse = [&](const std::string& why) -> InputError {
    return InputError({plan_file, 0, 0}, "--skypilot: " + why);
  };
  if (!answer.choice) throw refuse("nothing was chosen, so there is nothing to rent");
  const CandidateResultOfPlan& choice = *answer.choice;
  if (choice.own) throw refuse(fmt::format("{} is the plan's own and not rented", text_of(choice.order)));
  if (choice.order.size() > 1)
    throw refuse(fmt::format("a task has machines of one kind; chosen were {}", text_of(choice.order)));
  const auto& [server, hosts] = choice.order.front();
  const std::optional<SkypilotMachine> machine = skypilot_machine(server);
  if (!machine)
    throw refuse(fmt::format("SkyPilot does not rent {}: it is none of aws, azure, gcp or lambda", server));
  std::string text =
      fmt::format("# Made by `convoy plan {}`: {}.\n# {}.\nname: {}\n\nworkdir: .\n\nresources:\n", plan_file,
                  order_text(choice), training_text(choice), task_name(answer.name));
  text += fmt::format("  cloud: {}\n", machine->cloud);
  if (!choice.region.empty() && choice.region != "all") text += fmt::format("  region: {}\n", choice.region);
  text += fmt::format("  instance_type: {}\n", machine->instance_type);
  if (!machine->accelerators.empty()) text += fmt::format("  accelerators: '{}'\n", machine->accelerators);
  text += fmt::format("  use_spot: {}\n\nnum_nodes: {}\n\nenvs:\n", choice.market == Market::spot, hosts);
  text += fmt::format("  BATCH_PER_DEVICE: '{}'\n  GLOBAL_BATCH: '{}'\n  PRECISION: {}\n  EPOCHS: '{}'\n",
                      choice.batch_per_device, choice.global_batch, to_string(choice.precision),
                      digits_text(choice.figures.epochs, 4));
  return text + program;
}

}  // namespace convoy::planning
