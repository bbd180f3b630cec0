package queue

import "github.com/cockroachdb/pebble/v2"

// book is the bookkeeping that a group of writes changes: counters of routes and
// what users have. Each write changes it, and only the state after the last is
// stored.
type book struct {
	counters []bookRow[counters]
	users    []bookRow[tally]
}

// bookRow is a row that is not encoded yet.
type bookRow[T any] struct {
	id    uint32
	value T
}

// setRow replaces the row of id, or adds it. There are few.
func setRow[T any](rows []bookRow[T], id uint32, value T) []bookRow[T] {
	for i := range rows {
		if rows[i].id == id {
			rows[i].value = value
			return rows
		}
	}
	return append(rows, bookRow[T]{id, value})
}

// write adds the rows to a batch.
func (k *book) write(b *pebble.Batch) error {
	for i := range k.counters {
		row := &k.counters[i]
		if err := b.Set(routeKey(kindCounters, row.id), row.value.encode(), nil); err != nil {
			return err
		}
	}
	for _, row := range k.users {
		var err error
		if value := encodeUser(row.value); value != nil {
			err = b.Set(userKey(row.id), value, nil)
		} else {
			err = b.Delete(userKey(row.id), nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
