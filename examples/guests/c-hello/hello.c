/* A guest in C: says hello, works in steps, and ends well when it is stopped. */

#include <stdio.h>
#include <stdlib.h>

#include "../../../guest-sdk/include/husk.h"

int main(int argc, char **argv) {
    /* Milliseconds between two steps, and how many steps to take; 0 steps: until it is stopped. */
    long period = argc > 1 ? atol(argv[1]) : 1000;
    long steps = argc > 2 ? atol(argv[2]) : 0;
    const char *name = getenv("NAME");

    /* A log that nobody sees before the program ends is of little use. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("hello from C, %s\n", name ? name : "world");
    husk_ready(1);

    for (long step = 1; steps == 0 || step <= steps; step++) {
        int32_t signal = husk_signal_wait(period);
        if (husk_is_stop(signal)) {
            printf("signal %d: good bye after %ld steps\n", (int)signal, step - 1);
            return 0;
        }
        printf("step %ld\n", step);
    }
    return 0;
}
