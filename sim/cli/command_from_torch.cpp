// SPDX-License-Identifier: MIT
#include <ostream>

#include "models/model.h"
#include "models/write_model.h"
#include "sim/base/clean_text.h"
#include "sim/base/yaml_node.h"
#include "sim/cli/commands.h"
#include "sim/cli/tell.h"
#include "sim/run/output_folder.h"

namespace convoy::inline cli {

Exit from_torch_command(const FromTorchArguments& arguments) {
  refuse_input(arguments.out, {arguments.file});
  YamlNode file;
  file.kind = YamlNode::Kind::scalar;
  file.scalar = arguments.file;
  file.pos = file.key_pos = {"from-torch", 1, 1};
  YamlNode node;
  node.kind = YamlNode::Kind::mapping;
  node.pos = node.key_pos = file.pos;
  node.entries.emplace_back("onnx", std::move(file));
  const Model model = read_model(node);
  for (const std::string& warning : model.warnings) tell("convoy: warning: {}\n", clean(warning));
  const auto write = [&](std::ostream& out) { out << model_file(model); };
  if (arguments.out.empty())
    write_stdout(write);
  else
    write_file(arguments.out, write);
  return Exit::done;
}

}  // namespace convoy::cli
