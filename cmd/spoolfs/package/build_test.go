package packaging_test

import (
	"debug/elf"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestBuild_Reproducible: two builds of a commit, in different directories, are the
// same byte for byte: program, deb and rpm. Of another version they are not.
func TestBuild_Reproducible(t *testing.T) {
	for _, file := range []string{"package/bin/spoolfs", "spoolfs_*.deb", "spoolfs-*.rpm", "SHA256SUMS"} {
		first := read(t, one(t, "first/out/"+file))
		if first != read(t, one(t, "second/out/"+file)) {
			t.Errorf("%s is another in another directory", file)
		}
		if first == read(t, one(t, "later/"+file)) {
			t.Errorf("%s is the same in another version", file)
		}
	}
}

// TestBuild_Static: the program needs no library and no loader.
func TestBuild_Static(t *testing.T) {
	file, err := elf.Open(one(t, "first/out/package/bin/spoolfs"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("it has a segment %s", p.Type)
		}
	}
}

// TestBuild_Contents: both packages hold the same files, of root, with the modes
// that they should have, and nothing belongs to them that is others'.
func TestBuild_Contents(t *testing.T) {
	deb, rpm := debFiles(t), rpmFiles(t)
	zsh := strings.NewReplacer("zsh/vendor-completions", "zsh/site-functions")
	for i := range deb {
		deb[i] = zsh.Replace(deb[i])
	}
	slices.Sort(deb)
	if !slices.Equal(deb, rpm) {
		t.Errorf("deb\n%s\nrpm\n%s", strings.Join(deb, "\n"), strings.Join(rpm, "\n"))
	}
	for _, want := range []string{
		"-rwxr-xr-x root root /usr/bin/spoolfs",
		"link root root /usr/sbin/mount.fuse.spoolfs -> ../bin/spoolfs",
		"drwxr-xr-x root root /etc/spoolfs",
		"-rw-r--r-- root root /usr/lib/systemd/system/spoolfs.service",
		"-rw-r--r-- root root /usr/share/man/man8/spoolfs-mount.8.gz",
		"-rw-r--r-- root root /usr/share/man/man8/mount.fuse.spoolfs.8.gz",
		"-rw-r--r-- root root /usr/share/man/man5/spoolfs.yaml.5.gz",
		"-rw-r--r-- root root /usr/share/man/man1/spoolfs-status.1.gz",
		"-rw-r--r-- root root /usr/share/spoolfs/spoolfs.yaml",
		"-rw-r--r-- root root /usr/share/spoolfs/monitoring/alerts.yaml",
	} {
		if !slices.Contains(rpm, want) {
			t.Errorf("no %s in\n%s", want, strings.Join(rpm, "\n"))
		}
	}
	for _, line := range rpm {
		words := strings.Fields(line)
		if words[0][0] == 'd' && !strings.HasSuffix(words[3], "/spoolfs") || strings.HasPrefix(words[3], "/etc/spoolfs/") {
			t.Errorf("%s is not ours", line)
		}
	}
}

// debFiles are the files of the deb as lines of mode, owner and path, without the
// directories above them, which a deb must have.
func debFiles(t *testing.T) (files []string) {
	for _, line := range lines(output(t, "dpkg-deb", "--contents", one(t, "first/out/spoolfs_*.deb"))) {
		words := strings.Fields(line)
		path := strings.TrimSuffix(strings.TrimPrefix(words[5], "."), "/")
		if words[0][0] == 'd' && !strings.HasPrefix(path, "/etc/spoolfs") {
			continue
		}
		line := words[0] + " " + strings.ReplaceAll(words[1], "/", " ") + " " + path
		if words[0][0] == 'l' {
			line = "link" + strings.TrimPrefix(line, words[0]) + " -> " + words[7]
		}
		files = append(files, line)
	}
	return files
}

func rpmFiles(t *testing.T) (files []string) {
	for _, line := range lines(output(t, "rpm", "-qp", "--qf", "[%{FILEMODES:perms} %{FILEUSERNAME} %{FILEGROUPNAME} %{FILENAMES} %{FILELINKTOS}\n]", one(t, "first/out/spoolfs-*.rpm"))) {
		line = strings.TrimSpace(line)
		if line[0] == 'l' {
			at := strings.LastIndexByte(line, ' ')
			line = "link" + line[strings.IndexByte(line, ' '):at] + " ->" + line[at:]
		}
		files = append(files, line)
	}
	slices.Sort(files)
	return files
}

// TestBuild_Scripts: the scripts of the packages are POSIX shell, as far as dash
// can tell.
func TestBuild_Scripts(t *testing.T) {
	for _, name := range []string{"postinstall", "preremove", "postremove"} {
		if out, err := exec.Command("dash", "-n", "scripts/"+name+".sh").CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}
