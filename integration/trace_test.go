package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// record is a Sarracenia message as a shell writes it, without its newline.
func record(name string) string {
	return fmt.Sprintf(`{"pubTime": "20261130T070000.000", "baseUrl": "http://h", "relPath": "d/%s"}`, name)
}

// published returns the bodies that a spool with --broker=stdout: has printed,
// without their last newline.
func (s *spool) published() []string {
	s.t.Helper()
	var bodies []string
	for _, text := range lines(s.stdout.String()) {
		var m struct {
			Body       string
			BodyBase64 []byte `json:"body_base64"`
		}
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			s.t.Fatalf("%v in %s", err, text)
		}
		bodies = append(bodies, strings.TrimSuffix(m.Body+string(m.BodyBase64), "\n"))
	}
	return bodies
}

// way is a way in which a process writes. Its script gets the records a, b and c
// in $A, $B and $C, the mount in $M, a directory elsewhere in $T, and the test
// binary in $SELF.
type way struct {
	name, script string
	want         string // the letters of what is published, in order
}

// TestMount_Writers proves F2 and F4 of the file system: programs write in many
// ways, and exactly the messages come out that one would expect, in order. The
// programs succeed and print no warning (F17); afterwards nothing is listed, held
// or open, and nothing was set aside.
func TestMount_Writers(t *testing.T) {
	s := startSpool(t, "stdout:")
	for _, w := range slices.Concat(shellWays, programWays, pythonWays, compiledWays) {
		t.Run(w.name, func(t *testing.T) { s.checkWay(t, w) })
	}
	if code := s.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// checkWay runs a script and compares what is published meanwhile.
func (s *spool) checkWay(t *testing.T, w way) {
	whole := s.t
	s.t = t
	defer func() { s.t = whole }()
	before, fsBefore := len(s.published()), s.status().FS
	s.runQuietly(w.script)
	s.untilPublished()
	var want []string
	for letter := range strings.SplitSeq(w.want, "") {
		want = append(want, record(letter))
	}
	checkTexts(t, "published", s.published()[before:], want)
	if names := s.names(); len(names) != 1 || names[0] != ".status" {
		t.Errorf("the mount lists %q", names)
	}
	after := s.status()
	if after.Queue.Dead != 0 || after.FS.IngestedPartialTotal != fsBefore.IngestedPartialTotal {
		t.Errorf("something was set aside: %+v", after)
	}
	if after.FS.IngestErrorsTotal != fsBefore.IngestErrorsTotal || after.FS.PanicsTotal != 0 || after.FS.HeldFiles != 0 {
		t.Errorf("the file system is %+v", after.FS)
	}
}

// runQuietly runs a script that must say nothing.
func (s *spool) runQuietly(script string) {
	s.t.Helper()
	tmp, err := os.MkdirTemp(s.t.TempDir(), "")
	if err != nil {
		s.t.Fatal(err)
	}
	binary, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", "mkfifo $T/pipe; "+script)
	cmd.Env = append(os.Environ(), "A="+record("a"), "B="+record("b"), "C="+record("c"), "M="+s.dir, "T="+tmp, "SELF="+binary, "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		s.t.Fatalf("%s: %v, and it said:\n%s\n%s", script, err, out, s.stderr)
	}
}

// untilPublished waits until no file is open, nothing is left to publish, and all
// that was published is in our hands.
func (s *spool) untilPublished() {
	s.t.Helper()
	s.until("done with publishing", func() bool {
		st := s.status()
		q := st.Queue
		return st.FS.OpenFiles == 0 && q.Ready+q.Leased+q.Delayed+q.Staged == 0 &&
			strings.Count(s.stdout.String(), "\n") == int(st.Publisher.ConfirmedTotal)
	})
}

// checkTexts compares what came with what should have.
func checkTexts(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%.2000s\nwant\n%.2000s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestMount_Refusals: what one may not do, and what stays in the
// directory below, which must be nothing.
func TestMount_Refusals(t *testing.T) {
	s := startSpool(t, "stdout:")
	for script, want := range map[string]string{
		`mkdir $M/+5`:  "File exists",
		`rmdir $M/+5`:  "Operation not permitted",
		`ln -s x $M/l`: "Operation not permitted",
		`mkfifo $M/p`:  "Operation not permitted",

		`: > $M/$(printf '%0256d' 0)`: "File name too long",
		`: > $M/.status/new`:          "Permission denied",
		`: > $M/.status/summary`:      "Permission denied",
		`rm -f $M/.status/summary`:    "Operation not permitted",
		`rmdir $M/.status`:            "Operation not permitted",
		`cat $M/missing`:              "No such file or directory",
		`truncate -s 65M $M/big`:      "File too large",
		`setpriv --reuid 1 ls $M`:     "Permission denied",
	} {
		s.sh(fmt.Sprintf(`if out=$(exec 2>&1; %s); then echo "$out"; echo succeeded; exit 1; fi; case $out in *"%s"*) ;; *) echo "$out"; exit 1;; esac`, script, want))
	}
	s.sh(`setpriv --reuid 1 --clear-groups cat $M/.status/summary > /dev/null`)
	if code := s.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil || len(entries) != 0 {
		t.Errorf("in the bare directory: %v, %v", entries, err)
	}
}
