package rabbit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// errMissing says what to do on a machine without RabbitMQ.
var errMissing = errors.New("install rabbitmq-server (make deps)")

// A home is the directory of one node, and what its programs need to know to
// keep to it.
//
//	rabbitmq.config   the configuration, in Erlang terms
//	enabled_plugins   none, or that of EXTERNAL
//	install/          RabbitMQ's scripts and libraries, by symbolic links
//	mnesia/           the data
//	log/              RabbitMQ's log
//	out               what the node printed
type home struct {
	dir   string
	lock  *os.File // of the directory, while we live
	opts  Options
	user  *syscall.Credential // nil: as we are
	ports *ports
}

func newHome(opts Options, ports *ports) (*home, error) {
	if _, err := os.Stat(opts.Server); err != nil {
		return nil, fmt.Errorf("find rabbitmq-server: %w: %w", err, errMissing)
	}
	h := &home{opts: opts, ports: ports}
	if os.Geteuid() == 0 {
		credential, err := rabbitUser()
		if err != nil {
			return nil, err
		}
		h.user = credential
	}
	removeOrphans()
	if err := h.make(); err != nil {
		return nil, fmt.Errorf("make the node's directory: %w", err)
	}
	return h, nil
}

func (h *home) make() (err error) {
	if h.dir, err = os.MkdirTemp("", dirPrefix); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			h.remove()
		}
	}()
	if h.lock, err = lockDir(h.dir); err != nil {
		return err
	}
	return h.fill()
}

// rabbitUser is the user that the Debian package made.
func rabbitUser() (*syscall.Credential, error) {
	u, err := user.Lookup("rabbitmq")
	if err != nil {
		return nil, fmt.Errorf("find user rabbitmq: %w: %w", err, errMissing)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

func (h *home) path(elem ...string) string {
	return filepath.Join(append([]string{h.dir}, elem...)...)
}

func (h *home) fill() error {
	if err := h.link(); err != nil {
		return err
	}
	if err := os.WriteFile(h.path("rabbitmq.config"), []byte(h.config()), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(h.path("enabled_plugins"), []byte("["+strings.Join(h.plugins(), ", ")+"].\n"), 0o644); err != nil {
		return err
	}
	for _, name := range []string{"mnesia", "log"} {
		if err := os.Mkdir(h.path(name), 0o700); err != nil {
			return err
		}
	}
	return h.chown()
}

func (h *home) config() string {
	return fmt.Sprintf(`[{rabbit, [{tcp_listeners, [{"127.0.0.1", %d}]},
           {num_tcp_acceptors, 2},%s
           {disk_free_limit, 1000000}]}].
`, h.ports.amqp.number, h.tlsConfig())
}

func (h *home) tlsConfig() string {
	t := h.opts.TLS
	if t == nil {
		return ""
	}
	return fmt.Sprintf(`
           {ssl_listeners, [{"127.0.0.1", %d}]},
           {ssl_options, [{cacertfile, %q}, {certfile, %q}, {keyfile, %q},
                          {verify, verify_peer}, {fail_if_no_peer_cert, false}]},
           {auth_mechanisms, ['PLAIN', 'AMQPLAIN', 'EXTERNAL']},
           {ssl_cert_login_from, common_name},`, h.ports.tls.number, t.CA, t.Cert, t.Key)
}

// plugins are those that the node needs.
func (h *home) plugins() []string {
	if h.opts.TLS == nil {
		return nil
	}
	return []string{"rabbitmq_auth_mechanism_ssl"}
}

// link makes an installation without plugins. The node looks for each of its
// 1,200 modules in every directory of plugins/, so that most of its start is
// lost on plugins that it does not use.
func (h *home) link() error {
	scripts, err := filepath.EvalSymlinks(h.opts.Server)
	if err != nil {
		return err
	}
	root := filepath.Dir(filepath.Dir(scripts))
	if err := os.MkdirAll(h.path("install", "plugins"), 0o755); err != nil {
		return err
	}
	for _, name := range []string{"sbin", "escript"} {
		if err := os.Symlink(filepath.Join(root, name), h.path("install", name)); err != nil {
			return err
		}
	}
	libs, err := filepath.Glob(filepath.Join(root, "plugins", "*-*"))
	if err != nil {
		return err
	}
	for _, lib := range libs {
		if h.needs(filepath.Base(lib)) {
			if err := os.Symlink(lib, h.path("install", "plugins", filepath.Base(lib))); err != nil {
				return err
			}
		}
	}
	return nil
}

// needs reports whether this node uses a library.
func (h *home) needs(lib string) bool {
	for _, plugin := range h.plugins() {
		if strings.HasPrefix(lib, plugin+"-") {
			return true
		}
	}
	return needed(lib)
}

// needed reports whether a bare node uses a library: all but the plugins and
// what only they use.
func needed(lib string) bool {
	if strings.HasPrefix(lib, "rabbitmq_") {
		return strings.HasPrefix(lib, "rabbitmq_prelaunch-")
	}
	for _, prefix := range []string{"cow", "gun-", "jose-", "eetcd-", "prometheus-", "amqp_client-"} {
		if strings.HasPrefix(lib, prefix) {
			return false
		}
	}
	return true
}

func (h *home) chown() error {
	if h.user == nil {
		return nil
	}
	for _, name := range []string{"", "mnesia", "log"} {
		if err := os.Chown(h.path(name), int(h.user.Uid), int(h.user.Gid)); err != nil {
			return err
		}
	}
	return nil
}

// command is a program of RabbitMQ or Erlang that keeps to this directory.
// The environment of this process is not for it.
func (h *home) command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Dir = h.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"),
		"LANG=C.UTF-8",
		"HOME=" + h.dir, // of the cookie
		"ERL_CRASH_DUMP=" + h.path("erl_crash.dump"),
		"RABBITMQ_SCRIPTS_DIR=" + h.path("install", "sbin"),
		"RABBITMQ_PLUGINS_DIR=" + h.path("install", "plugins"),
		"RABBITMQ_CONF_ENV_FILE=" + h.path("none"),
		"RABBITMQ_CONFIG_FILE=" + h.path("rabbitmq.config"),
		"RABBITMQ_ADVANCED_CONFIG_FILE=" + h.path("none.config"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + h.path("enabled_plugins"),
		"RABBITMQ_MNESIA_BASE=" + h.path("mnesia"),
		"RABBITMQ_LOG_BASE=" + h.path("log"),
		"RABBITMQ_NODENAME=" + h.nodeName(),
		fmt.Sprintf("RABBITMQ_DIST_PORT=%d", h.ports.dist.number),
		fmt.Sprintf("RABBITMQ_CTL_DIST_PORT_MIN=%d", h.ports.ctl.number),
		fmt.Sprintf("RABBITMQ_CTL_DIST_PORT_MAX=%d", h.ports.ctl.number),
		fmt.Sprintf("ERL_EPMD_PORT=%d", h.ports.epmd.number),
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
		// The script then becomes the node instead of waiting for it, so that
		// the process we start is the one that we can kill.
		"RABBITMQ_ALLOW_INPUT=true",
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: h.user}
	return cmd
}

func (h *home) nodeName() string {
	return fmt.Sprintf("spoolfs-%d@localhost", h.ports.amqp.number)
}

func (h *home) remove() error {
	h.lock.Close() // an error says that there is none
	return os.RemoveAll(h.dir)
}

// logTail is the end of what the node wrote, for an error.
func (h *home) logTail() string {
	logs, _ := filepath.Glob(h.path("log", "*.log"))
	var tails []string
	for _, path := range append(logs, h.path("out")) {
		if b, err := os.ReadFile(path); err == nil && len(b) > 0 {
			tails = append(tails, filepath.Base(path)+": "+lastLines(string(b), 40))
		}
	}
	return strings.Join(tails, "\n")
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
