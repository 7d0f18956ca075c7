// SPDX-License-Identifier: MIT
#include "sim/run/store/point_key.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "sim/base/data_path.h"
#include "sim/base/digest.h"
#include "sim/base/input_file.h"
#include "sim/replay/engine.h"
#include "sim/run/experiment.h"
#include "sim/run/manifest.h"

namespace convoy::inline runs {
namespace fs = std::filesystem;
namespace {

std::string content_of(const fs::path& file) {
  std::ifstream in = open_input(file);
  std::string content;
  for (char block[65536]; in.read(block, sizeof block) || in.gcount() > 0;)
    content.append(block, static_cast<std::size_t>(in.gcount()));
  return content;
}

/// The GNU build id of the first object in the list: this program.
int find_build_id(dl_phdr_info* info, std::size_t, void* result) {
  for (int h = 0; h < info->dlpi_phnum; ++h) {
    const ElfW(Phdr)& header = info->dlpi_phdr[h];
    if (header.p_type != PT_NOTE) continue;
    const char* at = reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr);
    const char* const end = at + header.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
      const char* const name = at + sizeof *note;
      const char* const data = name + (note->n_namesz + 3) / 4 * 4;
      if (note->n_type == NT_GNU_BUILD_ID &&
          std::string_view(name, note->n_namesz) == std::string_view("GNU", 4))
        *static_cast<std::string*>(result) = std::string(data, note->n_descsz);
      at = data + (note->n_descsz + 3) / 4 * 4;
    }
  }
  return 1;
}

std::string build_id() {
  std::string id;
  ::dl_iterate_phdr(find_build_id, &id);
  return id;
}

void add_folder(const std::string& folder, std::string& text) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const std::string content = content_of(file);
    text += fmt::format("{}:{}\n", file.lexically_relative(folder).string(), content.size());
    text += content;
  }
}

}  // namespace

std::string program_digest() {
  std::string text = fmt::format("{}\n{}\n{}\n", version(), Engine::simgrid_version(), build_id());
  for (const char* folder : digested_data_folders) add_folder(data_path(folder), text);
  return sha256(text);
}

PointKeys::PointKeys(const std::string& options) : common_(program_digest() + '\n' + options + '\n') {}

std::string PointKeys::key(const YamlNode& resolved, const std::string& inputs) const {
  std::string text = common_;
  for (const auto& [name, part] : resolved.entries)
    if (name != "experiment" && name != "jobs") text += fmt::format("{}:{}\n", name, fingerprint(part));
  return sha256(text + inputs);
}

}  // namespace convoy::runs
