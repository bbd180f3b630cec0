package main

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// How long a name is remembered, and how long it is remembered that there is none or
// that nobody said so in time; and how long a file waits for an answer.
const (
	nameKept    = 10 * time.Minute
	noNameKept  = time.Minute
	nameTimeout = 2 * time.Second
)

// maxNames is how many names are remembered.
const maxNames = 10_000

// userNames are the names of users by their number: of /etc/passwd, or what getent(1)
// says, which asks sssd and LDAP. A user whose name cannot be had in time is called
// by the number.
type userNames struct {
	lookUp func(uid string) string
	now    func() time.Time

	mu    sync.Mutex
	known map[uint32]*userName
}

// userName is the name of a user, as soon as done is closed.
type userName struct {
	done  chan struct{}
	name  string
	until time.Time
}

func newUserNames() *userNames {
	return &userNames{lookUp: lookUpUser, now: time.Now, known: map[uint32]*userName{}}
}

// name is the name of a user. One of those who ask for the same looks it up.
func (u *userNames) name(uid uint32) string {
	entry, mine := u.entry(uid)
	if !mine {
		<-entry.done
		return entry.name
	}
	number := strconv.FormatUint(uint64(uid), 10)
	name, kept := u.lookUp(number), nameKept
	if name == "" {
		name, kept = number, noNameKept
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	entry.name, entry.until = name, u.now().Add(kept)
	close(entry.done)
	return name
}

// entry returns what is known of a user, or a new entry for the caller to fill in.
func (u *userNames) entry(uid uint32) (entry *userName, mine bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	entry = u.known[uid]
	if entry != nil && (entry.until.IsZero() || u.now().Before(entry.until)) {
		return entry, false
	}
	if len(u.known) >= maxNames {
		clear(u.known)
	}
	entry = &userName{done: make(chan struct{})}
	u.known[uid] = entry
	return entry, true
}

// lookUpUser is the name of a user, or "".
func lookUpUser(uid string) string {
	if text, err := os.ReadFile("/etc/passwd"); err == nil {
		if name := nameIn(string(text), uid); name != "" {
			return name
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), nameTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "getent", "passwd", uid)
	cmd.WaitDelay = time.Second
	text, err := cmd.Output()
	if err != nil {
		return ""
	}
	return nameIn(string(text), uid)
}

// nameIn finds a user in lines of passwd(5).
func nameIn(passwd, uid string) string {
	for line := range strings.Lines(passwd) {
		fields := strings.Split(line, ":")
		if len(fields) > 2 && fields[2] == uid {
			return fields[0]
		}
	}
	return ""
}
