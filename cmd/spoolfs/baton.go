package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"spoolfs/fs/keeper"
)

// batonEnv names the descriptor of the baton.
const batonEnv = "SPOOLFS_BATON_FD"

// baton is what a keeper leaves to the new version of its program, which is
// executed in its place. It is in an unnamed file, since there may be passwords
// in the arguments.
type baton struct {
	Args     []string      `json:"args"`
	Device   int           `json:"device"`
	Memory   int           `json:"memory"`
	State    keeper.State  `json:"state"`
	OOMScore string        `json:"oom_score"`
	Manager  managerBefore `json:"manager"`
}

// managerBefore is the service manager, whose variables are not in the
// environment any more.
type managerBefore struct {
	Socket string `json:"socket"`
	Stores bool   `json:"stores"`
}

// left are the descriptors that a former keeper has left.
type left struct{ device, memory int }

// takeBaton takes the baton; nil if there is none.
func takeBaton() (*baton, error) {
	text, there := os.LookupEnv(batonEnv)
	if !there {
		return nil, nil
	}
	os.Unsetenv(batonEnv)
	fd, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("%s=%q: want a number", batonEnv, text)
	}
	file := os.NewFile(uintptr(fd), "baton")
	defer file.Close()
	var b baton
	if err := json.NewDecoder(file).Decode(&b); err != nil {
		return nil, fmt.Errorf("take over from the former version: %w", err)
	}
	return &b, nil
}

// reexec executes the program on disk in place of this one. It returns only if
// that fails.
func reexec(k *keeper.Keeper, env *environment, opts keeper.Options) error {
	b := baton{Args: env.args, State: k.State(), OOMScore: opts.OOMScore}
	b.Device, b.Memory = k.Descriptors()
	b.State.Upgrades++
	b.State.UpgradeError = ""
	b.State.Started = time.Time{} // that of the new version
	if m := opts.Manager; m != nil {
		b.Manager = managerBefore{m.Socket, m.Stores}
	}
	fd, err := b.file()
	if err != nil {
		return fmt.Errorf("hand over to the new version: %w", err)
	}
	defer unix.Close(fd)
	syscall.ForkLock.Lock() // nobody else gets these
	defer syscall.ForkLock.Unlock()
	inherited := []int{b.Device, b.Memory, fd}
	for _, fd := range inherited {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("hand over to the new version: %w", err)
		}
	}
	err = syscall.Exec(opts.Binary, os.Args, append(os.Environ(), batonEnv+"="+strconv.Itoa(fd)))
	for _, fd := range inherited {
		unix.CloseOnExec(fd)
	}
	return fmt.Errorf("execute %s: %w", opts.Binary, err)
}

// file puts the baton into an unnamed file.
func (b *baton) file() (int, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return -1, err
	}
	fd, err := unix.MemfdCreate("baton", unix.MFD_CLOEXEC)
	if err != nil {
		return -1, err
	}
	if n, err := unix.Pwrite(fd, text, 0); err != nil || n < len(text) {
		return -1, errors.Join(fmt.Errorf("wrote %d of %d bytes: %w", n, len(text), err), unix.Close(fd))
	}
	return fd, nil
}
