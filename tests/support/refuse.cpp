// SPDX-License-Identifier: Apache-2.0
// refuse io_uring|direct COMMAND...: runs the command on a system that refuses io_uring (EPERM, as containers do) or O_DIRECT
// (EINVAL, as some file systems do). Exit status 77 when the system has no seccomp filters.

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace {

// The low half of an argument, in which all flags of open() are.
constexpr unsigned low_half(unsigned argument) {
  auto const at = static_cast<unsigned>(offsetof(seccomp_data, args)) + 8U * argument;
  return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? at : at + 4U;
}
constexpr unsigned call_number = offsetof(seccomp_data, nr);
constexpr unsigned allow = SECCOMP_RET_ALLOW;
constexpr unsigned refuse_with(unsigned code) { return SECCOMP_RET_ERRNO | code; }

bool install(sock_filter* filter, unsigned short length) {
  sock_fprog program{length, filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool refuse_io_uring() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, call_number),                // which call is it
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),  // another one: skip 1
      BPF_STMT(BPF_RET | BPF_K, refuse_with(EPERM)),                  //
      BPF_STMT(BPF_RET | BPF_K, allow),                               //
  };
  return install(filter, sizeof filter / sizeof *filter);
}

bool refuse_direct() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, call_number),        // which call is it
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),  // another one: skip 3
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low_half(2)),        // its flags
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_DIRECT, 0, 1),   // without O_DIRECT: skip 1
      BPF_STMT(BPF_RET | BPF_K, refuse_with(EINVAL)),         //
      BPF_STMT(BPF_RET | BPF_K, allow),                       //
  };
  return install(filter, sizeof filter / sizeof *filter);
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view const what = argc > 2 ? argv[1] : "";
  if (what != "io_uring" && what != "direct") {
    std::fprintf(stderr, "refuse io_uring|direct COMMAND...\n");
    return 2;
  }
  if (!(what == "io_uring" ? refuse_io_uring() : refuse_direct())) {
    std::fprintf(stderr, "refuse: no seccomp filter here: %s\n", std::strerror(errno));
    return 77;
  }
  ::execvp(argv[2], argv + 2);
  std::fprintf(stderr, "refuse: %s: %s\n", argv[2], std::strerror(errno));
  return 127;
}
