// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <map>
#include <regex>
#include <set>

#include "sim/planning/skypilot_task.h"
#include "tests/planning/plan_text.h"
#include "topologies/catalog.h"
#include "topologies/skypilot.h"

using namespace convoy;

namespace {

/// What SkyPilot's schemas of tasks and resources take (sky/utils/schemas.py at commit 00052dfe,
/// get_task_schema and get_resources_schema): keys with their types, no others.
enum class Type { text, whole, truth, mapping };
const std::map<std::string, Type> task_keys{
    {"name", Type::text},  {"workdir", Type::text}, {"num_nodes", Type::whole}, {"resources", Type::mapping},
    {"setup", Type::text}, {"run", Type::text},     {"envs", Type::mapping}};
const std::map<std::string, Type> resource_keys{{"cloud", Type::text},        {"region", Type::text},
                                                {"zone", Type::text},         {"instance_type", Type::text},
                                                {"accelerators", Type::text}, {"use_spot", Type::truth}};
const std::set<std::string> clouds{"aws", "azure", "gcp", "lambda"};

bool is(const YamlNode& node, Type type) {
  static const std::regex number("-?[0-9]+([.][0-9]*)?(e[-+]?[0-9]+)?"), truth("true|false|yes|no|on|off|null|~");
  const bool plain = node.kind == YamlNode::Kind::scalar && !node.quoted;
  switch (type) {
    case Type::text:
      return node.kind == YamlNode::Kind::scalar && (node.quoted || (!std::regex_match(node.scalar, number) &&
                                                                     !std::regex_match(node.scalar, truth)));
    case Type::whole:
      return plain && std::regex_match(node.scalar, std::regex("[0-9]+"));
    case Type::truth:
      return plain && (node.scalar == "true" || node.scalar == "false");
    case Type::mapping:
      return node.kind == YamlNode::Kind::mapping;
  }
  return false;
}

void check_keys(const YamlNode& mapping, const std::map<std::string, Type>& known) {
  for (const auto& [key, value] : mapping.entries) {
    CAPTURE(key);
    REQUIRE(known.contains(key));
    CHECK(is(value, known.at(key)));
  }
}

/// The task of a plan on these servers, read as YAML after SkyPilot's schema.
YamlNode task_of(const std::string& asked) {
  const PlanAnswer answer = plans::answer_of(plans::spec_of("{epochs: 3}", asked), false);
  REQUIRE(answer.choice);
  const YamlNode task = parse_yaml(skypilot_task(answer, "plan.yaml"), "task.yaml");
  check_keys(task, task_keys);
  check_keys(*task.find("resources"), resource_keys);
  CHECK(clouds.contains(task.find("resources")->find("cloud")->scalar));
  for (const auto& [name, value] : task.find("envs")->entries) {
    CHECK(std::regex_match(name, std::regex("[a-zA-Z_][a-zA-Z0-9_]*")));
    CHECK(is(value, Type::text));
  }
  CHECK(std::stoll(task.find("num_nodes")->scalar) == answer.choice->order.front().second);
  CHECK(task.find("envs")->find("GLOBAL_BATCH")->scalar == std::to_string(answer.choice->global_batch));
  return task;
}

std::string refusal(const std::string& asked) {
  try {
    skypilot_task(plans::answer_of(plans::spec_of("{epochs: 3}", asked), false), "plan.yaml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("skypilot: the task of a plan keeps SkyPilot's schema, on each provider and market") {
  const YamlNode aws =
      task_of("{servers: [aws-p3.2xlarge], nodes: [4], batch_per_device: [32], market: [spot]}");
  CHECK(aws.find("resources")->find("instance_type")->scalar == "p3.2xlarge");
  CHECK(aws.find("resources")->find("use_spot")->scalar == "true");
  CHECK(aws.find("resources")->find("region")->scalar == "us-east-1");
  const YamlNode gcp = task_of("{servers: [gcp-n1-standard-8-k80x2], batch_per_device: [32]}");
  CHECK(gcp.find("resources")->find("instance_type")->scalar == "n1-standard-8");
  CHECK(gcp.find("resources")->find("accelerators")->scalar == "K80:2");
  CHECK(gcp.find("resources")->find("use_spot")->scalar == "false");
  const YamlNode azure = task_of("{servers: [azure-nc24rs-v3], batch_per_device: [32]}");
  CHECK(azure.find("resources")->find("instance_type")->scalar == "Standard_NC24rs_v3");
  const YamlNode lambda = task_of("{servers: [lambda-gpu_8x_v100], batch_per_device: [32]}");
  CHECK(lambda.find("resources")->find("instance_type")->scalar == "gpu_8x_v100");
  CHECK(lambda.find("resources")->find("region") == nullptr);  // the same price everywhere
}

TEST_CASE("skypilot: what it cannot rent is refused in one line") {
  CHECK(refusal("{servers: [{name: our-box, devices: [{device: v100-sxm2-16gb, count: 1}], price: 1USD/h}], "
                "batch_per_device: [32]}") ==
        "plan.yaml: --skypilot: 1 our-box is the plan's own and not rented");
  CHECK(refusal("{servers: [aws-p3.2xlarge], batch_per_device: [32], constraints: {deadline: 1s}}") ==
        "plan.yaml: --skypilot: nothing was chosen, so there is nothing to rent");
  CHECK(refusal("{objective: time, servers: [dgx1-v100], batch_per_device: [32]}") ==
        "plan.yaml: --skypilot: SkyPilot does not rent dgx1-v100: it is none of aws, azure, gcp or lambda");
}

TEST_CASE("skypilot: its names of machines are those by which its own list is read, of every server") {
  // Google Cloud's GPUs have rows of their own beside those of machines; others' machines have one row with all.
  std::set<std::string> machines, of_google;
  int servers = 0;
  for (const std::string& server : server_names()) {
    const std::optional<SkypilotMachine> machine = skypilot_machine(server);
    if (!machine) continue;
    ++servers;
    CHECK(clouds.contains(machine->cloud));
    CHECK(machine->accelerators.empty() == (machine->cloud != "gcp"));
    const std::size_t colon = machine->accelerators.find(':');
    if (colon == std::string::npos) {
      machines.insert(machine->instance_type + ",1,r\n");
      continue;
    }
    of_google.insert(machine->instance_type + ",,,1,r\n");
    of_google.insert(fmt::format(",{},{},1,r\n", machine->accelerators.substr(0, colon),
                                 machine->accelerators.substr(colon + 1)));
  }
  CHECK(servers > 100);
  const auto prices_of = [](const std::string& header, const std::set<std::string>& rows) {
    std::string text = header;
    for (const std::string& row : rows) text += row;
    return PriceTable::read(plans::WrittenTable(text).file);
  };
  const PriceTable google =
                       prices_of("InstanceType,AcceleratorName,AcceleratorCount,Price,Region\n", of_google),
                   others = prices_of("InstanceType,Price,Region\n", machines);
  for (const std::string& server : server_names()) {
    const std::optional<SkypilotMachine> machine = skypilot_machine(server);
    CAPTURE(server);
    if (machine)
      CHECK((machine->cloud == "gcp" ? google : others).find(server, Market::on_demand).has_value());
  }
  const auto instance = [](const char* server) { return skypilot_machine(server)->instance_type; };
  CHECK(instance("azure-nc6") == "Standard_NC6");
  CHECK(instance("azure-nc40ads-h100-v5") == "Standard_NC40ads_H100_v5");
  CHECK(instance("azure-nd96asr-v4") == "Standard_ND96asr_v4");
  CHECK(instance("azure-nc4as-t4-v3") == "Standard_NC4as_T4_v3");
  CHECK_FALSE(skypilot_machine("dgx2"));
}
