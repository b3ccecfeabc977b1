// gatefloor N [THREAD]: what it costs at least to decide a start when it happens (gate of atip-exec), by a
// program that decides nothing. N times a process is forked that executes /bin/true; medians of rounds
// that alternate:
//   plain     nobody listens
//   answered  seccomp_unotify(2): a listener receives the call and answers CONTINUE
//   read      it also reads path, words and environment, opens what they name and asks whether the call still waits
//   compared  it also seizes the thread, lets it go on, and compares file and words before the first instruction
// Each answer is given by a process of its own, as a wrapper is one. There is no runtime, no goroutine, no lock
// and no decision in it: what this program cannot do, no listener can.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PLAIN, ANSWERED, READ, COMPARED, WAYS };
static const char *names[WAYS] = {"plain", "answered", "read", "compared"};
extern char **environ;

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

// starts is the run: n times fork and exec, and its time in µs by start.
static double starts(int n) {
  char *argv[] = {"true", "x", 0};
  double began = now();
  for (int i = 0; i < n; i++) {
    pid_t pid = fork();
    if (pid == 0) {
      execve("/bin/true", argv, environ);
      _exit(127);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
      fprintf(stderr, "a start failed: %d\n", status);
      exit(1);
    }
  }
  return (now() - began) / n;
}

static char stack[65536], got[65536], want[65536];

static long slurp(const char *file, char *buf) {
  int fd = open(file, O_RDONLY | O_CLOEXEC);
  long n = fd < 0 ? -1 : read(fd, buf, sizeof got);
  close(fd);
  return n;
}

static void answer(int listener, __u64 id, int error) {
  struct seccomp_notif_resp r = {.id = id, .error = -error, .flags = error ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE};
  ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &r);
}

// readv reads what the process may have at an address, to the end of its page and three more.
static long peek(pid_t pid, __u64 address, char *buf) {
  struct iovec remote[4], local = {buf, 0};
  size_t size = 4096 - address % 4096;
  remote[0] = (struct iovec){(void *)address, size};
  for (int i = 1; i < 4; i++, size += 4096)
    remote[i] = (struct iovec){(void *)(address + size), 4096};
  local.iov_len = size;
  return process_vm_readv(pid, &local, 1, remote, 4, 0);
}

static void serve(int listener, int way) {
  struct pollfd p = {listener, POLLIN, 0};
  char name[64];
  for (;;) {
    struct seccomp_notif n = {0};
    if (poll(&p, 1, -1) < 0 || !(p.revents & POLLIN))
      return;
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &n) != 0)
      continue;
    struct stat file = {0};
    if (way >= READ) {
      if (peek(n.pid, n.data.args[0], stack) <= 0 || peek(n.pid, n.data.args[1], got) <= 0 || peek(n.pid, n.data.args[2], want) <= 0)
        fail("process_vm_readv");
      sprintf(name, "/proc/%u/root", n.pid);
      int root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
      struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
      int fd = syscall(SYS_openat2, root, stack, &how, sizeof how);
      if (fd < 0 || fstat(fd, &file) != 0)
        fail("openat2");
      sprintf(name, "/proc/%u/cwd", n.pid);
      if (readlink(name, stack, sizeof stack) <= 0)
        fail("readlink");
      sprintf(name, "/proc/%u/stat", n.pid);
      slurp(name, stack); // its parent, for the zone
      close(fd);
      close(root);
      if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &n.id) != 0)
        continue;
    }
    if (way < COMPARED) {
      answer(listener, n.id, 0);
      continue;
    }
    int status;
    struct stat exe;
    if (ptrace(PTRACE_SEIZE, n.pid, 0, PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL) != 0 || ptrace(PTRACE_INTERRUPT, n.pid, 0, 0) != 0)
      fail("ptrace");
    answer(listener, n.id, 0);
    if (waitpid(n.pid, &status, __WALL) != (pid_t)n.pid || status >> 8 != (SIGTRAP | PTRACE_EVENT_EXEC << 8))
      fail("no exec");
    sprintf(name, "/proc/%u/exe", n.pid);
    if (stat(name, &exe) != 0 || exe.st_ino != file.st_ino || exe.st_dev != file.st_dev)
      fail("another file");
    sprintf(name, "/proc/%u/cmdline", n.pid);
    if (slurp(name, stack) != 7 || memcmp(stack, "true\0x", 7) != 0)
      fail("other words");
    sprintf(name, "/proc/%u/environ", n.pid);
    if (slurp(name, stack) <= 0)
      fail("no environment");
    ptrace(PTRACE_DETACH, n.pid, 0, 0);
  }
}

static int install(void) {
  struct sock_filter prog[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog f = {sizeof prog / sizeof *prog, prog};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  int fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &f);
  if (fd < 0)
    fail("seccomp");
  return fd;
}

// once is the time of a start that is handled in one way.
static double once(int way, int n) {
  int result[2], pair[2];
  if (pipe(result) != 0 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0)
    fail("pipe");
  pid_t child = fork();
  if (child == 0) {
    if (way != PLAIN) {
      int fd = install();
      char control[CMSG_SPACE(sizeof fd)] = {0}, byte = 1;
      struct iovec iov = {&byte, 1};
      struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
      struct cmsghdr *c = CMSG_FIRSTHDR(&m);
      c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof fd);
      memcpy(CMSG_DATA(c), &fd, sizeof fd);
      if (sendmsg(pair[0], &m, 0) != 1)
        fail("sendmsg");
      close(fd);
    }
    double took = starts(n);
    if (write(result[1], &took, sizeof took) != sizeof took)
      fail("write");
    _exit(0);
  }
  if (way != PLAIN) {
    int fd;
    char control[CMSG_SPACE(sizeof fd)], byte;
    struct iovec iov = {&byte, 1};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(pair[1], &m, 0) != 1)
      fail("recvmsg");
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
    serve(fd, way);
    close(fd);
  }
  double took = 0;
  int status;
  if (waitpid(child, &status, 0) != child || status != 0 || read(result[0], &took, sizeof took) != sizeof took)
    fail("the run");
  close(result[0]), close(result[1]), close(pair[0]), close(pair[1]);
  return took;
}

static int less(const void *a, const void *b) { return (*(double *)a > *(double *)b) - (*(double *)a < *(double *)b); }

int main(int argc, char **argv) {
  enum { ROUNDS = 11 };
  int n = argc > 1 ? atoi(argv[1]) : 300;
  static double took[WAYS][ROUNDS];
  for (int r = 0; r < ROUNDS; r++)
    for (int w = 0; w < WAYS; w++)
      took[w][r] = once(w, n);
  for (int w = 0; w < WAYS; w++)
    qsort(took[w], ROUNDS, sizeof(double), less);
  double plain = took[PLAIN][ROUNDS / 2];
  for (int w = 0; w < WAYS; w++)
    printf("%-9s %7.1f us a start, %6.1f more, %.2f x\n", names[w], took[w][ROUNDS / 2], took[w][ROUNDS / 2] - plain, took[w][ROUNDS / 2] / plain);
  return 0;
}
