package device

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// helper mounts for users other than root.
const helper = "fusermount3"

// openByHelper mounts with fusermount3, for this user alone.
func (d *Device) openByHelper() error {
	if dead, err := isDead(d.dir); err != nil {
		return err
	} else if dead {
		if err := detachByHelper(d.dir, "-z"); err != nil {
			return fmt.Errorf("take away the dead mount: %w", err)
		}
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), helper)
	defer ours.Close()
	defer theirs.Close()
	fsname := strings.NewReplacer(`\`, `\\`, ",", `\,`).Replace(d.source)
	options := fmt.Sprintf("nosuid,nodev,noexec,fsname=%s,subtype=spoolfs,max_read=%d", fsname, MaxWrite)
	cmd := exec.Command(helper, "-o", options, "--", d.dir)
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Env = append(os.Environ(), "_FUSE_COMMFD=3")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s%s", helper, err, bytes.TrimSpace(out), advice())
	}
	d.FD, err = receiveFD(pair[0])
	return err
}

// receiveFD takes the descriptor that the helper sends.
func receiveFD(socket int) (int, error) {
	data, control := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, data, control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("receive the device from %s: %w", helper, err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return -1, fmt.Errorf("%s sent no device: %w", helper, err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, fmt.Errorf("%s sent no device: %w", helper, err)
	}
	return fds[0], nil
}

// detachByHelper unmounts with fusermount3, lazily when it is busy.
func detachByHelper(dir string, more ...string) error {
	out, err := exec.Command(helper, append(append([]string{"-u"}, more...), "--", dir)...).CombinedOutput()
	if err == nil {
		return nil
	}
	if len(more) == 0 && strings.Contains(string(out), "busy") {
		return detachByHelper(dir, "-z")
	}
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%w (install fuse3)", err)
	}
	return fmt.Errorf("%s: %w: %s", helper, err, bytes.TrimSpace(out))
}
