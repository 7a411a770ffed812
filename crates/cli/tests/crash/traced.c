/* Runs a command and stops it in front of every system call that changes a file below a directory: each is written down, and the one of a
 * given number is not made, because the command is killed there.
 *
 *     traced ROOT LOG KILL_AT COMMAND ARGUMENT...
 *
 * KILL_AT counts from 1; 0 kills nothing. LOG gets a line for each call: its name, the paths relative to ROOT, the place and the bytes of a
 * write in hexadecimal, with tabs between. The exit code is that of the command, or 77 where it was killed here.
 *
 * A filter (seccomp) picks the calls and a tracer (ptrace) looks at them, so that those that a program makes without the C library are seen
 * as well. No privilege is needed. */

#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
typedef struct user_regs_struct registers;
static long number_of(const registers *r) { return (long)r->orig_rax; }
static unsigned long argument(const registers *r, int i) {
    const unsigned long all[] = {r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9};
    return all[i];
}
#elif defined(__aarch64__)
#include <asm/ptrace.h>
#define ARCH AUDIT_ARCH_AARCH64
typedef struct user_pt_regs registers;
static long number_of(const registers *r) { return (long)r->regs[8]; }
static unsigned long argument(const registers *r, int i) { return r->regs[i]; }
#else
#error "the registers of this processor are not known here"
#endif

/* How the arguments of a call name what it changes. */
enum shape {
    FD,          /* a file descriptor */
    FD_DATA,     /* a file descriptor, bytes, their number; at a place in PWRITE */
    PATH,        /* a path */
    AT_PATH,     /* a directory and a path */
    OPEN,        /* a path, flags */
    AT_OPEN,     /* a directory, a path, flags */
    TWO,         /* two paths */
    AT_TWO,      /* a directory and a path, twice */
};

static const struct call {
    long number;
    const char *name;
    enum shape shape;
} calls[] = {
#ifdef SYS_open
    {SYS_open, "create", OPEN},
    {SYS_creat, "creat", PATH},
    {SYS_rename, "rename", TWO},
    {SYS_unlink, "unlink", PATH},
    {SYS_rmdir, "rmdir", PATH},
    {SYS_mkdir, "mkdir", PATH},
    {SYS_link, "link", TWO},
    {SYS_symlink, "symlink", PATH},
#endif
#ifdef SYS_renameat
    {SYS_renameat, "rename", AT_TWO},
#endif
    {SYS_openat, "create", AT_OPEN},
    {SYS_write, "write", FD_DATA},
    {SYS_pwrite64, "pwrite", FD_DATA},
    {SYS_writev, "writev", FD},
    {SYS_pwritev, "pwritev", FD},
    {SYS_pwritev2, "pwritev2", FD},
    {SYS_fsync, "fsync", FD},
    {SYS_fdatasync, "fsync", FD},
    {SYS_renameat2, "rename", AT_TWO},
    {SYS_unlinkat, "unlinkat", AT_PATH},
    {SYS_mkdirat, "mkdir", AT_PATH},
    {SYS_linkat, "link", AT_TWO},
    {SYS_ftruncate, "ftruncate", FD},
    {SYS_truncate, "truncate", PATH},
    {SYS_fallocate, "fallocate", FD},
    {SYS_flock, "flock", FD},
};
enum { CALLS = sizeof calls / sizeof *calls };

static const char *root;
static FILE *out;

static void fail(const char *what) {
    fprintf(stderr, "traced: %s: %s\n", what, strerror(errno));
    exit(78);
}

/* The filter: watched calls go to the tracer, everything else goes on. */
static void watch(void) {
    struct sock_filter code[CALLS * 2 + 5];
    int n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < CALLS; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].number, 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog filter = {.len = (unsigned short)n, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) fail("could not set the filter");
}

static size_t peek(int memory, unsigned long from, char *to, size_t len) {
    ssize_t got = pread(memory, to, len, (off_t)from);
    return got < 0 ? 0 : (size_t)got;
}

/* Where a link below /proc of the process leads. */
static void proc_link(pid_t pid, const char *what, char *to, size_t len) {
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/%s", pid, what);
    ssize_t got = readlink(name, to, len - 1);
    to[got < 0 ? 0 : got] = 0;
}

static void path_of_fd(pid_t pid, int fd, char *to, size_t len) {
    char what[32];
    snprintf(what, sizeof what, fd == AT_FDCWD ? "cwd" : "fd/%d", fd);
    proc_link(pid, what, to, len);
}

static void path_at(pid_t pid, int memory, int fd, unsigned long name, char *to, size_t len) {
    char given[4096] = "", folder[4096] = "";
    given[peek(memory, name, given, sizeof given - 1)] = 0;
    if (given[0] != '/') path_of_fd(pid, fd, folder, sizeof folder);
    snprintf(to, len, given[0] == '/' ? "%s%s" : "%s/%s", folder, given);
}

/* The rest of `path` below the root, or null. */
static const char *below(const char *path) {
    size_t len = strlen(root);
    return strncmp(path, root, len) == 0 && (path[len] == '/' || !path[len]) ? path + len : NULL;
}

/* Writes the call down where it changes something below the root. */
static int is_watched(pid_t pid) {
    registers r;
    struct iovec into = {&r, sizeof r};
    if (ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &into)) fail("could not read registers");
    const struct call *call = NULL;
    for (int i = 0; i < CALLS && !call; i++)
        if (calls[i].number == number_of(&r)) call = &calls[i];
    if (!call) return 0;
    char name[64], first[8200] = "", second[8200] = "";
    snprintf(name, sizeof name, "/proc/%d/mem", pid);
    int memory = open(name, O_RDONLY | O_CLOEXEC);
    if (memory < 0) fail("could not open the memory of the command");
    unsigned long a = argument(&r, 0), b = argument(&r, 1), c = argument(&r, 2), d = argument(&r, 3), flags = O_CREAT;
    const char *what = call->name;
    switch (call->shape) {
        case FD:
        case FD_DATA: path_of_fd(pid, (int)a, first, sizeof first); break;
        case OPEN: flags = b; /* fall through */
        case PATH: path_at(pid, memory, AT_FDCWD, a, first, sizeof first); break;
        case AT_OPEN: flags = c; /* fall through */
        case AT_PATH: path_at(pid, memory, (int)a, b, first, sizeof first); break;
        case TWO:
            path_at(pid, memory, AT_FDCWD, a, first, sizeof first);
            path_at(pid, memory, AT_FDCWD, b, second, sizeof second);
            break;
        case AT_TWO:
            path_at(pid, memory, (int)a, b, first, sizeof first);
            path_at(pid, memory, (int)c, d, second, sizeof second);
            break;
    }
    if (!strcmp(what, "unlinkat")) what = c & AT_REMOVEDIR ? "rmdir" : "unlink";
    const char *from = below(first), *to = below(second);
    int watched = (from || to) && (flags & (O_CREAT | O_TRUNC));
    if (watched) {
        if (!strcmp(what, "create") && flags & O_TRUNC) what = flags & O_CREAT ? "create-empty" : "empty";
        fprintf(out, "%s\t%s\t%s\t", what, from ? from : "", to ? to : "");
        if (call->shape == FD_DATA) {
            long long place = (long long)d;
            if (!strcmp(what, "write")) {
                char info[256];
                unsigned mode = 0;
                snprintf(name, sizeof name, "/proc/%d/fdinfo/%d", pid, (int)a);
                FILE *file = fopen(name, "r");
                while (file && fgets(info, sizeof info, file)) {
                    sscanf(info, "pos: %lld", &place);
                    sscanf(info, "flags: %o", &mode);
                }
                if (file) fclose(file);
                if (mode & O_APPEND) place = -1;
            }
            fprintf(out, "%lld\t", place);
            char block[4096];
            for (size_t done = 0; done < c;) {
                size_t got = peek(memory, b + done, block, c - done < sizeof block ? c - done : sizeof block);
                if (!got) fail("could not read what is written");
                for (size_t i = 0; i < got; i++) fprintf(out, "%02x", (unsigned char)block[i]);
                done += got;
            }
        }
        fputc('\n', out);
        fflush(out);
    }
    close(memory);
    return watched;
}

int main(int argc, char **argv) {
    if (argc < 5) return fprintf(stderr, "traced ROOT LOG KILL_AT COMMAND...\n"), 78;
    root = argv[1];
    out = fopen(argv[2], "we");
    long kill_at = atol(argv[3]), made = 0;
    if (!out) fail(argv[2]);
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0)) fail("could not be traced");
        raise(SIGSTOP);
        watch();
        execvp(argv[4], argv + 4);
        fail(argv[4]);
    }
    int status, code = 78, killed = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) fail("could not start");
    long options = PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                   PTRACE_O_TRACEEXEC;
    if (ptrace(PTRACE_SETOPTIONS, child, 0, options)) fail("could not trace");
    ptrace(PTRACE_CONT, child, 0, 0);
    for (pid_t pid; (pid = waitpid(-1, &status, __WALL)) > 0;) {
        if (!WIFSTOPPED(status)) {
            if (pid == child) code = WIFEXITED(status) ? WEXITSTATUS(status) : killed ? 77 : 128 + WTERMSIG(status);
            continue;
        }
        int event = status >> 16, signal = WSTOPSIG(status);
        if (event == PTRACE_EVENT_SECCOMP && !killed && is_watched(pid) && ++made == kill_at) {
            killed = 1;
            kill(child, SIGKILL);
            continue;
        }
        /* Threads begin with a stop of their own. */
        ptrace(PTRACE_CONT, pid, 0, event || signal == SIGSTOP ? 0 : signal);
    }
    return code;
}
