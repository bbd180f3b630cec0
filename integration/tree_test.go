package integration

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"spoolfs/queue"
)

// fillStore stores messages before the program starts.
func (s *spool) fillStore(ms []queue.Message) {
	s.t.Helper()
	q, _, err := queue.Open(s.store, queue.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := q.Route("default")
	if err != nil {
		s.t.Fatal(err)
	}
	for len(ms) > 0 {
		n := min(len(ms), 10_000)
		if err := r.Append(ms[:n]); err != nil {
			s.t.Fatal(err)
		}
		ms = ms[n:]
	}
	if err := q.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// someMessages makes messages of one file; reason makes dead letters of them.
func someMessages(n int, reason string) []queue.Message {
	f := queue.NewFileID()
	ms := make([]queue.Message, n)
	for i := range ms {
		ms[i] = queue.Message{
			ID: f.MessageID(uint32(i + 1)), Line: uint32(i + 1), File: "f", UID: 1234, Ingested: time.Unix(1_700_000_000, 0),
			Words: []string{"d"}, ContentType: "application/json", Body: []byte(record(fmt.Sprint(i))), Reason: reason,
		}
	}
	return ms
}

// as runs a shell command as another user, with a group besides its own, and
// returns what it printed.
func (s *spool) as(uid int, group, script string) (string, error) {
	groups := "--clear-groups"
	if group != "" {
		groups = "--groups=" + group
	}
	cmd := exec.Command("setpriv", fmt.Sprintf("--reuid=%d", uid), fmt.Sprintf("--regid=%d", uid), groups, "bash", "-c", script)
	cmd.Env = append(os.Environ(), "M="+s.dir, "D="+s.dir+"/.status/routes/default", "S="+s.dir+"/.status")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// writerAs lets another user write 5 bytes to a file, and hold it open until it is
// closed here.
func (s *spool) writerAs(uid int, name string) io.Closer {
	s.t.Helper()
	cmd := exec.Command("setpriv", fmt.Sprint("--reuid=", uid), fmt.Sprint("--regid=", uid), "--clear-groups",
		"bash", "-c", `exec 3> "$0"; echo abcd >&3; echo written; read`, filepath.Join(s.dir, name))
	in, err := cmd.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		s.t.Fatalf("%q, %v", line, err)
	}
	s.t.Cleanup(func() { in.Close(); cmd.Wait() })
	return in
}

// TestStatusTree_Users: numbers are for everybody; contents and commands for root
// and the group, whatever the group is to the user; and nobody gets something
// else out of it.
func TestStatusTree_Users(t *testing.T) {
	const group = "4711"
	s := newSpool(t, raceBinary, deadBroker, "--exchange", "x", "--status-group", group)
	ms := append(someMessages(20, ""), someMessages(20, "refused-by-broker")...)
	partial := queue.Message{ID: queue.NewFileID().MessageID(1), File: "torn", UID: 1234, Body: []byte("{"), Partial: true, Reason: "torn"}
	s.fillStore(append(ms, partial))
	s.start()
	users := []struct {
		uid     int
		group   string
		allowed bool
	}{{0, "", true}, {1001, group, true}, {4711, "", true}, {1001, "", false}, {1002, "0", false}}
	private := []string{
		`cat $S/config`, `cat $S/events`, `cat $S/ctl`, `echo resume > $S/ctl`,
		`ls $D/pending $D/dead $D/delayed $S/partial`,
		`cd $D/dead && cat $(ls | head -1)`,
		`test -r $S/config && test -w $S/ctl && test -x $D/dead`,
		fmt.Sprintf(`cat $D/dead/%s`, ms[20].ID), fmt.Sprintf(`stat $D/pending/%s`, ms[0].ID),
		fmt.Sprintf(`cat $S/partial/torn.%s`, partial.ID),
	}
	public := []string{
		`cat $S/summary $S/status.json $S/queue $S/publisher $S/fs`,
		`ls -l $S $S/routes $S/routes/default`, `test -r $S/summary`, `stat $D/dead`,
	}
	for _, u := range users {
		for _, script := range public {
			if out, err := s.as(u.uid, u.group, script); err != nil {
				t.Errorf("user %d, group %q: %s: %v\n%s", u.uid, u.group, script, err, out)
			}
		}
		for _, script := range private {
			out, err := s.as(u.uid, u.group, script)
			if (err == nil) != u.allowed {
				t.Errorf("user %d, group %q: %s: %v\n%s", u.uid, u.group, script, err, out)
			}
			if !u.allowed && strings.Contains(out, "body") || strings.Contains(out, "secret") {
				t.Errorf("user %d sees with %s:\n%s", u.uid, script, out)
			}
		}
		for _, script := range []string{
			`: > $S/summary`, `: > $S/new`, `: > $D/dead/new`, `mkdir $D/new`, `chmod 777 $D/dead`, `touch $S/summary`,
			`rmdir $D/dead`, `rm -f $S/summary`, `mv $S/summary $M/`, `mv $S/ctl $S/ctl2`, `: > $M/f; mv $M/f $D/dead/`,
			`ln $S/summary $S/l`, `ln -s x $S/l`, `mv $D $M/`, `mv $D/dead $D/d`,
		} {
			if out, err := s.as(u.uid, u.group, script); err == nil {
				t.Errorf("user %d, group %q: %s succeeded: %s", u.uid, u.group, script, out)
			}
		}
	}
	// What a user has open he and the operators see, and nobody reads.
	for _, u := range users {
		out, err := s.as(u.uid, u.group, `exec 3> $M/mine 4> $M/.held; echo abcd >&3
		[ "$(cd $S/open/$(id -u) && stat -c '%n %s %u' * .held)" = "mine 5 $(id -u)
.held 0 $(id -u)" ] && ls $S/open/$(id -u) && ! cat $S/open/$(id -u)/mine 2> /dev/null && ls $S/open | grep -q . &&
		! rm -f $S/open/$(id -u)/mine 2> /dev/null && ! mv $S/open/$(id -u)/mine $M/x 2> /dev/null
		rc=$?; : > $M/.held; rm $M/.held; exit $rc`)
		if err != nil || out != "mine\n" {
			t.Errorf("user %d, group %q: %v\n%s", u.uid, u.group, err, out)
		}
	}
	other := s.writerAs(1003, "theirs")
	for _, u := range users {
		out, err := s.as(u.uid, u.group, `stat -c %s $S/open/1003/theirs && ls $S/open/1003`)
		if (err == nil) != u.allowed || u.allowed && out != "5\ntheirs\n" {
			t.Errorf("user %d, group %q sees of another: %v\n%s", u.uid, u.group, err, out)
		}
	}
	other.Close()
	// What one may remove the other may not.
	one := func(dir string, i int) string { return fmt.Sprintf("$D/%s/%s", dir, ms[i].ID) }
	for _, script := range []string{"rm -f " + one("dead", 20), "mv " + one("dead", 20) + " $M/", "rm -f " + one("pending", 0)} {
		if out, err := s.as(1001, "", script); err == nil {
			t.Errorf("a user: %s succeeded: %s", script, out)
		}
	}
	before := s.status().Queue
	for _, script := range []string{"rm " + one("dead", 20), "mv " + one("dead", 21) + " $M/", "rm " + one("pending", 0), "rm $S/partial/*"} {
		if out, err := s.as(1001, group, script); err != nil {
			t.Errorf("an operator: %s: %v\n%s", script, err, out)
		}
	}
	if after := s.status().Queue; before.Dead-after.Dead != 2 || after.Ready != before.Ready || after.Partial != 0 {
		t.Errorf("the queue was %+v and is %+v", before, after)
	}
}

// TestStatusTree_Files: what programs do with the files of the tree works: sizes
// are true, copies are whole, globs and find see all.
func TestStatusTree_Files(t *testing.T) {
	s := newSpool(t, raceBinary, deadBroker, "--exchange", "x")
	const n = 300 // more than a page of a listing
	s.fillStore(append(someMessages(n, ""), someMessages(n, "refused-by-broker: no")...))
	s.start()
	s.sh(fmt.Sprintf(`D=$M/.status/routes/default N=%d T=$(mktemp -d); trap 'rm -r $T' EXIT
	for d in pending dead; do
		cp -a $D/$d $T/$d
		[ $(ls $T/$d | wc -l) = $N ]
		diff -r $D/$d $T/$d
		[ "$(cd $D/$d && stat -c '%%n %%s %%u %%Y' *)" = "$(cd $T/$d && stat -c '%%n %%s %%u %%Y' *)" ]
		[ "$(cat $D/$d/* | wc -c)" = "$(find $D/$d -type f -printf '%%s\n' | awk '{ n += $1 } END { print n }')" ]
		[ "$(ls -U $D/$d | sed 's/.*-//')" = "$(seq $N)" ] # oldest first
		[ "$(ls -i $D/$d)" = "$(ls -i $D/$d)" ]
		tar -C $D -cf $T/$d.tar $d 2>&1
		! grep -rL '^size ' $D/$d
	done
	set -- $D/dead/*; f=$1
	[ "$(sed -n 's/^reason //p' $f)" = "refused-by-broker: no" ]
	[ "$(sed '1,/^$/d' $f | wc -c)" = "$(sed -n 's/^size //p' $f)" ]
	python3 -c 'import mmap, sys; f = open(sys.argv[1], "rb"); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); assert m[:] == f.read() != b""' $f
	rm $D/dead/*
	[ -z "$(ls $D/dead)" ]
	if rm -r $D/pending 2> /dev/null; then exit 1; fi
	[ -z "$(ls $D/pending)" ]`, n))
	if q := s.status().Queue; q.Ready != 0 || q.Dead != 0 || q.Bytes != 0 {
		t.Errorf("left: %+v", q)
	}
}

// TestStatusTree_Redrive: what is moved to the mount is published, with the ID
// that it had.
func TestStatusTree_Redrive(t *testing.T) {
	s := newSpool(t, raceBinary, "stdout:")
	dead := someMessages(50, "refused-by-broker: no")
	file := queue.NewFileID()
	partial := queue.Message{
		ID: file.MessageID(1), Line: 1, File: ".held.tmp", UID: 1234, Ingested: time.Now(),
		Body: []byte(record("p1") + "\n" + record("p2") + "\n"), Partial: true, Reason: "abandoned",
	}
	s.fillStore(append(dead, partial))
	s.start()
	s.sh(`echo garbage > $M/f`)
	s.until("one more dead", func() bool { return s.status().Queue.Dead == 51 })
	s.sh(`D=$M/.status/routes/default
	bad=$(grep -l '^reason not-json' $D/dead/*)
	if mv $bad $M/ 2> /dev/null; then exit 1; fi
	[ -e $bad ]; rm $bad
	mv $D/dead/* $M/
	mv $M/.status/partial/.held.tmp.* $M/any-name
	[ -z "$(ls -A $D/dead $M/.status/partial | grep -v :)" ]`)
	s.untilSent()
	printed := s.stdout.String()
	for _, m := range dead {
		if strings.Count(printed, `"`+string(m.ID)+`"`) != 1 {
			t.Errorf("%s was not published once", m.ID)
		}
	}
	for line := range 2 {
		if id := string(file.MessageID(uint32(line + 1))); strings.Count(printed, `"`+id+`"`) != 1 {
			t.Errorf("%s was not published once", id)
		}
	}
	if n := len(lines(printed)); n != 52 {
		t.Errorf("published %d messages, want 52", n)
	}
}

// TestStatusTree_Control: pause, resume, drain and retry do what they say.
func TestStatusTree_Control(t *testing.T) {
	s := startSpool(t, "stdout:")
	write := func(name string) error {
		return os.WriteFile(filepath.Join(s.dir, name), []byte(record(name)+"\n"), 0o644)
	}
	s.sh(`echo pause > $M/.status/ctl`)
	s.until("paused", func() bool { return s.status().Publisher.State == "paused" })
	if err := write("a"); err != nil {
		t.Fatal(err)
	}
	s.untilIngested(1)
	s.sh(`echo drain > $M/.status/ctl; grep -q '^draining true$' $M/.status/fs`)
	if err := write("b"); !os.IsPermission(err) && !isErrno(err, syscall.EROFS) {
		t.Errorf("a write while draining: %v", err)
	}
	if q := s.status().Queue; q.Ready != 1 || s.stdout.String() != "" {
		t.Errorf("while paused: %+v, published %s", q, s.stdout)
	}
	s.sh(`if echo nonsense > $M/.status/ctl; then exit 1; fi 2> /dev/null
	echo resume >> $M/.status/ctl
	grep -q '^resume ' $M/.status/ctl
	grep -q 'msg=command word=pause' $M/.status/events`)
	if err := write("c"); err != nil {
		t.Error(err)
	}
	s.untilSent()
	if n := len(lines(s.stdout.String())); n != 2 {
		t.Errorf("published %d messages, want 2", n)
	}
}

// TestStatusTree_Retry: retry does not wait for the next attempt.
func TestStatusTree_Retry(t *testing.T) {
	broker, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	dials := make(chan struct{})
	go func() {
		for {
			c, err := broker.Accept()
			if err != nil {
				return
			}
			c.Close()
			dials <- struct{}{}
		}
	}()
	s := startSpool(t, "amqp://u:secret@"+broker.Addr().String()+"/", "--exchange", "x")
	s.sh(fmt.Sprintf(`echo '%s' > $M/f`, record("a")))
	<-dials
	// The waits grow to 30 s; so many dials in a test come from this only.
	deadline := time.After(time.Minute)
	for range 40 {
		s.until("waiting", func() bool { return s.status().Publisher.State == "waiting" })
		s.sh(`echo retry > $M/.status/ctl`)
		select {
		case <-dials:
		case <-deadline:
			t.Fatal("retries are not attempts")
		}
	}
}

// TestStatusTree_OneMoment: an open file does not change, a new one is new.
func TestStatusTree_OneMoment(t *testing.T) {
	s := startSpool(t, "stdout:")
	s.sh(fmt.Sprintf(`
	exec 3< $M/.status/status.json
	head -c 10 <&3 > /dev/null
	for i in $(seq 20); do echo '%s' > $M/f$i; cat $M/.status/status.json > /dev/null; done
	grep -q '"ingested_files_total": 0' <&3
	before=$(stat -L -c '%%s %%i' /dev/fd/3)
	[ "$before" = "$(stat -L -c '%%s %%i' /dev/fd/3)" ]
	[ $(stat -c %%i $M/.status/status.json) = ${before#* } ]`, record("a")))
	s.untilIngested(20)
	s.sh(`grep -q '"ingested_files_total": 20' $M/.status/status.json`)
}

func isErrno(err error, errno syscall.Errno) bool {
	pathErr, ok := err.(*os.PathError)
	return ok && pathErr.Err == errno
}
