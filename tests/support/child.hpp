// SPDX-License-Identifier: Apache-2.0
/// Runs part of a test in a process of its own: for what cannot be undone, or ends the process.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>

namespace test {

/// The child's exit status: what `body` returned, 250 when it threw, 1000 + the signal when one killed it. `body` uses
/// no CHECK or REQUIRE.
template <class Body>
int in_child(Body body) {
  pid_t const child = ::fork();
  if (child == 0) {
    for (int const number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE})
      ::signal(number, SIG_DFL);  // not the test program's handler
    int status = 250;
    try {
      status = body();
    } catch (std::exception const&) {
    }
    ::_exit(status);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/// True when `body` ends in abort(), as a broken contract does.
template <class Body>
bool aborts(Body body) {
  return in_child([&] {
           ::close(2);  // the message is expected
           body();
           return 0;
         }) == 1000 + SIGABRT;
}

}  // namespace test
