package rabbit

import (
	"fmt"
	"syscall"
)

// Freeze stops the node where it is, without an end: its host goes on to accept
// connections, and nobody answers on them.
func (n *Node) Freeze() error { return n.signal(syscall.SIGSTOP) }

// Thaw lets a node go on that was frozen.
func (n *Node) Thaw() error { return n.signal(syscall.SIGCONT) }

func (n *Node) signal(s syscall.Signal) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.runningLocked() {
		return nil
	}
	if err := syscall.Kill(-n.server.pid(), s); err != nil {
		return fmt.Errorf("send %s to the node: %w", s, err)
	}
	return nil
}
