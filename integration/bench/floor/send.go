package main

import (
	"bytes"
	"fmt"
	"io"
	"time"
)

// send publishes messages and prints how long that took, from the first one to
// the last confirm.
func send(url, exchange string, messages, size, window int, stdout io.Writer) error {
	l := line{url: url, exchange: exchange, window: window}
	if err := l.open(); err != nil {
		return err
	}
	body := bytes.Repeat([]byte("x"), size)
	start := time.Now()
	for range messages {
		if err := l.publish(body, nil); err != nil {
			return err
		}
	}
	if err := l.settle(nil); err != nil {
		return err
	}
	fmt.Fprintln(stdout, time.Since(start).Seconds())
	return l.close()
}
