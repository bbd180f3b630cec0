package rabbit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// ErrClosed says that the node was closed.
var ErrClosed = errors.New("the node is closed")

// Node is a RabbitMQ node of our own. Its methods may be called at any time;
// those that change its state wait for each other.
type Node struct {
	opts  Options
	home  *home
	ports *ports

	mu     sync.Mutex
	epmd   *process
	server *process
	closed bool

	ctlMu sync.Mutex // one rabbitmqctl at a time: they share a port
}

// Start makes a node and starts it.
func Start(ctx context.Context, opts Options) (*Node, error) {
	opts = opts.withDefaults()
	ports, err := reservePorts()
	if err != nil {
		return nil, err
	}
	home, err := newHome(opts, ports)
	if err != nil {
		return nil, errors.Join(err, ports.release())
	}
	n := &Node{opts: opts, home: home, ports: ports}
	if err := n.Start(ctx); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// URL is where clients find the node. It stays the same for the node's life.
func (n *Node) URL() string {
	return fmt.Sprintf("amqp://guest:guest@127.0.0.1:%d/", n.ports.amqp.number)
}

// TLSURL is where clients find the node with TLS, if Options.TLS is set. It has
// no user.
func (n *Node) TLSURL() string {
	return fmt.Sprintf("amqps://127.0.0.1:%d/", n.ports.tls.number)
}

// Start starts the node again after Stop or Kill, with the same data and port,
// and returns when clients can use it. A node that runs is left as it is.
func (n *Node) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, n.opts.StartTimeout)
	defer cancel()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return ErrClosed
	}
	if n.runningLocked() {
		return nil
	}
	if err := n.startEpmdLocked(ctx); err != nil {
		return fmt.Errorf("start epmd: %w", err)
	}
	if err := n.startServerLocked(ctx); err != nil {
		return fmt.Errorf("start rabbitmq-server: %w\n%s", err, n.home.logTail())
	}
	return nil
}

// startEpmdLocked runs the name server of the node, which would otherwise
// start one itself, as a daemon that stays.
func (n *Node) startEpmdLocked(ctx context.Context) error {
	if n.epmd != nil && n.epmd.Alive() {
		return nil
	}
	path, err := exec.LookPath("epmd")
	if err != nil {
		return fmt.Errorf("%w: %w", err, errMissing)
	}
	n.epmd, err = startProcess(n.home.command(path))
	if err != nil {
		return err
	}
	return n.epmd.await(ctx, n.ports.epmd.used)
}

func (n *Node) startServerLocked(ctx context.Context) error {
	out, err := os.Create(n.home.path("out"))
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := n.home.command(n.opts.Server, "-noinput")
	cmd.Stdout, cmd.Stderr = out, out
	n.server, err = startProcess(cmd)
	if err != nil {
		return err
	}
	if err := n.server.await(ctx, func() bool { return n.answers(ctx) }); err != nil {
		return errors.Join(err, n.server.kill())
	}
	return nil
}

// answers reports whether the node completes a handshake.
func (n *Node) answers(ctx context.Context) bool {
	conn, err := dial(ctx, n.URL())
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

// Running reports whether the node's process is there.
func (n *Node) Running() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.runningLocked()
}

func (n *Node) runningLocked() bool { return n.server != nil && n.server.Alive() }

// Ctl runs rabbitmqctl against the node and returns what it prints. It takes a
// second or two.
func (n *Node) Ctl(ctx context.Context, args ...string) (string, error) {
	n.ctlMu.Lock()
	defer n.ctlMu.Unlock()
	if !n.Running() {
		return "", fmt.Errorf("rabbitmqctl %q: the node does not run", args)
	}
	path := filepath.Join(filepath.Dir(n.opts.Server), "rabbitmqctl")
	cmd := n.home.command(path, append([]string{"--quiet"}, args...)...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	ctl, err := startProcess(cmd)
	if err == nil {
		err = ctl.wait(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("rabbitmqctl %q: %w: %s%s", args, err, out.String(), complaint.String())
	}
	return out.String(), nil
}

// Stop ends the node as an operator would. When ctx ends before the node does,
// the node is left on its way down.
func (n *Node) Stop(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.runningLocked() {
		return nil
	}
	if err := n.server.terminate(ctx); err != nil {
		return fmt.Errorf("stop the node: %w", err)
	}
	return nil
}

// Kill ends the node as a power cut would.
func (n *Node) Kill() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.killLocked()
}

func (n *Node) killLocked() error {
	if n.server == nil {
		return nil
	}
	return n.server.kill()
}

// Close ends the node and everything that belongs to it, and removes its data.
func (n *Node) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	n.closed = true
	err := n.killLocked()
	if n.epmd != nil {
		err = errors.Join(err, n.epmd.kill())
	}
	return errors.Join(err, n.home.remove(), n.ports.release())
}
