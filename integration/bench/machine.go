package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// machine is where and when was measured.
type machine struct {
	CPU       string    `json:"cpu"`
	CPUs      int       `json:"cpus"`
	Kernel    string    `json:"kernel"`
	Go        string    `json:"go"`
	Date      time.Time `json:"date"`
	LoadBegin string    `json:"load_begin"` // averages of 1, 5 and 15 minutes
	LoadEnd   string    `json:"load_end"`
}

func thisMachine() machine {
	m := machine{CPUs: runtime.NumCPU(), Go: runtime.Version(), Date: time.Now().UTC(), LoadBegin: loadAverage()}
	var u unix.Utsname
	if err := unix.Uname(&u); err == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	text, _ := os.ReadFile("/proc/cpuinfo") // some have no name
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
		}
	}
	return m
}

// is reports whether two are the same machine.
func (m machine) is(o machine) bool {
	return m.CPU == o.CPU && m.CPUs == o.CPUs && m.Kernel == o.Kernel
}

func (m machine) String() string {
	return fmt.Sprintf("%d CPUs (%s), Linux %s, %s, %s; load average %s at the begin, %s at the end (of 1, 5 and 15 minutes)",
		m.CPUs, m.CPU, m.Kernel, m.Go, m.Date.Format("2006-01-02"), m.LoadBegin, m.LoadEnd)
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 3 {
		return "unknown"
	}
	return strings.Join(fields[:3], " ")
}
