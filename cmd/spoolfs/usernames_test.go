package main

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestUserNames(t *testing.T) {
	now := time.Unix(1000, 0)
	var asked atomic.Int64
	u := newUserNames()
	u.now = func() time.Time { return now }
	u.lookUp = func(uid string) string {
		asked.Add(1)
		if uid == "7" {
			return ""
		}
		return "ada"
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if got := u.name(1000); got != "ada" {
				t.Errorf("got %q", got)
			}
		})
	}
	wg.Wait()
	if got := u.name(7); got != "7" || asked.Load() != 2 {
		t.Errorf("a user without a name is called %q, asked %d times", got, asked.Load())
	}
	now = now.Add(noNameKept + time.Second)
	u.name(7)
	u.name(1000)
	if asked.Load() != 3 {
		t.Errorf("asked %d times, want 3", asked.Load())
	}
	for uid := range uint32(maxNames + 10) {
		u.name(uid)
	}
	if n := len(u.known); n > maxNames {
		t.Errorf("%d names are remembered", n)
	}
}

func TestLookUpUser(t *testing.T) {
	if got := lookUpUser("0"); got != "root" {
		t.Errorf("user 0 is %q", got)
	}
	if got := lookUpUser("3999999999"); got != "" {
		t.Errorf("a user that is not there is %q", got)
	}
	if got := nameIn("x:x:12:0::/:\nada:x:1000:1000::/:\n:", "1000"); got != "ada" {
		t.Errorf("got %q", got)
	}
}
