/* refuse ERRNO CALL,… PROGRAM ARGUMENT…: runs a program under a seccomp filter that refuses system calls,
   by number, with an error. What containers do. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define CALLS_MAX 32

int main(int count, char **words) {
    struct sock_filter code[2 * CALLS_MAX + 2];
    unsigned short length = 0;
    if (count < 4) return 125;
    unsigned error = (unsigned)atoi(words[1]);
    code[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    char *next = words[2];
    for (int call = 0; call < CALLS_MAX && *next; call++) {
        unsigned number = (unsigned)strtoul(next, &next, 10);
        if (*next == ',') next++;
        code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
        code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
    }
    code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog filter = {.len = length, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
        perror("refuse");
        return 125;
    }
    execv(words[3], words + 3);
    perror(words[3]);
    return 127;
}
