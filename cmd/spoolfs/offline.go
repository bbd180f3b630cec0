package main

import (
	"errors"
	"log/slog"
	"path/filepath"

	"spoolfs/queue"
)

// offlineStore is a store that no daemon serves.
type offlineStore struct {
	*queue.Queue
	log  *slog.Logger
	held int // files with temporary names, and directories, which stay
}

// openOffline opens a store and takes up what a daemon has left, as its next
// start would, except for files that wait for their rename. It makes one if it may.
func openOffline(env *environment, dir string, mayMake bool) (*offlineStore, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, withCode(exitUsage, err)
	}
	if err := storeMustExist(dir); err != nil && !mayMake {
		return nil, err
	}
	s := &offlineStore{log: slog.New(slog.NewTextHandler(env.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	q, stages, err := queue.Open(dir, queue.Options{Logger: s.log, Limits: queue.Limits{UserShare: 1}})
	switch {
	case errors.Is(err, queue.ErrLocked):
		return nil, withCode(exitTemporary, inUse(dir, err))
	case errors.Is(err, queue.ErrNewerStore):
		return nil, withCode(exitConfig, err)
	case err != nil:
		return nil, withCode(exitIO, err)
	}
	s.Queue = q
	for _, stage := range stages {
		if stage.Info().Held {
			s.held++
		} else if err = stage.Commit(); err != nil {
			break
		}
	}
	if err == nil {
		_, err = q.Route(defaultRoute) // the first one of a new store
	}
	if err != nil {
		return nil, errors.Join(withCode(exitIO, err), q.Close())
	}
	return s, nil
}

// routeOf is the route that takes what one of that name has held.
func (s *offlineStore) routeOf(name string) (*queue.Route, error) {
	if name != defaultRoute {
		if err := checkRouteName(name); err != nil {
			return nil, err
		}
	}
	return s.Queue.Route(name)
}

// close closes the store.
func (s *offlineStore) close() error {
	if err := s.Close(); err != nil {
		return withCode(exitIO, err)
	}
	return nil
}
