package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// dialers is how many connect opens at a time.
const dialers = 32

// connect opens connections with a channel in confirm mode each, prints how long that
// took, and keeps them until ctx ends.
func connect(ctx context.Context, url string, connections int, stdout io.Writer) error {
	var (
		group sync.WaitGroup
		lines = make([]line, connections)
		errs  = make([]error, connections)
		next  = make(chan int)
	)
	start := time.Now()
	for range dialers {
		group.Go(func() {
			for i := range next {
				lines[i] = line{url: url, window: 1}
				errs[i] = lines[i].open()
			}
		})
	}
	for i := range lines {
		next <- i
	}
	close(next)
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Fprintln(stdout, time.Since(start).Seconds())
	<-ctx.Done()
	for i := range lines {
		errs[i] = lines[i].close()
	}
	return errors.Join(errs...)
}
