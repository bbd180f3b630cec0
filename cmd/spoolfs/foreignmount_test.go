package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const mountLines = `36 35 0:57 / /run/spool rw,nosuid shared:1 - fuse.spoolfs spoolfs rw,user_id=0,group_id=0,allow_other
37 35 0:58 / /home/eve/m rw - fuse.spoolfs spoolfs rw,user_id=1000,group_id=1000
38 35 0:59 / /home/bob/m rw - fuse.spoolfs spoolfs rw,user_id=1001,group_id=1001
39 35 0:60 / /odd rw - fuse.spoolfs spoolfs rw
`

// TestChooseMount_Foreign: a user who mounts a file system that calls itself a spool is
// not taken for the node's, and does not keep the others from being found.
func TestChooseMount_Foreign(t *testing.T) {
	all, err := spoolMounts(strings.NewReader(mountLines))
	if err != nil || len(all) != 4 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, tt := range []struct {
		name   string
		mounts []spoolMount
		path   string
		euid   int
		want   string // mountpoint, or what the error says
	}{
		{"root", all, "", 0, "/run/spool"},
		{"a user without one", all, "", 1002, "/run/spool"},
		{"a user with one", all, "", 1001, "say which spool, as the last argument; mounted are /run/spool /home/bob/m"},
		{"only foreign ones", all[1:], "", 0, "no spool is mounted by you or root: say which one, as the last argument; mounted are /home/eve/m /home/bob/m /odd"},
		{"named", all, "/home/eve/m", 0, "/home/eve/m"},
		{"none", nil, "", 0, "no spool is mounted: start one"},
	} {
		m, err := chooseMount(tt.mounts, tt.path, tt.euid)
		if got := m.Mountpoint + fmt.Sprint(err); !strings.HasPrefix(strings.TrimSuffix(got, "<nil>"), tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestSpoolMount_SignalKeeper: what a mount of a user names as its keeper gets a signal
// only if it is a process of his.
func TestSpoolMount_SignalKeeper(t *testing.T) {
	cmd, uid := exec.Command("sleep", "600"), os.Getuid()
	if uid == 0 {
		uid = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eve := spoolMount{UID: uid + 1}
	if err := eve.signalKeeper(cmd.Process.Pid, syscall.SIGTERM); !errors.Is(err, errForeignKeeper) {
		t.Errorf("signal to the process of another user: %v", err)
	}
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("it has ended: %v", err)
	}
	his := spoolMount{UID: uid}
	if err := his.signalKeeper(cmd.Process.Pid, syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it has not got the signal")
	}
}

// TestSpoolMount_Detach: the mount is taken away that is meant, and none to which the path
// leads by now.
func TestSpoolMount_Detach(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	base := t.TempDir()
	var ids []int
	for _, name := range []string{"eve", "root"} {
		dir := filepath.Join(base, name, "m")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
		ids = append(ids, mountID(t, dir))
	}
	m := spoolMount{ID: ids[0], Mountpoint: filepath.Join(base, "path", "m")}
	lead := func(to string) {
		t.Helper()
		_ = os.Remove(filepath.Join(base, "path"))
		if err := os.Symlink(filepath.Join(base, to), filepath.Join(base, "path")); err != nil {
			t.Fatal(err)
		}
	}
	lead("root")
	if err := m.detach(); !errors.Is(err, errOtherMount) {
		t.Errorf("detach by a path that leads elsewhere: %v", err)
	}
	if got := mountID(t, filepath.Join(base, "root", "m")); got != ids[1] {
		t.Error("another mount was taken away")
	}
	lead("eve")
	if err := m.detach(); err != nil {
		t.Error(err)
	}
	if got := mountID(t, filepath.Join(base, "eve", "m")); got == ids[0] {
		t.Error("the mount is still there")
	}
}

// mountID is that of the mount in which a directory lies.
func mountID(t *testing.T, dir string) int {
	t.Helper()
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, dir, 0, unix.STATX_MNT_ID, &st); err != nil {
		t.Fatal(err)
	}
	return int(st.Mnt_id)
}
