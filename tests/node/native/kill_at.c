/* Ends a process with SIGKILL at one of its system calls: kill_at PID enter|exit rename|unlink PART TIMES

   Attaches to all its threads, says "ready", lets it run until they have renamed something to, or removed, a path that
   contains PART so many times, ends it before or after the kernel does that the last time, and says "killed". It sees the path as the process
   wrote it. Ends without a word if the process ends by itself. Linux >= 5.3, glibc. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static int path_argument(const char *call, unsigned long long number) {
    if (strcmp(call, "rename") == 0) {
#ifdef SYS_rename
        if (number == SYS_rename) return 1;
#endif
#ifdef SYS_renameat
        if (number == SYS_renameat) return 3;
#endif
        if (number == SYS_renameat2) return 3;
    } else {
#ifdef SYS_unlink
        if (number == SYS_unlink) return 0;
#endif
        if (number == SYS_unlinkat) return 1;
    }
    return -1;
}

static int reads(pid_t thread, unsigned long long address, const char *part) {
    char path[PATH_MAX + 1] = {0};
    struct iovec here = {path, PATH_MAX}, there = {(void *)address, PATH_MAX};
    /* The string may end just before a page that is not there. */
    while (there.iov_len > 0 && process_vm_readv(thread, &here, 1, &there, 1, 0) < 0) there.iov_len /= 2;
    return strstr(path, part) != NULL;
}

static void attach(pid_t process) {
    char folder[64];
    snprintf(folder, sizeof folder, "/proc/%d/task", process);
    DIR *threads = opendir(folder);
    if (threads == NULL) fail(folder);
    for (struct dirent *entry; (entry = readdir(threads)) != NULL;) {
        pid_t thread = atoi(entry->d_name);
        if (thread == 0) continue;
        if (ptrace(PTRACE_SEIZE, thread, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE) != 0) fail("attach");
        if (ptrace(PTRACE_INTERRUPT, thread, 0, 0) != 0) fail("interrupt");
    }
    closedir(threads);
}

int main(int argc, char **argv) {
    if (argc != 6) return 2;
    pid_t process = atoi(argv[1]), returning = 0;
    int at_exit = strcmp(argv[2], "exit") == 0, times = atoi(argv[5]);
    attach(process);
    puts("ready");
    fflush(stdout);
    for (;;) {
        int status;
        pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0) return 0;
        if (!WIFSTOPPED(status)) continue;
        int stopped = WSTOPSIG(status), deliver = 0;
        if (stopped == (SIGTRAP | 0x80)) {
            struct __ptrace_syscall_info info = {0};
            if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) < 0) continue;
            int hit = 0;
            if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
                int place = path_argument(argv[3], info.entry.nr);
                hit = place >= 0 && reads(thread, info.entry.args[place], argv[4]) && --times == 0;
                if (hit && at_exit) {
                    returning = thread;
                    hit = 0;
                }
            } else if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
                hit = thread == returning;
            }
            if (hit) {
                kill(process, SIGKILL);
                puts("killed");
                return 0;
            }
        } else if (status >> 16 == 0) {
            deliver = stopped;
        }
        ptrace(PTRACE_SYSCALL, thread, 0, deliver);
    }
}
