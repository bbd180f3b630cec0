package amqp

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// TestWire_HalfAFrame: when a write has taken too long nothing is written after
// it, whoever writes.
func TestWire_HalfAFrame(t *testing.T) {
	full := &fullOnce{room: 3}
	w := &wire{Conn: full, timeout: time.Minute}
	if n, err := w.Write([]byte("frame")); n != 3 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("wrote %d, %v", n, err)
	}
	if n, err := w.Write([]byte("another")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("wrote %d, %v", n, err)
	}
	if got := string(full.got); got != "fra" {
		t.Errorf("%q was written", got)
	}
}

// fullOnce is a connection that takes some bytes, then none in time, and then
// everything.
type fullOnce struct {
	net.Conn
	room int // until it is full; 0 is no limit
	got  []byte
}

func (f *fullOnce) SetWriteDeadline(time.Time) error { return nil }

func (f *fullOnce) Write(b []byte) (n int, err error) {
	n = len(b)
	if f.room > 0 {
		n, err = f.room, os.ErrDeadlineExceeded
		f.room = 0
	}
	f.got = append(f.got, b[:n]...)
	return n, err
}

// TestWire_Patient: while the broker blocks us a write waits, and goes on where
// it was.
func TestWire_Patient(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	w := &wire{Conn: here, timeout: time.Millisecond}
	w.patient.Store(true)
	wrote := make(chan error, 1)
	go func() {
		_, err := w.Write([]byte("frame"))
		wrote <- err
	}()
	var got []byte
	for range 5 {
		b := make([]byte, 1)
		time.Sleep(5 * w.timeout) // the other side takes its time
		if _, err := there.Read(b); err != nil {
			t.Fatal(err)
		}
		got = append(got, b...)
	}
	if err := <-wrote; err != nil || string(got) != "frame" {
		t.Errorf("got %q, %v", got, err)
	}
	w.Close()
}

// TestWire_PatientReader: while a write waits with patience nobody moves the
// deadline of reading, and only a broker that has said nothing for too long is
// taken for gone.
func TestWire_PatientReader(t *testing.T) {
	for name, c := range map[string]struct {
		patient bool
		silence time.Duration
		want    error
	}{
		"Patient":    {true, time.Minute, nil},
		"NotBlocked": {false, time.Minute, os.ErrDeadlineExceeded},
		"Silent":     {true, time.Millisecond, os.ErrDeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			here, there := net.Pipe()
			w := &wire{Conn: here, timeout: time.Minute, silence: c.silence, lastRead: time.Now()}
			defer w.Close()
			w.patient.Store(c.patient)
			if err := w.SetReadDeadline(time.Now().Add(5 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			defer there.Close()
			if c.want == nil {
				late := time.AfterFunc(100*time.Millisecond, func() { there.Write([]byte("x")) })
				defer late.Stop()
			}
			if _, err := w.Read(make([]byte, 1)); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
