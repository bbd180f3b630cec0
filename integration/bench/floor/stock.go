package main

import (
	"context"
	"fmt"
	"io"
	"log"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// serveStock serves a null file system with go-fuse's own server.
func serveStock(ctx context.Context, dir string, stdout io.Writer) error {
	server, err := fuse.NewServer(newNull(nil), dir, &fuse.MountOptions{
		AllowOther: true, DirectMount: true, FsName: "null", Name: "null", MaxBackground: 64,
		DisableXAttrs: true, DisableReadDirPlus: true, Logger: log.New(io.Discard, "", 0),
	})
	if err != nil {
		return fmt.Errorf("mount on %q: %w", dir, err)
	}
	go server.Serve()
	if err := server.WaitMount(); err != nil {
		return fmt.Errorf("mount on %q: %w", dir, err)
	}
	fmt.Fprintln(stdout, "ready")
	<-ctx.Done()
	err = server.Unmount()
	server.Wait()
	return err
}
