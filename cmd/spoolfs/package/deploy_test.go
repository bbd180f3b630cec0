package packaging_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestSlurm_Prolog: a node without a spool is drained, with the reason, and gets no
// job. That one with a spool gets some is a part of TestInstall.
func TestSlurm_Prolog(t *testing.T) {
	bin := t.TempDir()
	err := errors.Join(
		os.Symlink(one(t, "first/out/package/bin/spoolfs"), filepath.Join(bin, "spoolfs")),
		os.WriteFile(filepath.Join(bin, "scontrol"), []byte("#!/bin/sh\nprintf '%s\\n' \"$@\" >"+bin+"/asked\n"), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "--mount", "--", "sh", "deploy/slurm/prolog") // where nobody else mounts a spool
	cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "SLURMD_NODENAME=n1"}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	asked := lines(read(t, filepath.Join(bin, "asked")))
	if len(asked) != 4 || asked[1] != "nodename=n1" || asked[2] != "state=drain" || !strings.HasPrefix(asked[3], "reason=SPOOLFS CRITICAL - no spool is mounted") {
		t.Errorf("scontrol was called with %q", asked)
	}
}

// object is what is looked at of a Kubernetes object.
type object struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Data     map[string]string
	Spec     podSpec
}

type podSpec struct {
	Template       *struct{ Spec podSpec }
	InitContainers []container `yaml:"initContainers"`
	Containers     []container
	Volumes        []struct {
		Name      string
		ConfigMap struct{ Name string } `yaml:"configMap"`
		HostPath  struct{ Path string } `yaml:"hostPath"`
	}
}

type container struct {
	Name            string
	SecurityContext struct{ Privileged bool } `yaml:"securityContext"`
	ReadinessProbe  probe                     `yaml:"readinessProbe"`
	LivenessProbe   probe                     `yaml:"livenessProbe"`
	VolumeMounts    []struct {
		Name             string
		MountPath        string `yaml:"mountPath"`
		MountPropagation string `yaml:"mountPropagation"`
	} `yaml:"volumeMounts"`
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

// TestKubernetes: the configuration within the example is one, mounts go both ways, and
// each volume is there.
func TestKubernetes(t *testing.T) {
	objects := map[string]object{}
	for _, file := range []string{"spoolfs.yaml", "writer.yaml"} {
		decoder := yaml.NewDecoder(strings.NewReader(read(t, "deploy/kubernetes/"+file)))
		for {
			var o object
			err := decoder.Decode(&o)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			objects[o.Kind] = o
		}
	}
	config := inForce(t, objects["ConfigMap"].Data["spoolfs.yaml"])
	pod := objects["DaemonSet"].Spec.Template.Spec
	writer := objects["Pod"].Spec
	spool := pod.Containers[0]
	if spool.ReadinessProbe.HTTPGet.Path != "/readyz" || spool.LivenessProbe.HTTPGet.Path != "/livez" || !strings.Contains(config, "listen: :9797") {
		t.Errorf("%+v of\n%s", spool, config)
	}
	// Kubernetes lets only privileged containers mount for others.
	if !spool.SecurityContext.Privileged || propagation(t, pod, spool, "/run/spool-mount") != "Bidirectional" || propagation(t, writer, writer.Containers[0], "/run/spool-mount") != "HostToContainer" {
		t.Errorf("%+v\n%+v", pod, writer)
	}
	for _, c := range append(pod.Containers, pod.InitContainers...) {
		for _, m := range c.VolumeMounts {
			if hostPath(pod, m.Name) == nil {
				t.Errorf("%s mounts %s, which is no volume", c.Name, m.Name)
			}
		}
	}
}

// TestKubernetes_Schema: the API's own decoder takes the objects, and refuses a field
// that there is none of. The program is a module of its own: nobody else needs its
// dependencies.
func TestKubernetes_Schema(t *testing.T) {
	program := filepath.Join(t.TempDir(), "kubernetes")
	build := exec.Command("go", "build", "-C", "testdata/kubernetes", "-buildvcs=false", "-o", program)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(program, "deploy/kubernetes/spoolfs.yaml", "deploy/kubernetes/writer.yaml").CombinedOutput()
	if want := "Namespace\nConfigMap\nDaemonSet\nPod\n"; err != nil || string(out) != want {
		t.Errorf("%v\n%s, want\n%s", err, out, want)
	}
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	text := strings.Replace(read(t, "deploy/kubernetes/writer.yaml"), "mountPropagation:", "propagation:", 1)
	if err := os.WriteFile(wrong, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, wrong).CombinedOutput(); err == nil || !strings.Contains(string(out), `unknown field "spec.containers[0].volumeMounts[0].propagation"`) {
		t.Errorf("%v\n%s", err, out)
	}
}

func hostPath(pod podSpec, volume string) *string {
	for _, v := range pod.Volumes {
		if v.Name == volume {
			return &v.HostPath.Path
		}
	}
	return nil
}

// propagation is that of a directory of the host in a container.
func propagation(t *testing.T, pod podSpec, c container, path string) string {
	for _, m := range c.VolumeMounts {
		if p := hostPath(pod, m.Name); p != nil && *p == path {
			return m.MountPropagation
		}
	}
	t.Errorf("%s has no volume of %s", c.Name, path)
	return ""
}

// TestContainer_Scratch: the program needs nothing of a system but itself, as in the
// image of the Containerfile: here it mounts, takes a file and ends with nothing else
// in its root.
func TestContainer_Scratch(t *testing.T) {
	recipe := read(t, "deploy/container/Containerfile")
	if !strings.Contains(recipe, "\nFROM scratch\nCOPY spoolfs /usr/bin/spoolfs\n") {
		t.Errorf("the recipe is\n%s", recipe)
	}
	const script = `
cd "$1"; mkdir -p root/usr/bin root/proc root/dev root/mnt/spool root/store
cp -- "$2" root/usr/bin/spoolfs
mount -t proc proc root/proc
touch root/dev/fuse root/dev/null
mount --bind /dev/fuse root/dev/fuse; mount --bind /dev/null root/dev/null
run() { chroot root /usr/bin/spoolfs "$@"; }
env -i PATH="$PATH" SPOOLFS_MOUNTPOINT=/mnt/spool chroot root /usr/bin/spoolfs mount --store /store --broker amqp://u:p@127.0.0.1:1/ --exchange x 2>log &
for i in $(seq 1200); do [ -e root/mnt/spool/.status ] && break; sleep 0.05; done
echo '{"pubTime": "20261130T070000", "baseUrl": "http://h", "relPath": "a/b"}' >root/mnt/spool/f || { cat log; exit 1; }
for i in $(seq 1200); do grep -q '^ready 1$' root/mnt/spool/.status/queue && break; sleep 0.05; done
run status --check /mnt/spool || [ $? = 1 ]
run unmount /mnt/spool
wait
echo "all is well"
`
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--", "bash", "-euo", "pipefail", "-c", script, "-", t.TempDir(), one(t, "first/out/package/bin/spoolfs"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasSuffix(string(out), "all is well\n") {
		t.Errorf("%v\n%s", err, out)
	}
}
