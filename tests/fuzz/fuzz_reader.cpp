// SPDX-License-Identifier: MIT
// libFuzzer target of everything that reads what users give: any bytes are what the reader reads, or an
// InputError.
// --reader=NAME chooses one of tests/fuzz/readers.h; files are read in a folder of the process's own.
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "tests/fuzz/readers.h"

namespace {

using namespace fuzz;

const Reader* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view option = "--reader=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view word = (*argv)[i];
    for (const Reader& reader : readers)
      if (word.starts_with(option) && word.substr(option.size()) == reader.name) chosen = &reader;
  }
  if (!chosen) {
    std::fprintf(stderr, "fuzz_reader: --reader=NAME is missing; names are");
    for (const Reader& reader : readers) std::fprintf(stderr, " %s", std::string(reader.name).c_str());
    std::fprintf(stderr, "\n");
    std::exit(2);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::filesystem::path folder = [] {
    std::string name = (std::filesystem::temp_directory_path() / "convoy-fuzz-XXXXXX").string();
    if (!::mkdtemp(name.data())) std::abort();
    return std::filesystem::path(name);
  }();
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder);  // findings are written where the fuzzer was started
  std::ofstream(chosen->file, std::ios::binary) << text;
  try {
    chosen->read(text, chosen->file);
  } catch (const InputError&) {
  }
  std::filesystem::current_path(before);
  return 0;
}
