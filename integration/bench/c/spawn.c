// spawn TIMES PROGRAM [ARGUMENT]...
//
// Runs a program over and over, one process after the other, with its output
// thrown away, and prints how long each took from fork to its end, in
// nanoseconds, a number a line.
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static long long now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv) {
	if (argc < 3)
		errx(64, "usage: spawn TIMES PROGRAM [ARGUMENT]...");
	posix_spawn_file_actions_t quiet;
	posix_spawn_file_actions_init(&quiet);
	posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
	for (int i = atoi(argv[1]); i > 0; i--) {
		pid_t pid;
		int status;
		long long start = now();
		if ((errno = posix_spawn(&pid, argv[2], &quiet, NULL, argv + 2, environ)))
			err(1, "spawn %s", argv[2]);
		if (waitpid(pid, &status, 0) < 0)
			err(1, "wait for %s", argv[2]);
		if (status)
			errx(1, "%s ended with status %#x", argv[2], status);
		printf("%lld\n", now() - start);
	}
	return fclose(stdout) != 0;
}
