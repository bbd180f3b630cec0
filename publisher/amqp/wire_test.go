package amqp

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// TestWire_HalfAFrame: when a write has taken too long nothing is written after
// it, whoever writes.
func TestWire_HalfAFrame(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	w := &wire{Conn: here, timeout: 10 * time.Millisecond}
	defer w.Close()
	go io.ReadFull(there, make([]byte, 3))
	n, err := w.Write([]byte("frame"))
	if n != 3 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("wrote %d, %v", n, err)
	}
	got := make(chan []byte, 1)
	go func() {
		b, _ := io.ReadAll(there)
		got <- b
	}()
	if n, err := w.Write([]byte("another")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("wrote %d, %v", n, err)
	}
	w.Close()
	if b := <-got; len(b) > 0 {
		t.Errorf("%q came behind half a frame", b)
	}
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
			late := time.AfterFunc(100*time.Millisecond, func() { there.Write([]byte("x")) })
			defer late.Stop()
			defer there.Close()
			if _, err := w.Read(make([]byte, 1)); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
