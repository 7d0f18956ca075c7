// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

TEST_CASE("install: the program finds its data beside it, wherever it is put") {
  const Workplace place;
  const Finished install =
      place.run("cmake", {"--install", CONVOY_BUILD, "--prefix", (place.path() / "usr").string()});
  CAPTURE(install.err);
  REQUIRE(install.exit_code == 0);
  // Moved after that, so that nothing can lead back to the prefix.
  std::filesystem::rename(place.path() / "usr", place.path() / "elsewhere");
  const std::string program = (place.path() / "elsewhere/bin/convoy").string();
  for (const char* folder : {"models/zoo", "topologies/catalog/devices", "configs", "results/published"})
    CHECK(std::filesystem::is_directory(place.path() / "elsewhere/share/convoy" / folder));
  const Finished pages = place.shell("ls elsewhere/share/man/man1 elsewhere/share/man/man5");
  for (const char* page : {"convoy.1", "convoy-run.1", "convoy-partition.1", "convoy.5"})
    CHECK(pages.out.find(page) != std::string::npos);
  for (const char* file : {"share/bash-completion/completions/convoy", "share/zsh/site-functions/_convoy",
                           "share/fish/vendor_completions.d/convoy.fish", "share/doc/convoy/docs/keys.md",
                           "lib/cmake/convoy/convoyConfig.cmake", "include/convoy/strategies/add_strategy.h"})
    CHECK_MESSAGE(std::filesystem::is_regular_file(place.path() / "elsewhere" / file), file);
  CHECK_FALSE(std::filesystem::exists(place.path() / "elsewhere/include/convoy/models/zoo"));
  std::filesystem::remove(place.path() / "elsewhere/share/convoy/models/zoo/vgg16.yaml");
  const nlohmann::json names = nlohmann::json::parse(place.run(program, {"show", "models", "--json"}).out);
  CHECK(std::find(names.begin(), names.end(), "resnet50") != names.end());
  CHECK(std::find(names.begin(), names.end(), "vgg16") == names.end());  // not the source tree's
  const Finished run = place.run(program, {"run", "elsewhere/share/convoy/configs/quickstart.yaml", "--json",
                                           "--set", "sweep.model=[resnet50]"});
  CAPTURE(run.err);
  CHECK(run.exit_code == 0);
  CHECK(nlohmann::json::parse(run.out)["runs"].size() == 15);
  // What stands in for ns-3's libraries (cmake/SimGridWithoutNs3.cmake) moves with the program.
  const Finished libraries = place.shell("LD_TRACE_LOADED_OBJECTS=1 elsewhere/bin/convoy");
  CAPTURE(libraries.out);
  CHECK(libraries.out.find("libsimgrid") != std::string::npos);
  if (const std::size_t ns3 = libraries.out.find("=>", libraries.out.find("libns3"));
      ns3 != std::string::npos)
    CHECK(libraries.out.substr(ns3, libraries.out.find('\n', ns3) - ns3).find("/convoy/ns3/libns3") !=
          std::string::npos);
#ifdef CONVOY_PYTHON
  const Finished module = place.shell("PYTHONPATH=elsewhere/lib/python3/dist-packages " CONVOY_PYTHON
                                      " -B -c 'import convoy; print(*convoy.show(\"models\"))'");
  CAPTURE(module.err);
  CHECK(module.out.find("resnet50") != std::string::npos);
  CHECK(module.out.find(" vgg16 ") == std::string::npos);
#endif
}
