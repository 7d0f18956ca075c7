// SPDX-License-Identifier: MIT
#include "sim/cli/commands.h"

int main(int argc, char** argv) { return static_cast<int>(convoy::convoy_main(argc, argv)); }
