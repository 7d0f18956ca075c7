// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>

#include "topologies/fabrics/platform_file.h"
#include "topologies/xml_file.h"

namespace convoy::inline topologies {

/// Fills a PlatformFile from XML.
class PlatformReader {
 public:
  explicit PlatformReader(PlatformFile& platform) : platform_(platform) {}
  void read(const std::string& file);  ///< @throws InputError

 private:
  using Zone = PlatformFile::Zone;
  void read_zone(const XmlElement& element, std::uint32_t parent, bool outermost);
  void read_cluster(const XmlElement& element, std::uint32_t parent, bool outermost);
  void read_link(const XmlElement& element);
  void read_route(const XmlElement& element, std::uint32_t zone, bool between_zones);
  std::uint32_t add_zone(const XmlElement& element, std::uint32_t parent, bool outermost);
  void add_place(const XmlElement& element, const std::string& name, std::uint32_t zone, bool host);
  std::uint32_t add_link(const XmlElement& element, PlatformLink link);
  PlatformWay read_way(const XmlElement& element) const;

  PlatformFile& platform_;
  std::map<std::string, std::uint32_t> link_of_;
  std::map<std::string, std::uint32_t> zone_of_;
};

}  // namespace convoy::topologies
