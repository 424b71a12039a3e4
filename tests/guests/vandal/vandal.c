/* A guest in C that attacks, by what C makes easy: memory that isn't there, files that aren't its own, and more of everything. Each way
 * ends with 0 if nothing came of it, and with the number of the error that it got otherwise. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* So that the compiler doesn't see what becomes of it. */
static volatile uintptr_t nowhere = 0xfffffff0;
static char *volatile kept;

/* A pointer into what isn't there. */
static int wild_write(void) {
    *(volatile char *)nowhere = 1;
    return 0;
}

/* As many bytes as there may be, over everything. */
static int overflow(void) {
    volatile char here[16];
    for (uintptr_t at = 0; at < nowhere; at++) here[at] = (char)at;
    return here[0];
}

/* Through a pointer to what is no function. */
static int wild_call(void) {
    void (*function)(void) = (void (*)(void))(nowhere >> 4);
    function();
    return 0;
}

/* Frames on top of frames. */
static int deeper(int depth) {
    volatile char frame[512];
    frame[depth & 511] = (char)depth;
    return depth < 0 ? 0 : deeper(depth + 1) + frame[7];
}

/* Memory that is asked for, written to and never given back. */
static int hoard(void) {
    for (;;) {
        char *memory = malloc(1 << 20);
        if (!memory) return ENOMEM;
        memset(memory, 7, 1 << 20);
        kept = memory;
    }
}

/* Given back twice, and used after that. */
static int twice(void) {
    char *volatile memory = malloc(64);
    free(memory);
    free(memory);
    for (int n = 0; n < 1000; n++) memset(malloc(64), n, 4096);
    return 0;
}

/* What a program on Linux reads of others. */
static int snoop(void) {
    static const char *const places[] = {
        "/proc/self/mem", "/proc/1/environ", "/proc/self/cwd/../etc/shadow", "/dev/mem", "/dev/sda",    "/sys/kernel",
        "/etc/shadow",    "../../etc/shadow", "/data/../../etc/shadow",     "//etc//shadow", "/data/./../../home",
    };
    for (size_t n = 0; n < sizeof places / sizeof *places; n++) {
        if (open(places[n], O_RDONLY) >= 0) return 0;
    }
    return errno;
}

/* Makes, lists, renames and removes the same names without end. */
static int churn(void) {
    for (unsigned n = 0;; n++) {
        char name[32], other[32];
        snprintf(name, sizeof name, "/data/%u", n % 64);
        snprintf(other, sizeof other, "/data/%u", (n * 7 + 1) % 64);
        FILE *file = fopen(name, "w");
        if (file) fputs("x", file), fclose(file);
        rename(name, other);
        DIR *folder = opendir("/data");
        if (folder) {
            while (readdir(folder)) {}
            closedir(folder);
        }
        unlink(other);
    }
}

/* A log without lines. */
static int babble(void) {
    for (;;) putchar('a');
}

/* Waits that are over at once. */
static int impatient(void) {
    struct timespec none = {0, 0};
    for (;;) nanosleep(&none, NULL);
}

static const struct {
    const char *name;
    int (*run)(void);
} ways[] = {
    {"wild-write", wild_write}, {"overflow", overflow}, {"wild-call", wild_call}, {"hoard", hoard}, {"twice", twice},
    {"snoop", snoop},           {"churn", churn},       {"babble", babble},       {"impatient", impatient},
};

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "";
    if (strcmp(way, "deeper") == 0) return deeper(1);
    for (size_t n = 0; n < sizeof ways / sizeof *ways; n++) {
        if (strcmp(way, ways[n].name) == 0) return ways[n].run();
    }
    fprintf(stderr, "%s: no such way\n", way);
    return 120;
}
