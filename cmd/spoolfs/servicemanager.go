package main

import (
	"context"
	"os"
	"strconv"
	"strings"

	"spoolfs/fs/keeper"
)

// processEnvironment is what this process was started with.
func processEnvironment(ctx context.Context, args []string) (*environment, error) {
	env := &environment{ctx: ctx, args: args, stdout: os.Stdout, stderr: os.Stderr}
	env.manager, env.left = serviceManager()
	b, err := takeBaton()
	if err != nil || b == nil {
		return env, err
	}
	env.baton, env.args, env.left = b, b.Args, &left{b.Device, b.Memory}
	if b.Manager.Socket != "" {
		env.manager = &keeper.Manager{Socket: b.Manager.Socket, Stores: b.Manager.Stores}
	}
	return env, nil
}

// serviceManager finds the service manager that has started us, and what a former
// run has left with it. The variables are removed, so that no child takes them
// for its own.
func serviceManager() (*keeper.Manager, *left) {
	socket, stores := os.Getenv("NOTIFY_SOCKET"), os.Getenv("FDSTORE")
	found := listenFDs(os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_FDNAMES"))
	for _, name := range []string{"NOTIFY_SOCKET", "FDSTORE", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		os.Unsetenv(name)
	}
	var manager *keeper.Manager
	if socket != "" {
		n, err := strconv.Atoi(stores)
		manager = &keeper.Manager{Socket: socket, Stores: err == nil && n > 0}
	}
	device, hasDevice := found[keeper.DeviceName]
	memory, hasMemory := found[keeper.MemoryName]
	if !hasDevice || !hasMemory {
		return manager, nil
	}
	return manager, &left{device, memory}
}

// listenFDs are the descriptors that the service manager has passed, by name.
func listenFDs(pid, count, names string) map[string]int {
	const first = 3 // of sd_listen_fds(3)
	n, err := strconv.Atoi(count)
	if err != nil || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return nil
	}
	found := map[string]int{}
	for i, name := range strings.Split(names, ":") {
		if i < n {
			found[name] = first + i
		}
	}
	return found
}
