package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// server answers those who watch the daemon: over HTTP, on a TCP port or a unix
// socket. It tells numbers and states, and changes nothing.
type server struct {
	listener net.Listener
	http     *http.Server
	done     chan struct{}
}

// unixPrefix marks an address as the path of a socket.
const unixPrefix = "unix:"

// listen takes an address, "host:port" or "unix:/path". A socket that a crash has
// left is replaced, one on which somebody answers is not.
func listen(address string) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(address, unixPrefix)
	if !isUnix {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, fmt.Errorf("--listen=%s: %w", address, err)
		}
		return l, nil
	}
	if conn, err := net.Dial("unix", path); err == nil {
		return nil, errors.Join(fmt.Errorf("--listen=%s: somebody else listens there: give each daemon a socket of its own", address), conn.Close())
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("--listen=%s: replace a socket that was left: %w", address, err)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("--listen=%s: %w", address, err)
	}
	// Numbers are for everybody, as in .status.
	if err := os.Chmod(path, 0o666); err != nil && !errors.Is(err, syscall.ENOENT) {
		return nil, errors.Join(fmt.Errorf("--listen=%s: %w", address, err), l.Close())
	}
	return l, nil
}

// newServer makes a server that does not serve yet.
func newServer(l net.Listener, m *metrics, mon *monitor) *server {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		h := mon.health()
		writeHealth(w, h, "live", h.Live)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		h := mon.health()
		writeHealth(w, h, "ready", h.Ready)
	})
	// Not its Cmdline: a command line may hold a password.
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/cmdline", http.NotFound)
	return &server{
		listener: l, done: make(chan struct{}),
		http: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10},
	}
}

// writeHealth answers with 200 or 503, and says why.
func writeHealth(w http.ResponseWriter, h health, what string, ok bool) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
		what = "not " + what
	}
	fmt.Fprintf(w, "%s, level %s\n", what, h.Level)
	for _, p := range h.Problems {
		fmt.Fprintf(w, "%s %s: %s\n  what to do: %s\n", p.Level, p.Code, p.Text, p.Advice)
	}
}

// serve answers until close.
func (s *server) serve() {
	defer close(s.done)
	_ = s.http.Serve(s.listener) // always that it was closed
}

// stopServing is how long requests under way get to end.
const stopServing = time.Second

// close ends the server and removes its socket.
func (s *server) close() {
	ctx, cancel := context.WithTimeout(context.Background(), stopServing)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close() // a profile, say, is cut off
	}
	<-s.done
}
