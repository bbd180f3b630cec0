// null DIR
//
// A file system on libfuse that takes everything and keeps nothing: the floor of
// what FUSE costs in C. It uses the low-level interface, all threads that
// libfuse wants, a descriptor of /dev/fuse for each, and direct I/O. It prints
// "ready" when it is mounted, and ends with SIGTERM.
#define FUSE_USE_VERSION 35
#include <errno.h>
#include <fuse3/fuse_lowlevel.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_ulong last = FUSE_ROOT_ID;

static struct stat stat_of(fuse_ino_t ino) {
	struct stat st = {.st_ino = ino, .st_nlink = 1, .st_mode = ino == FUSE_ROOT_ID ? S_IFDIR | 0777 : S_IFREG | 0600};
	return st;
}

static void null_init(void *data, struct fuse_conn_info *conn) {
	(void)data;
	conn->max_background = 64;
	conn->want &= ~(FUSE_CAP_READDIRPLUS | FUSE_CAP_AUTO_INVAL_DATA);
}

static void null_lookup(fuse_req_t req, fuse_ino_t parent, const char *name) {
	(void)parent, (void)name;
	fuse_reply_err(req, ENOENT);
}

static void null_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
	(void)fi;
	struct stat st = stat_of(ino);
	fuse_reply_attr(req, &st, 60);
}

static void null_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi) {
	(void)parent, (void)name, (void)mode;
	struct fuse_entry_param e = {.ino = atomic_fetch_add(&last, 1) + 1, .attr_timeout = 60};
	e.attr = stat_of(e.ino);
	fi->direct_io = 1;
	fuse_reply_create(req, &e, fi);
}

static void null_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off, struct fuse_file_info *fi) {
	(void)ino, (void)buf, (void)off, (void)fi;
	fuse_reply_write(req, size);
}

static void null_ok(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
	(void)ino, (void)fi;
	fuse_reply_err(req, 0);
}

static const struct fuse_lowlevel_ops ops = {
	.init = null_init, .lookup = null_lookup, .getattr = null_getattr, .create = null_create,
	.write = null_write, .flush = null_ok, .release = null_ok,
};

static int serve(struct fuse_session *s, const char *dir) {
	if (fuse_set_signal_handlers(s) || fuse_session_mount(s, dir))
		return 1;
	puts("ready");
	fflush(stdout);
	struct fuse_loop_config config = {.clone_fd = 1, .max_idle_threads = 10};
	int failed = fuse_session_loop_mt(s, &config);
	fuse_session_unmount(s);
	return failed < 0;
}

int main(int argc, char **argv) {
	if (argc != 2)
		return 64;
	char *words[] = {argv[0], "-oallow_other,fsname=null,subtype=null"};
	struct fuse_args args = FUSE_ARGS_INIT(2, words);
	struct fuse_session *s = fuse_session_new(&args, &ops, sizeof ops, NULL);
	if (!s)
		return 1;
	int status = serve(s, argv[1]);
	fuse_session_destroy(s);
	return status;
}
