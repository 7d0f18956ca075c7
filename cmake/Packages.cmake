# SPDX-License-Identifier: MIT
# Debian packages by CPack (scripts/package): `convoy` and `libconvoy-dev`.

set(CONVOY_MAINTAINER "The convoy developers <convoy@example.org>" CACHE STRING "who maintains the Debian packages")

# What Debian asks of every package: its changelog and copyright, and completion where its zsh looks.
set(packaging ${CMAKE_BINARY_DIR}/packaging)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # SOURCE_DATE_EPOCH, where that is set
file(CONFIGURE OUTPUT packaging/changelog @ONLY CONTENT [=[
convoy (@PROJECT_VERSION@) stable; urgency=medium

  * Version @PROJECT_VERSION@; CHANGELOG.md says what changes.

 -- @CONVOY_MAINTAINER@  @date@
]=])
file(READ LICENSE license)
string(REGEX REPLACE "\n" "\n " license "${license}")
string(REGEX REPLACE "\n +\n" "\n .\n" license "${license}")
string(REGEX MATCH "Copyright[^\n]*" holder "${license}")
string(REGEX REPLACE "^Copyright +(\\([cC]\\))? *" "" holder "${holder}")
string(REGEX REPLACE "^.*(Permission is hereby.*[^\n ])[\n .]*$" "\\1" license "${license}")
file(CONFIGURE OUTPUT packaging/copyright @ONLY CONTENT [=[
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: convoy

Files: *
Copyright: @holder@
License: Expat

Files: models/data/digits.csv.gz
Copyright: 1998 E. Alpaydin and C. Kaynak
License: CC-BY-4.0

License: Expat
 @license@

License: CC-BY-4.0
 Creative Commons Attribution 4.0 International,
 https://creativecommons.org/licenses/by/4.0/legalcode
]=])
file(CONFIGURE OUTPUT packaging/overrides @ONLY CONTENT [=[
# Stands in for ns-3's libraries with functions that do nothing, and calls none itself.
convoy: shared-library-lacks-prerequisites [usr/lib/convoy/ns3/*]
]=])
execute_process(COMMAND gzip -9nkf ${packaging}/changelog)
file(CREATE_LINK convoy ${packaging}/libconvoy-dev SYMBOLIC)
install(FILES ${packaging}/changelog.gz ${packaging}/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/convoy
        COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES ${packaging}/overrides DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides RENAME convoy
        COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES sim/cli/completion/_convoy DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions
        COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES ${packaging}/libconvoy-dev DESTINATION ${CMAKE_INSTALL_DATADIR}/doc
        COMPONENT debian_development EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "${CONVOY_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL program debian development debian_development)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME convoy)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "simulator of distributed training of convolutional networks")
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "Predicts how training a convolutional network on many devices will perform:
step time, images per second, communication, memory, energy and cost, for a
network, a cluster and a parallel strategy that YAML files describe.

This package has the program, the Python module, manual pages and completion
for bash, zsh and fish.")
if(TARGET convoy_python)
  math(EXPR next_python "${Python_VERSION_MINOR} + 1")
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS
      "python3 (>= ${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}), python3 (<< ${Python_VERSION_MAJOR}.${next_python})")
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "python3-pandas")
endif()

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libconvoy-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "convoy (= ${PROJECT_VERSION}), libboost-dev, libboost-graph-dev, libcli11-dev, libeigen3-dev, libfmt-dev, libmetis-dev, libmuparser-dev, libprotobuf-dev, libscotch-dev, libsimdjson-dev, libsimgrid-dev, libsqlite3-dev, libxml2-dev, libyaml-cpp-dev, libzstd-dev, nettle-dev, nlohmann-json3-dev, pkg-config, zlib1g-dev")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "Predicts how training a convolutional network on many devices will perform.

This package has the library that the program convoy is made of, with its
headers: for programs with strategies and collectives of their own, and for
those that simulate experiments themselves. CMake's find_package(convoy)
finds it.")

include(CPack)
cpack_add_component(program GROUP program)
cpack_add_component(debian GROUP program)
cpack_add_component(development GROUP development)
cpack_add_component(debian_development GROUP development)
