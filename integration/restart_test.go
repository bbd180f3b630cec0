package integration

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"spoolfs/integration/rabbit"
)

// TestMount_Restart proves G1 and section 3.2 of the design: whatever is open,
// staged or held when the daemon ends, cleanly or not, what was promised is there
// afterwards, in its place and as what it was.
func TestMount_Restart(t *testing.T) {
	for name, end := range map[string]func(*spool){
		"clean": func(s *spool) {
			if code := s.stop(); code != 0 {
				s.t.Errorf("exit code %d:\n%s", code, s.stderr)
			}
		},
		"kill -9": (*spool).kill,
	} {
		t.Run(name, func(t *testing.T) {
			s := startSpool(t, deadBroker, "--exchange", "x", "--stop-files", "50ms")
			leaveFiles(s.newHand())
			end(s)
			s.start()
			takeUpFiles(t, s)
			end(s)
			s.start()
			s.newHand().put("last", record("last")+"\n")
			s.untilIngested(1)
			end(s)
			got := s.stored()
			want := []string{
				record("closed"), record("synced"), record("held"), record("appended"), record("deep"), record("renamed"), record("last"),
			}
			checkTexts(t, "queued", got.pending, want)
			if len(got.dead)+len(got.partial) > 0 {
				t.Errorf("set aside: %q %q", got.dead, got.partial)
			}
		})
	}
}

// leaveFiles leaves a file of each kind.
func leaveFiles(h *hand) {
	h.t.Helper()
	h.put("closed", record("closed")+"\n")
	h.put(".held", record("held")+"\n")
	h.put("empty.tmp", "")
	h.put("taken back.part", record("taken back")+"\n")
	h.do(order{Call: "unlink", Path: "taken back.part"})
	h.do(order{Call: "mkdir", Path: "d", Flags: 0o750})
	h.do(order{Call: "mkdir", Path: "d/e", Flags: 0o700})
	h.put("d/e/.deep", record("deep")+"\n")
	synced := h.create("synced")
	h.write(synced, record("synced")+"\n")
	h.fsync(synced)
	h.write(synced, record("written later")+"\n") // and promised to nobody
	held := h.create(".open")
	h.write(held, record("renamed")+"\n")
	h.fsync(held)
	h.write(held, record("written later")+"\n")
	h.write(h.create("open"), record("open")+"\n")
	h.write(h.create("d/.unsynced"), record("open")+"\n")
}

// takeUpFiles checks what has become of them and goes on with them.
func takeUpFiles(t *testing.T, s *spool) {
	h := s.newHand()
	names := h.do(order{Call: "list", Path: "."}).Names
	slices.Sort(names)
	checkTexts(t, "the mount lists", names, []string{".held", ".open", ".status", "d", "empty.tmp"})
	for path, want := range map[string]string{
		".held": record("held") + "\n", ".open": record("renamed") + "\n", "d/e/.deep": record("deep") + "\n", "empty.tmp": "",
	} {
		if got := h.read(path); got != want {
			t.Errorf("%s holds %q, want %q", path, got, want)
		}
	}
	if mode := h.do(order{Call: "stat", Path: "d"}).Stat.Mode; mode != unix.S_IFDIR|0o750 {
		t.Errorf("the mode of the directory is %o", mode)
	}
	fd := h.open(".held", unix.O_WRONLY|unix.O_APPEND)
	h.write(fd, record("appended")+"\n")
	h.close(fd)
	h.do(order{Call: "rename", Path: ".held", To: "h"})
	h.do(order{Call: "rename", Path: "d/e/.deep", To: "d/h"})
	h.do(order{Call: "rename", Path: ".open", To: "d/e/h"})
	h.do(order{Call: "unlink", Path: "empty.tmp"})
	h.do(order{Call: "rmdir", Path: "d/e"})
	h.do(order{Call: "rmdir", Path: "d"})
}

// TestMount_KilledDaemonKeepsHeldFiles proves G1 for temporary names: the daemon
// is killed at random moments while eight processes write files under temporary
// names and rename them. Each file whose rename returned 0 is there once, and of
// the others none is there twice.
func TestMount_KilledDaemonKeepsHeldFiles(t *testing.T) {
	const count = 8
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := startSpool(t, deadBroker, "--exchange", "x")
	w := startWritersOf(t, count, writerSpec{Dir: s.dir, Files: 50, Retry: true, Temp: true})
	for range times(4, 100) {
		moment := time.NewTimer(time.Duration(20+random.IntN(200)) * time.Millisecond)
		<-moment.C
		s.kill()
		s.start()
	}
	reports := w.finish()
	s.untilClosed()
	held := s.status().FS.HeldFiles
	s.kill()
	got := s.stored()
	var arrived []rabbit.Delivery
	for i, text := range got.pending {
		arrived = append(arrived, rabbit.Delivery{Body: []byte(text), MessageID: got.ids[i]})
	}
	checkArrivals(t, reports, arrived, 0)
	failed := 0
	for _, r := range reports {
		failed += r.Failed
	}
	t.Logf("%d files are there, %d attempts failed, %d files are still held", len(arrived), failed, held)
	if failed == 0 {
		t.Error("no attempt failed: the kills hit nothing")
	}
	if n := len(got.dead) + len(got.partial); n > 0 {
		t.Errorf("%d were set aside: %q %q", n, strings.Join(got.dead, "\n"), strings.Join(got.partial, "\n"))
	}
}
