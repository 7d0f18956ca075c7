// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <stdexcept>

#include "sim/base/data_path.h"
#include "sim/base/input_error.h"

using namespace convoy;

TEST_CASE("data: the names of a folder are those of its YAML files, asked once or twice") {
  const std::string folder = "models/zoo";
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data_path(folder)))
    files += entry.path().extension() == ".yaml";
  for (int time = 0; time < 2; ++time) {
    const std::vector<std::string>& names = data_names(folder);
    CHECK(names.size() == files);
    CHECK(std::is_sorted(names.begin(), names.end()));
    CHECK(std::binary_search(names.begin(), names.end(), "resnet50"));
  }
}

TEST_CASE("data: a file that is kept is what the file says, and one that is not there is refused each time") {
  const YamlNode read = load_yaml(data_path("models/zoo") + "/lenet5.yaml");
  for (int time = 0; time < 2; ++time) {
    CHECK(to_flow(data_yaml("models/zoo", "lenet5")) == to_flow(read));
    CHECK(data_yaml("models/zoo", "lenet5").pos.file == read.pos.file);
    CHECK_THROWS_AS(data_yaml("models/zoo", "no-such-model"), InputError);
    CHECK_THROWS_AS(data_names("no/such/folder"), std::runtime_error);
  }
  // Where two folders have a file of one name, each has its own.
  const std::array folders{"models/zoo", "topologies/catalog/devices", "topologies/catalog/servers",
                           "topologies/catalog/software"};
  for (const char* folder : folders)
    for (const std::string& name : data_names(folder)) {
      CAPTURE(name);
      CHECK(data_yaml(folder, name).pos.file == data_path(folder) + "/" + name + ".yaml");
      for (const char* other : folders)
        if (!std::ranges::binary_search(data_names(other), name))
          CHECK_THROWS_AS(data_yaml(other, name), InputError);
    }
}
