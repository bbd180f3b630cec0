package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// record is a Sarracenia message as a shell writes it, without its newline.
func record(name string) string {
	return fmt.Sprintf(`{"pubTime": "20261130T070000.000", "baseUrl": "http://h", "relPath": "d/%s"}`, name)
}

// published returns the bodies that a spool with --broker=stdout: has printed.
func (s *spool) published() []string {
	s.t.Helper()
	var bodies []string
	for _, text := range lines(s.stdout.String()) {
		var m struct{ Body string }
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			s.t.Fatalf("%v in %s", err, text)
		}
		bodies = append(bodies, m.Body)
	}
	return bodies
}

// TestMount_Writers proves F2 and F4: programs write in many ways, and exactly
// the messages come out that one would expect. Each script gets the records a,
// b and c in $A, $B and $C. Where the order is not the writer's, the case sorts.
func TestMount_Writers(t *testing.T) {
	a, b, c := record("a"), record("b"), record("c")
	for _, tt := range []struct {
		name, script string
		want         []string
	}{
		{"echo", `echo "$A" > $M/f`, []string{a}},
		{"echo append", `echo "$A" >> $M/f`, []string{a}},
		{"echo twice", `echo "$A" > $M/f; echo "$B" >> $M/f`, []string{a, b}},
		{"sh echo", `sh -c 'echo "$A" > $M/f'`, []string{a}},
		{"cp", `echo "$A" > $T/x; cp $T/x $M/f`, []string{a}},
		{"cat", `(echo "$A"; echo "$B") | cat > $M/f`, []string{a, b}},
		{"dd", `echo "$A" | dd of=$M/f bs=7 status=none`, []string{a}},
		{"dd conv=fsync", `echo "$A" | dd of=$M/f conv=fsync,notrunc status=none`, []string{a}},
		{"tee", `(echo "$A"; echo "$B") | tee $M/f > /dev/null`, []string{a, b}},
		{"tee two files", `echo "$A" | tee $M/f $M/g > /dev/null`, []string{a, a}},
		{"tee append", `echo "$A" | tee -a $M/f > /dev/null`, []string{a}},
		{"subshell", `(echo "$A"; echo "$B") > $M/f`, []string{a, b}},
		{"subshell of programs", `(/bin/echo "$A"; /bin/echo "$B") > $M/f`, []string{a, b}},
		{"half a line from each", `(printf '%s' "${A:0:20}"; /bin/echo "${A:20}"; echo "$B") > $M/f`, []string{a, b}},
		{"background child", `exec 7> $M/f; (read -r < $T/pipe; echo "$B" >&7) & echo "$A" >&7; exec 7>&-; echo go > $T/pipe; wait`, []string{a, b}},
		{"two descriptors", `exec 7> $M/f; exec 8>&7; echo "$A" >&7; exec 7>&-; echo "$B" >&8; exec 8>&-`, []string{a, b}},
		{"same name at once", `for i in 1 2 3 4 5 6 7 8; do echo "$A" >> $M/f & done; wait`, slices.Repeat([]string{a}, 8)},
		{"python", py(`with open(M + "/f", "w") as f: f.write(A + "\n" + B + "\n")`), []string{a, b}},
		{"python flush", py(`f = open(M + "/f", "w"); f.write(A + "\n"); f.flush(); os.fsync(f.fileno()); f.write(B + "\n"); f.close()`), []string{a, b}},
		{"python never closes", py(`f = os.open(M + "/f", os.O_CREAT | os.O_WRONLY); os.write(f, (A + "\n").encode()); os._exit(0)`), []string{a}},
		{"python killed", py(`f = os.open(M + "/f", os.O_CREAT | os.O_WRONLY); os.write(f, (A + "\n").encode()); os.kill(os.getpid(), 9)`) + ` || true`, []string{a}},
		{"python seeks back", py(`f = open(M + "/f", "w+"); f.write(A + "\n" + B + "\n"); f.flush(); f.seek(0); f.truncate(); f.write(C + "\n"); f.close()`), []string{c}},
		{"python copies", `echo "$A" > $T/x; ` + py(`import shutil; shutil.copyfile(T + "/x", M + "/f")`), []string{a}},
		{"descriptor by socket", py(`import socket, array
l, r = socket.socketpair()
f = os.open(M + "/f", os.O_CREAT | os.O_WRONLY)
os.write(f, (A + "\n").encode())
l.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [f]))])
os.close(f)
`), []string{a}},
		{"no newline at the end", `printf '%s' "$A" > $M/f`, []string{a}},
		{"empty file", `: > $M/f`, nil},
		{"touch", `touch $M/f`, nil},
		{"touch and write", `touch $M/f; echo "$A" > $M/f`, []string{a}},
		{"truncate", `truncate -s 0 $M/f`, nil},
		{"rename while open", py(`f = open(M + "/f", "w"); f.write(A + "\n"); os.rename(M + "/f", M + "/g"); g = open(M + "/g"); f.write(B + "\n"); f.close()`), []string{a, b}},
		{"rename over", py(`f = open(M + "/f", "w"); g = open(M + "/g", "w"); f.write(A + "\n"); g.write(B + "\n"); os.rename(M + "/f", M + "/g"); f.close(); g.close()`), []string{a, b}},
		{"unlink while open", py(`f = open(M + "/f", "w"); f.write(A + "\n"); f.flush(); os.fsync(f.fileno()); os.unlink(M + "/f"); f.write(B + "\n"); f.close()`), []string{a}},
		{"odd name", `echo "$A" > "$M/"$'a \xff\n*'`, []string{a}},
		{"xargs -P", `seq 20 | xargs -P 8 -I{} sh -c 'echo "$A" > $M/f{}'`, slices.Repeat([]string{a}, 20)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := startSpool(t, "stdout:")
			tmp := t.TempDir()
			for k, v := range map[string]string{"A": a, "B": b, "C": c, "T": tmp, "PYTHONDONTWRITEBYTECODE": "1"} {
				t.Setenv(k, v)
			}
			s.sh(`mkfifo $T/pipe; ` + tt.script)
			s.untilIngested(uint64(len(tt.want)))
			s.untilSent()
			if names := s.names(); len(names) != 1 || names[0] != ".status" {
				t.Errorf("the mount lists %q", names)
			}
			if code := s.stop(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			var got []string
			for _, body := range s.published() {
				got = append(got, strings.TrimSuffix(body, "\n"))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("published\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

// py is a shell command that runs Python with the variables of the scripts.
func py(code string) string {
	return `python3 -c '
import os
A, B, C, M, T = (os.environ[k] for k in "ABCMT")
` + code + `'`
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
