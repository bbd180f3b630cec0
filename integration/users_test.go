package integration

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Users of the tests. They need no entry anywhere.
const (
	alice = 64001
	bob   = 64002
)

// TestUsers_SameNames proves G12 and F14 of the pains: three users, root among
// them, use the same names at the same time, ordinary and temporary ones, and none
// notices the others.
func TestUsers_SameNames(t *testing.T) {
	rounds := times(40, 2000)
	s := startSpool(t, deadBroker, "--exchange", "x")
	var wait sync.WaitGroup
	users := map[string]uint32{"root": 0, "alice": alice, "bob": bob}
	for name, uid := range users {
		h := s.handOf(uid)
		wait.Go(func() {
			for n := range rounds {
				h.round(numbered(name, 2*n), numbered(name, 2*n+1))
			}
		})
	}
	wait.Wait()
	if t.Failed() {
		return
	}
	s.untilIngested(uint64(2 * len(users) * rounds))
	s.kill()
	got := s.stored()
	checkOnceEach(t, got.pending, []string{"root", "alice", "bob"}, 2*rounds)
	for i, text := range got.pending {
		for name, uid := range users {
			if strings.Contains(text, "d/"+name+"/") && got.uids[i] != uid {
				t.Errorf("a message of %s belongs to user %d", name, got.uids[i])
			}
		}
	}
}

// round writes two files and looks at them in every way.
func (h *hand) round(first, second string) {
	fd := h.open("same", unix.O_CREAT|unix.O_EXCL|unix.O_RDWR)
	h.write(fd, first+"\n")
	if got := h.read("same"); got != first+"\n" {
		h.t.Errorf("the file holds %q, want %q", got, first)
	}
	h.do(order{Call: "chmod", Path: "same", Flags: 0o600})
	h.do(order{Call: "rename", Path: "same", To: "other"})
	h.close(fd)
	h.put("same.tmp", second+"\n")
	h.do(order{Call: "utimes", Path: "same.tmp"})
	if got := h.read("same.tmp"); got != second+"\n" {
		h.t.Errorf("the temporary file holds %q, want %q", got, second)
	}
	h.do(order{Call: "rename", Path: "same.tmp", To: "renamed"})
	h.put(".gone", "not for anybody\n")
	h.do(order{Call: "unlink", Path: ".gone"})
}

// TestUsers_CannotTouchOthers proves G12: what one user has open or held does not
// exist for another, root included, whatever he tries; neither the status tree nor
// the store gives it away, and its owner goes on undisturbed.
func TestUsers_CannotTouchOthers(t *testing.T) {
	for name, uid := range map[string]uint32{"another user": bob, "root": 0} {
		t.Run(name, func(t *testing.T) {
			s := startSpool(t, deadBroker, "--exchange", "x")
			owner, stranger := s.handOf(alice), s.handOf(uid)
			fd := owner.create("open")
			owner.write(fd, record("a")+"\n")
			owner.put(".held", record("b")+"\n")
			owner.do(order{Call: "mkdir", Path: "public", Flags: 0o777})
			owner.do(order{Call: "chmod", Path: "public", Flags: 0o777})
			owner.put("public/.held", record("c")+"\n")
			for _, path := range []string{"open", ".held", "public/.held"} {
				tryFile(stranger, path)
			}
			if names := stranger.do(order{Call: "list", Path: "public"}).Names; len(names) > 0 {
				t.Errorf("the stranger sees %q", names)
			}
			trySameName(stranger)
			if uid != 0 {
				tryDirectories(owner, stranger)
				tryStatus(stranger)
				tryStore(s, stranger)
			}
			owner.write(fd, record("d")+"\n")
			owner.close(fd)
			if got := owner.read(".held"); got != record("b")+"\n" {
				t.Errorf("the held file holds %q", got)
			}
			owner.do(order{Call: "rename", Path: ".held", To: "h"})
			owner.do(order{Call: "rename", Path: "public/.held", To: "h2"})
			owner.do(order{Call: "rmdir", Path: "public"})
			s.untilIngested(6)
			s.kill()
			got := s.stored()
			checkTexts(t, "stored", got.pending, []string{record("mine"), record("mine too"), record("a"), record("d"), record("b"), record("c")})
			if want := []uint32{uid, uid, alice, alice, alice, alice}; !slices.Equal(got.uids, want) {
				t.Errorf("the messages belong to %d, want %d", got.uids, want)
			}
		})
	}
}

// tryFile tries all that is done to a file by its name.
func tryFile(h *hand, path string) {
	h.t.Helper()
	for _, flags := range []int{unix.O_RDONLY, unix.O_WRONLY, unix.O_RDWR | unix.O_TRUNC, unix.O_WRONLY | unix.O_APPEND} {
		h.refuses(order{Call: "open", Path: path, Flags: flags}, unix.ENOENT)
	}
	for _, call := range []string{"stat", "unlink", "truncate", "chmod", "chown", "utimes", "access"} {
		h.refuses(order{Call: call, Path: path}, unix.ENOENT)
	}
	h.refuses(order{Call: "rename", Path: path, To: "stolen"}, unix.ENOENT)
	h.refuses(order{Call: "link", Path: path, To: "stolen"}, unix.ENOENT)
}

// trySameName uses the names for files of one's own.
func trySameName(h *hand) {
	h.t.Helper()
	fd := h.open("open", unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_TRUNC)
	h.write(fd, record("mine")+"\n")
	h.do(order{Call: "chmod", Path: "open", Flags: 0})
	h.do(order{Call: "rename", Path: "open", To: ".held"})
	h.do(order{Call: "unlink", Path: ".held"})
	// Only what is not promised goes with an unlink: the close is another's.
	h.close(fd)
	fd = h.create("open")
	h.write(fd, record("mine")+"\n")
	h.close(fd)
	h.put(".held", record("mine too")+"\n")
	h.do(order{Call: "rename", Path: ".held", To: "public/h"})
}

// tryDirectories tries what only the owner of a directory may do.
func tryDirectories(owner, h *hand) {
	h.t.Helper()
	owner.do(order{Call: "mkdir", Path: "private", Flags: 0o700})
	owner.put("private/.held", record("x")+"\n")
	for _, call := range []string{"open", "stat", "unlink", "truncate", "chmod", "chown"} {
		h.refuses(order{Call: call, Path: "private/.held"}, unix.EACCES)
	}
	h.refuses(order{Call: "open", Path: "private/f", Flags: unix.O_CREAT | unix.O_WRONLY}, unix.EACCES)
	h.refuses(order{Call: "list", Path: "private"}, unix.EACCES)
	h.refuses(order{Call: "list", Path: "."}, unix.EACCES)
	h.refuses(order{Call: "chmod", Path: "public", Flags: 0o700}, unix.EPERM)
	h.refuses(order{Call: "chown", Path: "public", Flags: bob}, unix.EPERM)
	h.refuses(order{Call: "rmdir", Path: "public"}, unix.EPERM)
	h.refuses(order{Call: "rename", Path: "public", To: "stolen"}, unix.EPERM)
	h.refuses(order{Call: "chmod", Path: ".", Flags: 0o777}, unix.EPERM)
	owner.do(order{Call: "unlink", Path: "private/.held"})
	owner.do(order{Call: "rmdir", Path: "private"})
	owner.refuses(order{Call: "chown", Path: "open", Flags: bob}, unix.EPERM)
}

// tryStatus tries to change the status tree and to find contents in it.
func tryStatus(h *hand) {
	h.t.Helper()
	if text := h.read(".status/summary"); !strings.Contains(text, "queue") || strings.Contains(text, "secret") {
		h.t.Errorf("the summary is\n%s", text)
	}
	gone := []unix.Errno{unix.EACCES, unix.EPERM, unix.ENOENT}
	for _, path := range []string{".status/summary", ".status/status.json"} {
		h.refuses(order{Call: "open", Path: path, Flags: unix.O_WRONLY}, gone...)
		for _, call := range []string{"unlink", "truncate", "chmod", "chown"} {
			h.refuses(order{Call: call, Path: path}, gone...)
		}
		h.refuses(order{Call: "rename", Path: path, To: ".status/x"}, append(gone, unix.EXDEV)...)
	}
	h.refuses(order{Call: "open", Path: ".status/new", Flags: unix.O_CREAT | unix.O_WRONLY}, gone...)
	h.refuses(order{Call: "mkdir", Path: ".status/new"}, gone...)
	for _, path := range []string{"routes/default/pending", "routes/default/dead", "partial", fmt.Sprintf("open/%d", alice)} {
		h.refuses(order{Call: "list", Path: ".status/" + path}, gone...)
	}
	for _, path := range []string{"ctl", "import", "config"} {
		h.refuses(order{Call: "open", Path: ".status/" + path, Flags: unix.O_RDWR}, gone...)
	}
}

// tryStore tries to get at the store.
func tryStore(s *spool, h *hand) {
	h.t.Helper()
	h.refuses(order{Call: "list", Path: s.store}, unix.EACCES)
	h.refuses(order{Call: "open", Path: s.store + "/FORMAT"}, unix.EACCES)
	h.refuses(order{Call: "open", Path: s.store + "/new", Flags: unix.O_CREAT | unix.O_WRONLY}, unix.EACCES)
	h.refuses(order{Call: "rename", Path: s.store, To: s.store + "2"}, unix.EACCES, unix.EPERM)
}

// TestUsers_Shells: users as setpriv(1) and su(1) make them write to one name at
// the same time.
func TestUsers_Shells(t *testing.T) {
	s := startSpool(t, "stdout:")
	const write = `for i in 0 1 2 3 4 5 6 7 8 9; do echo "$P$i\"}" >> "$M/same"; done`
	start := func(writer, as string) string {
		return fmt.Sprintf("P='%s' %s \"$W\" &\npids=\"$pids $!\"\n", strings.TrimSuffix(numbered(writer, 0), `0"}`), as)
	}
	s.runQuietly("pids= W='" + write + "'\n" +
		start("alice", fmt.Sprintf("setpriv --reuid %d --regid %d --clear-groups sh -c", alice, alice)) +
		start("bob", fmt.Sprintf("setpriv --reuid %d --regid %d --clear-groups bash -c", bob, bob)) +
		start("nobody", "su -s /bin/sh nobody -c") +
		start("root", "sh -c") +
		"for pid in $pids; do wait $pid; done")
	s.untilPublished()
	checkOnceEach(t, s.published(), []string{"alice", "bob", "nobody", "root"}, 10)
}
