package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
)

// theseSpools are all spools that this very program keeps: the file that an upgrade
// would take is its own. Those of another installation, or in another container,
// are none of its business, nor are those that other users have mounted: what they say
// is what those users like, and the answer may never come.
//
// It also returns what is wrong with mounts that cannot be asked.
func (t *target) theseSpools(env *environment) ([]*client, error) {
	if t.Mountpoint != "" {
		return nil, withCode(exitUsage, errors.New("--all and a mountpoint exclude each other"))
	}
	mounts, err := readMounts()
	if err != nil {
		return nil, withCode(exitIO, err)
	}
	var ours []*client
	var wrong error
	for _, m := range trusted(mounts, os.Geteuid()) {
		cl := &client{mount: m, access: &accessor{within: t.AnswerWithin}, ctx: env.ctx}
		s, err := cl.status()
		switch {
		case errors.Is(err, syscall.ENOTCONN), errors.Is(err, syscall.ECONNABORTED):
			// Dead: nobody runs it.
		case err != nil:
			wrong = errors.Join(wrong, err)
		case s.Keeper.Binary != "" && sameFile(s.Keeper.Binary, "/proc/self/exe"):
			ours = append(ours, cl)
			continue
		}
		cl.close()
	}
	return ours, wrong
}

// each does something with all of them, and goes on after an error.
func (t *target) each(env *environment, what string, do func(*client) error) error {
	clients, wrong := t.theseSpools(env)
	for _, cl := range slices.Backward(clients) { // one may be mounted within another
		if err := do(cl); err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("%s %s: %w", what, cl.mount.Mountpoint, err))
		}
		cl.close()
	}
	return wrong
}
