// Torn writes files one after the other, each in many pieces, until it is killed.
//
//	torn PATH LOG SEED FORMAT [thread] [oom]
//
// FORMAT is raw or lines. When close(2) has returned 0 it appends the number of
// the file to LOG. With "thread" a thread writes that is not the first one; with
// "oom" it takes memory at a random moment until somebody ends it.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *path, *format;
static int log_fd, until_oom = -1;

static void die(const char *what) {
	perror(what);
	_exit(1);
}

// eat takes more memory than its group may have, and never much more.
static void eat(void) {
	for (int i = 0; i < 64; i++)
		memset(malloc(1 << 20), 1, 1 << 20);
	die("nobody has killed me");
}

// make fills buf with what file n holds. Its length follows from its content.
static size_t make(char *buf, int n) {
	size_t len = 0;
	int count = rand() % 12;
	if (!strcmp(format, "raw")) {
		int fill = rand() % 3000;
		len = sprintf(buf, "%d %d %d:", getpid(), n, fill);
		memset(buf + len, 'x', fill);
		len += fill;
		return len + sprintf(buf + len, ":end");
	}
	for (int i = 0; i <= count; i++)
		len += sprintf(buf + len,
			"{\"pubTime\": \"20261130T070000.000\", \"baseUrl\": \"http://h\", \"relPath\": \"%d/%d/%d/%d\"}\n",
			getpid(), n, i, count);
	return len;
}

static void write_file(int n) {
	static char buf[1 << 16];
	char name[4096];
	size_t len = make(buf, n), done = 0;
	snprintf(name, sizeof name, "%s.%d", path, n % 3);
	int f = open(name, O_CREAT | O_WRONLY, 0600);
	if (f < 0)
		die("open");
	while (done < len) {
		if (until_oom >= 0 && until_oom-- == 0)
			eat();
		size_t piece = 1 + rand() % 250;
		if (piece > len - done)
			piece = len - done;
		ssize_t got = write(f, buf + done, piece);
		if (got < 0)
			die("write");
		done += got;
	}
	if (rand() % 4 == 0 && fsync(f))
		die("fsync");
	if (close(f))
		die("close");
	len = sprintf(buf, "%d %d\n", getpid(), n);
	if (write(log_fd, buf, len) != (ssize_t)len)
		die("log");
}

static void *work(void *unused) {
	(void)unused;
	for (unsigned n = 0;; n++)
		write_file(n % 1000000);
	return 0;
}

int main(int argc, char **argv) {
	int thread = 0;
	path = argv[1];
	log_fd = open(argv[2], O_CREAT | O_WRONLY | O_APPEND, 0600);
	if (log_fd < 0)
		die(argv[2]);
	srand(atoi(argv[3]));
	format = argv[4];
	for (int i = 5; i < argc; i++) {
		if (!strcmp(argv[i], "thread"))
			thread = 1;
		if (!strcmp(argv[i], "oom"))
			until_oom = rand() % 100;
	}
	if (thread) {
		pthread_t id;
		if (pthread_create(&id, 0, work, 0))
			die("thread");
		pthread_join(id, 0);
	}
	work(0);
}
