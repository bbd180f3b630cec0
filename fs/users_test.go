package fs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMount_UsersAreKeptApart proves F5 with real users on a real mount, where the
// kernel keeps names in one cache for all of them: three use the same names at the
// same time, try to get at each other's files, and all their lines come out.
func TestMount_UsersAreKeptApart(t *testing.T) {
	r := newRig(t, Options{})
	m := r.mount()
	script := filepath.Join(filepath.Dir(m.dir), "user.sh")
	err := os.WriteFile(script, []byte(`set -euo pipefail
cd "$M"
line='`+strings.TrimSuffix(line("USER-N"), "\n")+`'
fails() { if "$@" 2> /dev/null; then echo "user $UID did: $*"; exit 1; fi; }
for n in $(seq 40); do
	l=${line/USER/$UID}
	l=${l/N/$n}
	for f in a b .h; do
		exec 7> $f
		echo "$l" >&7
		chmod 600 $f
		test "$(stat -c %u $f)" = $UID
		test "$(cat $f)" = "$l"
		if [[ $f = .h ]]; then mv .h c; fi
		exec 7>&-
	done
done
mkdir -m 755 dir-$UID
mkdir -m 700 private-$UID
echo held > private-$UID/.mine
`), 0o755)
	if err != nil {
		t.Fatal(err)
	}
	run := func(uid, text string) {
		t.Helper()
		cmd := exec.Command("setpriv", "--reuid", uid, "--regid", uid, "--clear-groups", "bash", "-c", text)
		cmd.Env = append(os.Environ(), "M="+m.dir, "S="+script)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("user %s: %v\n%s", uid, err, out)
		}
	}
	done := make(chan bool)
	users := []string{"0", "1001", "1002"}
	for _, uid := range users {
		go func() {
			defer func() { done <- true }()
			run(uid, `. $S`)
		}()
	}
	for range users {
		<-done
	}
	run("1001", `cd $M
fails() { if "$@" 2> /dev/null; then echo "user $UID did: $*"; exit 1; fi; }
fails ls; fails cat private-1002/.mine; fails ls private-1002; fails rmdir dir-1002; fails mv dir-1002 x
fails touch dir-1002/f; fails chmod 777 dir-1002; fails rmdir private-1002; fails cat .status/nothing
fails chown 1002 private-1001; fails truncate -s 0 private-1002/.mine; fails ln private-1001/.mine l
fails mkdir dir-1002; fails mkdir private-1002/x; fails rm private-1002/.mine
ls private-1001 > /dev/null; rm private-1001/.mine; rmdir private-1001 dir-1001`)
	run("0", `cd $M; test "$(ls)" = "$(printf '%s\n' dir-0 dir-1002 private-0 private-1002)"
test -z "$(ls -A private-1002)"; rm private-0/.mine; rmdir private-0 dir-0; rmdir private-1002 && exit 1; :`)
	r.untilReleased()
	if got, want := strings.Count(r.bodies(), "\n"), 3*3*40; got != want {
		t.Errorf("%d lines came out, want %d", got, want)
	}
	if s := r.stats(); s.Dead != 0 || s.Partial != 0 {
		t.Errorf("the queue is %+v", s)
	}
}

// TestMount_DuplicateIsNoClose: a shell that keeps a descriptor sends a FLUSH with
// each command that writes to it; the name exists all the same, for all processes
// of the user, and not any more when the last descriptor is closed.
func TestMount_DuplicateIsNoClose(t *testing.T) {
	r := newRig(t, Options{})
	r.mount().sh(`cd $M
for i in $(seq 50); do
	exec 7> f
	cat f
	echo '` + strings.TrimSpace(line("a")) + `' >&7
	grep -q baseUrl f
	ls | grep -qx f
	exec 7>&-
	(set -C; : > f)
done`)
	r.untilReleased()
	r.wantBodies(strings.Repeat(line("a"), 50))
}
