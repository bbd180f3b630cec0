package keeper

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// The descriptors that a worker is born with.
const (
	DeviceFD  = 3
	MemoryFD  = 4
	ControlFD = 5
)

// Kind is what a message is about.
type Kind string

// What keeper and worker tell each other.
const (
	// To the worker.
	KindStart    Kind = "start"    // the first: how to start
	KindAttached Kind = "attached" // the mount is visible: the answer to ready
	KindDrain    Kind = "drain"    // take no more, finish what is in hand, end
	KindYield    Kind = "yield"    // end at once; somebody takes over
	KindKeeper   Kind = "keeper"   // the state of the keeper has changed

	// To the keeper.
	KindReady    Kind = "ready"    // serves
	KindAlive    Kind = "alive"    // is no zombie; said from the start, as often as asked for
	KindReloaded Kind = "reloaded" // has read its configuration again
	KindUnmount  Kind = "unmount"  // somebody wants the mount to end
	KindEnded    Kind = "ended"    // the last: why it ends
)

// Reason is why a worker ends in good order.
type Reason string

// The reasons.
const (
	Drained   Reason = "drained"
	Yielded   Reason = "yielded"
	Unmounted Reason = "unmounted" // by somebody else

	// Unfit says that no worker of this program can ever go on with what there is:
	// the memory is damaged, of another version, or of another store.
	Unfit Reason = "unfit"
)

// Message is one packet.
type Message struct {
	Kind   Kind   `json:"kind"`
	Start  *Start `json:"start,omitempty"`
	State  *State `json:"state,omitempty"`
	Reason Reason `json:"reason,omitempty"`
	Cause  string `json:"cause,omitempty"` // for people, of an end that is unfit

	// Stuck says, in an alive, what does not go on: the mount or the store.
	Stuck string `json:"stuck,omitempty"`

	// Status is the state in a line for people, in an alive; empty if unknown.
	Status string `json:"status,omitempty"`

	// Version of the worker, in a ready.
	Version string `json:"version,omitempty"`

	// Config is the configuration that is in force, in a ready and a reloaded, as
	// the next worker is to have it.
	Config json.RawMessage `json:"config,omitempty"`
}

// Start is how to start.
type Start struct {
	Args []string `json:"args"` // of the command that mounts

	// Config is what the last worker has left of its configuration, for the next
	// one: it is in force while the mount lives. Nil for the first.
	Config json.RawMessage `json:"config,omitempty"`

	State      State         `json:"state"`
	Mounted    bool          `json:"mounted"`     // the mount is visible already
	AliveEvery time.Duration `json:"alive_every"` // how often to say so
}

// State is what there is to know of a keeper.
type State struct {
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Binary  string    `json:"binary"`
	Started time.Time `json:"started"` // when this version took over, or mounted

	Workers    int    `json:"workers"` // how many there have been
	Deaths     int    `json:"deaths"`  // that nobody asked for
	LastDeath  string `json:"last_death"`
	LastGapMS  int64  `json:"last_gap_ms"`
	WorstGapMS int64  `json:"worst_gap_ms"`
	Refused    int    `json:"refused"` // requests that had cost too many workers

	Upgrades     int    `json:"upgrades"`
	UpgradeFails int    `json:"upgrade_fails"`
	UpgradeError string `json:"upgrade_error"` // of the last one that failed
}

// Control is an end of the socket between keeper and worker. A message is one
// packet of JSON, or, if it is longer than that, several, each of which begins with
// a byte that says whether it is the last.
type Control struct {
	conn *net.UnixConn
	buf  [maxPacket]byte // of Receive
	rest []byte          // what has come of a message in several packets

	mu sync.Mutex // guards writes
}

const (
	// maxPacket is the size of the longest packet in bytes: the kernel takes some
	// 200 KiB.
	maxPacket = 128 << 10

	// maxMessage is the size of the longest message in bytes: a configuration with
	// thousands of routes.
	maxMessage = 16 << 20

	packetMore, packetLast = 1, 2 // no JSON begins so
)

// NewControl takes an end of a socket pair by its descriptor, which it owns then.
func NewControl(fd int) (*Control, error) {
	unix.CloseOnExec(fd)
	file := os.NewFile(uintptr(fd), "control")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("control socket: it is a %T", conn), conn.Close())
	}
	return &Control{conn: c}, nil
}

// controlPair makes both ends.
func controlPair() (ours *Control, theirs int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, -1, fmt.Errorf("make control socket: %w", err)
	}
	// So that telling a worker how to start does not wait until it does. Only root
	// may have so much; others wait.
	for _, fd := range pair {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, maxMessage/2)
	}
	ours, err = NewControl(pair[0])
	if err != nil {
		return nil, -1, errors.Join(err, unix.Close(pair[1]))
	}
	return ours, pair[1], nil
}

// sendTimeout is how long the other end may not read before a message is given
// up: a worker that hangs must not hold up its keeper.
const sendTimeout = time.Second

// Send sends a message.
func (c *Control) Send(m Message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("tell %s: %w", m.Kind, err)
	}
	if len(text) > maxMessage {
		return fmt.Errorf("tell %s: %d bytes, %d at most", m.Kind, len(text), maxMessage)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, packet := range packets(text) {
		if err := c.conn.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
			return fmt.Errorf("tell %s: %w", m.Kind, err)
		}
		if _, err := c.conn.Write(packet); err != nil {
			return fmt.Errorf("tell %s: %w", m.Kind, err)
		}
	}
	return nil
}

// packets are those of a message.
func packets(text []byte) [][]byte {
	if len(text) <= maxPacket {
		return [][]byte{text}
	}
	var all [][]byte
	for part := range slices.Chunk(text, maxPacket-1) {
		all = append(all, append([]byte{packetMore}, part...))
	}
	all[len(all)-1][0] = packetLast
	return all
}

// Receive returns the next message, and io.EOF when the other end is gone. One
// goroutine may call it.
func (c *Control) Receive() (Message, error) {
	var m Message
	text, err := c.receive()
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("message %.100q: %w", text, err)
	}
	return m, nil
}

// receive returns the text of the next message, until it is called again.
func (c *Control) receive() ([]byte, error) {
	for {
		n, err := c.conn.Read(c.buf[:])
		switch {
		case errors.Is(err, unix.ECONNRESET) || err == nil && n == 0:
			return nil, io.EOF
		case err != nil:
			return nil, err
		}
		packet := c.buf[:n]
		if packet[0] != packetMore && packet[0] != packetLast {
			return packet, nil
		}
		if len(c.rest)+n > maxMessage+maxPacket {
			return nil, fmt.Errorf("a message of more than %d bytes", maxMessage)
		}
		c.rest = append(c.rest, packet[1:]...)
		if packet[0] == packetLast {
			text := c.rest
			c.rest = nil
			return text, nil
		}
	}
}

// Close closes this end.
func (c *Control) Close() error { return c.conn.Close() }
