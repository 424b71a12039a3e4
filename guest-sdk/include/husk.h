/*
 * What a C program in a Husk pod can say to, and hear from, the node that runs it.
 *
 * For core modules (wasm32-wasi, WASI preview 1). A program that calls husk_signal_next or husk_signal_wait imports
 * them, and so declares that it handles stop signals itself; one that doesn't ends at once when it is stopped, with
 * exit code 143.
 */
#ifndef HUSK_H
#define HUSK_H

#include <stdint.h>

/* Signals have their Linux numbers. */
#define HUSK_SIGHUP 1
#define HUSK_SIGINT 2
#define HUSK_SIGQUIT 3
#define HUSK_SIGUSR1 10
#define HUSK_SIGUSR2 12
#define HUSK_SIGTERM 15
#define HUSK_SIGWINCH 28

#define HUSK_IMPORT(name) __attribute__((import_module("husk:lifecycle"), import_name(name)))

/* The oldest signal that was not taken yet, or 0. Never blocks. */
HUSK_IMPORT("signal_next") int32_t husk_signal_next(void);

/* Sleeps until a signal arrives, which it takes, or until the timeout is over (0). A timeout below 0 is none. */
HUSK_IMPORT("signal_wait") int32_t husk_signal_wait(int64_t timeout_ms);

/* Says whether this container can do its work now. */
HUSK_IMPORT("ready") void husk_ready(int32_t is_ready);

/* Whether a signal asks the program to end. */
static inline int husk_is_stop(int32_t signal) {
    return signal == HUSK_SIGTERM || signal == HUSK_SIGINT || signal == HUSK_SIGQUIT;
}

#endif
