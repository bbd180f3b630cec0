// writer DIR FILES BYTES [wait] [fsync] [records=N]
//
// Writes FILES files of one record of BYTES bytes, or of N, one after the other,
// into DIR, as a job does: create, write, close. With "wait" it begins when its
// standard input ends. With "fsync" it syncs each file before it closes it. It
// prints how long each file took, in nanoseconds, a number a line.
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long long now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// fill makes a record of exactly size bytes with its newline. As in real ones a
// fifth of it, the hash, cannot be compressed.
static void fill(char *record, int size, int file) {
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	static unsigned long long state;
	char hash[89];
	state |= getpid() * 2654435761ULL + 1;
	for (int i = 0; i < 88; i++) {
		state = state * 6364136223846793005ULL + 1442695040888963407ULL;
		hash[i] = digits[state >> 58];
	}
	hash[88] = 0;
	int n = snprintf(record, size, "{\"pubTime\": \"20261130T07%02d%02d.%06d\", \"baseUrl\": \"file:/\", "
		"\"relPath\": \"home/user/run/001/output/%d/%07d.nc\", \"identity\": {\"method\": \"sha512\", \"value\": \"%s\"}, "
		"\"mode\": \"644\", \"size\": \"%d\", \"mtime\": \"20261130T07%02d%02d.%06d\", \"pad\": \"",
		file / 60 % 60, file % 60, file % 999983, getpid(), file, hash, file * 37 % 99991, file / 60 % 60, file % 60, file % 999979);
	if (n > size - 3)
		errx(64, "a record takes more than %d bytes", size);
	memset(record + n, '-', size - 3 - n);
	memcpy(record + size - 3, "\"}\n", 3);
}

static void write_file(const char *dir, int file, const char *text, int size, int sync) {
	char path[4096];
	snprintf(path, sizeof path, "%s/post_retry.node1.%d.%d", dir, getpid(), file);
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		err(1, "create %s", path);
	if (write(fd, text, size) != size)
		err(1, "write %s", path);
	if (sync && fsync(fd) < 0)
		err(1, "fsync %s", path);
	if (close(fd) < 0)
		err(1, "close %s", path);
}

int main(int argc, char **argv) {
	if (argc < 4)
		errx(64, "usage: writer DIR FILES BYTES [wait] [fsync] [records=N]");
	int files = atoi(argv[2]), size = atoi(argv[3]), records = 1, sync = 0, wait = 0;
	for (int i = 4; i < argc; i++) {
		sync |= !strcmp(argv[i], "fsync");
		wait |= !strcmp(argv[i], "wait");
		if (!strncmp(argv[i], "records=", 8))
			records = atoi(argv[i] + 8);
	}
	char *text = malloc((size_t)records * size + 1), byte;
	long long *took = malloc((files + 1) * sizeof *took);
	if (!text || !took)
		err(1, "malloc");
	while (wait && read(0, &byte, 1) > 0)
		continue;
	for (int i = 0; i < files; i++) {
		for (int j = 0; j < records; j++)
			fill(text + (size_t)j * size, size, i * records + j);
		long long start = now();
		write_file(argv[1], i, text, records * size, sync);
		took[i] = now() - start;
	}
	for (int i = 0; i < files; i++)
		printf("%lld\n", took[i]);
	return fclose(stdout) != 0;
}
