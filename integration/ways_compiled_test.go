package integration

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// compiledWays are those of programs in C and Go. F7 of the pains: signals do not
// make a call fail.
var compiledWays = []way{
	{"C stdio", cc(`FILE *f = fopen(path, "w"); fprintf(f, "%s\n%s\n", a, b); return fclose(f);`), "ab"},
	{"C stdio without a newline at the end", cc(`FILE *f = fopen(path, "w"); fprintf(f, "%s\n%s", a, b); return fclose(f);`), "ab"},
	{"C stdio appends", cc(`FILE *f = fopen(path, "a+"); fprintf(f, "%s\n", a); fflush(f); fprintf(f, "%s\n", b); return fclose(f);`), "ab"},
	{"C stdio never closes", cc(`FILE *f = fopen(path, "w"); fprintf(f, "%s\n", a); return 0;`), "a"},
	{"C stdio unbuffered", cc(`FILE *f = fopen(path, "w"); setvbuf(f, 0, _IONBF, 0); fprintf(f, "%s\n", a); return fclose(f);`), "a"},
	{"C stdio exclusive", cc(`FILE *f = fopen(path, "wx"); if (!f) return 1; fprintf(f, "%s\n", a); return fclose(f);`), "a"},
	// puts is buffered until after the child has written.
	{"C freopen", cc(`freopen(path, "w", stdout); puts(a); system("echo \"$B\""); return fclose(stdout);`), "ba"},
	{"C renames", cc(`char tmp[4096]; snprintf(tmp, sizeof tmp, "%s.tmp", path);
FILE *f = fopen(tmp, "w"); fprintf(f, "%s\n", a); return fclose(f) || rename(tmp, path);`), "a"},
	{"C under signals", cc(`struct sigaction s = {.sa_handler = on}; sigaction(SIGALRM, &s, 0);
struct itimerval every = {{0, 1000}, {0, 1000}}; setitimer(ITIMER_REAL, &every, 0);
for (int i = 0; i < 50; i++) {
	int f = open(path, O_CREAT | O_WRONLY | O_APPEND, 0600);
	if (f < 0 || write(f, a, strlen(a)) < 0 || fsync(f) || close(f)) return perror("call"), 1;
}
return 0;`), strings.Repeat("a", 50)},
	{"Go under SIGURG", fmt.Sprintf(`%s=urgent $SELF $M/f`, roleEnv), strings.Repeat("a", urgentFiles)},
}

// cc is a shell command that compiles and runs the body of a C function.
func cc(body string) string {
	return `cat > $T/x.c <<"EOF"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
static void on(int signal) { (void)signal; }
static int run(const char *path, const char *a, const char *b) {
` + body + `
}
int main(void) {
	char path[4096];
	snprintf(path, sizeof path, "%s/f", getenv("M"));
	(void)on;
	return run(path, getenv("A"), getenv("B"));
}
` + "EOF" + `
gcc -w -o $T/x $T/x.c; $T/x`
}

// urgentFiles is how many files a process writes that signals itself.
const urgentFiles = 100

// runUrgent writes files while it sends itself SIGURG, which the Go runtime does
// to preempt goroutines, 1,000 times a second. A call that fails is reported, EINTR
// too.
func runUrgent(args []string) int {
	// The signal must come to the thread that waits for the file system.
	runtime.LockOSThread()
	writer, stop := unix.Gettid(), make(chan struct{})
	defer close(stop)
	go func() {
		every := time.NewTicker(time.Millisecond)
		defer every.Stop()
		for {
			select {
			case <-every.C:
				unix.Tgkill(os.Getpid(), writer, unix.SIGURG)
			case <-stop:
				return
			}
		}
	}()
	for range urgentFiles {
		if err := writeRecord(args[0], os.Getenv("A")+"\n"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

// writeRecord writes a file without the calls that package os repeats.
func writeRecord(path, text string) error {
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	if _, err := unix.Write(fd, []byte(text)); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := unix.Fsync(fd); err != nil {
		return fmt.Errorf("fsync: %w", err)
	}
	if err := unix.Close(fd); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}
