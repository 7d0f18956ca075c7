// SPDX-License-Identifier: MIT
#include "sim/run/interrupt.h"

#include <signal.h>

#include <initializer_list>

namespace convoy::inline runs {
namespace {

volatile sig_atomic_t noted_signal = 0;

void note(int number) {
  noted_signal = number;
  ::signal(number, SIG_DFL);
}

void handle(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;  // without SA_RESTART, so that waiting calls return
  ::sigemptyset(&action.sa_mask);
  for (const int number : {SIGINT, SIGTERM}) ::sigaction(number, &action, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  noted_signal = 0;
  handle(note);
}
InterruptGuard::~InterruptGuard() { handle(SIG_DFL); }
int InterruptGuard::signal() { return noted_signal; }

}  // namespace convoy::runs
